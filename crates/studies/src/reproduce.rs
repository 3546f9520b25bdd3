//! Published systems and our own experiments, repeated: each is run, and leaves a table, a page and numbers.
//!
//! Nothing here prints, reads a clock or draws a bar. Whoever asks passes what was typed as a [`Request`] and
//! watches through a [`Watcher`].

pub mod ece471;
pub mod faasrm;
pub mod faasrm_kernel;
pub mod knative_concurrency;
pub mod scaling;
pub mod simppo;

use std::path::{Path, PathBuf};

use serde::Serialize;
use windfall_rl::CheckpointError;
use windfall_scenario::RunError;
use windfall_scenario::sweep::SweepError;
use windfall_telemetry::Document;
use windfall_telemetry::report::ReportContext;
use windfall_trace::TraceError;

/// What every reproduction understands.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The command as it was typed, for the page.
    pub command: &'a str,
    /// Less of everything.
    pub quick: bool,
    /// Seeds to repeat what is random with; the reproduction's own number if none.
    pub seeds: Option<u32>,
    /// Threads to use at most; the numbers do not depend on it.
    pub threads: usize,
    /// Folder for files that are made on the way, such as checkpoints.
    pub folder: &'a Path,
}

impl Request<'_> {
    /// What the page says about its origin.
    pub fn context(&self, title: &str, settings: serde_json::Value) -> ReportContext {
        ReportContext {
            title: title.to_owned(),
            command: self.command.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            settings,
        }
    }
}

/// What a reproduction leaves behind.
#[derive(Clone, Debug)]
pub struct Reproduced {
    /// The page, with charts.
    pub page: Document,
    /// The table for a terminal.
    pub text: String,
    /// The numbers for scripts, as JSON.
    pub json: String,
    /// Whether something that was measured fell short of what is asked.
    pub is_missed: bool,
}

impl Reproduced {
    /// Page, table and numbers of a reproduction that nothing is asked of.
    pub fn new(
        page: Document,
        text: String,
        numbers: &impl Serialize,
    ) -> Result<Self, ReproduceError> {
        let json = serde_json::to_string_pretty(numbers)?;
        Ok(Self { page, text, json, is_missed: false })
    }
}

/// A stretch of work with a known number of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Iterations of trainings, with a description of the current one.
    Iterations(u64),
    /// Steps of the training that `what` names.
    Training {
        /// What is trained, for the reader.
        what: &'static str,
        /// How many steps.
        steps: u64,
    },
    /// Load tests.
    LoadTests(u64),
    /// Runs on a real machine, with a description of the current one.
    Runs(u64),
    /// Episodes, counted once per agent.
    AgentEpisodes(u64),
    /// Simulated calls; their number is known only once workloads are read, see [`Watcher::extend`].
    Calls,
}

/// Shows how far a reproduction has come. Called from several threads; every method does nothing by default.
pub trait Watcher: Sync {
    /// A stage begins; the one before it has ended.
    fn begin(&self, _stage: Stage) {}
    /// The current stage has this many more steps than was known.
    fn extend(&self, _steps: u64) {}
    /// This many more steps are done.
    fn advance(&self, _steps: u64) {}
    /// What is being done right now.
    fn describe(&self, _what: &str) {}
    /// The current stage is over.
    fn end(&self) {}
    /// Something the reader must know before trusting the result, such as missing data.
    fn warn(&self, _notice: &str) {}
}

/// A watcher that shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watcher for Unwatched {}

/// Where published data is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataFolder {
    /// Named by the user: it must be there.
    Given(PathBuf),
    /// The usual place: generated calls take its part where it is missing, with a warning.
    Usual(PathBuf),
}

/// Why a reproduction was given up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReproduceError {
    /// Fatal: published data could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Fatal: a run could not be made.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Fatal: a sweep was given up.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// Fatal: a trace that was named does not exist.
    #[error("{}: the trace is not there", .folder.display())]
    NoTrace {
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// Fatal: nothing can be repeated no times.
    #[error("--seeds is 0, allowed is 1 or more")]
    NoSeeds,
    /// Fatal: no learner has such a name.
    #[error("--only is `{only}`, which no learner contains; there are {known}")]
    NoLearner {
        /// What was asked for.
        only: String,
        /// All learners.
        known: String,
    },
    /// Fatal: the folder for files could not be made.
    #[error("{}: cannot be created", .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Fatal: a trained agent could not be kept.
    #[error("{}: cannot be written", .file.display())]
    Checkpoint {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: CheckpointError,
    },
    /// Fatal: a number has no place in JSON. This is a defect of ours.
    #[error("the numbers cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

impl ReproduceError {
    /// What to do about it, where there is something to do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Trace(error) => error.hint(),
            Self::Run(error) => error.hint(),
            Self::Sweep(error) => error.hint(),
            Self::Checkpoint { source, .. } => Some(source.hint()),
            Self::NoTrace { .. }
            | Self::NoSeeds
            | Self::NoLearner { .. }
            | Self::Folder { .. }
            | Self::Json(_) => None,
        }
    }
}
