//! Functions that call each other: the answer of one is the call of the next.
//!
//! ```text
//!   call from outside ─► first ─► (message, 20 ms) ─► second ─► (message) ─► last ─► answer
//!   └───────────────────────────── end-to-end latency ──────────────────────────────────┘
//! ```
//!
//! The simulator looks one call ahead, so a message comes with the next call at the earliest: where calls are
//! rare it takes a little longer than 20 ms.

use std::collections::{BTreeMap, VecDeque};

use windfall_core::{CallEnd, CallRecord, Duration, Timestamp};

use crate::meter::TIME_OUT_MS;

/// How long a message takes from one function to the next.
const MESSAGE: Duration = Duration::from_millis(20);

/// A call that is about to be made by another.
#[derive(Clone, Copy, Debug)]
struct Triggered {
    due: Timestamp,
    function: usize,
    root: Timestamp,
}

/// Who calls whom, and what is under way.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    next: Vec<Option<usize>>,
    is_inside: Vec<bool>,
    pending: VecDeque<Triggered>,
    /// When the story of each open call began, by its arrival.
    roots: Vec<BTreeMap<Timestamp, Timestamp>>,
    /// The call that was handed out last and has not arrived yet.
    handed_out: Option<Triggered>,
    latencies_ms: Vec<f32>,
}

impl Chain {
    pub(crate) fn new(upstream: impl Iterator<Item = Option<usize>>) -> Self {
        let upstream: Vec<Option<usize>> = upstream.collect();
        let mut next = vec![None; upstream.len()];
        let mut is_inside = vec![false; upstream.len()];
        for (index, above) in upstream.iter().enumerate() {
            if let Some(above) = *above {
                next[above] = Some(index);
                (is_inside[above], is_inside[index]) = (true, true);
            }
        }
        Self { roots: vec![BTreeMap::new(); next.len()], next, is_inside, ..Self::default() }
    }

    /// The next triggered call, if it comes before `outside`.
    pub(crate) fn take_due(&mut self, outside: Timestamp) -> Option<(usize, Timestamp)> {
        self.pending.front().filter(|first| first.due <= outside)?;
        self.handed_out = self.pending.pop_front();
        self.handed_out.map(|call| (call.function, call.due))
    }

    /// A call arrives; its story began now or with the call that triggered it.
    pub(crate) fn arrived(&mut self, function: usize, at: Timestamp, is_triggered: bool) {
        let root = self.handed_out.take().filter(|_| is_triggered).map_or(at, |call| call.root);
        if self.is_inside[function] {
            self.roots[function].insert(at, root);
        }
    }

    /// A call ends: the next one is triggered, or the story is over.
    pub(crate) fn ended(&mut self, call: &CallRecord) {
        let function = call.function.index();
        let Some(root) = self.roots[function].remove(&call.arrived_at) else { return };
        match (call.end, self.next[function]) {
            (CallEnd::Completed, Some(next)) => {
                let due = call.ended_at + MESSAGE;
                self.pending.push_back(Triggered { due, function: next, root });
            }
            (CallEnd::Completed, None) => {
                self.latencies_ms.push(call.ended_at.since(root).as_millis_f64() as f32);
            }
            _ => self.latencies_ms.push(TIME_OUT_MS as f32),
        }
    }

    /// End-to-end latencies so far.
    pub(crate) fn latencies_ms(&self) -> &[f32] {
        &self.latencies_ms
    }

    /// Ages of the stories that are not over: a chain that answers nobody is not to look fast.
    pub(crate) fn ages_ms(&self, now: Timestamp) -> impl Iterator<Item = f32> {
        let inside = self.roots.iter().flat_map(BTreeMap::values).copied();
        let between = self.pending.iter().chain(&self.handed_out).map(|call| call.root);
        // The workload is one call ahead of the world.
        inside
            .chain(between)
            .filter(move |root| *root < now)
            .map(move |root| now.since(root).as_millis_f64() as f32)
    }

    pub(crate) fn forget(&mut self) {
        self.latencies_ms.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windfall_core::{Decision, Seed};

    use crate::meter::quantile;
    use crate::pattern::Pattern;
    use crate::profile::TWELVE;
    use crate::traffic::FunctionSetup;
    use crate::world::{World, WorldSettings};

    #[test]
    fn every_answer_calls_the_next_function_and_soon() {
        let steady = (Arc::new(Pattern::steady()), 0);
        let first = FunctionSetup::busy(TWELVE[10], steady.clone(), 0.5);
        let second =
            FunctionSetup { upstream: Some(0), ..FunctionSetup::busy(TWELVE[8], steady, 0.5) };
        // Rotating takes 66 ms, encoding 282 ms, the message 20 ms and until the next of eight calls a second.
        let fastest = 1000.0 * (first.profile.mean_run(1.0) + second.profile.mean_run(1.0)) + 20.0;
        let settings = WorldSettings { first_instances: 6, ..WorldSettings::default() };
        let mut world = World::new(settings, vec![first, second], Seed::new(5));
        world.keep_latencies();
        let mut calls = [0, 0];
        for _ in 0..40 {
            world.act(&Decision::default());
            for (count, view) in calls.iter_mut().zip(&world.seen().functions) {
                *count += view.arrivals;
            }
        }
        assert!(calls[0] > 1000 && calls[0].abs_diff(calls[1]) < 10, "{calls:?}");
        let mut latencies = world.chain_latencies_with_open();
        assert!((latencies.len() as u32).abs_diff(calls[1]) < 10, "{}", latencies.len());
        let median = quantile(&mut latencies, 0.5);
        assert!((fastest..fastest + 250.0).contains(&median), "{median} of {fastest}");
    }
}
