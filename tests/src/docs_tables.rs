//! Tables of the pages that repeat what code says: written by `cargo xtask bless`, or compared with the code.

mod block;
mod experiments;
mod policies;
mod settings;
mod table;

use crate::architecture::finding::none;
use crate::architecture::repository::Repository;

#[test]
fn golden_table_of_policies() {
    block::compare("docs/reference/policies.md", "policies", &policies::all());
}

#[test]
fn golden_table_of_safeguards_by_policy() {
    block::compare("docs/concepts/safeguards.md", "safeguards", &policies::safeguards());
}

#[test]
fn golden_list_of_policies_that_size_single_calls() {
    block::compare("docs/reference/scenario.md", "single calls", &policies::sizing_single_calls());
}

#[test]
fn every_policy_has_a_page() {
    none(policies::without_page(&Repository::open()));
}

#[test]
fn every_setting_of_a_policy_is_on_its_page_with_its_default() {
    none(settings::findings(&Repository::open()));
}

#[test]
fn every_experiment_has_its_three_files() {
    none(experiments::findings(&Repository::open()));
}
