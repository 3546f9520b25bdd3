//! Everything CI runs, cheapest first.

use std::path::Path;
use std::process::Command;

use crate::step::{Action, Outcome, Step, answers, run};

/// Gives golden tests leave to rewrite their files instead of comparing with them.
pub(crate) const BLESS: &str = "WINDFALL_BLESS";

pub(crate) fn steps(long: bool) -> Vec<Step> {
    let before = working_tree();
    vec![
        Step { name: "format", action: cargo("fmt --all --check") },
        Step {
            name: "lints",
            action: cargo("clippy --workspace --all-targets --all-features -- -D warnings"),
        },
        // Unit tests, integration tests (the architecture rules among them) and doctests.
        Step { name: "tests", action: tests(long) },
        Step { name: "docs", action: docs() },
        Step { name: "generated files", action: Box::new(move || generated_files(before)) },
        Step { name: "dependencies", action: Box::new(dependencies) },
        Step { name: "fuzz targets", action: Box::new(fuzz_targets) },
    ]
}

fn cargo(words: &'static str) -> Action {
    Box::new(move || passed(Command::new("cargo").args(words.split(' '))))
}

fn tests(long: bool) -> Action {
    Box::new(move || {
        let mut tests = Command::new("cargo");
        tests.args(["test", "--workspace", "--all-features"]);
        if long {
            tests.args(["--", "--include-ignored"]);
        }
        // A golden file that is rewritten during a check would always agree with itself.
        passed(tests.env_remove(BLESS))
    })
}

fn docs() -> Action {
    Box::new(|| {
        let mut docs = Command::new("cargo");
        docs.args(["doc", "--workspace", "--no-deps"]);
        passed(docs.env("RUSTDOCFLAGS", "-D warnings"))
    })
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

fn dependencies() -> Result<Outcome, String> {
    if !answers("cargo", &["deny", "--version"]) {
        return Ok(Outcome::Skipped(
            "no cargo-deny here; the architecture tests have checked licences, sources and bans"
                .to_owned(),
        ));
    }
    passed(Command::new("cargo").args(["deny", "check", "bans", "licenses", "sources"]))
}

fn fuzz_targets() -> Result<Outcome, String> {
    let missing = if !Path::new("fuzz/Cargo.toml").exists() {
        "there is no fuzz/ folder"
    } else if !answers("cargo", &["+nightly", "--version"]) {
        "no nightly toolchain here"
    } else if !answers("cargo", &["fuzz", "--version"]) {
        "no cargo-fuzz here"
    } else {
        return passed(Command::new("cargo").args(["+nightly", "fuzz", "build"]));
    };
    Ok(Outcome::Skipped(missing.to_owned()))
}
