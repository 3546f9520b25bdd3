//! From arrival to end: what each event changes.

use windfall_core::{Allocation, CallId, Duration, FunctionId, MilliCpu, Timestamp};

use super::{
    Action, CallFinish, Exit, InstanceId, Pool, PooledCall, ReplyReason, SizedBy, Stage, StartKind,
};

/// After a start ahead of any call failed, the next is tried so much later: without a pause a machine that is out of
/// processes would be asked thousands of times per second.
const AHEAD_PAUSE: Duration = Duration::from_secs(1);

impl Pool {
    pub(super) fn arrived(
        &mut self,
        now: Timestamp,
        call: CallId,
        function: FunctionId,
        actions: &mut Vec<Action>,
    ) {
        self.counters.arrived += 1;
        let Some(state) = self.functions.get_mut(function.index()).filter(|one| !one.is_removed)
        else {
            return self.reply(call, ReplyReason::Removed, actions);
        };
        state.count_presence(now);
        state.window.arrivals += 1;
        let most = state.settings.most_waiting;
        if state.queue.len() >= most {
            return self.reply(call, ReplyReason::QueueFull { most }, actions);
        }
        let order = self.next_order;
        self.next_order += 1;
        let pooled = PooledCall {
            function,
            order,
            arrived_at: now,
            instance: None,
            is_second_attempt: false,
        };
        self.calls.insert(call, pooled);
        self.enqueue(call);
    }

    /// Puts a call into the queue of its function, in order of arrival.
    fn enqueue(&mut self, call: CallId) {
        let (function, order) = (self.calls[&call].function, self.calls[&call].order);
        let queue = &self.functions[function.index()].queue;
        let place = queue.partition_point(|other| self.calls[other].order < order);
        if place == 0 {
            if let Some(first) = queue.front() {
                self.heads.remove(&self.calls[first].order);
            }
            self.heads.insert(order, function);
        }
        let state = &mut self.functions[function.index()];
        state.queue.insert(place, call);
        if place == 0 {
            state.head_least = None;
        }
    }

    /// Takes a call out of the queue of its function.
    pub(super) fn leave_queue(&mut self, call: CallId) {
        let PooledCall { function, order, .. } = self.calls[&call];
        let state = &mut self.functions[function.index()];
        let Some(place) = state.queue.iter().position(|other| *other == call) else { return };
        state.queue.remove(place);
        if place == 0 {
            state.head_least = None;
            self.heads.remove(&order);
            if let Some(next) = state.queue.front() {
                self.heads.insert(self.calls[next].order, function);
            }
        }
    }

    pub(super) fn launched(&mut self, id: InstanceId, actions: &mut Vec<Action>) {
        let Some(instance) = self.instances.get_mut(&id) else { return };
        match instance.stage {
            Stage::Starting => instance.stage = Stage::Initialising,
            // It was to be stopped before it existed.
            Stage::Stopping => {
                return actions.push(Action::Kill { instance: id, may_be_ending: false });
            }
            Stage::Initialising | Stage::Ready | Stage::Frozen => return,
        }
        if instance.function.is_none() {
            return;
        }
        let Some(first) = instance.seats.first_mut() else {
            return actions.push(Action::Initialise { instance: id });
        };
        first.is_dispatched = true;
        let (call, start) = (first.call, StartKind::Cold);
        actions.push(Action::Dispatch { call, instance: id, start });
    }

    pub(super) fn launch_failed(
        &mut self,
        now: Timestamp,
        id: InstanceId,
        problem: &str,
        actions: &mut Vec<Action>,
    ) {
        let Some(instance) = self.instances.get(&id) else { return };
        let seats: Vec<CallId> = instance.seats.iter().map(|seat| seat.call).collect();
        if seats.is_empty() {
            self.ahead_not_before = now + AHEAD_PAUSE;
        }
        for call in seats {
            let function = self.calls[&call].function;
            self.functions[function.index()].count_presence(now);
            self.unseat(id, call);
            self.reply(call, ReplyReason::LaunchFailed(problem.to_owned()), actions);
        }
        self.discard(id);
    }

