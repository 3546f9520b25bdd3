//! Looks at running calls, live changes of what they hold, loans called back, and debts.

use windfall_core::record::GrantStep;
use windfall_core::{
    Allocation, CpuCeiling, Duration, GrantChange, MilliCpu, Resized, RunningCall, Sensed,
};

use crate::call::Call;
use crate::cpu_model::CpuModel;
use crate::event_queue::{Event, Token};
use crate::kept_memory::memory_in_use;
use crate::run::Count;
use crate::simulator::Simulator;

/// Slow actuation takes this many times as long.
const SLOW: u64 = 10;

impl Simulator<'_> {
    /// The control looks at a running call.
    pub(crate) fn on_look(&mut self, slot: u32, token: Token) {
        if self.calls.get_mut(slot).is_none_or(|call| call.look_token != token) {
            return;
        }
        let node = self.look(slot);
        self.settle(node);
    }

    /// Calls on `node` wait for CPU from now on, or no longer.
    pub(crate) fn note_shortage(&mut self, node: u32, is_short: bool) {
        let state = &mut self.nodes[node as usize];
        if std::mem::replace(&mut state.is_short, is_short) == is_short {
            return;
        }
        if let Some(every) = self.looks_while_short.filter(|_| is_short && !state.expects_looks) {
            state.expects_looks = true;
            self.queue.push(self.now + every, Event::NodeShort(node));
        }
    }

    /// A node has been short of CPU for a moment: the control looks at all of its calls.
    pub(crate) fn on_node_short(&mut self, node: u32) {
        let state = &mut self.nodes[node as usize];
        state.expects_looks = false;
        if !state.is_short {
            return;
        }
        let mut slots = state.running.clone();
        slots.retain(|&slot| self.calls[slot].look_token != Token::NONE);
        for slot in slots {
            self.look(slot);
        }
        self.settle(node);
        let state = &mut self.nodes[node as usize];
        if let Some(every) =
            self.looks_while_short.filter(|_| state.is_short && !state.expects_looks)
        {
            state.expects_looks = true;
            self.queue.push(self.now + every, Event::NodeShort(node));
        }
    }

    /// Asks the control about a running call and sets in motion what it answers; returns the call's node.
    fn look(&mut self, slot: u32) -> u32 {
        let now = self.now;
        let call = &mut self.calls[slot];
        call.catch_up(now);
        call.record.looks += 1;
        let running = self.running_view(slot);
        let mut changes = std::mem::take(&mut self.changes);
        let look = self.control.look(&running, &mut changes);
        self.carry_out_changes(running.node.0, &mut changes);
        self.changes = changes;
        let call = &mut self.calls[slot];
        call.record.amendments.extend(look.amendments);
        call.look_token = match look.look_after {
            // A look in no time would never let time pass.
            Some(after) => {
                self.queue.push(now + after.max(Duration::from_millis(1)), Event::Look(slot))
            }
            None => Token::NONE,
        };
        self.hold_back(slot, look.held_back);
        self.change_ceiling(slot, look.cpu_ceiling);
        self.change_grant(slot, look.grant, look.why);
        running.node.0
    }

    /// Keeps `cpu` of the call's node out of new calls' reach from now on.
    pub(crate) fn hold_back(&mut self, slot: u32, cpu: MilliCpu) {
        let call = &mut self.calls[slot];
        let before = std::mem::replace(&mut call.held_back, cpu);
        if before == MilliCpu::ZERO && cpu == MilliCpu::ZERO {
            return;
        }
        let node = &mut self.nodes[call.record.node.index()];
        node.hold_back(before, cpu, self.now);
        call.record.cpu_held_back += node.held_back_time.part(before, call.held_back_mark);
        call.held_back_mark = node.held_back_time.mark();
    }

    fn running_view(&mut self, slot: u32) -> RunningCall {
        let sensed = self.sense(slot);
        let call = &self.calls[slot];
        let book = &self.nodes[call.record.node.index()].book;
        RunningCall {
            id: call.record.id,
            function: call.record.function,
            node: call.record.node,
            now: self.now,
            started_at: call.record.started_at,
            input: call.demand.input,
            reservation: call.record.reservation,
            ceiling: self.settings.ceiling,
            grant: call.grant,
            owed: book.owed_to(slot),
            free_on_node: book.free(),
            waiting: self.ledger.waiting,
            node_is_short: self.nodes[call.record.node.index()].is_short,
            actuation_delay: self.settings.actuation_delay,
            capabilities: self.settings.call_capabilities(),
            sensed,
        }
    }

    /// What the sensors say of the window since the last look.
    fn sense(&mut self, slot: u32) -> Sensed {
        let now = self.now;
        let sensors = self.settings.sensors;
        let call = &mut self.calls[slot];
        let window = now.since(call.looked.at);
        let draw = 16 + 4 * u64::from(call.record.looks);
        let loss = self.settings.faults.telemetry_loss;
        if loss > 0.0 && self.fault_noise.uniform(call.record.id.0, draw) < loss {
            return Sensed::lost(window);
        }
        let nanos = window.as_nanos().max(1) as f64;
        let used = (call.record.cpu_used - call.looked.used) as f64 * 1e-3 / nanos;
        let relative = sensors.cpu_noise * self.sensor_noise.normal(call.record.id.0, draw);
        let jitter = sensors.cpu_jitter.as_nanos() as f64 / nanos
            * self.sensor_noise.normal(call.record.id.0, draw + 1);
        let throttled = (call.throttled - call.looked.throttled) as f64 / nanos;
        call.looked.at = now;
        call.looked.used = call.record.cpu_used;
        call.looked.throttled = call.throttled;
        let delayed =
            (call.delayed - std::mem::replace(&mut call.looked.delayed, call.delayed)) / nanos;
        // A counter of the kernel shows what was used, also beyond the mean rate of a quota.
        let most = match self.settings.cpu {
            CpuModel::Fluid => call.cpu_limit().cores(),
            CpuModel::Kernel(_) => f64::MAX,
        };
        Sensed {
            window,
            cpu_used_cores: (used * (1.0 + relative) + jitter).clamp(0.0, most),
            throttled_share: throttled.min(1.0),
            delayed_share: delayed.min(1.0),
            memory_mib: call.demand.memory_at(now.since(call.record.started_at)).mib(),
        }
    }

    /// Carries out what the control changes for calls on `node`: mostly loans that are called back.
    pub(crate) fn carry_out_changes(&mut self, node: u32, changes: &mut Vec<GrantChange>) {
        for change in changes.drain(..) {
            let running = &self.nodes[node as usize].running;
            let found =
                running.iter().copied().find(|&slot| self.calls[slot].record.id == change.call);
            if let Some(slot) = found.or_else(|| self.starting_call(node, &change)) {
                self.change_grant(slot, change.grant, change.why);
            }
        }
    }

    /// A borrower whose instance is still on its way up.
    fn starting_call(&self, node: u32, change: &GrantChange) -> Option<u32> {
        self.calls.places().find(|&slot| {
            let record = &self.calls[slot].record;
            record.node.0 == node && record.id == change.call
        })
    }

    /// Sets another rule for the most CPU a call may use. What a ceiling follows is the grant, so only the rule is
    /// kept here.
    fn change_ceiling(&mut self, slot: u32, ceiling: CpuCeiling) {
        let call = &mut self.calls[slot];
        if call.ceiling == ceiling {
            return;
        }
        call.catch_up(self.now);
        call.ceiling = ceiling;
        call.limit_changed(self.now);
        let (instance, node) = (call.instance, call.record.node.index());
        let count = Count::of(&self.instances[instance]);
        self.instances[instance].ceiling = ceiling;
        self.count_potential(node, instance, Some(count));
        self.schedule_turn(slot);
    }

    /// Sets a change in motion: now, or after the platform's delay.
    fn change_grant(&mut self, slot: u32, grant: Allocation, why: &'static str) {
        let call = &self.calls[slot];
        let heading_for = match call.pending {
            Some((grant, _)) => grant,
            None => call.grant + self.nodes[call.record.node.index()].book.owed_to(slot),
        };
        if grant == heading_for {
            return;
        }
        self.calls[slot].asked = Some(grant);
        let call = &self.calls[slot];
        let delay = self.actuation_delay(call);
        if delay.is_zero() {
            // A slow change that is still on its way must not undo this one when it arrives.
            let call = &mut self.calls[slot];
            (call.pending, call.resize_token) = (None, Token::NONE);
            self.resize(slot, grant, why);
        } else {
            let token = self.queue.push(self.now + delay, Event::Resize(slot));
            let call = &mut self.calls[slot];
            call.pending = Some((grant, why));
            call.resize_token = token;
        }
    }

    fn actuation_delay(&self, call: &Call) -> Duration {
        let slow = self.settings.faults.slow_actuation;
        let draw = 17 + 4 * u64::from(call.record.looks);
        if slow > 0.0 && self.fault_noise.uniform(call.record.id.0, draw) < slow {
            self.settings.actuation_delay.max(Duration::from_millis(10)) * SLOW
        } else {
            self.settings.actuation_delay
        }
    }

    /// A change takes effect.
    pub(crate) fn on_resize(&mut self, slot: u32, token: Token) {
        let Some(call) = self.calls.get_mut(slot).filter(|call| call.resize_token == token) else {
            return;
        };
        let node = call.record.node.0;
        if let Some((grant, why)) = call.pending.take() {
            self.resize(slot, grant, why);
        }
        self.settle(node);
    }

    /// Changes what a call holds. Raises get what is free; the rest is owed.
    fn resize(&mut self, slot: u32, wanted: Allocation, why: &'static str) {
        let wanted = self.accepted_memory(slot, wanted);
        let node = self.calls[slot].record.node.0;
        self.nodes[node as usize].book.forgive(slot);
        let grant = self.calls[slot].grant;
        let lowered = grant.min(wanted);
        if lowered != grant {
            self.nodes[node as usize].release(grant - lowered, self.now);
            self.hold_instead(slot, lowered, why);
        }
        let raise = wanted.saturating_sub(lowered);
        if raise != Allocation::ZERO {
            self.pay_debts(node);
            self.nodes[node as usize].book.owe(slot, raise);
            self.pay_debts(node);
        }
        // A change back to what is held takes no step and is in force all the same.
        self.in_force.push_back(slot);
    }

    /// Reports changes to the control that are in force now. What is owed will be, so its report waits for that.
    ///
    /// Not while changes are carried out, but after the last of them: what an answer asks for comes after what was
    /// asked before it.
    #[cold]
    #[inline(never)]
    pub(crate) fn report_resized(&mut self) {
        while let Some(slot) = self.in_force.pop_front() {
            let Some(call) = self.calls.get_mut(slot) else { continue };
            // Another change may have taken its place since, or another call.
            if call.pending.is_some() || call.asked != Some(call.grant) {
                continue;
            }
            call.asked = None;
            let refused = call.kernel.refused.take();
            let change = Resized {
                call: call.record.id,
                node: call.record.node,
                at: self.now,
                reservation: call.record.reservation,
                asked: refused.unwrap_or(call.grant),
                in_force: call.grant,
                refused: refused.map(|_| memory_in_use()),
            };
            let mut changes = std::mem::take(&mut self.changes);
            self.control.resized(&change, &mut changes);
            if !changes.is_empty() {
                self.carry_out_changes(change.node.0, &mut changes);
                self.pay_debts(change.node.0);
            }
            self.changes = changes;
        }
    }

    /// Gives what is free on `node` to those it owes, first come first served.
    pub(crate) fn pay_debts(&mut self, node: u32) {
        while let Some(payment) = self.nodes[node as usize].pay(self.now) {
            self.make_room(node, Allocation::ZERO);
            let grant = self.calls[payment.call].grant + payment.amount;
            self.hold_instead(payment.call, grant, "raise");
            self.in_force.push_back(payment.call);
        }
    }

    /// The call holds `grant` from now on; the node's book says so already.
    fn hold_instead(&mut self, slot: u32, grant: Allocation, why: &'static str) {
        let now = self.now;
        let keep_steps = self.settings.keep_steps;
        let call = &mut self.calls[slot];
        call.catch_up(now);
        call.account(now);
        let (before, node, instance) = (call.grant, call.record.node.index(), call.instance);
        call.grant = grant;
        if before.cpu != grant.cpu {
            call.limit_changed(now);
        }
        call.record.lowest_grant = call.record.lowest_grant.min(grant);
        call.record.highest_grant = call.record.highest_grant.max(grant);
        call.record.changes += 1;
        if keep_steps {
            call.record.steps.push(GrantStep { at: now, grant, why: why.into() });
        }
        let (is_running, reservation) = (call.is_running, call.record.reservation);
        self.gauges.release(before, reservation);
        self.gauges.hold(grant, reservation);
        let count = Count::of(&self.instances[instance]);
        self.instances[instance].held = grant;
        if is_running {
            self.count_potential(node, instance, Some(count));
            self.schedule_turn(slot);
        }
    }
}
