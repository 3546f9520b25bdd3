//! Everything that must hold, cheapest first, at three depths.
//!
//! | | every change | `--ci` | `--long` |
//! |---|---|---|---|
//! | format, lints, tests, docs, generated files | all | all | all, with the tests that are ignored elsewhere |
//! | Python | | short tests | all tests |
//! | dependencies | cargo-deny where it is installed | cargo-deny | cargo-deny |
//! | fuzz targets | compiled | 100,000 inputs each | 100,000 inputs each |
//!
//! `--ci` leaves out what measures time or trains for minutes: a slow machine must not make it fail. Where a tool or
//! a package cannot be downloaded, `--ci` skips its step and says so, while `--long` fails.

use std::process::Command;

use crate::fuzz::Campaign;
use crate::kubernetes::Cluster;
use crate::step::{Action, Outcome, Step, run, succeeds};
use crate::tools::{CARGO_DENY, CARGO_FUZZ};

/// Gives golden tests leave to rewrite their files instead of comparing with them.
pub(crate) const BLESS: &str = "WINDFALL_BLESS";

/// Inputs per fuzz target: some ten seconds each, enough to notice that a change broke a reader. Campaigns are
/// for `cargo xtask fuzz`.
const FUZZ_RUNS: u64 = 100_000;

/// How much is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// For every change; what CI runs first.
    Short,
    /// With what has to be downloaded first.
    Ci,
    /// Everything there is.
    Long,
}

/// Which tests of the Python package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Python {
    /// Those without trainings.
    Short,
    /// The same, where their packages can be had.
    IfPossible,
    /// All of them.
    Long,
}

pub(crate) fn steps(depth: Depth) -> Vec<Step> {
    let before = working_tree();
    let mut steps = vec![
        Step::new("format", cargo("fmt --all --check")),
        Step::new("lints", cargo("clippy --workspace --all-targets --all-features -- -D warnings")),
        Step::new("test programs", cargo("test --workspace --all-features --no-run")),
        // Unit tests, integration tests (the architecture rules among them) and doctests.
        Step::new("tests", tests(depth)),
    ];
    // Building the wheel and filling an environment take minutes that a check of every change need not take.
    match depth {
        Depth::Short => {}
        Depth::Ci => steps.push(python(Python::IfPossible)),
        Depth::Long => steps.extend([python(Python::Long), kubernetes()]),
    }
    steps.extend([
        // Tests of real services mostly wait, so what is left to compile is compiled beside them.
        Step::beside("tests", "docs", docs()),
        fuzz_targets(depth),
        Step::new("dependencies", Box::new(move || dependencies(depth))),
        Step::new("generated files", Box::new(move || generated_files(before))),
    ]);
    steps
}

/// The Python package; says so where there is no Python to test it with.
pub(crate) fn python(which: Python) -> Step {
    let action = move || match which {
        Python::Short => crate::python::run_tests(false),
        Python::Long => crate::python::run_tests(true),
        Python::IfPossible => python_if_possible(),
    };
    Step::new("python", Box::new(action))
}

/// The tests against a real cluster; says so where there can be none.
fn kubernetes() -> Step {
    let cluster = Cluster { json: false, keep: false, knative: true, filter: None };
    Step::new("kubernetes", Box::new(move || cluster.step()))
}

/// The short tests, unless their packages cannot be downloaded: what cannot be tested here is not broken.
fn python_if_possible() -> Result<Outcome, String> {
    match crate::python::prepare(false) {
        Ok(_) => crate::python::run_tests(false),
        Err(why) => {
            Ok(Outcome::Skipped(format!("the packages for the tests cannot be had: {why}")))
        }
    }
}

fn cargo(words: &'static str) -> Action {
    Box::new(move || passed(Command::new("cargo").args(words.split(' '))))
}

