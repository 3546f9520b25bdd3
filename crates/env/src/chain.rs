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

    pub(crate) fn forget(&mut self) {
        self.latencies_ms.clear();
    }
}
