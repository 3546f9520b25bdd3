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

use serde::{Deserialize, Serialize};
use windfall_core::{Duration, Timestamp};

use crate::function::{Function, Head, Waiting};
use crate::simulator::Simulator;

/// Nobody is late before this.
const SOONEST_LATE: Duration = Duration::from_millis(100);
/// How many of the first in order are tried when a node has room: whoever follows is no shorter.
const TRIES: usize = 8;
/// What a function without a finished call is taken to run.
const UNKNOWN_RUN: Duration = Duration::from_secs(1);
/// A call has waited too long after this many run times at least.
const STARVED_RUNS: u64 = 5;

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
enum Urgency {
    Starved,
    OnTime,
    Late,
}

/// A waiting call by its place in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    urgency: Urgency,
    /// Mean run time of its function, nothing for calls that have waited too long.
    run: Duration,
    arrived_at: Timestamp,
    function: u32,
    /// Its place in the queue of its function.
    place: usize,
}

impl Function {
    /// Mean run time of the calls that have ended.
    pub(crate) fn mean_run(&self) -> Duration {
        self.run_total.checked_div(self.run_count).map_or(UNKNOWN_RUN, Duration::from_nanos)
    }

    /// How long its calls wait before they are late.
    fn late_after(&self) -> Duration {
        self.mean_run().max(SOONEST_LATE)
    }
}

impl Simulator<'_> {
    /// Whether a call that has just come may start ahead of those of its function that wait: all of them are late.
    pub(crate) fn may_overtake(&self, function: u32) -> bool {
        let state = &self.functions[function as usize];
        match self.settings.queue_order {
            QueueOrder::FirstCome => state.queue.is_empty(),
            QueueOrder::ShortestFirst { .. } => {
                let late_after = state.late_after();
                state.queue.back().is_none_or(|last| self.waited(last) > late_after)
            }
        }
    }

    fn waited(&self, waiting: &Waiting) -> Duration {
        self.now.since(waiting.arrived_at)
    }

    /// Starts whoever fits on `node`, in order, until nobody does.
    pub(crate) fn start_in_order(&mut self, node: u32, starved_after: Duration) {
        let mut candidates = std::mem::take(&mut self.candidates);
        loop {
            self.line_up(starved_after, &mut candidates);
            if !candidates.iter().any(|candidate| self.start_candidate(candidate, node)) {
                break;
            }
        }
        self.candidates = candidates;
    }

    fn start_candidate(&mut self, candidate: &Candidate, node: u32) -> bool {
        let is_kept = self.kept_node == Some((node, candidate.function));
        let is_for_another = !is_kept && self.kept_node.is_some_and(|(kept, _)| kept == node);
        !is_for_another && self.start_waiting_call(candidate.function, candidate.place, node)
    }

    /// The first calls in order, and the node that is kept for the first of all if it has waited too long.
    fn line_up(&mut self, starved_after: Duration, candidates: &mut Vec<Candidate>) {
        candidates.clear();
        for &Head { function, .. } in &self.heads {
            self.add_candidates(function, starved_after, candidates);
        }
        if candidates.len() > TRIES {
            candidates.select_nth_unstable(TRIES);
            candidates.truncate(TRIES);
        }
        candidates.sort_unstable();
        let first = candidates.first().filter(|first| first.urgency == Urgency::Starved);
        self.kept_node =
            first.map(|first| (self.functions[first.function as usize].home, first.function));
    }

    /// Of one function the oldest call, and the oldest that is not late: those behind either have no better claim.
    fn add_candidates(&self, function: u32, starved_after: Duration, into: &mut Vec<Candidate>) {
        let state = &self.functions[function as usize];
        let (run, late_after) = (state.mean_run(), state.late_after());
        let starved_after = starved_after.max(run * STARVED_RUNS);
        let candidate = |place: usize, waiting: &Waiting| {
            let waited = self.waited(waiting);
            let urgency = match waited {
                _ if waited > starved_after => Urgency::Starved,
                _ if waited > late_after => Urgency::Late,
                _ => Urgency::OnTime,
            };
            let run = if urgency == Urgency::Starved { Duration::ZERO } else { run };
            Candidate { urgency, run, arrived_at: waiting.arrived_at, function, place }
        };
        let Some(oldest) = state.queue.front() else { return };
        into.push(candidate(0, oldest));
        let on_time = state.queue.partition_point(|waiting| self.waited(waiting) > late_after);
        if let Some(waiting) = state.queue.get(on_time).filter(|_| on_time > 0) {
            into.push(candidate(on_time, waiting));
        }
    }
}
