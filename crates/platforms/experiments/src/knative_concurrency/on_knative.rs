//! Load tests on a real Knative, run by the program `windfall-knative`: a line of JSON per test, a line per answer. So
//! the client of Kubernetes stays out of this program.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::json;
use windfall_papers::knative_concurrency::knative::{LoadTestOutcome, RequestShape};

use super::{POD_CPU, POD_MEMORY, PODS};
use crate::error::{ExperimentError, system};

const PROGRAM: &str = "windfall-knative";

/// The running program.
pub(super) struct OnKnative {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    rate: f64,
}

impl OnKnative {
    /// Starts the program that lies beside this one, or the one on the path.
    pub(super) fn start(rate: f64) -> Result<Self, ExperimentError> {
        let mut child = Command::new(program())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|source| ExperimentError::NoProgram { program: PROGRAM, source })?;
        let questions = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("the output is a pipe"));
        Ok(Self { child, questions, answers, rate })
    }

    /// Tests the service with `limit` requests per pod.
    pub(super) fn test(
        &mut self,
        shape: RequestShape,
        limit: u32,
        seconds: f64,
    ) -> Result<LoadTestOutcome, ExperimentError> {
        let RequestShape { bloat_mib, prime, sleep_ms } = shape;
        let test = json!({
            "limit": limit, "bloat": bloat_mib, "prime": prime, "sleep": sleep_ms, "rate": self.rate,
            "seconds": seconds, "pods": PODS, "cpu": POD_CPU, "memory": POD_MEMORY,
        });
        if let Some(questions) = &mut self.questions {
            writeln!(questions, "{test}").map_err(system("asking windfall-knative"))?;
        }
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(system("reading windfall-knative"))?;
        serde_json::from_str(&line).map_err(|problem| ExperimentError::Answer {
            program: PROGRAM,
            // Without an answer the program has already said why on standard error.
            problem: if line.is_empty() { "no answer".to_owned() } else { problem.to_string() },
        })
    }
}

impl Drop for OnKnative {
    fn drop(&mut self) {
        // The end of its input is the end of the program.
        self.questions = None;
        let _ = self.child.wait();
    }
}

fn program() -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join(PROGRAM)));
    beside.filter(|path| path.exists()).unwrap_or_else(|| PROGRAM.into())
}
