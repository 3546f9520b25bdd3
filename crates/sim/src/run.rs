//! From start to end, or to a kill and a second try.

use windfall_core::record::GrantStep;
use windfall_core::{
    Allocation, CallEnd, CallOutcome, CallRecord, DecidedBy, Duration, FunctionId, NodeId,
    Timestamp,
};

use crate::call::{Call, Earlier, Looked, Pace, Totals, Turn};
use crate::event_queue::{Event, Token};
use crate::function::Waiting;
use crate::gauges::Gauge;
use crate::progress::Progress;
use crate::simulator::Simulator;

impl Simulator<'_> {
    /// The call's instance is there: it runs from now on.
    pub(crate) fn begin_run(&mut self, slot: u32) {
        let now = self.now;
        let keep_steps = self.settings.keep_steps;
        let call = &mut self.calls[slot];
        call.is_running = true;
        call.started_at = now;
        call.progress = Progress::start(&call.demand);
        call.progress_at = now;
        call.looked = Looked { at: now, ..Looked::default() };
        if keep_steps {
            let step = GrantStep { at: now, grant: call.grant, why: "start".into() };
            call.steps.push(step);
        }
        let (node, instance) = (call.node as usize, call.instance);
        call.place_on_node = self.nodes[node].running.len() as u32;
        self.nodes[node].running.push(slot);
        self.count_potential(node, instance, None);
        if self.nodes[node].is_shared {
            self.calls[slot].pace = Pace::Shared(0.0);
        }
        self.schedule_turn(slot);
        if let Some(after) = self.calls[slot].look_after {
            let token = self.queue.push(now + after, Event::Look(slot));
            self.calls[slot].look_token = token;
        }
    }

    /// Brings the node's potential up to date after a change of `instance`; `before` is what the
    /// instance contributed until now, nothing if the change only just began with a new call.
    pub(crate) fn count_potential(&mut self, node: usize, instance: u32, before: Option<Count>) {
        if !self.can_compete {
            return;
        }
        let before = before.unwrap_or_else(|| {
            // A call that has just joined: the instance without it.
            let state = &self.instances[instance];
            let joined = state
                .calls
                .last()
                .map_or(0, |&call| u64::from(self.calls[call].demand.parallelism.get()));
            let widest = state.widest - joined;
            let held = u64::from(state.held.cpu.get());
            Count {
                potential: widest.min(held),
                is_crowded: state.calls.len() > 2 && widest > held,
            }
        });
        let after = Count::of(&self.instances[instance]);
        let node = &mut self.nodes[node];
        node.potential = node.potential + after.potential - before.potential;
        node.crowded = node.crowded + u32::from(after.is_crowded) - u32::from(before.is_crowded);
    }

    /// Sets the reminder of the call's next turn: its end, or the moment its memory crosses the limit.
    pub(crate) fn schedule_turn(&mut self, slot: u32) {
        let now = self.now;
        let call = &mut self.calls[slot];
        let end = match call.pace {
            Pace::Own => {
                let left = call.progress.remaining(&call.demand, call.grant.cpu);
                now + Duration::from_nanos(left)
            }
            // The node reminds itself of ends while its calls compete.
            Pace::Shared(_) => Timestamp::MAX,
        };
        let kill = call
            .demand
            .crosses(call.grant.memory)
            .map_or(Timestamp::MAX, |after| (call.started_at + after).max(now));
        call.turn = if kill < end { Turn::IsKilled } else { Turn::Ends };
        let at = end.min(kill);
        call.turn_token = if at == Timestamp::MAX {
            Token::NONE
        } else {
            self.queue.push(at, Event::CallTurns(slot))
        };
    }

    /// A call ends or outgrows its memory.
    pub(crate) fn on_turn(&mut self, slot: u32, token: Token) {
        let Some(call) = self.calls.get_mut(slot).filter(|call| call.turn_token == token) else {
            return;
        };
        let node = call.node;
        match call.turn {
            Turn::Ends => self.end_call(slot),
            Turn::IsKilled => self.kill_instance(self.calls[slot].instance),
        }
        self.settle(node);
    }

    /// The calls of a shared instance together outgrow its memory.
    pub(crate) fn on_outgrown(&mut self, instance: u32, token: Token) {
        let Some(state) =
            self.instances.get_mut(instance).filter(|state| state.kill_token == token)
        else {
            return;
        };
        let node = state.node;
        self.kill_instance(instance);
        self.settle(node);
    }

    /// The call has its answer.
    pub(crate) fn end_call(&mut self, slot: u32) {
        self.calls[slot].finish(self.now);
        self.leave(slot);
        self.tell_outcome(slot, false);
        let Call { function, instance, .. } = self.calls[slot];
        self.close_record(slot, CallEnd::Completed);
        self.instance_is_free(function, instance);
    }

    /// Memory crossed the limit: the instance dies with all its calls; each tries once more.
    fn kill_instance(&mut self, instance: u32) {
        let victims = self.instances[instance].calls.clone();
        let function = self.instances[instance].function;
        for victim in victims {
            self.leave(victim);
            self.tell_outcome(victim, true);
            if let Some(earlier) = &mut self.calls[victim].earlier {
                earlier.kills += 1;
                self.close_record(victim, CallEnd::OutOfMemory);
            } else {
                let waiting = self.try_again(victim);
                self.enqueue_again(function, waiting);
            }
        }
        self.stop_instance(instance);
        self.after_kill(function);
    }

    /// A killed call as it goes back to its queue.
    fn try_again(&mut self, slot: u32) -> Waiting {
        let call = &mut self.calls[slot];
        let earlier = Earlier {
            run: self.now.since(call.started_at),
            kills: 1,
            cold_start: call.cold_start,
            totals: call.totals,
            plan: call.plan.clone(),
            first_grant: call.first_grant,
            lowest: call.lowest,
            highest: call.highest,
            changes: call.changes,
            looks: call.looks,
            amendments: std::mem::take(&mut call.amendments),
            steps: std::mem::take(&mut call.steps),
        };
        let waiting = Waiting {
            id: call.id,
            arrived_at: call.arrived_at,
            demand: call.demand,
            earlier: Some(Box::new(earlier)),
        };
        self.calls.free(slot);
        waiting
    }

    /// Takes a call off its node and instance; what it held is free again. The call itself stays in
    /// its slot until its story is written.
    pub(crate) fn leave(&mut self, slot: u32) {
        let now = self.now;
        let call = &mut self.calls[slot];
        call.catch_up(now);
        call.account(now);
        // Whatever it still waits for is of no interest any more.
        (call.turn_token, call.look_token, call.resize_token) =
            (Token::NONE, Token::NONE, Token::NONE);
        let Call { node, instance, function, is_running, grant, owed, .. } = *call;
        if is_running {
            call.totals.memory_used += call.demand.memory_used(now.since(call.started_at));
            let before = Count::of(&self.instances[instance]);
            self.leave_instance(slot, instance);
            self.count_potential(node as usize, instance, Some(before));
            self.leave_node(slot, node);
        } else {
            self.leave_instance(slot, instance);
        }
        if owed != Allocation::ZERO {
            self.nodes[node as usize].debts.retain(|&debtor| debtor != slot);
        }
        if self.settings.sizes_calls() {
            self.nodes[node as usize].granted -= grant;
            self.gauges.release(grant, self.functions[function as usize].reservation);
        } else {
            // The instance holds on; its calls share the account of it.
            let places = u64::from(self.functions[function as usize].concurrency.max(1));
            let totals = &mut self.calls[slot].totals;
            totals.cpu_granted /= places;
            totals.memory_granted /= places;
            self.watch_memory(instance);
        }
        self.used += self.calls[slot].totals.cpu_used as f64;
        self.ledger.running -= 1;
        self.gauges.sub(Gauge::Running, 1);
        let function = &mut self.functions[function as usize];
        function.note_presence(now);
        function.running -= 1;
        if self.settings.tells_presence {
            function.tell_presence(now);
        }
    }

    fn leave_instance(&mut self, slot: u32, instance: u32) {
        let widest = u64::from(self.calls[slot].demand.parallelism.get());
        let instance = &mut self.instances[instance];
        if instance.calls.len() == 1 {
            instance.calls.clear();
        } else {
            instance.calls.retain(|&other| other != slot);
        }
        instance.widest -= widest;
    }

    fn leave_node(&mut self, slot: u32, node: u32) {
        let place = self.calls[slot].place_on_node as usize;
        let running = &mut self.nodes[node as usize].running;
        running.swap_remove(place);
        if let Some(&moved) = running.get(place) {
            self.calls[moved].place_on_node = place as u32;
        }
    }

    /// Tells the control what could be measured of an attempt, and carries out what it calls back.
    pub(crate) fn tell_outcome(&mut self, slot: u32, was_killed: bool) {
        let call = &self.calls[slot];
        let noise = |draw, sd: f64| 1.0 + sd * self.sensor_noise.normal(call.id.0, draw);
        let sensors = self.settings.sensors;
        let run = self.now.since(call.started_at);
        let memory = if was_killed {
            call.grant.memory.mib()
        } else {
            call.demand.memory_peak.mib() * noise(1, sensors.memory_noise)
        };
        let peak = f64::from(call.peak) * 1e-3;
        let outcome = CallOutcome {
            id: call.id,
            function: FunctionId(call.function),
            node: NodeId(call.node),
            input: call.demand.input,
            reservation: self.functions[call.function as usize].reservation,
            first_grant: call.first_grant,
            last_grant: call.grant,
            arrived_at: call.arrived_at,
            started_at: call.started_at,
            ended_at: self.now,
            was_killed,
            cpu_peak_cores: (peak * noise(0, sensors.peak_noise)).min(call.highest.cpu.cores()),
            memory_peak_mib: memory.min(call.grant.memory.mib()),
            cpu_mean_cores: call.totals.cpu_used as f64 * 1e-3 / run.as_nanos().max(1) as f64,
            throttled: Duration::from_nanos(call.throttled),
        };
        let function = &mut self.functions[call.function as usize];
        function.window.memory_peak =
            function.window.memory_peak.max(outcome.memory_peak_mib as u32);
        function.window.used += call.totals.cpu_used - call.observed_use;
        let (node, waits) = (call.node, !function.queue.is_empty());
        let mut changes = std::mem::take(&mut self.changes);
        self.control.close(&outcome, &mut changes);
        self.call_back(node, &mut changes);
        self.changes = changes;
        if waits {
            self.size_head_again(outcome.function.0);
        }
    }

    /// Writes a call's whole story and books its end.
    pub(crate) fn close_record(&mut self, slot: u32, end: CallEnd) {
        self.ledger.book(end);
        let call = &mut self.calls[slot];
        let function = &mut self.functions[call.function as usize];
        self.gauges.sub(Gauge::Demand, function.reservation.cpu.get());
        function.window.completions += 1;
        function.window.run += self.now.since(call.started_at);
        function.window.wait += call.started_at.since(call.arrived_at);
        let record = record_of(call, end, function.reservation, self.now);
        self.sink.call(&record);
        self.calls.free(slot);
    }
}

