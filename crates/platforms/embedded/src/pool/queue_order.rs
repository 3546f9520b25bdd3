//! Waiting calls in the order of [`QueueOrder::ShortestFirst`](windfall_core::QueueOrder).

use windfall_core::queue_order::{TRIES, Urgency};
use windfall_core::{CallId, Duration, FunctionId, Timestamp};

use super::{Action, Pool, Sizer};

/// A waiting call by its place in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    urgency: Urgency,
    /// Mean run time of its function, nothing for calls that have waited too long.
    run: Duration,
    /// Its place in the order of arrivals.
    order: u64,
    call: CallId,
    function: FunctionId,
}

impl Pool {
    /// Places the first few in order, again and again until none of them finds a place. While a call has waited too
    /// long, only its function is served: whoever else starts would take the room that it waits for.
    pub(super) fn place_shortest_first(
        &mut self,
        now: Timestamp,
        starved_after: Duration,
        sizer: &mut dyn Sizer,
        actions: &mut Vec<Action>,
    ) {
        while !self.heads.is_empty() {
            let first = self.line_up(now, starved_after);
            let starved = first.first().filter(|first| first.urgency == Urgency::Starved);
            let kept_for = starved.map(|first| first.function);
            let may_start =
                |one: &&Candidate| kept_for.is_none_or(|function| function == one.function);
            let has_placed = first
                .iter()
                .filter(may_start)
                .any(|one| self.place(now, one.call, one.function, sizer, actions));
            if !has_placed {
                return;
            }
        }
    }

    fn line_up(&self, now: Timestamp, starved_after: Duration) -> Vec<Candidate> {
        let mut all = Vec::with_capacity(2 * self.heads.len());
        for &function in self.heads.values() {
            self.add_candidates(now, function, starved_after, &mut all);
        }
        if self.settings.waits_for_warm {
            all.retain(|one| {
                let waited = now.since(self.calls[&one.call].arrived_at);
                !self.state(one.function).waits_for_warm(waited)
            });
        }
        all.sort_unstable();
        all.truncate(TRIES);
        all
    }

    /// Of one function the oldest call, and the oldest that is not late: those behind either have no better claim.
    fn add_candidates(
        &self,
        now: Timestamp,
        function: FunctionId,
        starved_after: Duration,
        into: &mut Vec<Candidate>,
    ) {
        let state = self.state(function);
        let patience = state.patience();
        let waited = |call: &CallId| now.since(self.calls[call].arrived_at);
        let candidate = |call: CallId| {
            let urgency = patience.urgency(waited(&call), starved_after);
            let run = patience.sorted_by(urgency);
            Candidate { urgency, run, order: self.calls[&call].order, call, function }
        };
        let Some(&oldest) = state.queue.front() else { return };
        into.push(candidate(oldest));
        let on_time = state.queue.partition_point(|call| waited(call) > patience.late_after);
        if let Some(&call) = state.queue.get(on_time).filter(|_| on_time > 0) {
            into.push(candidate(call));
        }
    }
}
