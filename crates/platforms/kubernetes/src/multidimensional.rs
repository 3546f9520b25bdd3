//! `windfall` on Kubernetes: size and number of pods decided together.
//!
//! ```text
//!   memory   the highest peak seen + 15 %                                  never below what is in use
//!   CPU      the 95th percentile of one pod's use + 15 %                   a weight: what it has while cores are short
//!   pods     demand in cores / (size × fill), raised while latency is above its goal
//! ```
//!
//! `fill` says how full pods may be on average. Weight 0 for cost keeps them half full, 100 fills nine tenths, 50 takes
//! 0.7. *Worked:* pods of 500m that use 1.4 cores together at weight 50 need 1.4 / (0.5 × 0.7) = 4 pods.
//!
//! Size and number pull on each other: fewer pods use more each, which raises the percentile, which enlarges the next
//! pods. So sizes follow what one pod uses when it is as full as it should be, and the number follows from the size.
//! With a latency goal the number is also corrected by feedback: above the goal it grows by the ratio, at most twice per
//! tick, and nothing is taken away until latency is back below nine tenths of the goal.
//!
//! On Knative the number follows the requests in flight within a second, which no tick can do better. So `windfall` decides
//! how many requests a pod should hold, and Knative how many pods that makes; a floor is set only where a goal asks for it.
//!
//! ```text
//!   by CPU      limit of a pod / CPU that one request in flight takes            a pod is full when its CPU is
//!   by memory   four fifths of (limit - least seen) / memory of one request
//! ```
//!
//! *Worked:* pods of at most 400m whose requests take 20m each while they are in flight hold 20. While pods have no CPU left,
//! requests take less each than they would like; the target then follows what they hold now, of which Knative fills only 70 %, so
//! pods are added until CPU is left.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use windfall_core::{
    Decision, FunctionId, FunctionView, Observation, Policy, PolicyError, QuantileWindow, Setting,
    Target,
};

use crate::guard::{Guard, Guards, lock};

/// Samples that a size looks back on: an hour at a tick every 15 s.
const WINDOW: usize = 240;
/// Samples before the first decision about a size.
const ENOUGH: usize = 8;
/// Measurements that a number of requests per pod looks back on. CPU is measured some seconds later than requests, so one
/// measurement after a change of load is worth nothing; the median of a dozen is.
const CALLS_WINDOW: usize = 12;
/// The number of requests per pod is changed if it is off by more than this share.
const CALLS_TOLERANCE: f64 = 0.2;
/// Requests may fill so much of the memory that a pod has above its idle use.
const MEMORY_FILL: f64 = 0.8;
/// Knative's own limit.
const MOST_CALLS: f64 = 1000.0;
/// What a size has above what was seen.
const MARGIN: f64 = 1.15;
/// A size is changed if it is off by more than this share.
const TOLERANCE: f64 = 0.1;

/// The policy.
pub struct Multidimensional {
    guards: Arc<Mutex<Guards>>,
    histories: BTreeMap<FunctionId, History>,
}

struct History {
    /// Cores of one pod.
    cpu: QuantileWindow,
    /// MiB of one pod.
    memory: QuantileWindow,
    /// Requests that one pod should hold, by each of the last measurements.
    calls: QuantileWindow,
}

impl Default for History {
    fn default() -> Self {
        Self {
            cpu: QuantileWindow::new(WINDOW),
            memory: QuantileWindow::new(WINDOW),
            calls: QuantileWindow::new(CALLS_WINDOW),
        }
    }
}

impl Multidimensional {
    /// The policy that reads goals and latencies from `guards`.
    pub fn new(guards: Arc<Mutex<Guards>>) -> Self {
        Self { guards, histories: BTreeMap::new() }
    }

