//! The chores of this repository. `cargo xtask` lists them; `.ci/run` is what CI runs of them.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line program talks")]

mod check;
mod fuzz;
mod kubernetes;
mod python;
mod step;
mod tools;

use std::process::{Command, ExitCode};

use check::{Depth, Python};
use fuzz::Campaign;
use kubernetes::Cluster;

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    List,
    Check(Depth),
    Bless,
    Fuzz(Campaign),
    Python(Python),
    Kubernetes(Cluster),
}

const LIST: &str = "\
cargo xtask check              what CI runs first: format, lints, tests, docs, dependencies, fuzz targets
cargo xtask check --ci         the same with cargo-deny, a run of every fuzz target and Python's short tests
cargo xtask check --long       everything: the same with the tests that train, measure or take minutes, in Python too
cargo xtask bless              rewrite the golden files; review the difference before you commit it
cargo xtask python             build the Python package and run its short tests in an environment of their own
cargo xtask python --if-possible   the same; skipped where there is no Python or its packages cannot be downloaded
cargo xtask python --long      all tests: trainings by stable-baselines3, in one file and by RLlib on Ray as well
cargo xtask kubernetes         a real cluster with Knative on this machine, the tests against it, and its end
cargo xtask kubernetes --format json   the summary as JSON
cargo xtask kubernetes --keep          leave the cluster up
cargo xtask kubernetes --no-knative    Kubernetes alone
cargo xtask kubernetes --test story    only tests with this in their name
cargo xtask fuzz               run every fuzz target on a million inputs
cargo xtask fuzz --runs 50     the same on so many inputs each
cargo xtask fuzz --target huawei   one of them
cargo xtask fuzz --keep        and keep what was found in fuzz/corpus, reduced to a minimum
";

fn main() -> ExitCode {
    // Wherever it is called from, the chores are about the whole repository.
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    if let Err(why) = std::env::set_current_dir(root) {
        eprintln!("error: cannot enter {root}: {why}");
        return ExitCode::from(2);
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    match parse(&words) {
        Ok(Task::List) => {
            print!("{LIST}");
            ExitCode::SUCCESS
        }
        Ok(Task::Check(depth)) => step::run_all(check::steps(depth)),
        Ok(Task::Bless) => bless(),
        Ok(Task::Fuzz(campaign)) => ended(campaign.run()),
        Ok(Task::Kubernetes(cluster)) => cluster.run(),
        Ok(Task::Python(python)) => step::run_all(vec![check::python(python)]),
        Err(problem) => {
            eprintln!("error: {problem}\n\n{LIST}");
            ExitCode::from(2)
        }
    }
}

fn parse(words: &[String]) -> Result<Task, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] | ["help" | "-h" | "--help"] => Ok(Task::List),
        ["check"] => Ok(Task::Check(Depth::Short)),
        ["check", "--ci"] => Ok(Task::Check(Depth::Ci)),
        ["check", "--long"] => Ok(Task::Check(Depth::Long)),
        ["bless"] => Ok(Task::Bless),
        ["python"] => Ok(Task::Python(Python::Short)),
        ["python", "--if-possible"] => Ok(Task::Python(Python::IfPossible)),
        ["python", "--long"] => Ok(Task::Python(Python::Long)),
        ["kubernetes", options @ ..] => Cluster::parse(options).map(Task::Kubernetes),
        ["fuzz", options @ ..] => campaign(options).map(Task::Fuzz),
        other => Err(format!("there is no task `{}`; allowed is:", other.join(" "))),
    }
}

/// The options of `fuzz`, in any order.
fn campaign(options: &[&str]) -> Result<Campaign, String> {
    let mut campaign = Campaign { runs: fuzz::USUAL_RUNS, target: None, keep: false };
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match *option {
            "--keep" => campaign.keep = true,
            "--runs" => {
                let number = options.next().copied().unwrap_or_default();
                campaign.runs = number.parse().ok().filter(|runs| *runs > 0).ok_or_else(|| {
                    format!("--runs is `{number}`, allowed is a whole number from 1")
                })?;
            }
            "--target" => {
                let name = options.next().ok_or("--target needs the name of a fuzz target")?;
                campaign.target = Some((*name).to_owned());
            }
            other => return Err(format!("`fuzz` has no option `{other}`; allowed is:")),
        }
    }
    Ok(campaign)
}

/// Runs the tests that have `golden` in their name with leave to rewrite their files.
fn bless() -> ExitCode {
    let mut tests = Command::new("cargo");
    tests.args(["test", "--workspace", "--all-features", "--tests", "golden"]);
    let blessed = step::run(tests.env(check::BLESS, "1"));
    if blessed.is_ok() {
        println!("golden files are rewritten; `git diff` shows what changed");
    }
    ended(blessed)
}

fn ended(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Task, String> {
        parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn every_listed_task_can_be_asked_for() {
        for line in LIST.lines() {
            let (command, _) = line.split_once("   ").expect("name and meaning are set apart");
            let words = command.strip_prefix("cargo xtask ").expect("the alias comes first");
            assert!(parsed(words).is_ok(), "{words}");
        }
    }

    #[test]
    fn an_unknown_task_is_named() {
        assert_eq!(parsed("").expect("no word lists the tasks"), Task::List);
        assert!(parsed("check --fast").expect_err("no such flag").contains("`check --fast`"));
    }
    #[test]
    fn options_of_fuzz_come_in_any_order_and_mistakes_are_named() {
        let wanted = Campaign { runs: 50, target: Some("huawei".into()), keep: true };
        let words = "fuzz --keep --target huawei --runs 50";
        assert_eq!(parsed(words).expect("all are known"), Task::Fuzz(wanted));
        assert!(parsed("fuzz --runs 0").expect_err("nothing to run").contains("--runs is `0`"));
        assert!(parsed("fuzz --target").expect_err("no name").contains("--target needs"));
        assert!(parsed("fuzz --fast").expect_err("no such option").contains("`--fast`"));
    }
}