fn tests(depth: Depth) -> Action {
    Box::new(move || {
        let mut tests = Command::new("cargo");
        tests.args(["test", "--workspace", "--all-features"]);
        if depth == Depth::Long {
            tests.args(["--", "--include-ignored"]);
        }
        // A golden file that is rewritten during a check would always agree with itself.
        passed(tests.env_remove(BLESS))
    })
}

/// In a folder of their own: with the lock of the usual one they would keep the tests waiting.
fn docs() -> Command {
    let mut docs = Command::new("cargo");
    docs.args(["doc", "--workspace", "--no-deps", "--target-dir", "target/docs"]);
    docs.env("RUSTDOCFLAGS", "-D warnings");
    docs
}

fn passed(command: &mut Command) -> Result<Outcome, String> {
    run(command).map(|()| Outcome::Passed)
}

/// Golden files are compared by the tests; here we make sure that nothing (the lock file, a golden
/// file) was rewritten on the way, which would make the steps before pass on something uncommitted.
fn generated_files(before: Option<String>) -> Result<Outcome, String> {
    let (Some(before), Some(after)) = (before, working_tree()) else {
        return Ok(Outcome::Skipped("not a git working tree".to_owned()));
    };
    if before == after {
        return Ok(Outcome::Passed);
    }
    run(Command::new("git").args(["--no-pager", "diff", "--stat"]))?;
    Err("tracked files changed while the checks ran; review and commit them, then check again"
        .into())
}

/// All that differs from the last commit, or nothing if git cannot tell.
fn working_tree() -> Option<String> {
    let output = Command::new("git").args(["diff", "HEAD"]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Licences, sources, bans and known vulnerabilities. The short check does without cargo-deny where it is not
/// installed: the architecture tests read the same file and judge all but the vulnerabilities.
fn dependencies(depth: Depth) -> Result<Outcome, String> {
    let tool = match depth {
        Depth::Short => CARGO_DENY.find(),
        Depth::Ci => CARGO_DENY.install().ok(),
        Depth::Long => Some(CARGO_DENY.install()?),
    };
    let Some(tool) = tool else {
        return Ok(Outcome::Skipped(
            "no cargo-deny here, `cargo xtask check --long` installs it; the architecture tests have \
             checked licences, sources and bans"
                .to_owned(),
        ));
    };
    println!("    looking for the advisory database");
    if succeeds(Command::new(&tool).args(["fetch", "db"])) {
        return passed(Command::new(&tool).args(["check", "--disable-fetch"]));
    }
    run(Command::new(&tool).args(["check", "bans", "licenses", "sources"]))?;
    Ok(Outcome::PassedWithout(
        "advisories, because their database cannot be reached from here; `cargo deny check advisories` \
         reads it where it can be"
            .to_owned(),
    ))
}

/// The short check compiles the targets, the others run them.
fn fuzz_targets(depth: Depth) -> Step {
    match depth {
        Depth::Short => Step::beside("tests", "fuzz targets", compile_fuzz_targets()),
        Depth::Ci | Depth::Long => {
            Step::new("fuzz targets", Box::new(move || run_fuzz_targets(depth)))
        }
    }
}

fn compile_fuzz_targets() -> Command {
    let mut check = Command::new("cargo");
    check.args(["check", "--manifest-path", "fuzz/Cargo.toml"]);
    // Nothing is linked, so libFuzzer itself need not be compiled; no file has to be there.
    check.env("CUSTOM_LIBFUZZER_PATH", "target/libFuzzer.a");
    check
}

fn run_fuzz_targets(depth: Depth) -> Result<Outcome, String> {
    if depth == Depth::Ci && CARGO_FUZZ.install().is_err() {
        run(&mut compile_fuzz_targets())?;
        return Ok(Outcome::PassedWithout(
            "running them, because cargo-fuzz cannot be installed here".to_owned(),
        ));
    }
    let campaign = Campaign { runs: FUZZ_RUNS, target: None, keep: false };
    campaign.run().map(|()| Outcome::Passed)
}
