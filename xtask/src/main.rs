//! The chores of this repository. `cargo xtask` lists them; `cargo xtask check` is what CI runs.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line program talks")]

mod check;
mod step;

use std::process::{Command, ExitCode};

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    List,
    Check { long: bool },
    Bless,
}

const LIST: &str = "\
cargo xtask check          everything CI runs: format, lints, tests, docs, dependencies, fuzz targets
cargo xtask check --long   the same with the long tests
cargo xtask bless          rewrite the golden files; review the difference before you commit it
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
        Ok(Task::Check { long }) => step::run_all(check::steps(long)),
        Ok(Task::Bless) => bless(),
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
        ["check"] => Ok(Task::Check { long: false }),
        ["check", "--long"] => Ok(Task::Check { long: true }),
        ["bless"] => Ok(Task::Bless),
        other => Err(format!("there is no task `{}`; allowed is:", other.join(" "))),
    }
}

/// Runs the tests that have `golden` in their name with leave to rewrite their files.
fn bless() -> ExitCode {
    let mut tests = Command::new("cargo");
    tests.args(["test", "--workspace", "--all-features", "--tests", "golden"]);
    match step::run(tests.env(check::BLESS, "1")) {
        Ok(()) => {
            println!("golden files are rewritten; `git diff` shows what changed");
            ExitCode::SUCCESS
        }
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
}
