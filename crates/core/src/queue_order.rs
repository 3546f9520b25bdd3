//! Which of the waiting calls starts first when a node has room.
//!
//! ```text
//!   first come       the call that waits longest and fits
//!   shortest first   1. calls that have waited too long, oldest first; one node is kept for the first of them
//!                    2. calls that are not late, by the mean run time of their function
//!                    3. late calls, in the same order
//! ```
//!
//! A call is late when it has waited longer than its function runs on average, at least 100 ms: it will miss its
//! objective whatever happens now, so it gives way to calls that can still keep theirs. Nobody waits without end: after
//! `starved_after`, at least five run times, a call goes to the front, and the home node of its function takes nobody
//! else until it has started. With three calls waiting for 2 s, one of 50 ms, one of 1.5 s and one of 10 s, the order is
//! 10 s (not late), 50 ms, 1.5 s.
//!
//! The rule is the same in the simulator and on real platforms; each keeps its own queues.

use serde::{Deserialize, Serialize};

use crate::time::Duration;

/// Nobody is late before this.
const SOONEST_LATE: Duration = Duration::from_millis(100);
/// What a function without a finished call is taken to run.
const UNKNOWN_RUN: Duration = Duration::from_secs(1);
/// A call has waited too long after this many run times at least.
const STARVED_RUNS: u64 = 5;

/// How many of the first in order are tried when a node has room: whoever follows is no shorter.
pub const TRIES: usize = 8;

/// Which of the waiting calls starts first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "kebab-case")]
pub enum QueueOrder {
    /// Whoever waits longest.
    #[default]
    FirstCome,
    /// The shortest by the function's mean run time; late calls behind, and after `starved_after` to the front.
    ShortestFirst {
        /// When a call has waited too long; five run times of its function where that is more.
        starved_after: Duration,
    },
}

impl QueueOrder {
    /// Shortest first with a bound on waiting of half a minute.
    pub const SHORTEST_FIRST: Self = Self::ShortestFirst { starved_after: Duration::from_secs(30) };
}

/// How urgent a call is, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// It has waited too long.
    Starved,
    /// It can still keep its objective.
    OnTime,
    /// It has missed it.
    Late,
}

/// How long the calls of a function run, and how long they may wait because of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Mean run time.
    pub run: Duration,
    /// A call that has waited longer is late.
    pub late_after: Duration,
}

impl Patience {
    /// Of a function whose calls ran for `mean_run` on average; nothing if none has ended.
    pub fn new(mean_run: Option<Duration>) -> Self {
        let run = mean_run.unwrap_or(UNKNOWN_RUN);
        Self { run, late_after: run.max(SOONEST_LATE) }
    }

    /// How urgent a call is that has waited so long.
    pub fn urgency(&self, waited: Duration, starved_after: Duration) -> Urgency {
        match waited {
            _ if waited > starved_after.max(self.run * STARVED_RUNS) => Urgency::Starved,
            _ if waited > self.late_after => Urgency::Late,
            _ => Urgency::OnTime,
        }
    }

    /// What calls of equal urgency are sorted by: the mean run time, and nothing but their age once they are starved.
    pub fn sorted_by(&self, urgency: Urgency) -> Duration {
        if urgency == Urgency::Starved { Duration::ZERO } else { self.run }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_late_after_its_own_run_time_and_starved_after_five() {
        let wait = Duration::from_secs;
        let long = Patience::new(Some(Duration::from_secs(10)));
        let bound = Duration::from_secs(30);
        assert_eq!(long.urgency(wait(2), bound), Urgency::OnTime);
        assert_eq!(long.urgency(wait(40), bound), Urgency::Late);
        assert_eq!(long.urgency(wait(51), bound), Urgency::Starved);
        let short = Patience::new(Some(Duration::from_millis(1)));
        assert_eq!(short.urgency(Duration::from_millis(100), bound), Urgency::OnTime);
        assert_eq!(short.urgency(wait(31), bound), Urgency::Starved);
        assert_eq!(Patience::new(None).run, Duration::from_secs(1));
    }
}
