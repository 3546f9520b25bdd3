//! What can be seen of the shared nodes, and what a tick earned.

use windfall_core::statistics::nearest_rank;
use windfall_core::{
    Allocation, ClusterView, Duration, FunctionId, FunctionView, Instances, Observation,
    PresenceStep, Timestamp,
};

use super::{Fared, SharedWorld, TICK};
use crate::moves::{Deployment, Range};
use crate::profile::ServiceProfile;
use crate::reward::Earned;
use crate::shared_nodes::captains::Captains;
use crate::shared_nodes::tenant::{Kept, Tenant, Window};
use crate::world::Rates;

impl SharedWorld {
    /// Closes the window of the tick.
    pub(super) fn observe(&mut self) {
        let now = self.now();
        let at = seconds(now);
        let mut functions = Vec::with_capacity(self.tenants.len());
        for index in 0..self.tenants.len() {
            let counted = std::mem::take(&mut self.tenants[index].window);
            let rate = f64::from(counted.arrivals) / TICK;
            self.rates[index] = Rates { now: rate, before: self.rates[index].now };
            let highest = &mut self.memory_highest[index];
            *highest = highest.max(counted.memory_peak);
            self.earned[index] = self.earns(index, &counted);
            self.charge(index);
            functions.push(view(FunctionId(index as u32), &self.tenants[index], &counted, now));
        }
        let (count, free): (f64, i64) = (self.nodes.count as f64, self.free_mib.iter().sum());
        let capacity_mib = count * f64::from(self.nodes.memory_mib);
        let cluster = ClusterView {
            nodes: self.nodes.count as u32,
            capacity_cores: count * self.nodes.cores,
            capacity_mib,
            granted_cores: 0.0,
            granted_mib: capacity_mib - free as f64,
            queued: self.tenants.iter().map(|tenant| tenant.queue.len() as u64).sum(),
        };
        let (window, settled) = (Duration::from_secs(5), Vec::new());
        self.seen = Observation { now: at, taken_at: at, window, cluster, functions, settled };
    }

    /// Counts what a function holds, if somebody asks.
    fn charge(&mut self, index: usize) {
        let tenant = &self.tenants[index];
        if tenant.keeps {
            let memory: f64 = tenant.instances.iter().map(|one| f64::from(one.memory)).sum();
            let shares = tenant.instances.len() as f64 * f64::from(tenant.wanted.cpu) / 1024.0;
            self.held[index].0 += tenant.quota.unwrap_or(shares) * TICK;
            self.held[index].1 += memory / 1024.0 * TICK;
        }
    }

    fn earns(&self, index: usize, counted: &Window) -> Earned {
        let tenant = &self.tenants[index];
        let standing = tenant.standing();
        let shares = standing as f64 * f64::from(tenant.wanted.cpu) / 1024.0;
        let held = tenant.quota.unwrap_or(shares);
        let share = |used: f64, of: f64| if of > 0.0 { (used / of).min(1.0) } else { 0.0 };
        let memory_used = if standing > 0 { self.memory_highest[index] } else { 0.0 };
        let is_called = counted.arrivals > 0 || !tenant.queue.is_empty();
        Earned {
            preserved: tenant.preserved(counted, self.now()),
            cpu_utilisation: share(counted.core_seconds / TICK, held),
            memory_utilisation: share(memory_used, f64::from(tenant.wanted.memory)),
            is_without_instances: standing == 0 && is_called,
            is_reversal: self.is_reversal[index],
        }
    }

    /// Number of functions, absent ones included.
    pub fn count(&self) -> usize {
        self.tenants.len()
    }

    /// Whether `function` is there.
    pub fn is_active(&self, function: usize) -> bool {
        self.tenants[function].is_active
    }

    /// What can be seen now.
    pub fn seen(&self) -> &Observation {
        &self.seen
    }

    /// What the last tick of `function` is to be paid for.
    pub fn earned(&self, function: usize) -> Earned {
        self.earned[function]
    }

    /// What `function` is to have, whether it found room or not.
    pub fn deployment(&self, function: usize) -> Deployment {
        self.tenants[function].wanted
    }

    /// Instances of `function` that stand or start.
    pub fn standing(&self, function: usize) -> usize {
        self.tenants[function].standing()
    }

    /// Cores that `function` used on average in the last tick, over what its shares stand for; above 1 where it used what
    /// others left.
    pub fn use_of_shares(&self, function: usize) -> f64 {
        let held = self.standing(function) as f64 * f64::from(self.deployment(function).cpu);
        let used = self.seen.functions[function].cpu_used_cores;
        if held > 0.0 { 1024.0 * used / held } else { 0.0 }
    }

    /// Which way the number of instances went in the last tick.
    pub fn turned(&self, function: usize) -> i32 {
        self.turned[function]
    }

    /// How often `function` was called lately.
    pub fn rates(&self, function: usize) -> Rates {
        self.rates[function]
    }

    /// A tenth above the most memory that a call was seen with.
    pub fn memory_floor(&self, function: usize) -> f64 {
        1.1 * self.memory_highest[function]
    }

    /// What its calls need.
    pub fn profile(&self, function: usize) -> ServiceProfile {
        self.tenants[function].load.profile
    }