    pub(super) fn initialised(
        &mut self,
        now: Timestamp,
        id: InstanceId,
        actions: &mut Vec<Action>,
    ) {
        let Some(instance) = self.instances.get_mut(&id) else { return };
        let Some(function) = instance.function.filter(|_| instance.stage == Stage::Initialising)
        else {
            return;
        };
        instance.stage = Stage::Ready;
        let start = now.since(instance.begun_at);
        let state = &mut self.functions[function.index()];
        state.note_start(start);
        state.starting -= 1;
        state.ready += 1;
        state.busy += 1;
        state.warming.remove(&id);
        for seat in instance.seats.iter_mut().filter(|seat| !seat.is_dispatched) {
            seat.is_dispatched = true;
            let (call, start) = (seat.call, StartKind::Warm);
            actions.push(Action::Dispatch { call, instance: id, start });
        }
        self.offer_place(now, id, actions);
    }

    /// An instance that can serve has a free place, or none: it is listed where the next call looks for it.
    fn offer_place(&mut self, now: Timestamp, id: InstanceId, actions: &mut Vec<Action>) {
        let instance = &self.instances[&id];
        let Some(function) = instance.function else { return };
        if instance.seats.is_empty() {
            if instance.is_outdated {
                self.stop(id, actions);
            } else {
                self.begin_idle(now, id, actions);
            }
            return;
        }
        let state = &mut self.functions[function.index()];
        if !instance.is_outdated && (instance.seats.len() as u32) < state.concurrency {
            state.spare.insert(id);
        }
    }

    pub(super) fn finished(
        &mut self,
        now: Timestamp,
        call: CallId,
        id: InstanceId,
        finish: CallFinish,
        actions: &mut Vec<Action>,
    ) {
        let Some(instance) = self.instances.get(&id) else { return };
        if !instance.seats.iter().any(|seat| seat.call == call) {
            return;
        }
        if finish == CallFinish::Broken {
            return self.end_instance(id, true, actions);
        }
        let function = self.calls[&call].function;
        self.functions[function.index()].count_presence(now);
        self.unseat(id, call);
        self.calls.remove(&call);
        self.counters.answered += 1;
        let can_serve = self.instances[&id].can_serve();
        match finish {
            CallFinish::Answered if can_serve => self.offer_place(now, id, actions),
            CallFinish::Answered => {}
            CallFinish::Unusable | CallFinish::Broken => self.stop(id, actions),
        }
    }

    /// A call leaves its instance, and what it held itself is free again.
    pub(super) fn unseat(&mut self, id: InstanceId, call: CallId) {
        let Some(instance) = self.instances.get_mut(&id) else { return };
        if !instance.unseat(call) {
            return;
        }
        if let Some(function) = instance.function {
            self.functions[function.index()].seated -= 1;
        }
        self.book.forgive(call);
        if instance.is_sized {
            let held = std::mem::take(&mut instance.held);
            let held_back = std::mem::take(&mut instance.held_back);
            instance.is_sized = false;
            self.book.release(held);
            self.book.hold_back(held_back, MilliCpu::ZERO);
        }
        if let Some(pooled) = self.calls.get_mut(&call) {
            pooled.instance = None;
        }
    }

    /// Ends an instance that nobody needs.
    pub(super) fn stop(&mut self, id: InstanceId, actions: &mut Vec<Action>) {
        self.end_instance(id, false, actions);
    }

    /// Ends an instance. Calls that were sent to it stay with it until it has exited, which shows how it ended; calls
    /// that only waited for it wait in their queue again.
    pub(super) fn end_instance(
        &mut self,
        id: InstanceId,
        may_be_ending: bool,
        actions: &mut Vec<Action>,
    ) {
        if self.instances.get(&id).is_none_or(|instance| instance.stage == Stage::Stopping) {
            return;
        }
        self.withdraw(id);
        actions.push(Action::Kill { instance: id, may_be_ending });
    }

    /// Takes an instance out of every list of those that serve or will.
    fn withdraw(&mut self, id: InstanceId) {
        self.end_idle(id);
        let Some(instance) = self.instances.get_mut(&id) else { return };
        let before = std::mem::replace(&mut instance.stage, Stage::Stopping);
        if let Some(function) = instance.function {
            let state = &mut self.functions[function.index()];
            state.forget(id);
            match before {
                Stage::Starting | Stage::Initialising => state.starting -= 1,
                Stage::Ready | Stage::Frozen => {
                    state.ready -= 1;
                    state.busy -= 1;
                }
                Stage::Stopping => {}
            }
        }
        let waiting: Vec<CallId> = instance
            .seats
            .iter()
            .filter(|seat| !seat.is_dispatched)
            .map(|seat| seat.call)
            .collect();
        for call in waiting {
            self.unseat(id, call);
            self.enqueue(call);
        }
        self.release_if_empty(id);
    }

