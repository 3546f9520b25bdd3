//! The agent thread: one loop that owns everything about the node.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use windfall_core::{
    Allocation, CallClose, CallEnd, CallId, CallView, Duration, FunctionId, GrantChange, Room,
    TelemetrySink, Timestamp,
};

use super::AgentSettings;
use super::call_state::{AgentCall, Reading};
use super::deadlines::{Deadlines, Due};
use super::desk::{Desk, NODE};
use super::machine::{MachineCapabilities, Worker};
use super::message::{Arrive, Finished, Message, No, Status, Verdict};
use super::ticks::TickSide;
use super::workshop::Workshop;
use crate::clock::{Clock, std_duration};
use crate::function::FunctionSpec;
use crate::link::Link;
use crate::pool::{Action, CallFinish, Event, Exit, InstanceId, Pool};

/// Messages taken in one go before deadlines are looked at.
const BATCH: usize = 256;

/// A process of ours.
pub(super) struct Employed {
    pub(super) worker: Box<dyn Worker>,
    pub(super) link: Arc<Link>,
    /// What was last asked of the kernel: CPU, ceiling, memory.
    pub(super) limits: windfall_sandbox::Limits,
    /// CPU time at the last observation.
    pub(super) observed: std::time::Duration,
}

pub(super) struct Node {
    pub(super) settings: AgentSettings,
    pub(super) capabilities: MachineCapabilities,
    pub(super) clock: Clock,
    pub(super) pool: Pool,
    pub(super) desk: Desk,
    pub(super) specs: Vec<Arc<FunctionSpec>>,
    pub(super) employed: HashMap<InstanceId, Employed>,
    pub(super) deadlines: Deadlines,
    pub(super) workshop: Workshop,
    pub(super) actions: Vec<Action>,
    /// What the control has asked for and has not been set in motion.
    pub(super) asked: std::collections::VecDeque<(CallId, Allocation)>,
    pub(super) ticks: TickSide,
    pub(super) sinks: Vec<Box<dyn TelemetrySink>>,
    /// When a look last found a call that waited for CPU.
    pub(super) short_at: Option<Timestamp>,
    /// Whether all calls are about to be looked at because of that.
    pub(super) expects_looks: bool,
    pub(super) sensor_reads: u64,
    pub(super) kept_memory: u64,
    is_stopping: bool,
}

impl Node {
    pub(super) fn new(
        settings: AgentSettings,
        capabilities: MachineCapabilities,
        clock: Clock,
        desk: Desk,
        workshop: Workshop,
        sinks: Vec<Box<dyn TelemetrySink>>,
    ) -> Self {
        Self {
            pool: Pool::new(settings.pool.clone()),
            settings,
            capabilities,
            clock,
            desk,
            specs: Vec::new(),
            employed: HashMap::new(),
            deadlines: Deadlines::default(),
            workshop,
            actions: Vec::new(),
            asked: std::collections::VecDeque::new(),
            ticks: TickSide::default(),
            sinks,
            short_at: None,
            expects_looks: false,
            sensor_reads: 0,
            kept_memory: 0,
            is_stopping: false,
        }
    }

