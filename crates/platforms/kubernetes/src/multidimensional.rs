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
//! A pod should hold as many as fill its CPU or its memory:
//!
//! ```text
//!   by CPU     fill · limit · shortest run / work      work: CPU-seconds of all requests seen / their number
//!   by memory  four fifths of (limit - least seen) / memory of one request
//! ```
//!
//! Knative fills its target by 70 % only, so the target is that number by 0.7, and at least 1. *Worked:* at fill 0.7 and a limit of
//! 400m, requests of 20 ms CPU that run 21 ms when they are alone fill a pod by 0.29: the target is 1. Requests of 2 ms CPU that
//! sleep 300 ms run 302 ms: 42 fill a pod, the target is 60.
//!
//! Two other rules were tried on a cluster and lost. What a request in flight takes *now* is next to nothing where pods have
//! no CPU left and hundreds wait in them. A queue that serves all requests at once (M/M/1-PS) has 2.3 in flight at fill 0.7;
//! under a CPU quota requests run at full speed until it is used up, so few in flight are no sign of room, and Knative took
//! pods away until the last one was overloaded.

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
/// Measurements that a number of requests per pod looks back on.
const CALLS_WINDOW: usize = 12;
/// Of these, before the first decision. Their work is a mean over all that was seen, so few are enough.
const CALLS_ENOUGH: usize = 4;
/// What a measurement of work still weighs at the next one. CPU is measured some seconds later than requests, so only sums over
/// a change of load are worth something.
const WORK_KEPT: f64 = 0.98;
/// The quantile of mean durations that stands for a pod without a crowd.
const SHORTEST: f64 = 0.05;
/// How full Knative keeps its target unless its user says otherwise.
const KNATIVE_FILL: f64 = 0.7;
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
    /// Mean durations of requests, seconds.
    runs: QuantileWindow,
    /// Sums of cores and of requests per second.
    work: (f64, f64),
    /// Requests that one pod should hold, by each of the last measurements.
    calls: QuantileWindow,
    /// MiB of a pod that holds so many.
    full_pod_mib: f64,
}

impl Default for History {
    fn default() -> Self {
        Self {
            cpu: QuantileWindow::new(WINDOW),
            memory: QuantileWindow::new(WINDOW),
            runs: QuantileWindow::new(WINDOW),
            work: (0.0, 0.0),
            calls: QuantileWindow::new(CALLS_WINDOW),
            full_pod_mib: 0.0,
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
        let size = history.size(view).map(|size| within(guard, size));
        let cores = size.map_or(view.allocation.cpu.cores(), |(cores, _)| cores);
        if let Some(calls) = history.calls_that_fill(view, guard, cores) {
            history.calls.push(calls);
        }
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
        let peak = self.memory.quantile(1.0)?.max(view.memory_peak_mib).max(self.full_pod_mib);
        let (seen, users) = (peak * MARGIN, view.reservation.memory.mib());
        // Too little CPU slows a pod down and too little memory ends it, so memory is taken away as slowly as peaks show.
        let known = (self.memory.len() as f64 / WINDOW as f64).min(1.0);
        let mib = if seen < users { users - (users - seen) * known } else { seen };
        Some((cores.max(0.01), mib.max(16.0)))
    }
}

impl History {
    /// Requests that fill one pod of `cores`; nothing where that cannot be said.
    fn calls_that_fill(&mut self, view: &FunctionView, guard: &Guard, cores: f64) -> Option<f64> {
        let per_second = guard.per_second.filter(|rate| *rate > 0.0 && guard.wakes_itself)?;
        let pods = f64::from(view.ready.get());
        if pods == 0.0 {
            return None;
        }
        self.runs.push(view.mean_run?.as_secs_f64());
        let (cpu, requests) = self.work;
        self.work = (cpu * WORK_KEPT + view.cpu_used_cores, requests * WORK_KEPT + per_second);
        let by_cpu = self.calls_by_cpu(fill(guard), limit_at(view, guard, cores))?;
        let idle = self.memory.quantile(0.0)?;
        let of_one =
            (view.memory_peak_mib - idle).max(0.0) / (view.mean_concurrency / pods).max(1.0);
        let room = (view.reservation.memory.mib() - idle).max(0.0) * MEMORY_FILL;
        let by_memory = if of_one > 0.1 { room / of_one } else { MOST_CALLS };
        let calls = by_cpu.min(by_memory).clamp(1.0, MOST_CALLS);
        self.full_pod_mib = (idle + of_one * calls).min(view.reservation.memory.mib());
        Some(calls)
    }

