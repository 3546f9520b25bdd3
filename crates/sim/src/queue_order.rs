//! Waiting calls in the order of [`QueueOrder`], where the simulator has room for them.

use windfall_core::queue_order::{Patience, TRIES, Urgency};
use windfall_core::{Duration, QueueOrder, Timestamp};

use crate::function::{Function, Head, Waiting};
use crate::simulator::Simulator;

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
    /// How long its calls run, and may wait.
    fn patience(&self) -> Patience {
        Patience::new(self.run_total.checked_div(self.run_count).map(Duration::from_nanos))
    }
}

impl Simulator<'_> {
    /// Whether a call that has just come may start ahead of those of its function that wait: all of them are late.
    pub(crate) fn may_overtake(&self, function: u32) -> bool {
        let state = &self.functions[function as usize];
        match self.settings.queue_order {
            QueueOrder::FirstCome => state.queue.is_empty(),
            QueueOrder::ShortestFirst { .. } => {
                let late_after = state.patience().late_after;
                state.queue.back().is_none_or(|last| self.waited(last) > late_after)
            }
        }
    }

    /// Whether a call that has `waited` should not start an instance on `node`: a warm one of its function comes free
    /// while it is on time, and starting one takes longer than it runs.
    ///
    /// A function whose calls run for 200 ms and whose instances start in 700 ms has three busy ones. The fourth call waits
    /// for up to 200 ms for the first that is done; started anew it would have been slow for certain.
    pub(crate) fn waits_for_warm(&self, function: u32, node: u32, waited: Duration) -> bool {
        let is_ordered = matches!(self.settings.queue_order, QueueOrder::ShortestFirst { .. });
        if !(self.settings.waits_for_warm && is_ordered && self.settings.cold_starts) {
            return false;
        }
        let state = &self.functions[function as usize];
        let Patience { run, late_after } = state.patience();
        let is_brief = state.run_count > 0 && run < state.cold_start.median;
        let is_warm = |top: u32| self.instances[top].node == node;
        let has_warm = state.idle.tops().any(is_warm);
        is_brief && !has_warm && state.running > 0 && waited <= late_after
    }

    fn waited(&self, waiting: &Waiting) -> Duration {
        self.now.since(waiting.arrived_at)
    }

    /// Starts whoever fits on `node`, in order, until nobody does.
    pub(crate) fn start_in_order(&mut self, node: u32, starved_after: Duration) {
        let mut candidates = std::mem::take(&mut self.candidates);
        loop {
            self.line_up(node, starved_after, &mut candidates);
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

    /// The first calls in order that `node` may start, and the node that is kept for the first of all if it has waited too
    /// long.
    fn line_up(&mut self, node: u32, starved_after: Duration, candidates: &mut Vec<Candidate>) {
        candidates.clear();
        for &Head { function, .. } in &self.heads {
            self.add_candidates(function, starved_after, candidates);
        }
        if self.settings.waits_for_warm {
            candidates.retain(|one| {
                let waited = self.now.since(one.arrived_at);
                !self.waits_for_warm(one.function, node, waited)
            });
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
        let patience = state.patience();
        let candidate = |place: usize, waiting: &Waiting| {
            let urgency = patience.urgency(self.waited(waiting), starved_after);
            let run = patience.sorted_by(urgency);
            Candidate { urgency, run, arrived_at: waiting.arrived_at, function, place }
        };
        let Some(oldest) = state.queue.front() else { return };
        into.push(candidate(0, oldest));
        let on_time =
            state.queue.partition_point(|waiting| self.waited(waiting) > patience.late_after);
        if let Some(waiting) = state.queue.get(on_time).filter(|_| on_time > 0) {
            into.push(candidate(on_time, waiting));
        }
    }
}
