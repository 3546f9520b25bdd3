//! Instances that start ahead of any call: those a tick asks for, and spares without code.

use windfall_core::{Allocation, FunctionId, Mebibytes, MilliCpu, Timestamp};

use super::{Action, Instance, InstanceId, Pool, SizedBy, Stage};

impl Pool {
    /// Starts what is missing of targets and spares, as far as there is room without stopping anything: an instance
    /// that is only expected to be needed must not push out one that another call needs a second later.
    pub(super) fn start_ahead(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        if !self.is_ahead_due || now < self.ahead_not_before || !self.book.is_open() {
            return;
        }
        self.is_ahead_due = false;
        for place in 0..self.functions.len() {
            let function = FunctionId(place as u32);
            while self.is_below_target(function) && self.start_one_ahead(now, function, actions) {}
        }
        for place in 0..self.settings.prewarm.len() {
            while self.start_spare(now, place, actions) {}
        }
    }

    fn is_below_target(&self, function: FunctionId) -> bool {
        let state = self.state(function);
        !state.is_removed && state.target.is_some_and(|target| state.present() < target)
    }

    fn start_one_ahead(
        &mut self,
        now: Timestamp,
        function: FunctionId,
        actions: &mut Vec<Action>,
    ) -> bool {
        let size = self.size_ahead(function);
        if !self.state(function).may_start_another() {
            return false;
        }
        if !self.has_room_ahead(size) {
            // Tried again with the next event: room may be free then.
            self.is_ahead_due = true;
            return false;
        }
        self.book.hold(size);
        let id = self.begin_instance(now, function, size, None, actions);
        self.list_free_places(function, id);
        true
    }

    /// What an instance holds while it starts ahead of any call: where calls bring their size, as much as the last one.
    fn size_ahead(&self, function: FunctionId) -> Allocation {
        match self.settings.sized_by {
            SizedBy::Instance => self.state(function).allocation,
            SizedBy::Call => {
                let state = self.state(function);
                state.begun_with.unwrap_or(state.settings.reservation)
            }
        }
    }

    fn has_room_ahead(&self, size: Allocation) -> bool {
        let kept = Allocation { cpu: MilliCpu::ZERO, memory: self.idle_memory };
        let serving = self.instances.values().filter(|one| one.stage != Stage::Stopping).count();
        self.book.has_room(size + kept) && (serving as u32) < self.settings.most_instances
    }

    fn start_spare(&mut self, now: Timestamp, place: usize, actions: &mut Vec<Action>) -> bool {
        let wanted = &self.settings.prewarm[place];
        let (kind, memory) = (wanted.kind.clone(), wanted.memory);
        let is_such = |one: &&Instance| {
            one.function.is_none()
                && one.stage != Stage::Stopping
                && one.kind == kind
                && one.kept == memory
        };
        let there = self.instances.values().filter(is_such).count() as u32;
        let size = Allocation { cpu: MilliCpu::ZERO, memory };
        if there >= wanted.count {
            return false;
        }
        if !self.has_room_ahead(size) {
            self.is_ahead_due = true;
            return false;
        }
        self.book.hold(size);
        let id = self.new_instance(Instance::new(None, kind.clone(), size, now));
        actions.push(Action::Launch { instance: id, function: None, kind, size, call: None });
        true
    }

    /// An instance whose call went away goes on starting by itself, with what such an instance holds.
    pub(super) fn hold_as_ahead(&mut self, id: InstanceId) {
        let Some(function) = self.instances.get(&id).and_then(|instance| instance.function) else {
            return;
        };
        let instance = self.instances.get_mut(&id).expect("it was just found");
        if instance.held == Allocation::ZERO {
            // Its CPU is given up, its memory is there.
            let size = Allocation { cpu: MilliCpu::ZERO, memory: instance.kept };
            instance.held = size;
            self.book.hold(size);
        }
        self.list_free_places(function, id);
    }

    /// The memory that a new instance of `function` keeps where calls bring their size.
    pub(super) fn memory_ahead(&self, function: FunctionId) -> Mebibytes {
        self.size_ahead(function).memory
    }
}
