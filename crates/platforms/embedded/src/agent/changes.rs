//! Live changes of what calls hold: asked, set in motion, owed, in force, answered.

use windfall_core::{Allocation, CallId, Refusal, Resized, Timestamp};

use super::call_state::Change;
use super::desk::NODE;
use super::limits_of;
use super::node::Node;
use crate::pool::InstanceId;

impl Node {
    /// Puts a change in line, in place of an older one of the same call that was not set in motion yet. Does nothing
    /// if the call is heading there already.
    pub(super) fn ask(&mut self, id: CallId, grant: Allocation) {
        let Some(call) = self.desk.calls.get(&id).filter(|call| call.is_open) else { return };
        let in_line = self.asked.iter().rev().find(|(other, _)| *other == id);
        let heading_for = match (in_line, &call.change) {
            (Some((_, asked)), _) => *asked,
            (None, Some(change)) => change.asked,
            (None, None) => call.grant,
        };
        if grant != heading_for {
            self.asked.retain(|(other, _)| *other != id);
            self.asked.push_back((id, grant));
        }
    }

    /// Pays debts and sets changes in motion until none is left. What an answer asks for comes after what was asked
    /// before it.
    pub(super) fn carry_out_changes(&mut self, now: Timestamp) {
        loop {
            self.pay_debts(now);
            let Some((id, grant)) = self.asked.pop_front() else { return };
            if self.desk.calls.get(&id).is_some_and(|call| call.is_open) {
                self.change(now, id, grant);
            }
        }
    }

    fn pay_debts(&mut self, now: Timestamp) {
        while let Some(payment) = self.pool.pay(&mut self.actions) {
            let id = payment.call;
            let Some(call) = self.desk.calls.get_mut(&id) else { continue };
            let raised = call.grant + payment.amount;
            call.hold(now, raised);
            self.apply_limits(id);
            if payment.still_owed == Allocation::ZERO {
                self.answer(now, id);
            }
        }
    }

    /// Sets a change in motion: lowers immediately, and owes what is to be raised.
    fn change(&mut self, now: Timestamp, id: CallId, asked: Allocation) {
        self.pool.forgive(id);
        let Some(call) = self.desk.calls.get_mut(&id) else { return };
        call.change = Some(Change { asked, refused: None });
        let before = call.grant;
        let lowered = before.min(asked);
        if lowered != before {
            call.hold(now, lowered);
            let refused = self.apply_limits(id);
            let call = self.desk.calls.get_mut(&id).expect("it was just changed");
            if let Some(problem) = refused {
                // The kernel keeps the memory limit it had; what is in use cannot be taken.
                let in_force = Allocation { memory: before.memory, ..lowered };
                call.hold(now, in_force);
                if let Some(change) = &mut call.change {
                    change.refused = Some(problem);
                }
            }
            let in_force = call.grant;
            self.pool.lower(id, in_force);
        }
        let raise = asked.saturating_sub(self.desk.calls[&id].grant);
        if raise == Allocation::ZERO {
            return self.answer(now, id);
        }
        self.pool.owe(id, raise);
        self.pay_debts(now);
    }

    /// The change of a call has come to its end. Where it fell short and the control has asked for another one
    /// meanwhile, the shortfall is no news: the answer says that the change was superseded.
    fn answer(&mut self, now: Timestamp, id: CallId) {
        let is_superseded = self.asked.iter().any(|(other, _)| *other == id);
        let Some(call) = self.desk.calls.get_mut(&id) else { return };
        let Some(Change { asked, refused }) = call.change.take() else { return };
        let refused = match refused {
            _ if call.grant == asked => None,
            _ if is_superseded => Some(Refusal::Superseded),
            Some(problem) => Some(Refusal::System(problem)),
            None => Some(Refusal::NoRoom),
        };
        let change = Resized {
            call: id,
            node: NODE,
            at: now,
            reservation: call.view.reservation,
            asked,
            in_force: call.grant,
            refused,
        };
        let mut changes = Vec::new();
        self.desk.control.resized(&change, &mut changes);
        self.take_down(changes);
    }

    /// Asks the kernel for what a call is to hold. Returns why it kept another memory limit, if it did.
    pub(super) fn apply_limits(&mut self, id: CallId) -> Option<String> {
        let call = self.desk.calls.get(&id)?;
        let instance = call.instance?;
        if !self.pool.is_sized(instance) {
            return None;
        }
        let limits = limits_of(call.grant, call.ceiling, &self.settings);
        let employed = self.employed.get_mut(&instance)?;
        if employed.limits == limits {
            return None;
        }
        employed.limits = limits;
        let in_force = employed.worker.set(&limits);
        let refused = in_force.memory.refused;
        if refused.is_some() {
            // Asked again with the next change, because more may be possible then.
            employed.limits.memory = in_force.memory.value;
            if call.change.is_none() {
                self.kept_memory += 1;
            }
        }
        refused
    }

    /// Changes the size of an instance that ticks size.
    pub(super) fn resize_instance(&mut self, instance: InstanceId, to: Allocation) {
        let function = self.pool.function_of(instance);
        let ceiling = self.ticks.ceiling_of(function);
        let limits = limits_of(to, ceiling, &self.settings);
        let Some(employed) = self.employed.get_mut(&instance) else {
            // Its process is being started with what it held; it is sized when it is there.
            return self.pool.set_held(instance, to);
        };
        employed.limits = limits;
        let in_force = employed.worker.set(&limits);
        let memory =
            if in_force.memory.refused.is_some() { in_force.memory.value } else { to.memory };
        self.ticks.note_resize(function, in_force.memory.refused);
        self.pool.set_held(instance, Allocation { cpu: to.cpu, memory });
    }
}
