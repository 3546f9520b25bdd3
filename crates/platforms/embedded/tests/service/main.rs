//! The whole service as a process of its own: ended softly, killed at random moments, and run for long.
//!
//! ```text
//! cargo test -p windfall-embedded --features trial --test service                    3 kills, 5 seconds of load
//! cargo test -p windfall-embedded --features trial --test service -- --ignored       30 kills, 30 minutes of load
//! WINDFALL_SOAK_MINUTES=5 cargo test ... --test service -- --ignored minutes         5 minutes of load
//! WINDFALL_SOAK_PAUSE_MS=100 cargo test ...                                          a tenth of the usual load
//! ```
//!
//! Root runs all of it again as an unprivileged user, which has no cgroups.
#![allow(clippy::print_stdout, reason = "this is a program")]

mod crash;
mod http;
#[path = "../as_nobody/again.rs"]
mod nobody;
mod server;
mod soak;

use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    windfall_functions::serve_if_function();
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some("server") {
        server::run(&words.next().expect("the database"));
        return ExitCode::SUCCESS;
    }
    // One at a time: what is left of a service is looked for among all processes of this program.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    let story = |name: &str, story: fn()| {
        Trial::test(name, move || {
            story();
            Ok(())
        })
    };
    let long = |name, long: fn()| story(name, long).with_ignored_flag(true);
    let mut trials = vec![
        story("it_ends_softly_and_comes_back", crash::it_ends_softly_and_comes_back),
        story("it_survives_three_kills", || crash::it_survives_kills(3)),
        story("it_stays_as_large_as_it_is", || {
            soak::it_stays_as_large(Duration::from_secs(5), Duration::ZERO)
        }),
        long("it_survives_thirty_kills (takes a minute)", || crash::it_survives_kills(30)),
        long("it_stays_as_large_as_it_is_for_minutes (takes 30)", soak::for_minutes),
    ];
    trials.extend(nobody::trial());
    libtest_mimic::run(&arguments, trials).exit_code()
}
