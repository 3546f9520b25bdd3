//! One step after the other, each with a heading and its duration, until one fails.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// How a step ended well.
pub(crate) enum Outcome {
    Passed,
    /// All was well, but this part could not be checked here, for the reason given.
    PassedWithout(String),
    /// Could not be done here, for this reason; something else covers it or nothing is there to check.
    Skipped(String),
}

/// A step that says in one sentence what went wrong.
pub(crate) type Action = Box<dyn FnOnce() -> Result<Outcome, String>>;

pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) action: Action,
}

/// Runs all steps in order and stops at the first that fails. The summary comes last in either case.
pub(crate) fn run_all(steps: Vec<Step>) -> ExitCode {
    let mut rows = Vec::new();
    let mut failure = None;
    let mut steps = steps.into_iter();
    for Step { name, action } in steps.by_ref() {
        println!("\n==> {name}");
        let began = Instant::now();
        let result = action();
        let took = began.elapsed();
        match result {
            Ok(Outcome::Passed) => {
                println!("    {name}: passed in {}", seconds(took));
                rows.push((name, seconds(took), "passed".to_owned()));
            }
            Ok(Outcome::PassedWithout(part)) => {
                println!("    {name}: passed in {}, without {part}", seconds(took));
                rows.push((name, seconds(took), format!("passed without {part}")));
            }
            Ok(Outcome::Skipped(reason)) => {
                println!("    {reason}");
                rows.push((name, seconds(took), format!("skipped: {reason}")));
            }
            Err(problem) => {
                rows.push((name, seconds(took), "FAILED".to_owned()));
                failure = Some((name, problem));
                break;
            }
        }
    }
    rows.extend(steps.map(|step| (step.name, String::new(), "not reached".to_owned())));
    summary(&rows);
    match failure {
        None => ExitCode::SUCCESS,
        Some((name, problem)) => {
            eprintln!("\nerror: {name}: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn summary(rows: &[(&str, String, String)]) {
    println!();
    for (name, took, outcome) in rows {
        println!("{name:<16} {took:>8}  {outcome}");
    }
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

/// Runs `command` with our own input and output, so that what it prints is seen as it is.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let line = command_line(command);
    eprintln!("    $ {line}");
    let status = command.status().map_err(|why| format!("`{line}` could not start: {why}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{line}` ended with {status}")) }
}

/// Whether `command` ends well; what it prints is left out.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

fn command_line(command: &Command) -> String {
    let mut words: Vec<String> = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={:?}", name.display(), value?)))
        .collect();
    words.push(command.get_program().display().to_string());
    words.extend(command.get_args().map(|word| word.display().to_string()));
    words.join(" ")
}
