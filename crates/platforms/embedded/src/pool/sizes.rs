//! Live changes: what calls and instances hold.

use windfall_control::Payment;
use windfall_core::{
    Allocation, CallId, Duration, FunctionId, Instances, MilliCpu, Setting, Timestamp,
};

use super::{Action, InstanceId, Pool, SizedBy};

impl Pool {
    /// A running call holds less from now on; the kernel has confirmed it.
    pub fn lower(&mut self, call: CallId, to: Allocation) {
        let Some(id) = self.calls.get(&call).and_then(|pooled| pooled.instance) else { return };
        let Some(instance) = self.instances.get_mut(&id) else { return };
        let lowered = instance.held.min(to);
        self.book.release(instance.held - lowered);
        (instance.held, instance.kept) = (lowered, lowered.memory);
    }

    /// A running call is to hold `more`: it is owed that, behind all who are owed already. Nothing is owed any more if
    /// `more` is zero.
    pub fn owe(&mut self, call: CallId, more: Allocation) {
        self.book.owe(call, more);
    }

    /// What is owed to `call` and what it already holds go on; nothing of an older raise is owed any more.
    pub fn forgive(&mut self, call: CallId) {
        self.book.forgive(call);
    }

    /// Gives what is free to the first call it can be given to. Idle instances make way.
    pub fn pay(&mut self, actions: &mut Vec<Action>) -> Option<Payment<CallId>> {
        let payment = self.book.pay()?;
        let id = self.calls.get(&payment.call).and_then(|pooled| pooled.instance);
        if let Some(instance) = id.and_then(|id| self.instances.get_mut(&id)) {
            instance.held += payment.amount;
            instance.kept = instance.held.memory;
        }
        self.evict_for(Allocation::ZERO, actions);
        Some(payment)
    }

    /// A raise that was in the book did not come into force: the call holds `in_force`.
    pub fn correct(&mut self, call: CallId, in_force: Allocation) {
        let Some(id) = self.calls.get(&call).and_then(|pooled| pooled.instance) else { return };
        self.set_held(id, in_force);
    }

    /// Keeps `cpu` out of new calls' reach for this one, instead of what was kept before.
    pub fn hold_back(&mut self, call: CallId, cpu: MilliCpu) {
        let Some(id) = self.calls.get(&call).and_then(|pooled| pooled.instance) else { return };
        let Some(instance) = self.instances.get_mut(&id).filter(|one| one.is_sized) else { return };
        let before = std::mem::replace(&mut instance.held_back, cpu);
        self.book.hold_back(before, cpu);
    }

    /// An instance holds `in_force`, as the kernel says.
    pub fn set_held(&mut self, id: InstanceId, in_force: Allocation) {
        let Some(instance) = self.instances.get_mut(&id) else { return };
        self.book.release(instance.held);
        self.book.hold(in_force);
        (instance.held, instance.kept) = (in_force, in_force.memory);
    }

    /// Instances that should stand ready from now on, and how long idle ones above that stay.
    pub fn set_target(
        &mut self,
        now: Timestamp,
        function: FunctionId,
        instances: Setting<Instances>,
        keep_alive: Setting<Duration>,
        actions: &mut Vec<Action>,
    ) {
        let Some(state) = self.functions.get_mut(function.index()) else { return };
        if let Setting::Set(count) = instances {
            state.target = Some(count.get());
        }
        state.keep_alive = keep_alive.value().unwrap_or(state.keep_alive);
        self.is_ahead_due = true;
        self.reset_alarms(now, function, actions);
    }

    /// Calls per instance from now on.
    pub fn set_concurrency(&mut self, function: FunctionId, concurrency: u32) {
        let Some(state) = self.functions.get_mut(function.index()) else { return };
        state.concurrency = concurrency.max(1);
        let all: Vec<InstanceId> = self.of_function(function).map(|(id, _)| id).collect();
        for id in all {
            if self.instances[&id].idle_since.is_none() {
                self.list_free_places(function, id);
            }
        }
    }

    /// What instances of `function` hold from now on, where ticks size them. Asks for a resize of each that stands;
    /// a raise gets what is free. Returns whether every instance gets all of it. No instance gets more than the node.
    pub fn resize(
        &mut self,
        function: FunctionId,
        to: Allocation,
        actions: &mut Vec<Action>,
    ) -> bool {
        if self.settings.sized_by != SizedBy::Instance {
            return false;
        }
        let Some(state) = self.functions.get_mut(function.index()) else { return false };
        let to = to.min(self.book.limit());
        state.allocation = to;
        let mut gets_all = true;
        let all: Vec<InstanceId> = self.of_function(function).map(|(id, _)| id).collect();
        for id in all {
            let held = self.instances[&id].held;
            let target = held.min(to) + to.saturating_sub(held).min(self.book.free());
            gets_all &= target == to;
            if target != held {
                // Raised in the book before the change, lowered after it.
                let both = held.max(target);
                self.book.hold(both - held);
                self.instances.get_mut(&id).expect("it was just listed").held = both;
                actions.push(Action::Resize { instance: id, to: target });
            }
        }
        gets_all
    }

    /// What an instance holds in the book.
    pub fn held(&self, id: InstanceId) -> Option<Allocation> {
        self.instances.get(&id).map(|instance| instance.held)
    }

    /// The function of an instance; nothing for a spare.
    pub fn function_of(&self, id: InstanceId) -> Option<FunctionId> {
        self.instances.get(&id)?.function
    }
    /// Whether the call of an instance brought its own size.
    pub fn is_sized(&self, id: InstanceId) -> bool {
        self.instances.get(&id).is_some_and(|instance| instance.is_sized)
    }

    /// The calls that have a place in an instance.
    pub fn calls_of(&self, id: InstanceId) -> Vec<CallId> {
        let seats = self.instances.get(&id).map(|instance| instance.seats.iter());
        seats.into_iter().flatten().map(|seat| seat.call).collect()
    }

    /// The instances of a function.
    pub fn instances_of(&self, function: FunctionId) -> Vec<InstanceId> {
        self.of_function(function).map(|(id, _)| id).collect()
    }

    /// What a new instance of a function gets.
    pub fn allocation_of(&self, function: FunctionId) -> Option<Allocation> {
        self.functions.get(function.index()).map(|state| state.allocation)
    }

    /// The least that an instance of a function holds, resource by resource.
    pub fn least_held(&self, function: FunctionId) -> Option<Allocation> {
        self.of_function(function).map(|(_, instance)| instance.held).reduce(Allocation::min)
    }
}
