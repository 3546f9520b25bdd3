//! One instance.

use windfall_core::{Allocation, CallId, FunctionId, Mebibytes, MilliCpu, Timestamp};

/// Where an instance is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The process is being started.
    Starting,
    /// The process exists; the code is being loaded. A spare stays here without code.
    Initialising,
    /// It can serve.
    Ready,
    /// It can serve after it was thawed.
    Frozen,
    /// It is being ended.
    Stopping,
}

/// A call that has a place in an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) call: CallId,
    /// Whether the call was sent to the instance; if not, it waits for the instance.
    pub(super) is_dispatched: bool,
}

/// One instance.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    /// Its function; nothing for a spare.
    pub(super) function: Option<FunctionId>,
    pub(super) kind: String,
    pub(super) stage: Stage,
    /// When its function began to wait for it.
    pub(super) begun_at: Timestamp,
    pub(super) seats: Vec<Seat>,
    /// What the node's book has in force for it.
    pub(super) held: Allocation,
    /// CPU that the book holds back for its call.
    pub(super) held_back: MilliCpu,
    /// The memory it keeps while idle: its limit.
    pub(super) kept: Mebibytes,
    /// Since when it has no call, if it can serve and has none.
    pub(super) idle_since: Option<Timestamp>,
    /// The alarm that is set for it.
    pub(super) alarm: Option<Timestamp>,
    /// Its call brought its own size; what is held goes with the call.
    pub(super) is_sized: bool,
    /// It serves nobody new, because its function has other code now or is gone.
    pub(super) is_outdated: bool,
}

impl Instance {
    pub(super) fn new(
        function: Option<FunctionId>,
        kind: String,
        held: Allocation,
        now: Timestamp,
    ) -> Self {
        Self {
            function,
            kind,
            stage: Stage::Starting,
            begun_at: now,
            seats: Vec::new(),
            held,
            held_back: MilliCpu::ZERO,
            kept: held.memory,
            idle_since: None,
            alarm: None,
            is_sized: false,
            is_outdated: false,
        }
    }

    /// Whether it has reached the stage in which it can serve.
    pub(super) fn can_serve(&self) -> bool {
        matches!(self.stage, Stage::Ready | Stage::Frozen)
    }

    pub(super) fn seat(&mut self, call: CallId, is_dispatched: bool) {
        self.seats.push(Seat { call, is_dispatched });
    }

    /// Takes a call out; whether it had a place.
    pub(super) fn unseat(&mut self, call: CallId) -> bool {
        let place = self.seats.iter().position(|seat| seat.call == call);
        place.map(|place| self.seats.remove(place)).is_some()
    }
}