/// What an instance adds to its node's potential.
pub(crate) struct Count {
    pub(crate) potential: u64,
    pub(crate) is_crowded: bool,
}

impl Count {
    pub(crate) fn of(instance: &crate::instance::Instance) -> Self {
        Self { potential: instance.potential(), is_crowded: instance.is_crowded() }
    }
}

fn record_of(call: &mut Call, end: CallEnd, reservation: Allocation, now: Timestamp) -> CallRecord {
    let this_run = if call.is_running { now.since(call.started_at) } else { Duration::ZERO };
    let mut record = CallRecord {
        id: call.id,
        function: FunctionId(call.function),
        node: NodeId(call.node),
        end,
        arrived_at: call.arrived_at,
        started_at: call.started_at,
        ended_at: now,
        cold_start: call.cold_start,
        run: this_run,
        baseline: call.demand.run_time(reservation.cpu),
        attempts: 1,
        oom_kills: 0,
        input: call.demand.input,
        reservation,
        wanted: call.plan.wanted(),
        decided_by: call.plan.decided_by().clone(),
        shadow: call.plan.shadow(),
        first_grant: call.first_grant,
        lowest_grant: call.lowest,
        highest_grant: call.highest,
        cpu_granted: call.totals.cpu_granted,
        cpu_used: call.totals.cpu_used,
        memory_granted: call.totals.memory_granted,
        memory_used: call.totals.memory_used,
        changes: call.changes,
        looks: call.looks,
        amendments: call.plan.amendments().to_vec(),
        steps: std::mem::take(&mut call.steps),
    };
    record.amendments.append(&mut call.amendments);
    if let Some(earlier) = call.earlier.take() {
        add_earlier(&mut record, *earlier);
    }
    record
}

