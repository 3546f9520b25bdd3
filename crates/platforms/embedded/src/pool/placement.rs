//! Where a waiting call goes.

use windfall_core::{Allocation, CallId, FunctionId, QueueOrder, Timestamp};

use super::{
    Action, Instance, InstanceId, Pool, ReplyReason, ScaleOut, SizedBy, Sizer, Stage, StartKind,
};

/// A place that a call can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A ready instance that already serves others.
    Shared(InstanceId),
    /// A ready instance without calls.
    Idle(InstanceId),
    /// An instance that is still starting.
    Warming(InstanceId),
    /// A spare process of the right kind.
    Spare(InstanceId),
    /// A new instance.
    New,
}

impl Pool {
    /// Places every waiting call that finds room, in the order of the settings.
    pub fn place_waiting(
        &mut self,
        now: Timestamp,
        sizer: &mut dyn Sizer,
        actions: &mut Vec<Action>,
    ) {
        match self.settings.order {
            QueueOrder::FirstCome => self.place_first_come(now, sizer, actions),
            QueueOrder::ShortestFirst { starved_after } => {
                self.place_shortest_first(now, starved_after, sizer, actions);
            }
        }
        self.start_ahead(now, actions);
    }

    fn place_first_come(
        &mut self,
        now: Timestamp,
        sizer: &mut dyn Sizer,
        actions: &mut Vec<Action>,
    ) {
        let mut from = 0;
        while let Some((&order, &function)) = self.heads.range(from..).next() {
            from = order + 1;
            let Some(&call) = self.state(function).queue.front() else { continue };
            self.place(now, call, function, sizer, actions);
        }
    }

    /// Gives a waiting call its place if there is one. Returns whether it has left its queue.
    pub(super) fn place(
        &mut self,
        now: Timestamp,
        call: CallId,
        function: FunctionId,
        sizer: &mut dyn Sizer,
        actions: &mut Vec<Action>,
    ) -> bool {
        if self.sizes_calls(function) {
            self.place_sized(now, call, function, sizer, actions);
        } else {
            self.place_sharing(now, call, function, actions);
        }
        self.calls.get(&call).is_none_or(|pooled| pooled.instance.is_some())
    }

    /// A call that brings its own size and has an instance to itself.
    fn place_sized(
        &mut self,
        now: Timestamp,
        call: CallId,
        function: FunctionId,
        sizer: &mut dyn Sizer,
        actions: &mut Vec<Action>,
    ) {
        let is_head = self.state(function).queue.front() == Some(&call);
        let least = match self.state(function).head_least.filter(|_| is_head) {
            Some(least) => least,
            None => {
                let least = sizer.least(call);
                if is_head {
                    self.functions[function.index()].head_least = Some(least);
                }
                least
            }
        };
        if !least.fits(self.book.limit()) {
            let limit = self.book.limit();
            self.leave_queue(call);
            return self.reply(call, ReplyReason::TooLarge { needs: least, limit }, actions);
        }
        if !self.book.has_room(least) || !sizer.admits(call) {
            return;
        }
        let Some(place) = self.find_place(function) else { return };
        if place == Place::New && !self.make_way_for_instance(actions) {
            return;
        }
        let grant = sizer.start(call, self.book.room());
        // What a spare, or an instance started ahead, holds by itself goes over into the grant.
        self.release_own_hold(place);
        self.book.hold(grant);
        self.functions[function.index()].begun_with = Some(grant);
        let id = self.take(now, call, function, place, grant, actions);
        let instance = self.instances.get_mut(&id).expect("a call has just got a place in it");
        (instance.held, instance.kept, instance.is_sized) = (grant, grant.memory, true);
        self.evict_for(Allocation::ZERO, actions);
    }

    /// A call that shares an instance, which holds its own size.
    fn place_sharing(
        &mut self,
        now: Timestamp,
        call: CallId,
        function: FunctionId,
        actions: &mut Vec<Action>,
    ) {
        let size = self.instance_size(function);
        let Some(place) = self.find_place(function) else { return };
        if matches!(place, Place::New | Place::Spare(_)) && !size.fits(self.book.limit()) {
            let limit = self.book.limit();
            self.leave_queue(call);
            return self.reply(call, ReplyReason::TooLarge { needs: size, limit }, actions);
        }
        // What the instance begins to hold with this call; nothing if it holds its size already.
        let held = match (place, self.settings.sized_by) {
            (Place::Shared(_), _) => None,
            (Place::Idle(_) | Place::Warming(_), SizedBy::Instance) => None,
            (Place::Warming(id), SizedBy::Call) if !self.instances[&id].seats.is_empty() => None,
            (Place::Idle(_) | Place::Warming(_) | Place::Spare(_) | Place::New, _) => Some(size),
        };
        if held.is_some() && !self.has_room_after_eviction(size) {
            return;
        }
        if place == Place::New && !self.make_way_for_instance(actions) {
            return;
        }
        if let Some(held) = held {
            self.release_own_hold(place);
            self.evict_for(held, actions);
            self.book.hold(held);
        }
        let id = self.take(now, call, function, place, size, actions);
        if let Some(held) = held {
            let instance = self.instances.get_mut(&id).expect("a call has just got a place in it");
            (instance.held, instance.kept) = (held, held.memory);
        }
    }