    fn target(&mut self, view: &FunctionView, guard: &Guard) -> Option<Target> {
        let history = self.histories.entry(view.function).or_default();
        let pods = view.ready.get();
        if pods > 0 {
            history.cpu.push(view.cpu_used_cores / f64::from(pods));
            history.memory.push(view.memory_peak_mib);
        }
        if let Some(calls) = history.calls_that_fill(view, guard) {
            history.calls.push(calls);
        }
        let size = history.size(view);
        let cores = size.map_or(view.allocation.cpu.cores(), |(cores, _)| cores);
        let pods = replicas(view, guard, cores);
        let target = Target {
            cpu_cores: size.map_or(Setting::Keep, |(cores, _)| {
                unless_close(cores, view.allocation.cpu.cores())
            }),
            memory_mib: size
                .map_or(Setting::Keep, |(_, mib)| unless_close(mib, view.allocation.memory.mib())),
            instances: pods.map_or(Setting::Keep, |pods| Setting::Set(f64::from(pods))),
            concurrency: history.calls(view),
            why: why(view, guard),
            ..Target::keep(view.function)
        };
        let changes = !(target.cpu_cores.is_keep()
            && target.memory_mib.is_keep()
            && target.instances.is_keep()
            && target.concurrency.is_keep());
        changes.then_some(target)
    }
}

impl History {
    /// Cores and MiB of one pod, once enough was seen.
    fn size(&self, view: &FunctionView) -> Option<(f64, f64)> {
        if self.cpu.len() < ENOUGH {
            return None;
        }
        let cores = self.cpu.quantile(0.95)? * MARGIN;
        let mib = self.memory.quantile(1.0)?.max(view.memory_peak_mib) * MARGIN;
        Some((cores.max(0.01), mib.max(16.0)))
    }
}

impl History {
    /// Requests that fill one pod, by what a request in flight takes now; nothing where that cannot be said.
    fn calls_that_fill(&self, view: &FunctionView, guard: &Guard) -> Option<f64> {
        let (pods, in_flight) = (f64::from(view.ready.get()), view.mean_concurrency);
        if !guard.wakes_itself || pods == 0.0 || in_flight < 0.5 {
            return None;
        }
        let limit = guard.cpu_limit.unwrap_or(view.reservation.cpu.cores());
        let by_cpu = limit * in_flight / view.cpu_used_cores.max(1e-4);
        let idle = self.memory.quantile(0.0)?;
        let of_calls = (view.memory_peak_mib - idle).max(0.0) * pods / in_flight;
        let room = (view.reservation.memory.mib() - idle).max(0.0) * MEMORY_FILL;
        let by_memory = if of_calls > 0.1 { room / of_calls } else { MOST_CALLS };
        Some(by_cpu.min(by_memory).clamp(1.0, MOST_CALLS))
    }

    /// The number to set, if it is known and another one than now.
    fn calls(&self, view: &FunctionView) -> Setting<f64> {
        let known = self.calls.quantile(0.5).filter(|_| self.calls.len() >= ENOUGH);
        let now = f64::from(view.concurrency);
        match known.map(f64::floor) {
            Some(calls) if (calls - now).abs() > CALLS_TOLERANCE * now => Setting::Set(calls),
            Some(_) | None => Setting::Keep,
        }
    }
}

fn unless_close(wanted: f64, now: f64) -> Setting<f64> {
    let is_close = (wanted - now).abs() <= TOLERANCE * now.max(1e-9);
    if is_close { Setting::Keep } else { Setting::Set(wanted) }
}

