//! One step after the other, each with a heading and its duration, until one fails. A step that is a single command
//! may run beside an earlier one that leaves the CPU idle; what it prints comes when it is its turn.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
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

/// How a step is done.
pub(crate) enum Work {
    /// When it is its turn.
    InTurn(Action),
    /// From the moment that the step `during` begins, behind it in line for the CPU.
    Beside { during: &'static str, command: Command },
    /// The same, once it has begun.
    Begun(Begun),
}

pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) work: Work,
}

impl Step {
    pub(crate) fn new(name: &'static str, action: Action) -> Self {
        Self { name, work: Work::InTurn(action) }
    }

    pub(crate) fn beside(during: &'static str, name: &'static str, command: Command) -> Self {
        Self { name, work: Work::Beside { during, command } }
    }
}

/// Runs all steps in order and stops at the first that fails. The summary comes last in either case.
pub(crate) fn run_all(mut steps: Vec<Step>) -> ExitCode {
    let mut rows = Vec::new();
    let mut failure = None;
    steps.reverse();
    while let Some(Step { name, work }) = steps.pop() {
        println!("\n==> {name}");
        let begun = Instant::now();
        let result = begin_those_beside(name, &mut steps).and_then(|()| work.finish());
        let took = begun.elapsed();
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
    rows.extend(
        steps.drain(..).rev().map(|step| (step.name, String::new(), "not reached".to_owned())),
    );
    summary(&rows);
    match failure {
        None => ExitCode::SUCCESS,
        Some((name, problem)) => {
            eprintln!("\nerror: {name}: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Begins every step that runs beside the step `during`.
fn begin_those_beside(during: &str, steps: &mut [Step]) -> Result<(), String> {
    for step in steps {
        if let Work::Beside { during: other, command } = &step.work
            && *other == during
        {
            step.work = Work::Begun(Begun::begin(step.name, command)?);
        }
    }
    Ok(())
}

impl Work {
    fn finish(self) -> Result<Outcome, String> {
        match self {
            Self::InTurn(action) => action(),
            Self::Beside { mut command, .. } => run(&mut command).map(|()| Outcome::Passed),
            Self::Begun(begun) => begun.finish(),
        }
    }
}

/// A command that runs beside a step. Dropped unfinished, because an earlier step has failed, it is ended.
pub(crate) struct Begun {
    line: String,
    child: Child,
    printed: PathBuf,
}

impl Begun {
    fn begin(name: &str, command: &Command) -> Result<Self, String> {
        let line = command_line(command);
        let failed = |why: io::Error| format!("`{line}` could not start: {why}");
        let name = name.replace(' ', "-");
        let printed = std::env::temp_dir().join(format!("xtask-{name}-{}.log", std::process::id()));
        let log = File::create(&printed).map_err(failed)?;
        let mut command = last_in_line(command);
        command.stdin(Stdio::null()).stdout(log.try_clone().map_err(failed)?).stderr(log);
        let child = command.spawn().map_err(failed)?;
        Ok(Self { line, child, printed })
    }

    fn finish(mut self) -> Result<Outcome, String> {
        println!("    $ {}", self.line);
        let ended = self.child.wait();
        print!("{}", std::fs::read_to_string(&self.printed).unwrap_or_default());
        match ended {
            Ok(status) if status.success() => Ok(Outcome::Passed),
            Ok(status) => Err(format!("`{}` ended with {status}", self.line)),
            Err(why) => Err(format!("`{}` was lost: {why}", self.line)),
        }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.printed);
    }
}

/// The same command with the lowest priority, where the system knows one.
fn last_in_line(command: &Command) -> Command {
    let mut last = if cfg!(unix) {
        let mut nice = Command::new("nice");
        nice.args(["-n", "19"]).arg(command.get_program());
        nice
    } else {
        Command::new(command.get_program())
    };
    last.args(command.get_args());
    last.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    last
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_beside_another_is_judged_at_its_own_turn() {
        let command = |name: &str| Command::new(name);
        let steps = |beside: &str| {
            let in_turn = Step::new("first", Box::new(|| Ok(Outcome::Passed)));
            vec![in_turn, Step::beside("first", "second", command(beside))]
        };
        assert_eq!(run_all(steps("true")), ExitCode::SUCCESS);
        assert_eq!(run_all(steps("false")), ExitCode::FAILURE);
        // Whatever it is to run beside has been left out: it runs in turn.
        assert_eq!(
            run_all(vec![Step::beside("absent", "alone", command("true"))]),
            ExitCode::SUCCESS
        );
    }
}