    fn release_if_empty(&mut self, id: InstanceId) {
        let Some(instance) = self.instances.get_mut(&id) else { return };
        if instance.seats.is_empty() {
            self.book.release(std::mem::take(&mut instance.held));
        }
    }

    /// The instance is gone; its calls have been taken care of.
    fn discard(&mut self, id: InstanceId) {
        if self.instances.get(&id).is_some_and(|instance| instance.stage != Stage::Stopping) {
            self.withdraw(id);
        }
        self.release_if_empty(id);
        self.instances.remove(&id);
        self.is_ahead_due = true;
    }

    pub(super) fn exited(
        &mut self,
        now: Timestamp,
        id: InstanceId,
        exit: &Exit,
        actions: &mut Vec<Action>,
    ) {
        let Some(instance) = self.instances.get(&id) else { return };
        let (kept, function) = (instance.kept, instance.function);
        if instance.stage != Stage::Stopping || !instance.seats.is_empty() {
            match exit {
                Exit::OutOfMemory => self.counters.memory_kills += 1,
                Exit::Ended(_) => self.counters.crashes += 1,
            }
        }
        if instance.stage != Stage::Stopping {
            self.withdraw(id);
        }
        let seats: Vec<CallId> = self.instances[&id].seats.iter().map(|seat| seat.call).collect();
        if let Some(function) = function {
            self.functions[function.index()].count_presence(now);
            let reserved = self.state(function).settings.reservation.memory;
            let is_too_small = *exit == Exit::OutOfMemory && kept < reserved;
            if is_too_small && self.settings.sized_by == SizedBy::Instance {
                self.functions[function.index()].allocation.memory = reserved;
            }
            for call in seats {
                self.unseat(id, call);
                self.try_again_or_reply(call, is_too_small, exit, actions);
            }
        }
        self.discard(id);
    }

    /// A call whose instance ended under it: once more at the user's size if ours was smaller, else an answer.
    fn try_again_or_reply(
        &mut self,
        call: CallId,
        is_too_small: bool,
        exit: &Exit,
        actions: &mut Vec<Action>,
    ) {
        let Some(pooled) = self.calls.get_mut(&call) else { return };
        if is_too_small && !pooled.is_second_attempt {
            pooled.is_second_attempt = true;
            self.counters.retried += 1;
            return self.enqueue(call);
        }
        let reason = match exit {
            Exit::OutOfMemory => ReplyReason::OutOfMemory,
            Exit::Ended(how) => ReplyReason::Crashed(how.clone()),
        };
        self.reply(call, reason, actions);
    }

    pub(super) fn abandoned(&mut self, now: Timestamp, call: CallId) {
        let Some(pooled) = self.calls.get(&call) else { return };
        let (function, seated_in) = (pooled.function, pooled.instance);
        self.functions[function.index()].count_presence(now);
        match seated_in {
            None => self.leave_queue(call),
            Some(id) => {
                let seats = &self.instances[&id].seats;
                if seats.iter().any(|seat| seat.call == call && seat.is_dispatched) {
                    return;
                }
                self.unseat(id, call);
                if self.instances[&id].seats.is_empty() {
                    self.hold_as_ahead(id);
                }
            }
        }
        self.calls.remove(&call);
        self.counters.abandoned += 1;
    }

    /// Whether this attempt of a call is its second one, at the user's size.
    pub fn is_second_attempt(&self, call: CallId) -> bool {
        self.calls.get(&call).is_some_and(|pooled| pooled.is_second_attempt)
    }

    /// The instance in which a call has a place, and what that instance holds.
    pub fn seat_of(&self, call: CallId) -> Option<(InstanceId, Allocation)> {
        let id = self.calls.get(&call)?.instance?;
        Some((id, self.instances.get(&id)?.held))
    }
}
