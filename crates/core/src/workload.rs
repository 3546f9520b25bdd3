//! Who calls what, and when: functions as their users set them up, and the stream of arrivals.

use serde::{Deserialize, Serialize};

use crate::demand::CallDemand;
use crate::seed::Seed;
use crate::time::{Duration, Timestamp};
use crate::units::Allocation;

/// A function's place in [`Workload::functions`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct FunctionId(pub u32);

impl FunctionId {
    /// The place as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What sets a function off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// A web request.
    Http,
    /// A schedule.
    Timer,
    /// A message queue.
    Queue,
    /// A step of a workflow.
    Orchestration,
    /// An event stream.
    Event,
    /// A change in a store.
    Storage,
    /// Anything else.
    Other,
}

/// How long a new instance takes until it can serve: lognormal, drawn per start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColdStart {
    /// Half of the starts are faster than this.
    pub median: Duration,
    /// Spread: the standard deviation of the logarithm.
    pub sigma: f64,
}

/// A function as the platform knows it; what its calls need is known to nobody.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionProfile {
    /// A name that is unique in the workload.
    pub name: String,
    /// The application it belongs to; functions of one application share their fate in splits.
    pub application: String,
    /// What sets it off.
    pub trigger: Trigger,
    /// Language runtime, e.g. `python`.
    pub runtime: String,
    /// What its user reserves for every call.
    pub reservation: Allocation,
    /// How long a new instance takes until it can serve.
    pub cold_start: ColdStart,
}

/// One call entering the system.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arrival {
    /// When.
    pub at: Timestamp,
    /// Of which function.
    pub function: FunctionId,
    /// What it will need.
    pub demand: CallDemand,
}

/// A source of arrivals that never holds more than a moment of them.
pub trait Workload: Send {
    /// All functions, in the order of their ids.
    fn functions(&self) -> &[FunctionProfile];

    /// When the last arrival may come at the latest.
    fn horizon(&self) -> Timestamp;

    /// The next arrival, never earlier than the one before.
    fn next_arrival(&mut self) -> Option<Arrival>;

    /// Puts up to `most` further arrivals into `into`, in order; fewer where what comes next depends on what is done
    /// with these, none only at the end. Who takes many asks once for all of them.
    fn next_arrivals(&mut self, most: usize, into: &mut Vec<Arrival>) {
        into.extend(std::iter::from_fn(|| self.next_arrival()).take(most));
    }

    /// Starts over. Another seed draws other times and demands of the same functions.
    fn restart(&mut self, seed: Seed);
}

impl<W: Workload + ?Sized> Workload for &mut W {
    fn functions(&self) -> &[FunctionProfile] {
        (**self).functions()
    }
    fn horizon(&self) -> Timestamp {
        (**self).horizon()
    }
    fn next_arrival(&mut self) -> Option<Arrival> {
        (**self).next_arrival()
    }
    fn next_arrivals(&mut self, most: usize, into: &mut Vec<Arrival>) {
        (**self).next_arrivals(most, into);
    }
    fn restart(&mut self, seed: Seed) {
        (**self).restart(seed);
    }
}
