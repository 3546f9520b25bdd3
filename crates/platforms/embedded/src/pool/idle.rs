//! Idle instances: paused after a while, stopped later, or earlier to make room.

use windfall_core::{Allocation, FunctionId, Mebibytes, Timestamp};

use super::{Action, InstanceId, Pool, SizedBy, Stage};

impl Pool {
    pub(super) fn begin_idle(&mut self, now: Timestamp, id: InstanceId, actions: &mut Vec<Action>) {
        let Some(instance) = self.instances.get_mut(&id) else { return };
        let Some(function) = instance.function else { return };
        instance.idle_since = Some(now);
        if self.settings.sized_by == SizedBy::Call {
            self.book.release(std::mem::take(&mut instance.held));
            self.idle_memory += instance.kept;
        }
        let state = &mut self.functions[function.index()];
        state.busy -= 1;
        state.forget(id);
        state.idle.insert((now, id));
        self.idle.insert((now, id));
        if self.is_due_to_stop(now, id) {
            return self.stop(id, actions);
        }
        self.set_alarm(id);
        // What the call gave back may be needed by others already.
        self.evict_for(Allocation::ZERO, actions);
    }

    /// The instance has a call again, or is about to go.
    pub(super) fn end_idle(&mut self, id: InstanceId) {
        let Some(instance) = self.instances.get_mut(&id) else { return };
        let Some(since) = instance.idle_since.take() else { return };
        if let Some(at) = instance.alarm.take() {
            self.alarms.remove(&(at, id));
        }
        self.idle.remove(&(since, id));
        if self.settings.sized_by == SizedBy::Call {
            self.idle_memory -= instance.kept;
        }
        if let Some(function) = instance.function {
            let state = &mut self.functions[function.index()];
            state.idle.remove(&(since, id));
            state.busy += 1;
        }
    }

    /// Whether an idle instance has outstayed its keep-alive and its function has more than it should.
    fn is_due_to_stop(&self, now: Timestamp, id: InstanceId) -> bool {
        let instance = &self.instances[&id];
        let (Some(function), Some(since)) = (instance.function, instance.idle_since) else {
            return false;
        };
        let state = self.state(function);
        now.since(since) >= state.keep_alive && state.present() > state.target.unwrap_or(0)
    }

    /// Sets the alarm for what comes next in the life of an idle instance: pause or end.
    fn set_alarm(&mut self, id: InstanceId) {
        let instance = &self.instances[&id];
        let (Some(function), Some(since)) = (instance.function, instance.idle_since) else {
            return;
        };
        let state = self.state(function);
        let ends = (state.present() > state.target.unwrap_or(0)).then(|| since + state.keep_alive);
        let pauses = self
            .settings
            .pause_after
            .filter(|_| instance.stage == Stage::Ready)
            .map(|after| since + after);
        let next = ends.into_iter().chain(pauses).min();
        if next == instance.alarm {
            return;
        }
        if let Some(instance) = self.instances.get_mut(&id)
            && let Some(before) = std::mem::replace(&mut instance.alarm, next)
        {
            self.alarms.remove(&(before, id));
        }
        if let Some(at) = next {
            self.alarms.insert((at, id));
        }
    }

    /// Target or keep-alive of a function changed: its idle instances are judged anew.
    pub(super) fn reset_alarms(
        &mut self,
        now: Timestamp,
        function: FunctionId,
        actions: &mut Vec<Action>,
    ) {
        let idle: Vec<InstanceId> = self.state(function).idle.iter().map(|(_, id)| *id).collect();
        for id in idle {
            if self.is_due_to_stop(now, id) {
                self.stop(id, actions);
            } else {
                self.set_alarm(id);
            }
        }
    }

    /// Does what is due.
    pub(super) fn ring(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        while let Some(&(at, id)) = self.alarms.first() {
            if at > now {
                return;
            }
            self.alarms.pop_first();
            let Some(instance) = self.instances.get_mut(&id) else { continue };
            instance.alarm = None;
            if self.is_due_to_stop(now, id) {
                self.stop(id, actions);
                continue;
            }
            let instance = self.instances.get_mut(&id).expect("it was just found");
            let is_idle_for = instance.idle_since.map(|since| now.since(since));
            let is_pause_due = match (self.settings.pause_after, is_idle_for) {
                (Some(after), Some(idle)) => instance.stage == Stage::Ready && idle >= after,
                _ => false,
            };
            if is_pause_due {
                instance.stage = Stage::Frozen;
                actions.push(Action::Freeze { instance: id });
            }
            self.set_alarm(id);
        }
    }

    /// Stops idle instances, the least recently used first, until `more` and all that is in the book fit beside those
    /// that stay.
    pub(super) fn evict_for(&mut self, more: Allocation, actions: &mut Vec<Action>) {
        while !self.fits_beside_idle(more) {
            let Some(&(_, id)) = self.idle.first() else { return };
            self.counters.evictions += 1;
            self.stop(id, actions);
        }
    }

    fn fits_beside_idle(&self, more: Allocation) -> bool {
        match self.settings.sized_by {
            SizedBy::Call => self.idle_memory + more.memory <= self.book.free().memory,
            SizedBy::Instance => more.fits(self.book.free()),
        }
    }

    /// Whether `size` finds room, if need be after idle instances were stopped.
    pub(super) fn has_room_after_eviction(&self, size: Allocation) -> bool {
        if self.book.has_room(size) {
            return true;
        }
        if self.settings.sized_by == SizedBy::Call || self.book.owes() || !self.book.is_open() {
            return false;
        }
        let evictable = self.idle.iter().fold(Allocation::ZERO, |sum, (_, id)| {
            sum + self.instances.get(id).map_or(Allocation::ZERO, |instance| instance.held)
        });
        size.fits(self.book.room() + evictable)
    }

    /// Whether one more instance may exist, if need be after the least recently used idle one was stopped.
    pub(super) fn make_way_for_instance(&mut self, actions: &mut Vec<Action>) -> bool {
        let serving =
            self.instances.values().filter(|one| one.stage != Stage::Stopping).count() as u32;
        if serving < self.settings.most_instances {
            return true;
        }
        let Some(&(_, id)) = self.idle.first() else { return false };
        self.counters.evictions += 1;
        self.stop(id, actions);
        true
    }

    /// Memory that idle instances keep.
    pub fn idle_memory(&self) -> Mebibytes {
        self.idle_memory
    }
}