/// How many pods; nothing if the present number is right.
fn replicas(view: &FunctionView, guard: &Guard, cores: f64) -> Option<u32> {
    let standing = view.ready.get() + view.starting.get();
    // Nothing is known about a workload at zero; its first request starts it.
    if standing == 0 || cores <= 0.0 {
        return None;
    }
    let fill = 0.5 + 0.004 * f64::from(guard.goals.cost_weight_percent.min(100));
    let has_goal = guard.goals.latency.is_some() || guard.goals.throughput.is_some();
    if guard.wakes_itself && !(has_goal && view.mean_concurrency > 0.0) {
        // Its own autoscaler follows the requests, and the last pod may go when there are none.
        return (guard.floor != guard.replicas.0).then_some(guard.replicas.0);
    }
    let demand = view.cpu_used_cores.max(cores_for_throughput(view, guard));
    let wanted = (demand / (cores * fill)).ceil().max(1.0);
    let wanted = match pressure(guard) {
        // Above the goal: more pods by the ratio, at most twice as many, once those that start are there.
        Some(ratio) if ratio > 1.0 && view.starting.get() == 0 => {
            wanted.max((f64::from(standing) * ratio.min(2.0)).ceil())
        }
        // Near the goal, or starting: nothing is taken away.
        Some(ratio) if ratio > 0.9 => wanted.max(f64::from(standing)),
        Some(_) | None => wanted,
    };
    let wanted = wanted.min(f64::from(u32::MAX)) as u32;
    // One pod less is within the noise of a small workload; two in three is not.
    let is_less = wanted < standing && f64::from(wanted) <= 0.9 * f64::from(standing);
    (wanted > standing || is_less).then_some(wanted)
}

/// Cores for the throughput that must be possible, by what one request costs now.
fn cores_for_throughput(view: &FunctionView, guard: &Guard) -> f64 {
    match (&guard.goals.throughput, guard.per_second) {
        (Some(goal), Some(now)) if now >= 1.0 => {
            view.cpu_used_cores / now * f64::from(goal.requests_per_second)
        }
        _ => 0.0,
    }
}

/// Latency by its goal; above 1 it is missed.
fn pressure(guard: &Guard) -> Option<f64> {
    let goal = guard.goals.latency.as_ref()?;
    Some(guard.latency?.as_millis_f64() / f64::from(goal.milliseconds.max(1)))
}

fn why(view: &FunctionView, guard: &Guard) -> String {
    let used = format!(
        "{:.2} cores and a peak of {:.0} MiB on {} pods",
        view.cpu_used_cores,
        view.memory_peak_mib,
        view.ready.get()
    );
    match (pressure(guard), &guard.goals.latency) {
        (Some(ratio), Some(goal)) => format!(
            "{used}; p{} at {:.0} % of its goal of {} ms",
            goal.percentile,
            ratio * 100.0,
            goal.milliseconds
        ),
        _ => used,
    }
}