    /// The first place in the pool's order; none if the call has to wait.
    fn find_place(&self, function: FunctionId) -> Option<Place> {
        let state = self.state(function);
        if let Some(id) = state.spare.first() {
            return Some(Place::Shared(*id));
        }
        // The most recently used one, so that the others age and can be stopped.
        if let Some((_, id)) = state.idle.last() {
            return Some(Place::Idle(*id));
        }
        if let Some(id) = state.warming.first() {
            return Some(Place::Warming(*id));
        }
        if !state.may_start_another() {
            return None;
        }
        if let Some(id) = self.spare_for(function) {
            return Some(Place::Spare(id));
        }
        let is_allowed = self.settings.scale_out == ScaleOut::OnDemand || state.present() == 0;
        is_allowed.then_some(Place::New)
    }

    /// A spare process of the function's kind and memory.
    fn spare_for(&self, function: FunctionId) -> Option<InstanceId> {
        let settings = &self.state(function).settings;
        let fits = |instance: &Instance| {
            instance.function.is_none()
                && instance.stage == Stage::Initialising
                && instance.kind == settings.kind
                && instance.kept == settings.reservation.memory
        };
        self.instances.iter().find(|(_, instance)| fits(instance)).map(|(id, _)| *id)
    }

    /// What an instance holds that calls share.
    pub(super) fn instance_size(&self, function: FunctionId) -> Allocation {
        match self.settings.sized_by {
            SizedBy::Call => self.state(function).settings.reservation,
            SizedBy::Instance => self.state(function).allocation,
        }
    }

    /// What an instance holds ahead of its first call is free again, because the call brings its own.
    fn release_own_hold(&mut self, place: Place) {
        if let Place::Warming(id) | Place::Spare(id) = place
            && let Some(instance) = self.instances.get_mut(&id)
        {
            self.book.release(std::mem::take(&mut instance.held));
        }
    }

    /// Gives the call its place.
    fn take(
        &mut self,
        now: Timestamp,
        call: CallId,
        function: FunctionId,
        place: Place,
        size: Allocation,
        actions: &mut Vec<Action>,
    ) -> InstanceId {
        self.functions[function.index()].count_presence(now);
        self.leave_queue(call);
        let id = match place {
            Place::Shared(id) => self.dispatch_warm(call, id, actions),
            Place::Idle(id) => {
                self.end_idle(id);
                self.dispatch_warm(call, id, actions)
            }
            Place::Warming(id) => {
                self.seat_at(id, call, false);
                id
            }
            Place::Spare(id) => self.adopt_spare(now, call, function, id, actions),
            Place::New => self.begin_instance(now, function, size, Some(call), actions),
        };
        let state = &mut self.functions[function.index()];
        state.seated += 1;
        if matches!(place, Place::Spare(_) | Place::New) {
            state.window.cold_starts += 1;
        }
        if let Some(pooled) = self.calls.get_mut(&call) {
            pooled.instance = Some(id);
        }
        self.list_free_places(function, id);
        id
    }

    fn seat_at(&mut self, id: InstanceId, call: CallId, is_dispatched: bool) {
        if let Some(instance) = self.instances.get_mut(&id) {
            instance.seat(call, is_dispatched);
        }
    }

    fn dispatch_warm(
        &mut self,
        call: CallId,
        id: InstanceId,
        actions: &mut Vec<Action>,
    ) -> InstanceId {
        self.seat_at(id, call, true);
        if let Some(instance) = self.instances.get_mut(&id)
            && instance.stage == Stage::Frozen
        {
            instance.stage = Stage::Ready;
            actions.push(Action::Thaw { instance: id });
        }
        actions.push(Action::Dispatch { call, instance: id, start: StartKind::Warm });
        id
    }

    fn adopt_spare(
        &mut self,
        now: Timestamp,
        call: CallId,
        function: FunctionId,
        id: InstanceId,
        actions: &mut Vec<Action>,
    ) -> InstanceId {
        if let Some(instance) = self.instances.get_mut(&id) {
            (instance.function, instance.begun_at) = (Some(function), now);
            self.functions[function.index()].starting += 1;
        }
        self.is_ahead_due = true;
        self.seat_at(id, call, true);
        actions.push(Action::Dispatch { call, instance: id, start: StartKind::Prewarmed });
        id
    }

    /// Starts an instance, for a call or ahead of any. Its size is in the book already.
    pub(super) fn begin_instance(
        &mut self,
        now: Timestamp,
        function: FunctionId,
        size: Allocation,
        call: Option<CallId>,
        actions: &mut Vec<Action>,
    ) -> InstanceId {
        let kind = self.state(function).settings.kind.clone();
        let mut instance = Instance::new(Some(function), kind.clone(), size, now);
        if let Some(call) = call {
            instance.seat(call, false);
        }
        let id = self.new_instance(instance);
        actions.push(Action::Launch { instance: id, function: Some(function), kind, size, call });
        id
    }

    /// Lists an instance among those with a free place, or takes it off.
    pub(super) fn list_free_places(&mut self, function: FunctionId, id: InstanceId) {
        let instance = &self.instances[&id];
        let state = &mut self.functions[function.index()];
        state.forget(id);
        let has_place = (instance.seats.len() as u32) < state.concurrency && !instance.is_outdated;
        if !has_place {
            return;
        }
        match instance.stage {
            Stage::Starting | Stage::Initialising => {
                state.warming.insert(id);
            }
            Stage::Ready | Stage::Frozen if instance.idle_since.is_none() => {
                state.spare.insert(id);
            }
            Stage::Ready | Stage::Frozen | Stage::Stopping => {}
        }
    }
}