/// Adds what happened in attempts that were killed.
fn add_earlier(record: &mut CallRecord, earlier: Earlier) {
    let Totals { cpu_granted, cpu_used, memory_granted, memory_used } = earlier.totals;
    record.run += earlier.run;
    record.attempts += 1;
    record.oom_kills = earlier.kills;
    record.first_grant = earlier.first_grant;
    record.lowest_grant = record.lowest_grant.min(earlier.lowest);
    record.highest_grant = record.highest_grant.max(earlier.highest);
    record.cpu_granted += cpu_granted;
    record.cpu_used += cpu_used;
    record.memory_granted += memory_granted;
    record.memory_used += memory_used;
    record.changes += earlier.changes;
    record.looks += earlier.looks;
    let mut steps = earlier.steps;
    steps.append(&mut record.steps);
    record.steps = steps;
    record.amendments.extend(earlier.amendments);
}

/// The story of a call that was turned away.
pub(crate) fn record_of_rejected(
    function: u32,
    waiting: &Waiting,
    reservation: Allocation,
    now: Timestamp,
) -> CallRecord {
    CallRecord {
        id: waiting.id,
        function: FunctionId(function),
        node: NodeId(0),
        end: CallEnd::Rejected,
        arrived_at: waiting.arrived_at,
        started_at: now,
        ended_at: now,
        cold_start: Duration::ZERO,
        run: Duration::ZERO,
        baseline: waiting.demand.run_time(reservation.cpu),
        attempts: 0,
        oom_kills: 0,
        input: waiting.demand.input,
        reservation,
        wanted: (reservation.cpu.cores(), reservation.memory.mib()),
        decided_by: DecidedBy::Policy,
        shadow: None,
        first_grant: reservation,
        lowest_grant: reservation,
        highest_grant: reservation,
        cpu_granted: 0,
        cpu_used: 0,
        memory_granted: 0,
        memory_used: 0,
        changes: 0,
        looks: 0,
        amendments: Vec::new(),
        steps: Vec::new(),
    }
}
