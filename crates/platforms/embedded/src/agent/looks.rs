//! Looks at running calls, samples between them, and what a call came to.

use windfall_core::{CallClose, CallId, CallOutcome, Duration, RunningCall, Sensed, Timestamp};

use super::call_state::{AgentCall, mib};
use super::deadlines::Due;
use super::desk::NODE;
use super::node::Node;

/// A call that waits for CPU less than this share of a window is not held up: the kernel's own wake-ups take about so much.
const NOTICEABLE_DELAY: f64 = 0.02;
/// How long a node counts as short of CPU after a look found a call waiting for it: one quota period.
const SHORT_FOR: Duration = Duration::from_millis(100);

impl Node {
    /// Has the control look at a call at `at`, unless it has looked for another reason by then.
    pub(super) fn look_later(&mut self, at: Timestamp, id: CallId) {
        if let Some(call) = self.desk.calls.get(&id) {
            let (attempt, looks) = (call.attempt, call.record.looks);
            self.deadlines.push(at, Due::Look { call: id, attempt, looks });
        }
    }

    /// How often a call was looked at.
    pub(super) fn looks_at(&self, id: CallId) -> Option<u32> {
        self.desk.calls.get(&id).map(|call| call.record.looks)
    }

    /// The node has been short of CPU for a moment: the control looks at every running call that it supervises.
    pub(super) fn look_at_all(&mut self, now: Timestamp) {
        self.expects_looks = false;
        if !self.is_short(now) {
            return;
        }
        let is_supervised = |call: &&AgentCall| call.runs_since.is_some() && call.is_supervised;
        let mut all: Vec<CallId> =
            self.desk.calls.values().filter(is_supervised).map(|call| call.view.id).collect();
        // In order of arrival, whatever the order of the table.
        all.sort_unstable();
        for id in all {
            self.look(now, id);
        }
        self.settle();
        self.expect_looks(now);
    }

    /// Whether a call waited for CPU a moment ago.
    fn is_short(&self, now: Timestamp) -> bool {
        self.short_at.is_some_and(|at| now.since(at) <= SHORT_FOR)
    }

    /// Where the control asks for it, all calls are looked at soon while the node is short of CPU.
    fn expect_looks(&mut self, now: Timestamp) {
        if let Some(every) = self.desk.looks_while_short
            && self.is_short(now)
            && !self.expects_looks
        {
            self.expects_looks = true;
            self.deadlines.push(now + every, Due::NodeShort);
        }
    }

    /// The control looks at a running call; what it asks for is carried out when the node settles.
    pub(super) fn look(&mut self, now: Timestamp, id: CallId) {
        let reading = self.read(id, false);
        let (book, waiting) = (self.pool.book(), self.pool.waiting());
        let (owed, free) = (book.owed_to(id), book.free());
        let Some(call) = self.desk.calls.get_mut(&id) else { return };
        let sensed = match (&call.looked, &reading) {
            (Some(before), Some(now)) => before.until(now, call.view.reservation.cpu.cores()),
            (Some(before), None) => Sensed::lost(now.since(before.at)),
            (None, _) => Sensed::lost(Duration::ZERO),
        };
        if let Some(reading) = &reading {
            call.looked = Some(*reading);
            call.note(reading);
        }
        call.record.looks += 1;
        if sensed.delayed_share > NOTICEABLE_DELAY {
            self.short_at = Some(now);
            self.expect_looks(now);
        }
        let node_is_short = self.is_short(now);
        let Some(call) = self.desk.calls.get_mut(&id) else { return };
        let running = RunningCall {
            id,
            function: call.view.function,
            node: NODE,
            now,
            started_at: call.runs_since.unwrap_or(now),
            input: call.view.input,
            reservation: call.view.reservation,
            ceiling: call.view.ceiling,
            grant: call.grant,
            owed,
            free_on_node: free,
            waiting,
            actuation_delay: Self::actuation_delay(),
            capabilities: call.view.capabilities,
            sensed,
            node_is_short,
        };
        let mut changes = Vec::new();
        let look = self.desk.control.look(&running, &mut changes);
        self.take_down(changes);
        let Some(call) = self.desk.calls.get_mut(&id) else { return };
        call.record.amendments.extend(look.amendments);
        let is_other_ceiling = call.ceiling != look.cpu_ceiling;
        call.ceiling = look.cpu_ceiling;
        call.is_supervised = look.look_after.is_some();
        if let Some(after) = look.look_after {
            self.look_later(now + after.max(Duration::from_millis(1)), id);
        }
        self.pool.hold_back(id, look.held_back);
        self.ask(id, look.grant);
        if is_other_ceiling {
            self.apply_limits(id);
        }
    }

