//! Instances on the real kernel, tried from inside and from outside.
//!
//! A program of its own instead of the usual harness, because the host must be started before any thread exists, and
//! because this very program is what runs inside the instances (`inside.rs`).
//!
//! As root the tests use the cgroups of the machine, and one of them runs all of them again as an unprivileged user.
//! What the machine does not permit is skipped, with the reason in the name of the test. Tests that measure CPU time are
//! ignored by default; `cargo test -p windfall-sandbox --test kernel -- --ignored` runs them.

mod crash;
mod crowd;
mod ending;
mod guest;
mod inside;
mod isolation;
mod limits;
mod measured;
mod place;
mod unprivileged;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use place::Place;

fn main() -> ExitCode {
    if let Some(code) = inside::run_if_inside().or_else(crash::run_if_asked) {
        return code;
    }
    let place: &'static Place = match Place::start() {
        Ok(place) => Box::leak(Box::new(place)),
        Err(error) => panic!("the host cannot be started: {error}"),
    };
    let mut trials: Vec<Trial> = Vec::new();
    trials.extend(isolation::trials(place));
    trials.extend(limits::trials(place));
    trials.extend(ending::trials(place));
    trials.extend(crowd::trials(place));
    trials.extend(crash::trials(place));
    trials.extend(measured::trials(place));
    trials.extend(unprivileged::trials());
    trials.extend(guest::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
