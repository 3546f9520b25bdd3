//! `windfall/LiveScaling-v0`: the state and the actions of the ECE 471 exercise on real processes.
//!
//! ```text
//!   action ─► containers by 1, cpu.shares by 128 ─► one second of real calls ─► utilisation, SLO preservation, latency
//! ```
//!
//! The exercise is a server of 8 cores on which a container with a core of its own serves 1.5 requests a second, beside
//! co-tenants with 1024 to 9216 shares. Here a core of the exercise is a quarter of a real one and time runs twenty times as
//! fast: a container is a process with at most 0.25 cores and 1024 shares, a request takes 8.3 ms of CPU on average
//! (exponential), 1 to 8 requests a second are 20 to 160, and the objective of 9 s is 0.45 s. Co-tenants are a
//! process with two hungry threads and their weight. Legal moves, penalties and reward are those of the exercise without
//! its quirks (`windfall/Ece471FixedDirection-v0`), so that an agent trained there can be judged here.
//!
//! Utilisation is CPU time over what the containers may use: the smaller of 0.25 cores and their share by weight. SLO
//! preservation is the objective over the mean latency, at most 1; calls that still wait count with the time they have
//! waited so far.

mod judge;
mod server;

use std::sync::Arc;

use windfall_core::Seed;
use windfall_papers::ece471::environment::ACTIONS;
use windfall_papers::ece471::{Design, Ece471, Features, Mode, Row, Settings as CourseSettings};
use windfall_rl::{End, Environment, Spec, Step};
use windfall_sandbox::Host;

use crate::error::ExperimentError;
use crate::host::host;
pub use judge::{Judged, Judgement, judge};
pub(crate) use server::Nobody;
use server::{Server, Setup};

/// Name and version.
pub const ID: &str = "windfall/LiveScaling-v0";

/// The environment in simulation whose agents fit this one.
pub const SIMULATED_ID: &str = "windfall/Ece471FixedDirection-v0";

/// How an episode is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Steps of an episode.
    pub steps: u32,
    /// Seconds of a step.
    pub step_seconds: f64,
    /// The rate of every episode; nothing draws one of 1 to 8 per episode.
    pub rate: Option<u32>,
    /// Episodes at each rate where policies are judged.
    pub episodes: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { steps: 20, step_seconds: 1.0, rate: None, episodes: 1 }
    }
}

impl Settings {
    fn check(&self) -> Result<(), ExperimentError> {
        let refuse = |name, value: f64, allowed| {
            Err(ExperimentError::Setting { name, value: value.to_string(), allowed })
        };
        match self {
            _ if !(1..=1000).contains(&self.steps) => {
                refuse("--steps", self.steps.into(), "1 to 1000")
            }
            _ if !(0.1..=60.0).contains(&self.step_seconds) => {
                refuse("--step-seconds", self.step_seconds, "0.1 to 60")
            }
            _ if !(1..=1000).contains(&self.episodes) => {
                refuse("--live-episodes", self.episodes.into(), "1 to 1000")
            }
            _ => Ok(()),
        }
    }

    fn course(&self) -> CourseSettings {
        CourseSettings {
            mode: Mode::FixedQuirks,
            features: Features::WithDirection,
            rate: self.rate,
            horizon: self.steps,
            ..CourseSettings::default()
        }
    }
}

/// The environment. One at a time: two would disturb each other.
pub struct LiveScaling {
    host: Arc<Host>,
    settings: Settings,
    spec: Spec,
    /// Legality, last direction, what the episode drew.
    course: Ece471,
    server: Option<Server>,
    row: Row,
    steps: u32,
    /// Why the last episode could not go on.
    problem: Option<String>,
}

impl LiveScaling {
    /// An environment of its own. Call it before any thread exists.
    pub fn start(settings: Settings) -> Result<Self, ExperimentError> {
        settings.check()?;
        Ok(Self::new(host("live scaling")?, settings))
    }

    pub(crate) fn new(host: Arc<Host>, settings: Settings) -> Self {
        let course = Ece471::new(settings.course());
        let spec = Spec { id: ID.to_owned(), ..course.spec().clone() };
        let row = Row { util: 0.0, slo: 0.0, latency: 0.0 };
        Self { host, settings, spec, course, server: None, row, steps: 0, problem: None }
    }

    /// Why the last episode could not go on, if it could not.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Utilisation, SLO preservation and latency of the last step, in the exercise's own seconds.
    pub fn row(&self) -> Row {
        self.row
    }

    fn observe(&self, observation: &mut [f32]) {
        self.course.observe(observation);
        for (place, value) in [self.row.util, self.row.slo].into_iter().enumerate() {
            if let Some(feature) = observation.get_mut(place) {
                *feature = value as f32;
            }
        }
    }

    /// Shares of all co-tenants together, as the observation shows them.
    fn others(&self) -> u32 {
        let mut row = [0.0; 7];
        self.course.observe(&mut row);
        (f64::from(row[3]) * 92_160.0).round() as u32
    }

    fn setup(&self) -> Setup {
        Setup {
            containers: self.course.containers(),
            shares: self.course.shares(),
            others: self.others(),
            rate: self.course.rate(),
        }
    }

    fn pass(&mut self) {
        let (setup, seconds) = (self.setup(), self.settings.step_seconds);
        if let Some(server) = &mut self.server {
            self.row = server.pass(setup, seconds);
        }
    }
}

impl Environment for LiveScaling {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Starts fresh processes. Times on a real machine differ from episode to episode, so the same seed gives the same
    /// requests and not the same episode.
    fn reset(&mut self, seed: Seed, observation: &mut [f32]) {
        self.server = None;
        self.course.start(seed);
        (self.steps, self.problem) = (0, None);
        match Server::start(&self.host, self.setup(), seed) {
            Ok(server) => self.server = Some(server),
            Err(error) => self.problem = Some(error.to_string()),
        }
        self.pass();
        self.observe(observation);
    }

    fn step(&mut self, action: usize, observation: &mut [f32]) -> Step {
        let conduct = self.course.act(ACTIONS[action].1).conduct;
        self.pass();
        self.observe(observation);
        self.steps += 1;
        let reward = Design::Authors.pay(self.row, conduct) as f32;
        let end = match (self.steps >= self.settings.steps, &self.problem) {
            (_, Some(_)) => End::Terminated,
            (true, None) => End::Truncated,
            (false, None) => End::Continues,
        };
        Step { reward, end }
    }

    fn mask(&self, allowed: &mut [bool]) {
        self.course.mask(allowed);
    }

    fn info(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("containers", f64::from(self.course.containers())),
            ("requests_per_s", f64::from(self.course.rate())),
            ("shares_per_container", f64::from(self.course.shares())),
            ("shares_of_others", f64::from(self.others())),
            ("latency_s", self.row.latency),
        ]
    }
}