    pub(super) fn is_running(&self, id: CallId, attempt: u32) -> bool {
        let call = self.desk.calls.get(&id);
        call.is_some_and(|call| {
            call.attempt == attempt && call.runs_since.is_some() && call.instance.is_some()
        })
    }

    /// A sample between looks: peaks of a call that nobody looks at would otherwise be its means.
    pub(super) fn sample(&mut self, now: Timestamp, id: CallId, attempt: u32) {
        if !self.is_running(id, attempt) {
            return;
        }
        if let Some(reading) = self.read(id, false)
            && let Some(call) = self.desk.calls.get_mut(&id)
        {
            call.note(&reading);
        }
        self.deadlines.push(now + self.settings.sample_every, Due::Sample { call: id, attempt });
    }

    /// The attempt has ended: reads what it came to and closes it with the control.
    pub(super) fn close_measured(&mut self, id: CallId, at: Timestamp, was_killed: bool) {
        let Some(call) = self.desk.calls.get(&id) else { return };
        let is_measured = call.begun.is_some();
        if is_measured
            && !was_killed
            && let Some(reading) = self.read(id, false)
            && let Some(call) = self.desk.calls.get_mut(&id)
        {
            call.note(&reading);
        }
        let Some(call) = self.desk.calls.get_mut(&id) else { return };
        if is_measured {
            let used = call.begun.zip(call.sampled).map(|(from, to)| {
                to.sensors.cpu_time.saturating_sub(from.sensors.cpu_time).as_nanos() as u64
            });
            // A nanosecond of CPU time is a thousand millicore-nanoseconds.
            let used = used.unwrap_or(0).saturating_mul(1000);
            call.record.cpu_used = call.record.cpu_used.saturating_add(used);
        }
        if !is_measured && !call.is_open {
            return;
        }
        let outcome = outcome_of(call, at, was_killed);
        if is_measured {
            call.note_peaks(&outcome);
        }
        if !call.is_open {
            return;
        }
        let mut changes = Vec::new();
        self.desk.close(CallClose::Measured(&outcome), &mut changes);
        self.take_down(changes);
    }
}

fn outcome_of(call: &AgentCall, at: Timestamp, was_killed: bool) -> CallOutcome {
    let started_at = call.runs_since.unwrap_or(at).min(at);
    let run = at.since(started_at);
    let (mut mean, mut throttled, mut peak) = (0.0, Duration::ZERO, call.memory_peak);
    let mut delayed = Duration::ZERO;
    if let Some((from, to)) = call.begun.zip(call.sampled) {
        let used = to.sensors.cpu_time.saturating_sub(from.sensors.cpu_time).as_secs_f64();
        mean = used / run.as_secs_f64().max(1e-6);
        throttled = from.throttled_until(&to);
        let share = from.delayed_share(&to, call.view.reservation.cpu.cores());
        delayed = Duration::from_secs_f64(run.as_secs_f64() * share);
        peak = peak.max(mib(to.sensors.memory_peak));
    }
    if was_killed {
        peak = peak.max(call.grant.memory.mib());
    }
    CallOutcome {
        id: call.view.id,
        function: call.view.function,
        node: NODE,
        input: call.view.input,
        reservation: call.view.reservation,
        first_grant: call.record.first_grant,
        last_grant: call.grant,
        arrived_at: call.view.arrived_at,
        started_at,
        ended_at: at,
        was_killed,
        cpu_peak_cores: call.cpu_peak.max(mean),
        memory_peak_mib: peak,
        cpu_mean_cores: mean,
        throttled,
        delayed,
    }
}
