//! One function on the shared nodes: its queue, its instances, and what was counted of it.

use std::collections::VecDeque;

use windfall_rl::random::Draw;

use super::function_load::{CallStream, FunctionLoad};
use crate::meter::TIME_OUT_MS;
use crate::moves::Deployment;

/// Calls of one function that may wait; more are turned away.
const QUEUE_LIMIT: usize = 200;

/// A call, waiting or running.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// When the first call of its chain came, seconds.
    pub(super) born: f64,
    /// When it came itself.
    pub(super) arrived: f64,
    /// When an instance took it.
    pub(super) started: f64,
    /// Seconds that it still waits for other things than CPU.
    pub(super) fixed: f64,
    /// Core-seconds that are left.
    pub(super) work: f64,
    /// The most memory it needs, MiB.
    pub(super) memory: u32,
}

/// One instance.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    pub(super) node: usize,
    pub(super) memory: u32,
    /// When its start is over, seconds.
    pub(super) ready_at: f64,
    pub(super) call: Option<Call>,
    /// It ends with its call.
    pub(super) is_leaving: bool,
    /// Cores it has in this step.
    pub(super) rate: f64,
}

/// What was counted in a tick.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    pub(super) arrivals: u32,
    pub(super) completions: u32,
    pub(super) cold_starts: u32,
    pub(super) run_seconds: f64,
    pub(super) wait_seconds: f64,
    pub(super) core_seconds: f64,
    /// Calls in the system times seconds.
    pub(super) presence_seconds: f64,
    pub(super) memory_peak: f64,
    /// Sum of min(1, objective / latency) and how many it is of.
    pub(super) preserved: f64,
    pub(super) judged: u32,
    /// Moments at which a call came (+1) or went (-1), if somebody asks.
    pub(super) moments: Vec<(f64, i32)>,
}

/// What was counted since latencies are kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    pub(super) latencies_ms: Vec<f32>,
    pub(super) violations: u64,
    /// Calls that have an objective of their own or end a chain.
    pub(super) judged: u64,
    pub(super) lost: u64,
}

/// A function among others.
#[derive(Clone, Debug)]
pub(super) struct Tenant {
    pub(super) load: FunctionLoad,
    pub(super) is_active: bool,
    pub(super) wanted: Deployment,
    pub(super) instances: Vec<Instance>,
    pub(super) queue: VecDeque<Call>,
    /// The most cores that all instances together may use; nothing for no cap.
    pub(super) quota: Option<f64>,
    pub(super) window: Window,
    pub(super) kept: Kept,
    pub(super) keeps: bool,
    /// Latency over objective of every call, where a quota is in force.
    pub(super) slowness: Vec<f32>,
    pub(super) lists_moments: bool,
    calls: CallStream,
    starts: Draw,
}

impl Tenant {
    pub(super) fn new(
        load: FunctionLoad,
        wanted: Deployment,
        calls: CallStream,
        starts: Draw,
    ) -> Self {
        Self {
            load,
            is_active: true,
            wanted,
            instances: Vec::new(),
            queue: VecDeque::new(),
            quota: None,
            window: Window::default(),
            kept: Kept::default(),
            keeps: false,
            slowness: Vec::new(),
            lists_moments: false,
            calls,
            starts,
        }
    }

    /// Takes in the calls that come before `until`.
    pub(super) fn arrive(&mut self, until: f64) {
        while self.is_active
            && let Some(at) = self.calls.next_before(until)
        {
            self.take_in(at, at);
            self.calls.draw_next(&self.load, at);
        }
    }

    /// A call comes at `at`.
    pub(super) fn take_in(&mut self, at: f64, born: f64) {
        let demand = self.calls.demand(&self.load);
        self.window.arrivals += 1;
        if self.queue.len() >= QUEUE_LIMIT {
            return self.lose();
        }
        if self.lists_moments {
            self.window.moments.push((at, 1));
        }
        self.queue.push_back(Call {
            born,
            arrived: at,
            started: at,
            fixed: demand.fixed.as_secs_f64(),
            work: demand.work as f64 * 1e-12,
            memory: demand.memory_peak.get(),
        });
    }

    fn lose(&mut self) {
        self.window.judged += 1;
        if self.keeps {
            self.kept.latencies_ms.push(TIME_OUT_MS as f32);
            self.kept.lost += 1;
            self.kept.judged += 1;
            self.kept.violations += 1;
        }
    }

    /// Seconds that a new instance takes.
    pub(super) fn draw_start(&mut self) -> f64 {
        let median = self.load.profile.cold_start_ms as f64 * 1e-3;
        median * (0.25 * self.starts.normal()).exp()
    }