    /// The target with which Knative fills `fill` of a pod's CPU.
    fn calls_by_cpu(&self, fill: f64, limit: f64) -> Option<f64> {
        let (cpu, requests) = self.work;
        let work = (cpu / requests).max(1e-5);
        Some(fill * limit * self.runs.quantile(SHORTEST)? / work / KNATIVE_FILL)
    }

    /// The number to set, if it is known and another one than now.
    fn calls(&self, view: &FunctionView) -> Setting<f64> {
        let known = self.calls.quantile(0.5).filter(|_| self.calls.len() >= CALLS_ENOUGH);
        let now = f64::from(view.concurrency);
        match known.map(f64::floor) {
            Some(calls) if (calls - now).abs() > CALLS_TOLERANCE * now => Setting::Set(calls),
            Some(_) | None => Setting::Keep,
        }
    }
}

/// How full pods may be on average.
fn fill(guard: &Guard) -> f64 {
    0.5 + 0.004 * f64::from(guard.goals.cost_weight_percent.min(100))
}

/// A size within what the user wrote. A size that is outside would otherwise stay there while it is close to what is wanted.
fn within(guard: &Guard, (cores, mib): (f64, f64)) -> (f64, f64) {
    let (least, most) = (guard.least, guard.most);
    let cores = cores.max(least.cpu.cores()).min(most.cpu.cores());
    (cores, mib.max(least.memory.mib()).min(most.memory.mib()))
}

/// The most CPU of a pod of `cores`, in its user's ratio of request to limit.
fn limit_at(view: &FunctionView, guard: &Guard, cores: f64) -> f64 {
    let users = view.reservation.cpu.cores();
    guard.cpu_limit.map_or(cores, |limit| limit * cores / users.max(1e-3))
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
    let has_goal = guard.goals.latency.is_some() || guard.goals.throughput.is_some();
    if guard.wakes_itself && !(has_goal && view.mean_concurrency > 0.0) {
        // Its own autoscaler follows the requests, and the last pod may go when there are none.
        return (guard.floor != guard.replicas.0).then_some(guard.replicas.0);
    }
    let demand = view.cpu_used_cores.max(cores_for_throughput(view, guard));
    let wanted = (demand / (cores * fill(guard))).ceil().max(1.0);
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
        let seen = view(4, 0.4, 60.0);
        let target = |ticks| decided(&seen, goal(50, None), ticks).unwrap();
        assert!(
            matches!(target(10).cpu_cores, Setting::Set(cores) if (cores - 0.115).abs() < 1e-6)
        );
        assert!(target(10).memory_mib.is_keep(), "ten peaks say little about the highest");
        let after = |ticks, wanted: f64| matches!(target(ticks).memory_mib, Setting::Set(mib) if (mib - wanted).abs() < 1e-6);
        assert!(after(120, 162.5), "half of the way from 256 to 69");
        assert!(after(240, 69.0));
        let bound = Guard { most: Allocation::new(500, 64), ..goal(50, None) };
        let bound = decided(&seen, bound, 10).unwrap();
        assert_eq!(bound.memory_mib, Setting::Set(64.0), "what the user allows is not waited for");
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

    /// On Knative: 40 requests a second of so much CPU and time on two pods that may use 400m each.
    fn on_knative(in_flight: f64, work_ms: f64, run_ms: u64, guard: Guard) -> Option<Target> {
        let mut view = view(2, 0.04 * work_ms, 60.0);
        view.reservation = Allocation::new(500, 256);
        view.mean_concurrency = in_flight;
        view.mean_run = Some(Duration::from_millis(run_ms));
        view.concurrency = 100;
        let per_second = (in_flight > 0.0).then_some(40.0);
        let guard = Guard { wakes_itself: true, cpu_limit: Some(0.4), per_second, ..guard };
        decided(&view, guard, 5)
    }

    #[test]
    fn on_knative_a_pod_holds_as_many_requests_as_fill_its_cpu() {
        let busy = on_knative(1.0, 20.0, 21, goal(50, None)).unwrap();
        assert_eq!(busy.concurrency, Setting::Set(1.0), "the worked example");
        assert!(busy.instances.is_keep(), "how many pods that makes is left to Knative");
        let waiting = on_knative(12.0, 2.0, 302, goal(50, None)).unwrap();
        assert_eq!(waiting.concurrency, Setting::Set(60.0), "the worked example");
        let unknown = on_knative(0.0, 0.0, 21, goal(50, None));
        assert!(unknown.is_none_or(|target| target.concurrency.is_keep()));
    }

    #[test]
    fn on_knative_requests_that_crowd_a_pod_do_not_pass_for_cheap_ones() {
        let guards: Arc<Mutex<Guards>> = Arc::default();
        let guard = Guard {
            wakes_itself: true,
            cpu_limit: Some(0.4),
            per_second: Some(20.0),
            ..goal(50, None)
        };
        lock(&guards).set(FunctionId(0), guard);
        let mut policy = Multidimensional::new(guards);
        let mut tick = |in_flight: f64, run_ms: u64| {
            let mut view = view(1, 0.4, 60.0);
            (view.mean_concurrency, view.concurrency) = (in_flight, 100);
            view.mean_run = Some(Duration::from_millis(run_ms));
            let seen = Observation { functions: vec![view], ..Observation::default() };
            policy.decide(&seen).unwrap().targets.pop()
        };
        tick(0.5, 25);
        let crowded: Vec<_> = (0..6).filter_map(|_| tick(80.0, 4000)).collect();
        assert_eq!(crowded.last().unwrap().concurrency, Setting::Set(1.0));
    }

    #[test]
    fn on_knative_a_pod_holds_as_many_requests_as_its_memory_does() {
        let mut history = History::default();
        let mut view = view(1, 0.02, 10.0);
        (view.mean_concurrency, view.mean_run) = (2.0, Some(Duration::from_millis(300)));
        let guard = Guard {
            wakes_itself: true,
            cpu_limit: Some(0.5),
            per_second: Some(10.0),
            ..goal(50, None)
        };
        history.memory.push(view.memory_peak_mib);
        view.memory_peak_mib = 74.0;
        // Two requests hold 64 MiB above the 10 of an idle pod; 0.8 · 246 MiB have room for 6.15 of 32.
        let calls = history.calls_that_fill(&view, &guard, 0.5).unwrap();
        assert!((calls - 6.15).abs() < 1e-9, "{calls}");
    }

    #[test]
    fn on_knative_a_floor_is_set_for_a_goal_only_and_taken_back_without_requests() {
        let late = Guard { floor: 0, ..goal(50, Some((100, 150))) };
        let target = on_knative(10.0, 5.0, 21, late.clone()).unwrap();
        assert_eq!(target.instances, Setting::Set(3.0));
        let idle = on_knative(0.0, 0.0, 21, Guard { floor: 3, ..late }).unwrap();
        assert_eq!(idle.instances, Setting::Set(0.0));
    }

    #[test]
    fn a_workload_at_zero_is_left_to_its_first_request() {
        assert!(decided(&view(0, 0.0, 0.0), goal(50, None), 20).is_none());
    }
}
