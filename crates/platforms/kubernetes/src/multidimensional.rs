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
}

impl Default for History {
    fn default() -> Self {
        Self { cpu: QuantileWindow::new(WINDOW), memory: QuantileWindow::new(WINDOW) }
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
            why: why(view, guard),
            ..Target::keep(view.function)
        };
        let changes = !(target.cpu_cores.is_keep()
            && target.memory_mib.is_keep()
            && target.instances.is_keep());
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

    #[test]
    fn a_workload_at_zero_is_left_to_its_first_request() {
        assert!(decided(&view(0, 0.0, 0.0), goal(50, None), 20).is_none());
    }
}