    /// Calls per second from outside at `ahead` seconds from now; for the oracle alone. A function inside a chain has the
    /// rate of the first.
    pub fn rate_to_come(&self, function: usize, ahead: f64) -> f64 {
        let mut first = function;
        while let Some(before) =
            self.tenants.iter().position(|tenant| tenant.load.next == Some(first))
        {
            first = before;
        }
        self.tenants[first].load.rate_at(self.now() + ahead)
    }

    /// Least and most of each knob.
    pub fn range(&self) -> Range {
        self.range
    }

    /// Cores of all nodes.
    pub fn cores(&self) -> f64 {
        self.nodes.count as f64 * self.nodes.cores
    }

    /// Ticks since the warm-up.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// From now on latencies and what is held are counted.
    pub fn keep_latencies(&mut self) {
        for (tenant, held) in self.tenants.iter_mut().zip(&mut self.held) {
            (tenant.keeps, tenant.kept, *held) = (true, Kept::default(), (0.0, 0.0));
        }
    }

    /// From now on observations list single calls, which few policies ask for.
    pub fn list_calls(&mut self) {
        self.tenants.iter_mut().for_each(|tenant| tenant.lists_moments = true);
    }

    /// From now on `captains` cap what functions use.
    pub fn cap(&mut self, captains: Captains) {
        self.captains = Some(captains);
    }

    /// Whoever caps.
    pub fn captains_mut(&mut self) -> Option<&mut Captains> {
        self.captains.as_mut()
    }

    /// Latency over objective of all calls since this was last asked, of functions that are capped.
    pub fn take_slowness(&mut self) -> Vec<f32> {
        let take = |tenant: &mut Tenant| std::mem::take(&mut tenant.slowness);
        self.tenants.iter_mut().flat_map(take).collect()
    }

    /// Calls of `function` that were not answered since latencies are kept.
    pub fn lost(&self, function: usize) -> u64 {
        self.tenants[function].kept.lost
    }

    /// How `function` fared since latencies are kept; calls that wait count at their age.
    pub fn fared(&self, function: usize) -> Fared {
        let tenant = &self.tenants[function];
        let now = self.now();
        let mut latencies = tenant.kept.latencies_ms.clone();
        let running = tenant.instances.iter().filter_map(|one| one.call.as_ref());
        let (mut judged, mut violations) = (tenant.kept.judged, tenant.kept.violations);
        for call in tenant.queue.iter().chain(running) {
            let age = (now - call.arrived) * 1e3;
            if age > tenant.load.profile.slo_ms {
                latencies.push(age as f32);
            }
            if tenant.load.objective_ms.is_some_and(|most| (now - call.born) * 1e3 > most) {
                (judged, violations) = (judged + 1, violations + 1);
            }
        }
        latencies.sort_by(f32::total_cmp);
        let (core_seconds, gib_seconds) = self.held[function];
        Fared {
            p99_ms: nearest_rank(&latencies, 0.99).map_or(0.0, f64::from),
            judged,
            violations,
            core_seconds,
            gib_seconds,
        }
    }
}

fn seconds(at: f64) -> Timestamp {
    Timestamp::from_nanos((at * 1e9).round() as u64)
}

/// What a policy may know of one function.
fn view(function: FunctionId, tenant: &Tenant, counted: &Window, now: f64) -> FunctionView {
    let profile = &tenant.load.profile;
    let busy = tenant.instances.iter().filter(|one| one.call.is_some()).count() as u32;
    let staying = || tenant.instances.iter().filter(|one| !one.is_leaving);
    let starting = staying().filter(|one| one.ready_at > now).count() as u32;
    let mean = |sum: f64| {
        (counted.completions > 0)
            .then(|| Duration::from_secs_f64(sum / f64::from(counted.completions)))
    };
    FunctionView {
        function,
        reservation: profile.reservation(),
        allocation: Allocation::new(tenant.wanted.cpu, tenant.wanted.memory),
        kept: None,
        start_cpu: None,
        concurrency: 1,
        ready: Instances::new(staying().count() as u32 - starting),
        busy: Instances::new(busy),
        starting: Instances::new(starting),
        in_flight: busy,
        queued: tenant.queue.len() as u32,
        mean_concurrency: counted.presence_seconds / TICK,
        arrivals: counted.arrivals,
        completions: counted.completions,
        cold_starts: counted.cold_starts,
        mean_run: mean(counted.run_seconds),
        mean_wait: mean(counted.wait_seconds),
        cpu_used_cores: counted.core_seconds / TICK,
        memory_peak_mib: counted.memory_peak,
        cold_start: Duration::from_millis(profile.cold_start_ms),
        presence: presence(tenant, counted),
    }
}

/// Numbers of calls in the system, moment by moment.
fn presence(tenant: &Tenant, counted: &Window) -> Vec<PresenceStep> {
    let mut moments = counted.moments.clone();
    moments.sort_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
    let change: i32 = moments.iter().map(|(_, by)| by).sum();
    let mut calls = tenant.present() as i32 - change;
    let step = |(at, by): (f64, i32)| {
        calls += by;
        PresenceStep { at: seconds(at), calls: calls.max(0) as u32, passed_over: 0 }
    };
    moments.into_iter().map(step).collect()
}
