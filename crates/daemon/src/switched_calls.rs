//! The call loop behind a switch: another policy can take over while calls run.
//!
//! ```text
//!   offer(loop v2) ─► slot ─► next `size`: v2 becomes current, v1 keeps the calls it has sized until they close
//! ```
//!
//! Each loop has harvest pools of its own and lends only what its own calls have left, so nothing is lent twice while
//! two loops are in use. Where nodes take calls by expected use, the book of it goes from loop to loop: calls of a loop
//! that was replaced are still on their nodes.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use windfall_control::CallLoop;
use windfall_core::{
    Allocation, CallClose, CallControl, CallHints, CallId, CallOutcome, CallPlan, CallView,
    GrantChange, Look, NodeId, NodeOffer, Resized, RunningCall, Start, Timestamp,
};

/// Finished calls that are kept for checks of a new policy.
const REMEMBERED: usize = 4096;

/// A finished call with what a policy could see of it at dispatch.
#[derive(Clone, Debug)]
pub struct FinishedCall {
    /// At dispatch.
    pub view: CallView,
    /// At its end.
    pub outcome: CallOutcome,
}

/// What the two sides of the switch share.
#[derive(Default)]
pub struct PolicySlot {
    offered: Mutex<Option<CallLoop>>,
    has_offer: AtomicBool,
    is_quarantined: AtomicBool,
    finished: Mutex<VecDeque<FinishedCall>>,
}

impl PolicySlot {
    /// Puts a loop into the slot. It takes over with the next call that is sized; an offer that was not taken yet is
    /// replaced.
    pub fn offer(&self, control: CallLoop) {
        *self.offered.lock().unwrap_or_else(PoisonError::into_inner) = Some(control);
        self.has_offer.store(true, Ordering::Release);
    }

    /// Whether the policy in charge is quarantined.
    pub fn is_quarantined(&self) -> bool {
        self.is_quarantined.load(Ordering::Relaxed)
    }

    /// The most recent calls that have ended, oldest first.
    pub fn finished(&self) -> Vec<FinishedCall> {
        let finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        finished.iter().cloned().collect()
    }

    fn take(&self) -> Option<CallLoop> {
        if !self.has_offer.swap(false, Ordering::Acquire) {
            return None;
        }
        self.offered.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn remember(&self, call: FinishedCall) {
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        if finished.len() == REMEMBERED {
            finished.pop_front();
        }
        finished.push_back(call);
    }
}

/// A loop with the calls that it has sized and that are not closed.
struct Charge {
    control: CallLoop,
    calls: BTreeSet<CallId>,
}

/// The call control that a platform is given.
pub struct SwitchedCalls {
    slot: Arc<PolicySlot>,
    current: Charge,
    /// Loops that were replaced and still have calls.
    retiring: Vec<Charge>,
    /// What was seen of calls that have not ended.
    views: std::collections::BTreeMap<CallId, CallView>,
}

impl SwitchedCalls {
    /// Begins with `control`; later ones come through `slot`.
    pub fn new(control: CallLoop, slot: Arc<PolicySlot>) -> Self {
        let current = Charge { control, calls: BTreeSet::new() };
        Self { slot, current, retiring: Vec::new(), views: std::collections::BTreeMap::new() }
    }

    fn take_offer(&mut self) {
        if let Some(mut control) = self.slot.take() {
            control.inherit_admission(&mut self.current.control);
            let next = Charge { control, calls: BTreeSet::new() };
            let before = std::mem::replace(&mut self.current, next);
            if !before.calls.is_empty() {
                self.retiring.push(before);
            }
        }
    }

    /// The loop that has sized `call`.
    fn of(&mut self, call: CallId) -> &mut CallLoop {
        let retiring = self.retiring.iter_mut().find(|charge| charge.calls.contains(&call));
        &mut retiring.unwrap_or(&mut self.current).control
    }

    /// Whether a loop that was replaced has sized `call`.
    fn is_retiring(&self, call: CallId) -> bool {
        self.retiring.iter().any(|charge| charge.calls.contains(&call))
    }

    fn close_books(&mut self, end: &CallClose<'_>) {
        let call = end.call();
        if !self.current.calls.remove(&call) {
            self.retiring.iter_mut().for_each(|charge| {
                charge.calls.remove(&call);
            });
            self.retiring.retain(|charge| !charge.calls.is_empty());
        }
        if let (Some(view), CallClose::Measured(outcome)) = (self.views.remove(&call), end) {
            self.slot.remember(FinishedCall { view, outcome: (*outcome).clone() });
        }
    }
}

impl CallControl for SwitchedCalls {
    fn size(&mut self, call: &CallView) -> CallPlan {
        self.take_offer();
        self.current.calls.insert(call.id);
        self.views.insert(call.id, CallView { foresight: None, ..call.clone() });
        let plan = self.current.control.size(call);
        self.slot.is_quarantined.store(self.current.control.is_quarantined(), Ordering::Relaxed);
        plan
    }

    fn start(&mut self, call: &CallView, plan: &CallPlan, node: NodeId, room: Allocation) -> Start {
        self.of(call.id).start(call, plan, node, room)
    }

    fn look(&mut self, running: &RunningCall, changes: &mut Vec<GrantChange>) -> Look {
        if self.is_retiring(running.id) {
            self.current.control.looked_elsewhere(running);
        }
        self.of(running.id).look(running, changes)
    }

    fn resized(&mut self, change: &Resized, changes: &mut Vec<GrantChange>) {
        self.of(change.call).resized(change, changes);
    }

    fn close(&mut self, end: CallClose<'_>, changes: &mut Vec<GrantChange>) {
        if self.is_retiring(end.call()) {
            self.current.control.closed_elsewhere(&end);
        }
        self.of(end.call()).close(end, changes);
        self.close_books(&end);
    }

    fn admit(&self, call: &CallView, plan: &CallPlan, offer: &NodeOffer) -> Option<f64> {
        self.current.control.admit(call, plan, offer)
    }

    fn hints(&self) -> CallHints {
        let CallHints { admit_by, looks_while_short, .. } = self.current.control.hints();
        // The policy may change at any time, so nothing may ever be skipped. Who admits calls stays the same: the manager
        // refuses a policy that admits them in another way.
        CallHints { admit_by, looks_while_short, ..CallHints::default() }
    }

    fn coverage(&self, node: NodeId, plan: &CallPlan, now: Timestamp) -> f64 {
        self.current.control.coverage(node, plan, now)
    }
}

#[cfg(test)]
mod tests;