impl Policy for Multidimensional {
    fn name(&self) -> &str {
        crate::policies::WINDFALL
    }

    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError> {
        let guards = Arc::clone(&self.guards);
        let guards = lock(&guards);
        let unknown = Guard::default();
        let targets: Vec<Target> = seen
            .functions
            .iter()
            .filter_map(|view| self.target(view, guards.get(view.function).unwrap_or(&unknown)))
            .collect();
        let reason = match targets.len() {
            0 => "every workload fits its use".to_owned(),
            count => format!("{count} workloads do not fit their use"),
        };
        Ok(Decision { targets, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource_policy::{Goals, LatencyGoal};
    use windfall_core::{Allocation, Duration, Instances, Timestamp};

    fn view(pods: u32, cores: f64, mib: f64) -> FunctionView {
        let samples = windfall_core::conformance::observations();
        let mut functions = samples.into_iter().flat_map(|seen| seen.functions);
        let mut view = functions.next().expect("a sample with functions");
        view.function = FunctionId(0);
        view.reservation = Allocation::new(500, 256);
        view.allocation = view.reservation;
        view.ready = Instances::new(pods);
        view.starting = Instances::ZERO;
        view.busy = Instances::new(pods);
        view.cpu_used_cores = cores;
        view.memory_peak_mib = mib;
        view
    }

    fn decided(view: &FunctionView, guard: Guard, ticks: u32) -> Option<Target> {
        let guards: Arc<Mutex<Guards>> = Arc::default();
        lock(&guards).set(FunctionId(0), guard);
        let mut policy = Multidimensional::new(guards);
        let seen = Observation {
            now: Timestamp::from_secs(1),
            functions: vec![view.clone()],
            ..Observation::default()
        };
        let mut last = None;
        for _ in 0..ticks {
            last = policy.decide(&seen).unwrap().targets.pop();
        }
        last
    }

    fn goal(weight: u32, latency: Option<(u32, u64)>) -> Guard {
        let limit = latency.map(|(goal, _)| LatencyGoal {
            percentile: 95,
            milliseconds: goal,
            query: None,
        });
        Guard {
            goals: Goals { latency: limit, cost_weight_percent: weight, ..Goals::default() },
            latency: latency.map(|(_, seen)| Duration::from_millis(seen)),
            ..Guard::default()
        }
    }

    #[test]
    fn the_worked_number_of_pods_holds() {
        let target = decided(&view(2, 1.4, 100.0), goal(50, None), 1).unwrap();
        assert_eq!(target.instances, Setting::Set(4.0));
        assert!(target.cpu_cores.is_keep(), "one sample says nothing about a size");
    }

    #[test]
    fn sizes_follow_what_pods_use_with_a_margin() {
        let target = decided(&view(4, 0.4, 60.0), goal(50, None), 10).unwrap();
        assert!(matches!(target.cpu_cores, Setting::Set(cores) if (cores - 0.115).abs() < 1e-6));
        assert!(matches!(target.memory_mib, Setting::Set(mib) if (mib - 69.0).abs() < 1e-6));
    }

    #[test]
    fn a_missed_latency_adds_pods_by_the_ratio_and_at_most_doubles() {
        let slow =
            |seen| decided(&view(4, 0.2, 60.0), goal(50, Some((100, seen))), 1).unwrap().instances;
        assert_eq!((slow(150), slow(900)), (Setting::Set(6.0), Setting::Set(8.0)));
        let near = decided(&view(4, 0.2, 60.0), goal(50, Some((100, 95))), 1);
        assert!(
            near.is_none_or(|target| target.instances.is_keep()),
            "nothing is taken away near the goal"
        );
    }

    /// On Knative: pods of at most 400m, so many requests in flight.
    fn on_knative(in_flight: f64, cores: f64, mib: f64, guard: Guard) -> Option<Target> {
        let mut view = view(2, cores, mib);
        view.mean_concurrency = in_flight;
        view.concurrency = 100;
        let guard = Guard { wakes_itself: true, cpu_limit: Some(0.4), ..guard };
        decided(&view, guard, 10)
    }

    #[test]
    fn on_knative_a_pod_holds_as_many_requests_as_fill_its_cpu_or_memory() {
        let target = on_knative(10.0, 0.2, 100.0, goal(50, None)).unwrap();
        assert_eq!(target.concurrency, Setting::Set(20.0), "0.4 cores at 20m each");
        assert!(target.instances.is_keep(), "how many pods that makes is left to Knative");
        let unknown = on_knative(0.0, 0.0, 100.0, goal(50, None));
        assert!(unknown.is_none_or(|target| target.concurrency.is_keep()));
    }

    #[test]
    fn on_knative_a_floor_is_set_for_a_goal_only_and_taken_back_without_requests() {
        let late = Guard { floor: 0, ..goal(50, Some((100, 150))) };
        let target = on_knative(10.0, 0.2, 100.0, late.clone()).unwrap();
        assert_eq!(target.instances, Setting::Set(3.0));
        let idle = on_knative(0.0, 0.0, 100.0, Guard { floor: 3, ..late }).unwrap();
        assert_eq!(idle.instances, Setting::Set(0.0));
    }

    #[test]
    fn a_workload_at_zero_is_left_to_its_first_request() {
        assert!(decided(&view(0, 0.0, 0.0), goal(50, None), 20).is_none());
    }
}
