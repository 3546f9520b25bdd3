//! The rules that keep the shape of the code, as tests. Each reports all of its violations at once,
//! with place, what is allowed and what to do.

mod crate_size;
mod dependencies;
mod exceptions;
pub(crate) mod finding;
mod layers;
mod names;
mod pages;
pub(crate) mod repository;
mod size;
mod spdx;
mod text;

use finding::none;
use repository::Repository;

#[test]
fn arrows_between_crates_point_down() {
    none(layers::arrows(&Repository::open()));
}

#[test]
fn some_outside_crates_are_named_in_few_places_only() {
    none(layers::confined(&Repository::open()));
}

#[test]
fn pure_crates_carry_the_bans_of_core() {
    none(layers::bans(&Repository::open()));
}

#[test]
fn names_say_something() {
    none(names::findings(&Repository::open()));
}

#[test]
fn files_and_functions_stay_short() {
    none(size::findings(&Repository::open()));
}

#[test]
fn crates_stay_small() {
    none(crate_size::findings(&Repository::open()));
}

#[test]
fn every_exception_is_still_needed() {
    none(exceptions::unused(&Repository::open()));
}

#[test]
fn nothing_unfinished_lands() {
    none(text::unfinished(&Repository::open()));
}

#[test]
fn words_are_plain() {
    none(text::dialect(&Repository::open()));
}

#[test]
fn every_promise_names_tests_that_exist() {
    none(pages::specification(&Repository::open()));
}

#[test]
fn no_file_names_a_place_on_one_machine() {
    none(text::machine_paths(&Repository::open()));
}

#[test]
fn dependencies_have_allowed_licences_and_sources() {
    none(dependencies::findings(&Repository::open()));
}

#[test]
fn the_readme_begins_with_its_two_commands() {
    none(pages::readme(&Repository::open()));
}

#[test]
fn the_architecture_page_names_what_exists() {
    none(pages::architecture(&Repository::open()));
}

#[test]
fn links_between_pages_lead_somewhere() {
    none(pages::links(&Repository::open()));
}
