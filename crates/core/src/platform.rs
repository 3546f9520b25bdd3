//! Where functions run: the simulator, a machine, a cluster. Synchronous on purpose: a driver keeps its
//! own tasks, answers `observe` from its last complete picture and queues what `submit` asks for, so that
//! network time can never stall a decision. Its price, staleness, shows as the observation's age.

use serde::{Deserialize, Serialize};

use crate::observation::Observation;
use crate::record::Resource;
use crate::safeguard::Plan;
use crate::seed::Seed;
use crate::time::Timestamp;

/// What a platform can change, and whether while calls run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// CPU of a running instance.
    pub cpu_live: bool,
    /// Memory of a running instance.
    pub memory_live: bool,
    /// Number of instances.
    pub instances: bool,
    /// Calls per instance.
    pub concurrency: bool,
    /// Size of every single call.
    pub per_call: bool,
}

/// What became of a plan. Effects take time and show in later observations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Changes that are under way.
    pub accepted: u32,
    /// Changes that were not possible, one sentence each.
    pub refused: Vec<String>,
}

/// Why a change was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The platform cannot change this.
    Unsupported(Resource),
    /// There is no room for it.
    NoRoom,
    /// The other side did not answer.
    Unreachable,
    /// A later change replaced it.
    Superseded,
    /// The system said no, in its own words.
    System(String),
}

/// Why a platform could not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlatformError {
    /// Retryable: nothing has been measured yet.
    #[error("no observation yet")]
    NotReady,
    /// Fatal: time was to go backwards.
    #[error("asked to go back to {to} from {now}")]
    BackInTime {
        /// Where the platform is.
        now: Timestamp,
        /// Where it was to go.
        to: Timestamp,
    },
    /// Retryable: the other side did not answer.
    #[error("platform unreachable: {0}")]
    Unreachable(String),
}

/// Something that runs functions and can be told how.
pub trait Platform {
    /// What can be changed here.
    fn capabilities(&self) -> Capabilities;
    /// The last complete picture.
    fn observe(&mut self) -> Result<Observation, PlatformError>;
    /// Sets a plan in motion.
    fn submit(&mut self, plan: &Plan) -> Result<Receipt, PlatformError>;
}

/// A platform that owns its time and can start over: the simulator.
pub trait Episodic: Platform {
    /// Starts over with other random draws.
    fn reset(&mut self, seed: Seed);
    /// Lets time pass until `at`.
    fn advance_to(&mut self, at: Timestamp) -> Result<(), PlatformError>;
}