    /// Calls in the system.
    pub(super) fn present(&self) -> usize {
        self.queue.len() + self.instances.iter().filter(|one| one.call.is_some()).count()
    }

    /// Calls that could use CPU now, waiting ones included.
    pub(super) fn on_cpu(&self) -> usize {
        let running = self.instances.iter().filter_map(|one| one.call.as_ref());
        self.queue.len() + running.filter(|call| call.fixed <= 0.0).count()
    }

    /// Instances that stand or start, leaving ones left out.
    pub(super) fn standing(&self) -> usize {
        self.instances.iter().filter(|one| !one.is_leaving).count()
    }

    /// Idle instances take waiting calls, those on the node with the fewest running calls first.
    pub(super) fn dispatch(&mut self, now: f64, running: &[usize]) {
        while !self.queue.is_empty() {
            let is_free =
                |one: &&mut Instance| one.call.is_none() && !one.is_leaving && one.ready_at <= now;
            let idle = self.instances.iter_mut().filter(is_free);
            let Some(instance) = idle.min_by_key(|one| running[one.node]) else { return };
            let Some(mut call) = self.queue.pop_front() else { return };
            call.started = call.arrived.max(now);
            instance.call = Some(call);
        }
    }

    /// Lets instance `place` work from `now` for `step` seconds at its rate; answers that call another function are
    /// put into `onward` with their time and that of their chain.
    pub(super) fn work(
        &mut self,
        place: usize,
        now: f64,
        step: f64,
        onward: &mut Vec<(usize, f64, f64)>,
    ) {
        let end = now + step;
        let mut time = now;
        while let Some(mut call) = self.instances[place].call {
            time = time.max(call.started);
            if call.memory > self.instances[place].memory {
                return self.kill(place, time, call);
            }
            let rate = self.instances[place].rate;
            let waits = call.fixed.min(end - time).max(0.0);
            call.fixed -= waits;
            time += waits;
            let needs = if rate > 0.0 { call.work / rate } else { f64::INFINITY };
            let works = needs.min(end - time).max(0.0);
            self.window.core_seconds += works * rate;
            call.work -= works * rate;
            time += works;
            if call.fixed > 0.0 || works < needs {
                self.instances[place].call = Some(call);
                return;
            }
            self.finish(place, time, call);
            if let Some(next) = self.load.next {
                onward.push((next, time, call.born));
            }
        }
    }

    /// A call is answered; the instance takes the next one or leaves.
    fn finish(&mut self, place: usize, at: f64, call: Call) {
        let latency = (at - call.arrived) * 1e3;
        let slo = self.load.profile.slo_ms;
        self.window.completions += 1;
        self.window.run_seconds += at - call.started;
        self.window.wait_seconds += call.started - call.arrived;
        self.window.memory_peak = self.window.memory_peak.max(f64::from(call.memory));
        self.window.preserved += (slo / latency).min(1.0);
        self.window.judged += 1;
        if self.lists_moments {
            self.window.moments.push((at, -1));
        }
        if self.quota.is_some() {
            self.slowness.push((latency / slo) as f32);
        }
        if self.keeps {
            self.kept.latencies_ms.push(latency as f32);
            if let Some(objective) = self.load.objective_ms {
                self.kept.judged += 1;
                self.kept.violations += u64::from((at - call.born) * 1e3 > objective);
            }
        }
        let instance = &mut self.instances[place];
        instance.call = None;
        if !instance.is_leaving
            && let Some(mut next) = self.queue.pop_front()
        {
            next.started = next.arrived.max(at);
            instance.call = Some(next);
        }
    }

    /// A call needs more memory than its instance has: it is lost and the instance starts anew.
    fn kill(&mut self, place: usize, at: f64, call: Call) {
        self.lose();
        self.window.memory_peak = self.window.memory_peak.max(f64::from(call.memory));
        self.window.cold_starts += 1;
        if self.lists_moments {
            self.window.moments.push((at, -1));
        }
        let start = self.draw_start();
        let instance = &mut self.instances[place];
        instance.call = None;
        instance.ready_at = at + start;
    }

    /// SLO preservation of the tick that ends `now`: of what was `counted`, and of calls that are already too late.
    pub(super) fn preserved(&self, counted: &Window, now: f64) -> f64 {
        let slo = self.load.profile.slo_ms;
        let running = self.instances.iter().filter_map(|one| one.call.as_ref());
        let (mut sum, mut count) = (counted.preserved, f64::from(counted.judged));
        for call in self.queue.iter().chain(running) {
            let age = (now - call.arrived) * 1e3;
            if age > slo {
                sum += slo / age;
                count += 1.0;
            }
        }
        if count > 0.0 { sum / count } else { 1.0 }
    }
}