    /// Runs until it was asked to stop and every process has ended.
    pub(super) fn run(mut self, inbox: &Receiver<Message>) {
        // Spare instances start before the first call.
        self.settle();
        loop {
            let first = match self.next_deadline() {
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(at) => inbox.recv_timeout(std_duration(at.since(self.clock.now()))),
            };
            match first {
                Ok(message) => self.handle(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            for _ in 1..BATCH {
                let Ok(message) = inbox.try_recv() else { break };
                self.handle(message);
            }
            self.ring();
            if self.is_stopping && self.workshop.is_idle() && self.employed.is_empty() {
                return self.refuse_all();
            }
        }
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        self.deadlines.next().into_iter().chain(self.pool.next_alarm()).min()
    }

    fn ring(&mut self) {
        let now = self.clock.now();
        while let Some(due) = self.deadlines.pop(now) {
            match due {
                Due::Look { call, attempt, looks } => {
                    if self.is_running(call, attempt) && self.looks_at(call) == Some(looks) {
                        self.look(now, call);
                        self.settle();
                    }
                }
                Due::NodeShort => self.look_at_all(now),
                Due::Sample { call, attempt } => self.sample(now, call, attempt),
                Due::GiveUp { call } => self.give_up(now, call),
            }
        }
        if self.pool.next_alarm().is_some_and(|at| at <= now) {
            self.pool.on(now, Event::Timer, &mut self.actions);
            self.settle();
        }
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Arrive(arrive) => self.arrive(arrive),
            Message::Finished(finished) => self.finished(finished),
            Message::Initialised { instance, is_fine } => self.initialised(instance, is_fine),
            Message::Launched { instance, result } => self.launched(instance, result),
            Message::MayHaveExited { instance } => self.may_have_exited(instance),
            Message::Exited { instance, exit } => {
                self.workshop.kill_ended();
                self.exited(instance, &exit);
            }
            Message::Deploy { function, spec } => self.deploy(function, spec),
            Message::Remove { function } => {
                self.pool.remove(function, &mut self.actions);
                self.settle();
            }
            // Whoever asked may have stopped waiting.
            Message::Observe { now, reply } => {
                let _ = reply.send(self.observe(now));
            }
            Message::Submit { now, plan, reply } => {
                let _ = reply.send(self.submit(now, &plan));
            }
            Message::Functions { from, reply } => {
                let new = self.specs.iter().skip(from).map(|spec| spec.profile()).collect();
                let _ = reply.send(new);
            }
            Message::Addresses { function, reply } => {
                let of = |id: InstanceId| self.employed.get(&id).map(|one| one.worker.address());
                let all = self.pool.instances_of(function).into_iter().filter_map(of).collect();
                let _ = reply.send(all);
            }
            Message::DiscardOutput { function } => self.discard_output(function),
            Message::Levels { reply } => {
                let _ = reply.send(self.levels());
            }
            Message::Status { reply } => {
                let _ = reply.send(self.status());
            }
            Message::Stop => {
                self.is_stopping = true;
                self.pool.stop_all(&mut self.actions);
                self.settle();
            }
        }
    }

    /// Empties the pipes of idle instances. Calls made past the gateway print too, and a function whose pipe is full
    /// (64 KiB, about 1,700 calls) stops in its next line.
    fn discard_output(&self, function: FunctionId) {
        for id in self.pool.instances_of(function) {
            let Some(employed) = self.employed.get(&id) else { continue };
            if let Ok(mut output) = employed.link.output.try_lock()
                && let Some(output) = output.as_mut()
            {
                output.discard();
            }
        }
    }

    fn status(&self) -> Status {
        Status {
            pool: self.pool.counters(),
            instances: self.pool.instance_count().get(),
            open_calls: self.pool.open_calls() as u64,
            late_decisions: self.desk.late_decisions,
            sensor_reads: self.sensor_reads,
            kept_memory: self.kept_memory,
        }
    }

    fn deploy(&mut self, function: FunctionId, spec: Arc<FunctionSpec>) {
        if function.index() < self.specs.len() {
            self.pool.update(function, spec.settings.clone(), &mut self.actions);
            self.specs[function.index()] = spec;
        } else {
            self.pool.deploy(spec.settings.clone());
            let profile = spec.profile();
            self.specs.push(spec);
            for sink in &mut self.sinks {
                sink.functions(function, std::slice::from_ref(&profile));
            }
        }
        self.settle();
    }

    fn arrive(&mut self, arrive: Arrive) {
        let now = self.clock.now();
        let Arrive { call, function, input, size, arrived_at, asked_at, deadline, reply } = arrive;
        if self.is_stopping {
            let _ = reply.send(Verdict::No(No::Stopping));
            return;
        }
        let Some(spec) = self.specs.get(function.index()) else { return };
        let view = CallView {
            id: call,
            function,
            now,
            arrived_at,
            input,
            reservation: size.unwrap_or(spec.settings.reservation),
            ceiling: self.settings.ceiling,
            free_in_cluster: Room::default(),
            waiting: 0,
            capabilities: self.capabilities.calls,
            foresight: None,
        };
        let state = AgentCall::new(view, now.since(asked_at), size.is_some(), reply);
        self.desk.calls.insert(call, state);
        self.pool.on(now, Event::Arrived { call, function }, &mut self.actions);
        self.settle();
        // Only those that wait need a deadline; most calls find a place.
        if self.desk.calls.contains_key(&call) && self.pool.seat_of(call).is_none() {
            self.deadlines.push(deadline, Due::GiveUp { call });
        }
    }

    fn give_up(&mut self, now: Timestamp, call: CallId) {
        if self.pool.seat_of(call).is_some() || !self.desk.calls.contains_key(&call) {
            return;
        }
        self.pool.on(now, Event::Abandoned { call }, &mut self.actions);
        if let Some(gone) = self.desk.calls.remove(&call)
            && let Some(reply) = gone.reply
        {
            let _ = reply.send(Verdict::No(No::WaitedTooLong));
            self.publish(gone.record, now, CallEnd::Rejected);
        }
        self.settle();
    }

    fn launched(&mut self, instance: InstanceId, result: Result<Box<dyn Worker>, String>) {
        let now = self.clock.now();
        self.workshop.launch_ended();
        match result {
            Ok(mut worker) => {
                let function = self.pool.function_of(instance);
                let link = self.workshop.link(instance, worker.as_mut());
                let limits = self.initial_limits(instance, function);
                let employed = Employed {
                    worker,
                    link: Arc::new(link),
                    limits,
                    observed: std::time::Duration::ZERO,
                };
                self.employed.insert(instance, employed);
                self.pool.on(now, Event::Launched { instance }, &mut self.actions);
            }
            Err(problem) => {
                self.close_all_on(instance, None);
                let event = Event::LaunchFailed { instance, problem };
                self.pool.on(now, event, &mut self.actions);
            }
        }
        self.settle();
    }

    fn initialised(&mut self, instance: InstanceId, is_fine: bool) {
        let now = self.clock.now();
        if is_fine {
            self.pool.on(now, Event::Initialised { instance }, &mut self.actions);
            for call in self.pool.calls_of(instance) {
                self.begin_run(now, call);
            }
        } else {
            self.close_all_on(instance, None);
            let problem = "its code could not be loaded".to_owned();
            let event = Event::LaunchFailed { instance, problem };
            self.pool.on(now, event, &mut self.actions);
            self.dismiss(instance, false);
        }
        self.settle();
    }

    /// The code of a call begins to run: sensors and looks count from here.
    pub(super) fn begin_run(&mut self, now: Timestamp, id: CallId) {
        let is_measured = self.desk.needs_outcomes() || !self.sinks.is_empty();
        let Some(call) = self.desk.calls.get_mut(&id) else { return };
        if call.runs_since.is_some() || call.instance.is_none() {
            return;
        }
        call.runs_since = Some(now);
        let (look_after, attempt) = (call.look_after, call.attempt);
        if look_after.is_none() && !is_measured {
            return;
        }
        let reading = self.read(id, true);
        if let Some(call) = self.desk.calls.get_mut(&id) {
            (call.begun, call.looked, call.sampled) = (reading, reading, reading);
        }
        if let Some(after) = look_after {
            self.look_later(now + after, id);
        }
        if is_measured {
            self.deadlines
                .push(now + self.settings.sample_every, Due::Sample { call: id, attempt });
        }
    }

    fn finished(&mut self, finished: Finished) {
        let now = self.clock.now();
        let Finished { call: id, instance, finish, run_began_at, at, reply } = finished;
        let is_current = self.pool.seat_of(id).is_some_and(|(seat, _)| seat == instance);
        if finish == CallFinish::Broken {
            self.wait_for_verdict(id, reply);
            if is_current {
                self.keep_last_reading(id);
                let event = Event::Finished { call: id, instance, finish };
                self.pool.on(now, event, &mut self.actions);
                self.settle();
            }
            return;
        }
        if !is_current {
            return;
        }
        if let Some(call) = self.desk.calls.get_mut(&id) {
            // The gateway knows better than messages that wait for this thread.
            call.runs_since = run_began_at.or(call.runs_since);
            let began = call.runs_since.unwrap_or(at);
            let (wait, run) = (began.since(call.view.arrived_at), at.since(began));
            self.pool.count_completion(call.view.function, wait, run);
        }
        self.close_measured(id, at, false);
        self.pool.on(now, Event::Finished { call: id, instance, finish }, &mut self.actions);
        self.forget(id, at);
        self.settle();
    }

    /// A broken connection: what becomes of the call is known when its process has ended, or was already.
    fn wait_for_verdict(
        &mut self,
        id: CallId,
        reply: Option<tokio::sync::oneshot::Sender<Verdict>>,
    ) {
        let Some(reply) = reply else { return };
        let Some(call) = self.desk.calls.get_mut(&id) else {
            let reason = crate::pool::ReplyReason::Crashed("its call is not known".to_owned());
            let _ = reply.send(Verdict::No(No::Pool(reason)));
            return;
        };
        match call.verdict.take() {
            Some(verdict) => {
                let is_end = matches!(verdict, Verdict::No(_));
                let _ = reply.send(verdict);
                if is_end {
                    self.desk.calls.remove(&id);
                }
            }
            None => call.reply = Some(reply),
        }
    }

    fn may_have_exited(&mut self, instance: InstanceId) {
        let Some(employed) = self.employed.get_mut(&instance) else { return };
        if let Some(exit) = employed.worker.exited() {
            for call in self.pool.calls_of(instance) {
                self.keep_last_reading(call);
            }
            self.ticks
                .count_last(self.pool.function_of(instance), self.employed.get_mut(&instance));
            self.workshop.dismiss_ended(self.employed.remove(&instance));
            self.exited(instance, &exit);
        }
    }

    fn exited(&mut self, instance: InstanceId, exit: &windfall_sandbox::Exit) {
        let now = self.clock.now();
        if let Some(left) = self.employed.remove(&instance) {
            self.workshop.dismiss_ended(Some(left));
        }
        let exit = match exit {
            windfall_sandbox::Exit::OutOfMemory => Exit::OutOfMemory,
            other => Exit::Ended(other.to_string()),
        };
        self.close_all_on(instance, Some(&exit));
        self.pool.on(now, Event::Exited { instance, exit }, &mut self.actions);
        self.settle();
    }

    /// Closes every call of an instance with the control: killed for memory if so, lost otherwise.
    fn close_all_on(&mut self, instance: InstanceId, exit: Option<&Exit>) {
        let now = self.clock.now();
        for id in self.pool.calls_of(instance) {
            if exit == Some(&Exit::OutOfMemory) {
                if let Some(call) = self.desk.calls.get_mut(&id) {
                    call.record.oom_kills = call.record.oom_kills.saturating_add(1);
                    call.record.run +=
                        call.runs_since.map_or(Duration::ZERO, |since| now.since(since));
                }
                self.close_measured(id, now, true);
            }
            let mut changes = Vec::new();
            self.desk.close(CallClose::Lost { call: id, node: NODE }, &mut changes);
            self.take_down(changes);
            if let Some(call) = self.desk.calls.get_mut(&id) {
                call.account(now);
                call.instance = None;
            }
        }
    }

    /// The call has been answered by its function.
    fn forget(&mut self, id: CallId, at: Timestamp) {
        let Some(mut call) = self.desk.calls.remove(&id) else { return };
        // A call at a size that someone asked for says nothing about how the function is served.
        if self.sinks.is_empty() || call.has_own_size {
            return;
        }
        call.account(at);
        call.record.started_at = call.runs_since.unwrap_or(at);
        // Attempts that were killed before are in it already.
        call.record.run += at.since(call.record.started_at);
        if call.is_cold {
            call.record.cold_start = call.record.started_at.since(call.placed_at);
        }
        self.publish(call.record, at, CallEnd::Completed);
    }

    /// Carries out what the pool asks for, pays debts, starts who waits, until nothing is left to do.
    pub(super) fn settle(&mut self) {
        let now = self.clock.now();
        loop {
            self.carry_out_changes(now);
            self.desk.set_scene(now, self.pool.book().room(), self.pool.waiting());
            self.pool.place_waiting(now, &mut self.desk, &mut self.actions);
            if self.actions.is_empty() && self.asked.is_empty() {
                return;
            }
            let mut actions = std::mem::take(&mut self.actions);
            for action in actions.drain(..) {
                self.perform(now, action);
            }
            if self.actions.is_empty() {
                self.actions = actions;
            }
        }
    }

    /// Puts what the control changes for other calls in line.
    pub(super) fn take_down(&mut self, changes: Vec<GrantChange>) {
        for change in changes {
            self.ask(change.call, change.grant);
        }
    }

    /// The limits in force of every process that a call has, as a reading of its sensors.
    pub(super) fn read(&mut self, id: CallId, is_first: bool) -> Option<Reading> {
        let instance = self.desk.calls.get(&id)?.instance?;
        let employed = self.employed.get_mut(&instance)?;
        if is_first {
            employed.worker.reset_memory_peak();
        }
        self.sensor_reads += 1;
        let sensors = employed.worker.sense()?;
        Some(Reading { at: self.clock.now(), sensors })
    }

    pub(super) fn keep_last_reading(&mut self, id: CallId) {
        if self.desk.calls.get(&id).is_some_and(|call| call.begun.is_some())
            && let Some(reading) = self.read(id, false)
            && let Some(call) = self.desk.calls.get_mut(&id)
        {
            call.note(&reading);
        }
    }

    /// How long a change takes to have effect here.
    pub(super) const fn actuation_delay() -> Duration {
        Duration::ZERO
    }
}
