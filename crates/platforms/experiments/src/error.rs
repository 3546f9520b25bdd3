//! Why an experiment was given up.

use std::path::PathBuf;

use windfall_embedded::ServiceError;
use windfall_load::LoadError;
use windfall_registry::AssembleError;
use windfall_sandbox::SandboxError;
use windfall_scenario::RunError;
use windfall_studies::reproduce::ReproduceError;

/// Why an experiment on this machine was given up. All are fatal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// The machine is no place for instances.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The machine cannot set what the experiment is about.
    #[error(
        "{what} needs {needs}, which the driver `{driver}` of this machine does not have; run it as root with cgroups (`windfall doctor` says what is missing)"
    )]
    NotPermitted {
        /// The experiment.
        what: &'static str,
        /// What is missing.
        needs: &'static str,
        /// The driver.
        driver: String,
    },
    /// A setting is out of range.
    #[error("{name} is {value}, allowed is {allowed}")]
    Setting {
        /// Which one.
        name: &'static str,
        /// What it was.
        value: String,
        /// What it may be.
        allowed: &'static str,
    },
    /// A policy cannot be made.
    #[error(transparent)]
    Policy(#[from] AssembleError),
    /// A policy cannot be run on a real platform.
    #[error("policy `{0}` needs to know the future, which no real platform does")]
    Foresight(String),
    /// What an earlier run has left is no measurement.
    #[error("{} cannot be read: {problem}; remove it, or choose another folder with --out", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// What an earlier run has left was measured in another way.
    #[error("{} was measured with {found}, asked for is {asked}; use the same settings, or another folder with --out", file.display())]
    OtherSetup {
        /// The file.
        file: PathBuf,
        /// How it was measured.
        found: String,
        /// How it is to be measured.
        asked: String,
    },
    /// A thread, a file or a key.
    #[error("{doing}: {source}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
    /// A program that is built on its own is not there.
    #[error(
        "the program `{program}` cannot be started: {source}; `cargo build --release -p windfall-kubernetes` puts it beside `windfall`, or add its folder to PATH"
    )]
    NoProgram {
        /// Which one.
        program: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
    /// Such a program ended or answered something else.
    #[error("the program `{program}` did not report a load test: {problem}")]
    Answer {
        /// Which one.
        program: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// Too many calls failed for the rest to mean anything.
    #[error("{failed} of {calls} calls of {during} failed; the first one: {first}")]
    Calls {
        /// Which part.
        during: String,
        /// How many.
        failed: usize,
        /// Of how many.
        calls: usize,
        /// What the first one said.
        first: String,
    },
    /// The platform could not be started.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The load could not be sent.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The simulator could not replay the calls.
    #[error(transparent)]
    Replay(#[from] RunError),
    /// The numbers cannot be written.
    #[error(transparent)]
    Reproduce(#[from] ReproduceError),
}

pub(crate) fn system(doing: &'static str) -> impl FnOnce(std::io::Error) -> ExperimentError {
    move |source| ExperimentError::System { doing, source }
}
