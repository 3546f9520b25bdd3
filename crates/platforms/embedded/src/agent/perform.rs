//! Carrying out what the pool asks for.

use std::sync::Arc;

use windfall_core::{Allocation, CallClose, CallId, FunctionId, Mebibytes, Timestamp};

use super::desk::{NODE, fallback_of};
use super::levels::end_of;
use super::limits_of;
use super::message::{Go, No, Verdict};
use super::node::Node;
use crate::pool::{Action, InstanceId, SizedBy, StartKind};

impl Node {
    pub(super) fn perform(&mut self, now: Timestamp, action: Action) {
        match action {
            Action::Launch { instance, function, kind, size, call } => {
                self.launch(instance, function, &kind, size, call);
            }
            Action::Initialise { instance } => {
                let function = self.pool.function_of(instance);
                let spec = function.and_then(|function| self.specs.get(function.index()));
                if let (Some(employed), Some(spec)) = (self.employed.get(&instance), spec) {
                    self.workshop.initialise(instance, &employed.link, spec);
                }
            }
            Action::Dispatch { call, instance, start } => self.dispatch(now, call, instance, start),
            Action::Resize { instance, to } => self.resize_instance(instance, to),
            Action::Freeze { instance } => {
                if let Some(employed) = self.employed.get_mut(&instance) {
                    employed.worker.pause(true);
                }
            }
            Action::Thaw { instance } => {
                if let Some(employed) = self.employed.get_mut(&instance) {
                    employed.worker.pause(false);
                }
            }
            Action::Kill { instance, may_be_ending } => self.dismiss(instance, may_be_ending),
            Action::Reply { call, reason } => self.refuse(call, No::Pool(reason)),
        }
    }

    fn launch(
        &mut self,
        instance: InstanceId,
        function: Option<FunctionId>,
        kind: &str,
        size: Allocation,
        call: Option<CallId>,
    ) {
        let ceiling = call.and_then(|call| self.desk.calls.get(&call)).map(|call| call.ceiling);
        let ceiling = match self.pool.settings().sized_by {
            SizedBy::Call => ceiling.unwrap_or_default(),
            SizedBy::Instance => self.ticks.ceiling_of(function),
        };
        let mut limits = limits_of(size, ceiling, &self.settings);
        if function.is_none() {
            // A spare has no size of its own yet; it starts at full speed and then does nothing.
            limits.quota = None;
        }
        let spec = match function {
            Some(function) => self.specs.get(function.index()),
            None => self.specs.iter().find(|spec| spec.settings.kind == kind),
        };
        self.workshop.launch(instance, spec, limits);
    }

    /// What the kernel was asked for when the process was started.
    pub(super) fn initial_limits(
        &self,
        instance: InstanceId,
        function: Option<FunctionId>,
    ) -> windfall_sandbox::Limits {
        let size = self.pool.held(instance).unwrap_or(Allocation::ZERO);
        let mut limits = limits_of(size, Default::default(), &self.settings);
        if function.is_none() {
            limits.quota = None;
        }
        // Something that no limits are equal to, so that the first call sets them for certain.
        limits.memory = Mebibytes::ZERO;
        limits
    }

    fn dispatch(&mut self, now: Timestamp, id: CallId, instance: InstanceId, start: StartKind) {
        let Some(employed) = self.employed.get(&instance) else { return };
        let link = Arc::clone(&employed.link);
        let sized = self.pool.is_sized(instance);
        let Some(call) = self.desk.calls.get_mut(&id) else { return };
        if !sized {
            // It shares an instance that has its own size.
            call.placed_at = now;
            call.grant = call.view.reservation;
            call.record.attempts = call.record.attempts.saturating_add(1);
            call.accounted = now;
        }
        call.instance = Some(instance);
        call.is_cold = start != StartKind::Warm;
        let go = Go {
            instance,
            link,
            spec: Arc::clone(&self.specs[call.view.function.index()]),
            start,
            granted: call.grant,
            placed_at: call.placed_at,
            fallback: fallback_of(&call.record.decided_by),
            memory_kills: call.record.oom_kills,
        };
        self.apply_limits(id);
        let call = self.desk.calls.get_mut(&id).expect("it was just found");
        match call.reply.take() {
            // A request task is never dropped before it has its answer.
            Some(reply) => drop(reply.send(Verdict::Go(go))),
            None => call.verdict = Some(Verdict::Go(go)),
        }
        if start == StartKind::Warm {
            self.begin_run(now, id);
        }
    }

    fn refuse(&mut self, id: CallId, no: No) {
        let mut changes = Vec::new();
        self.desk.close(CallClose::Lost { call: id, node: NODE }, &mut changes);
        self.take_down(changes);
        let Some(call) = self.desk.calls.get_mut(&id) else { return };
        let record = call.record.clone();
        let end = end_of(&no).filter(|_| !call.has_own_size);
        match call.reply.take() {
            Some(reply) => {
                let _ = reply.send(Verdict::No(no));
                self.desk.calls.remove(&id);
            }
            None => call.verdict = Some(Verdict::No(no)),
        }
        if let Some(end) = end.filter(|_| !self.sinks.is_empty()) {
            self.publish(record, self.clock.now(), end);
        }
    }

    pub(super) fn refuse_all(&mut self) {
        let all: Vec<CallId> = self.desk.calls.keys().copied().collect();
        all.into_iter().for_each(|call| self.refuse(call, No::Stopping));
    }

    pub(super) fn dismiss(&mut self, instance: InstanceId, may_be_ending: bool) {
        for call in self.pool.calls_of(instance) {
            self.keep_last_reading(call);
        }
        self.ticks.count_last(self.pool.function_of(instance), self.employed.get_mut(&instance));
        if let Some(employed) = self.employed.remove(&instance) {
            self.workshop.dismiss(instance, employed, may_be_ending);
        }
    }
}
