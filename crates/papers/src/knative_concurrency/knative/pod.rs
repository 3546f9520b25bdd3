//! One pod: admission at the queue-proxy, processor sharing in the container, memory, and its end.
//!
//! ```text
//!  n requests compute on c cores: each advances at rate min(1, c / n), so all of them by the same amount `progress`
//!  a request that joins at progress 40 with 10 of work ends at progress 50, whoever joins or leaves meanwhile
//!
//!  memory = base + full ones · b + Σ over those still touching  b · (progress - joined) / touch
//!         = base + b · (full + progress · Σ 1 / touch - Σ joined / touch)      a straight line in progress
//! ```
//!
//! With 40 MiB per request, a touch of 10 ms and 250 requests that join at once, memory is 40 · 250 · p / 10 MiB:
//! a limit of 8192 MiB is crossed at p = 8.192 ms, and all 250 die.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not ready for the first time, or again after a kill.
    Starting,
    /// Takes requests.
    Ready,
    /// Ends what it has.
    Draining,
    /// Is no more.
    Gone,
}

/// Parts of a nanosecond in which progress is counted: with hundreds of requests on one core each advances by
/// less than a nanosecond per nanosecond, and none of it may be lost to rounding.
const PARTS: u64 = 1024;

/// Memory this close to the limit is at it, MiB.
const CLOSE_MIB: f64 = 1e-3;

/// Progress, in parts of a nanosecond of CPU time, at which something of a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Milestone {
    progress: u64,
    request: u32,
    /// How long touching took, where this is its end; 0 where all computing ends.
    touch: u64,
}

/// CPU time that a request brings, nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joining {
    pub(super) touch: u64,
    pub(super) sieve: u64,
}

#[derive(Debug)]
pub(super) struct Pod {
    pub(super) stage: Stage,
    pub(super) node: u32,
    /// Requests in the container.
    pub(super) in_service: Vec<u32>,
    /// Requests waiting at its queue-proxy.
    pub(super) waiting: VecDeque<u32>,
    pub(super) kills: u32,
    /// Events of earlier states carry an older number.
    pub(super) generation: u32,
    cores: f64,
    progress: u64,
    updated_ns: u64,
    milestones: BinaryHeap<Reverse<Milestone>>,
    computing: u32,
    touching: u32,
    /// Sums over those still touching: of 1 / touch, and of joined / touch.
    slope: f64,
    offset: f64,
    full: u32,
    memory: Memory,
    /// Core-nanoseconds and MiB-nanoseconds used so far.
    pub(super) used_cores_ns: f64,
    pub(super) used_mib_ns: f64,
}

/// Memory of a pod, MiB.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    pub(super) base: f64,
    pub(super) limit: f64,
    pub(super) per_request: f64,
}

impl Pod {
    /// A pod with `cores` on `node`.
    pub(super) fn new(node: u32, cores: f64, memory: Memory) -> Self {
        Self {
            stage: Stage::Starting,
            node,
            in_service: Vec::new(),
            waiting: VecDeque::new(),
            kills: 0,
            generation: 0,
            cores,
            progress: 0,
            updated_ns: 0,
            milestones: BinaryHeap::new(),
            computing: 0,
            touching: 0,
            slope: 0.0,
            offset: 0.0,
            full: 0,
            memory,
            used_cores_ns: 0.0,
            used_mib_ns: 0.0,
        }
    }

    /// It can serve from `now` on.
    pub(super) fn begin(&mut self, now: u64) {
        self.stage = Stage::Ready;
        self.updated_ns = now;
    }

    fn rate(&self) -> f64 {
        if self.computing == 0 { 0.0 } else { (self.cores / f64::from(self.computing)).min(1.0) }
    }

    /// Brings the requests' progress up to `now`.
    pub(super) fn catch_up(&mut self, now: u64) {
        let passed = (now - self.updated_ns) as f64;
        let before = self.memory_mib();
        let advance = passed * self.rate();
        self.progress += (advance * PARTS as f64).round() as u64;
        self.updated_ns = now;
        self.used_cores_ns += advance * f64::from(self.computing);
        self.used_mib_ns += passed * (before + self.memory_mib()) / 2.0;
    }

    /// A request begins to compute; the pod must be caught up.
    pub(super) fn join(&mut self, request: u32, joining: Joining) {
        self.in_service.push(request);
        self.computing += 1;
        let mut end = self.progress;
        if joining.touch > 0 {
            let touch = joining.touch * PARTS;
            end += touch;
            self.touching += 1;
            self.slope += 1.0 / touch as f64;
            self.offset += self.progress as f64 / touch as f64;
            self.milestones.push(Reverse(Milestone { progress: end, request, touch }));
        }
        end += joining.sieve * PARTS;
        self.milestones.push(Reverse(Milestone { progress: end, request, touch: 0 }));
    }

    /// Memory in use, MiB.
    pub(super) fn memory_mib(&self) -> f64 {
        let climbed = (self.progress as f64 * self.slope - self.offset).max(0.0);
        self.memory.base + self.memory.per_request * (f64::from(self.full) + climbed)
    }

    /// Whether its memory has reached the limit.
    pub(super) fn is_out_of_memory(&self) -> bool {
        self.memory_mib() >= self.memory.limit - CLOSE_MIB
    }

    /// When something happens next: a milestone, or memory reaching the limit.
    pub(super) fn next_turn(&self) -> Option<u64> {
        let Reverse(first) = self.milestones.peek()?;
        let mut ahead = first.progress.saturating_sub(self.progress) as f64;
        if self.touching > 0 && self.memory.per_request > 0.0 {
            let room = self.memory.limit - self.memory_mib();
            ahead = ahead.min((room / (self.memory.per_request * self.slope)).max(0.0));
        }
        // One nanosecond later than exactly: rounding must not bring it back to before the event.
        Some(self.updated_ns + (ahead / (self.rate() * PARTS as f64)).ceil() as u64 + 1)
    }

    /// The next request that has done its computing, if progress has come that far.
    pub(super) fn next_computed(&mut self) -> Option<u32> {
        loop {
            let Reverse(first) = *self.milestones.peek()?;
            if first.progress > self.progress {
                return None;
            }
            self.milestones.pop();
            if first.touch == 0 {
                self.computing -= 1;
                return Some(first.request);
            }
            self.has_touched(first);
        }
    }

    fn has_touched(&mut self, end: Milestone) {
        self.touching -= 1;
        self.full += 1;
        let touch = end.touch as f64;
        self.slope -= 1.0 / touch;
        self.offset -= (end.progress - end.touch) as f64 / touch;
        if self.touching == 0 {
            // What rounding has left behind.
            (self.slope, self.offset) = (0.0, 0.0);
        }
    }

    /// A request leaves with its answer.
    pub(super) fn leave(&mut self, request: u32) {
        if let Some(place) = self.in_service.iter().position(|other| *other == request) {
            self.in_service.swap_remove(place);
        }
        self.full -= u32::from(self.memory.per_request > 0.0);
    }

    /// Everything in the container is gone.
    pub(super) fn clear(&mut self) {
        self.in_service.clear();
        self.milestones.clear();
        (self.computing, self.touching, self.full) = (0, 0, 0);
        (self.slope, self.offset) = (0.0, 0.0);
    }
}
