//! From start to end, or to a kill and a second try.

use windfall_core::record::GrantStep;
use windfall_core::{
    CallClose, CallEnd, CallOutcome, CallRecord, CpuCeiling, Duration, MilliCpu, Timestamp,
};

use crate::call::{Call, Pace, TimeLeft, Turn};
use crate::call_record::put_before;
use crate::cpu_model::CpuModel;
use crate::event_queue::{Event, Token};
use crate::function::Waiting;
use crate::gauges::Gauge;
use crate::kind::by_kind;
use crate::noise::Noise;
use crate::simulator::Simulator;

impl Simulator<'_> {
    /// The call's instance is there: it runs from now on.
    #[inline(always)]
    pub(crate) fn begin_run(&mut self, slot: u32) {
        let now = self.now;
        let call = &mut self.calls[slot];
        call.begin(now);
        if self.settings.keep_steps {
            let step = GrantStep { at: now, grant: call.grant, why: "start".into() };
            call.record.steps.push(step);
        }
        let node = call.record.node.index();
        if self.lists_running {
            let state = &mut self.nodes[node];
            call.place_on_node = state.running.len() as u32;
            state.running.push(slot);
            if state.is_shared {
                call.set_pace(Pace::Shared(0.0));
            }
        }
        let (instance, look_after) = (call.instance, call.look_after);
        self.count_potential(node, instance, None);
        self.schedule_turn(slot);
        if let Some(after) = look_after {
            let token = self.queue.push(now + after, Event::Look(slot));
            self.calls[slot].look_token = token;
        }
    }

    /// Brings the node's potential up to date after a change of `instance`; `before` is what the
    /// instance contributed until now, nothing if the change only just began with a new call.
    #[inline(always)]
    pub(crate) fn count_potential(&mut self, node: usize, instance: u32, before: Option<Count>) {
        if self.can_compete {
            self.recount_potential(node, instance, before);
        }
    }

    fn recount_potential(&mut self, node: usize, instance: u32, before: Option<Count>) {
        let before = before.unwrap_or_else(|| {
            // A call that has just joined: the instance without it.
            let state = &self.instances[instance];
            let joined = state
                .calls
                .last()
                .map_or(0, |&call| u64::from(self.calls[call].demand.parallelism.get()));
            let widest = state.widest - joined;
            let limit = state.cpu_limit();
            Count {
                potential: widest.min(limit),
                is_crowded: state.calls.len() > 2 && widest > limit,
            }
        });
        let after = Count::of(&self.instances[instance]);
        let node = &mut self.nodes[node];
        node.potential = node.potential + after.potential - before.potential;
        node.crowded = node.crowded + u32::from(after.is_crowded) - u32::from(before.is_crowded);
    }

    /// Sets the reminder of the call's next turn: its end, or the moment its memory crosses the limit.
    #[inline(always)]
    pub(crate) fn schedule_turn(&mut self, slot: u32) {
        let now = self.now;
        let call = &mut self.calls[slot];
        let (end, turn) = match call.pace {
            Pace::Own => match call.time_left() {
                TimeLeft::Known(left) => (now + left, Turn::Ends),
                TimeLeft::AtLeast(left) => (now + left, Turn::GoesOn),
            },
            // The node reminds itself of ends while its calls compete.
            Pace::Shared(_) => (Timestamp::MAX, Turn::Ends),
        };
        let kill = call
            .demand
            .crosses(call.grant.memory)
            .map_or(Timestamp::MAX, |after| (call.record.started_at + after).max(now));
        call.turn = if kill < end { Turn::IsKilled } else { turn };
        let at = end.min(kill);
        call.turn_token = if at == Timestamp::MAX {
            Token::NONE
        } else {
            self.queue.push(at, Event::CallTurns(slot))
        };
    }

    /// A call ends or outgrows its memory.
    #[inline(always)]
    pub(crate) fn on_turn(&mut self, slot: u32, token: Token) {
        let Some(call) = self.calls.get_mut(slot).filter(|call| call.turn_token == token) else {
            return;
        };
        let node = call.record.node.0;
        match call.turn {
            Turn::Ends => self.end_call(slot),
            Turn::IsKilled => self.kill_instance(self.calls[slot].instance),
            Turn::GoesOn => {
                call.catch_up(self.now);
                return self.schedule_turn(slot);
            }
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
    #[inline(always)]
    pub(crate) fn end_call(&mut self, slot: u32) {
        self.calls[slot].finish(self.now);
        self.leave(slot);
        self.report_outcome(slot, false);
        let Call { record: CallRecord { function, started_at, .. }, instance, .. } =
            self.calls[slot];
        let state = &mut self.functions[function.index()];
        state.run_count += 1;
        state.run_total += self.now.since(started_at).as_nanos();
        self.close_record(slot, CallEnd::Completed);
        by_kind!(self => place_is_free(function.0, instance));
    }

    /// Memory crossed the limit: the instance dies with all its calls; each tries once more.
    fn kill_instance(&mut self, instance: u32) {
        let victims = self.instances[instance].calls.to_vec();
        let function = self.instances[instance].function;
        for victim in victims {
            self.leave(victim);
            self.report_outcome(victim, true);
            let call = &mut self.calls[victim];
            call.record.oom_kills += 1;
            if call.earlier.is_some() {
                self.close_record(victim, CallEnd::OutOfMemory);
            } else {
                let waiting = self.try_again(victim);
                self.enqueue_again(function, waiting);
            }
        }
        self.stop_instance(instance);
        by_kind!(self => after_kill(function));
    }

    /// A killed call as it goes back to its queue.
    fn try_again(&mut self, slot: u32) -> Waiting {
        let demand = self.calls[slot].plain_demand();
        let record = &mut self.calls[slot].record;
        record.run = self.now.since(record.started_at);
        let waiting = Waiting {
            id: record.id,
            arrived_at: record.arrived_at,
            demand,
            earlier: Some(Box::new(record.clone())),
        };
        self.calls.free(slot);
        waiting
    }

    /// Takes a call off its node and instance; what it held is free again. The call itself stays in
    /// its slot until its story is written.
    #[inline(always)]
    pub(crate) fn leave(&mut self, slot: u32) {
        let now = self.now;
        let call = &mut self.calls[slot];
        call.catch_up(now);
        call.account(now);
        // Whatever it still waits for is of no interest any more.
        (call.turn_token, call.look_token, call.resize_token) =
            (Token::NONE, Token::NONE, Token::NONE);
        let Call { instance, is_running, held_back, .. } = *call;
        let (node, function) = (call.record.node.index(), call.record.function.index());
        if is_running {
            call.record.memory_used += call.demand.memory_used(now.since(call.record.started_at));
        }
        self.used += call.record.cpu_used as f64;
        if !self.settings.cpu.is_fluid() {
            self.keep_in_instance(slot, instance);
        }
        let before = self.can_compete.then(|| Count::of(&self.instances[instance]));
        self.leave_instance(slot, instance);
        if is_running {
            if before.is_some() {
                self.recount_potential(node, instance, before);
            }
            if self.lists_running {
                self.leave_node(slot, node);
            }
        }
        if held_back != MilliCpu::ZERO {
            self.hold_back(slot, MilliCpu::ZERO);
        }
        if self.nodes[node].book.owes() {
            self.nodes[node].book.forgive(slot);
        }
        by_kind!(self => give_back(slot));
        let state = &mut self.functions[function];
        if self.is_observed {
            state.note_presence(now);
        }
        state.running -= 1;
        self.ledger.running -= 1;
        self.gauges.sub(Gauge::Running, 1);
        self.record_presence(function as u32);
    }

    #[inline(always)]
    fn leave_instance(&mut self, slot: u32, instance: u32) {
        let widest = u64::from(self.calls[slot].demand.parallelism.get());
        let instance = &mut self.instances[instance];
        instance.calls.remove(slot);
        instance.widest -= widest;
    }

    #[inline(always)]
    fn leave_node(&mut self, slot: u32, node: usize) {
        let place = self.calls[slot].place_on_node;
        let running = &mut self.nodes[node].running;
        running.swap_remove(place as usize);
        if let Some(&moved) = running.get(place as usize) {
            self.calls[moved].place_on_node = place;
        }
    }

    /// Reports to the control what could be measured of an attempt, and carries out what it calls back.
    #[inline(always)]
    pub(crate) fn report_outcome(&mut self, slot: u32, was_killed: bool) {
        self.count_for_ticks(slot, was_killed);
        let function = self.calls[slot].record.function;
        let waits = !self.functions[function.index()].queue.is_empty();
        if self.control.hints().needs_outcomes {
            self.hand_over_outcome(slot, was_killed);
        }
        if waits {
            self.size_head_again(function.0);
        }
    }

    /// Highest memory use as a sensor that is off by `deviation` standard deviations would show it, MiB.
    #[inline(always)]
    fn memory_peak(&self, slot: u32, was_killed: bool, deviation: f64) -> f64 {
        let call = &self.calls[slot];
        let limit = call.grant.memory.mib();
        if was_killed {
            return limit;
        }
        let spread = self.settings.sensors.memory_noise;
        (call.demand.memory_peak.mib() * (1.0 + spread * deviation)).min(limit)
    }

    /// Counts an attempt that has ended for the next observation.
    #[inline(always)]
    fn count_for_ticks(&mut self, slot: u32, was_killed: bool) {
        if !self.is_observed {
            return;
        }
        let call = &self.calls[slot];
        let (id, function) = (call.record.id.0, call.record.function.index());
        let used = call.record.cpu_used - call.observed_use;
        let farthest = self.memory_peak(slot, was_killed, Noise::FARTHEST) as u32;
        let window = &mut self.functions[function].window;
        window.used += used;
        // Once a window has seen large calls, most cannot raise its peak, whatever the noise.
        if farthest > window.memory_peak {
            let deviation = self.sensor_noise.normal(id, 1);
            let seen = self.memory_peak(slot, was_killed, deviation) as u32;
            let window = &mut self.functions[function].window;
            window.memory_peak = window.memory_peak.max(seen);
        }
    }

    fn hand_over_outcome(&mut self, slot: u32, was_killed: bool) {
        let id = self.calls[slot].record.id.0;
        if !self.settings.cpu.is_fluid() {
            self.calls[slot].split_waits();
        }
        let memory_peak_mib = self.memory_peak(slot, was_killed, self.sensor_noise.normal(id, 1));
        let Call { record, demand, grant, ceiling, peak, throttled, delayed, .. } =
            &self.calls[slot];
        let run = self.now.since(record.started_at);
        let noise = self.sensor_noise.normal(record.id.0, 0);
        let peak = match self.settings.cpu {
            CpuModel::Fluid => f64::from(*peak),
            CpuModel::Kernel(_) => self.calls[slot].windowed_peak(run),
        };
        let peak = peak * 1e-3 * (1.0 + self.settings.sensors.peak_noise * noise);
        let outcome = CallOutcome {
            id: record.id,
            function: record.function,
            node: record.node,
            input: demand.input,
            reservation: record.reservation,
            first_grant: record.first_grant,
            last_grant: *grant,
            arrived_at: record.arrived_at,
            started_at: record.started_at,
            ended_at: self.now,
            was_killed,
            cpu_peak_cores: match (self.settings.cpu, ceiling) {
                (CpuModel::Fluid, CpuCeiling::AtGrant) => {
                    peak.min(record.highest_grant.cpu.cores())
                }
                (CpuModel::Fluid | CpuModel::Kernel(_), _) => peak.max(0.0),
            },
            memory_peak_mib,
            cpu_mean_cores: record.cpu_used as f64 * 1e-3 / run.as_nanos().max(1) as f64,
            throttled: Duration::from_nanos(*throttled),
            delayed: Duration::from_nanos_f64(*delayed),
        };
        self.close_at_control(CallClose::Measured(&outcome));
    }

    /// Closes an attempt at the control and carries out what it calls back.
    fn close_at_control(&mut self, end: CallClose<'_>) {
        let mut changes = std::mem::take(&mut self.changes);
        self.control.close(end, &mut changes);
        self.carry_out_changes(end.node().0, &mut changes);
        self.changes = changes;
    }

    /// The call is gone with its node: nothing can be measured of it any more. What it used before counts for ticks.
    pub(crate) fn report_loss(&mut self, slot: u32) {
        let CallRecord { id: call, node, function, .. } = self.calls[slot].record;
        self.count_for_ticks(slot, false);
        if self.control.hints().needs_outcomes {
            self.close_at_control(CallClose::Lost { call, node });
        }
        if !self.functions[function.index()].queue.is_empty() {
            self.size_head_again(function.0);
        }
    }

    /// Completes the record of a call, reports it and books its end.
    #[inline(always)]
    pub(crate) fn close_record(&mut self, slot: u32, end: CallEnd) {
        self.ledger.book(end);
        let now = self.now;
        let Call { record, earlier, is_running, .. } = &mut self.calls[slot];
        let since_start = now.since(record.started_at);
        self.gauges.sub(Gauge::Demand, record.reservation.cpu.get());
        if self.is_observed {
            let window = &mut self.functions[record.function.index()].window;
            window.completions += 1;
            window.run += since_start;
            window.wait += record.started_at.since(record.arrived_at);
        }
        record.end = end;
        record.ended_at = now;
        record.run = if *is_running { since_start } else { Duration::ZERO };
        if let Some(earlier) = earlier.take() {
            put_before(*earlier, record);
        }
        self.sink.call(record);
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
