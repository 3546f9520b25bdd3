//! Tests of the tick policies: conformance, and one worked number each.

use windfall_core::conformance::policy_suite;
use windfall_core::{
    Allocation, ClusterView, Decision, Duration, FunctionId, FunctionView, Instances, Observation,
    Policy, Setting, TickRecord, Timestamp,
};

use super::{Autopilot, AutopilotKind, Hpa, Kpa, Vpa};
use crate::autopilot::{EnsembleSettings, WindowSettings};
use crate::hpa::{ControllerSettings, MetricSpec, MetricTarget, Resource, Source, Spec};

#[test]
fn every_policy_conforms() {
    policy_suite(&|| Box::new(Kpa::default()));
    policy_suite(&|| Box::new(Hpa::default()));
    policy_suite(&|| Box::new(Vpa::default()));
    policy_suite(&|| Box::new(Autopilot::default()));
    let ensemble =
        AutopilotKind::Ensemble(EnsembleSettings::default(), EnsembleSettings::default());
    policy_suite(&move || Box::new(Autopilot::new(ensemble.clone(), 10)));
}

/// One function with `ready` instances of one core and 512 MiB.
fn view(ready: u32, in_system: f64, cpu_used_cores: f64) -> FunctionView {
    FunctionView {
        function: FunctionId(0),
        reservation: Allocation::new(1000, 512),
        allocation: Allocation::new(1000, 512),
        kept: None,
        start_cpu: None,
        concurrency: 10,
        ready: Instances::new(ready),
        busy: Instances::new(ready),
        starting: Instances::ZERO,
        in_flight: in_system as u32,
        queued: 0,
        mean_concurrency: in_system,
        arrivals: 10,
        completions: 10,
        cold_starts: 0,
        mean_run: None,
        mean_wait: None,
        cpu_used_cores,
        memory_peak_mib: 100.0,
        cold_start: Duration::from_millis(500),
        presence: Vec::new(),
    }
}

fn tick(policy: &mut dyn Policy, second: u64, taken: u64, view: FunctionView) -> Decision {
    let observation = Observation {
        now: Timestamp::from_secs(second),
        taken_at: Timestamp::from_secs(taken),
        window: Duration::from_secs(10),
        cluster: ClusterView::default(),
        functions: vec![view],
        settled: Vec::new(),
    };
    policy.decide(&observation).unwrap()
}

fn instances(decision: &Decision) -> Option<f64> {
    decision.targets.first().and_then(|target| target.instances.value())
}

#[test]
fn kpa_targets_what_the_load_needs() {
    let mut kpa = Kpa::default();
    // Ten calls per instance at 70 %: target 7, so 35 calls need five instances.
    tick(&mut kpa, 10, 10, view(1, 35.0, 1.0));
    assert_eq!(instances(&tick(&mut kpa, 20, 20, view(1, 35.0, 1.0))), Some(5.0));
}

#[test]
fn kpa_changes_nothing_without_telemetry() {
    let mut kpa = Kpa::default();
    tick(&mut kpa, 10, 10, view(1, 35.0, 1.0));
    assert_eq!(instances(&tick(&mut kpa, 100, 10, view(1, 35.0, 1.0))), None);
}

#[test]
fn hpa_follows_utilisation() {
    let metrics = vec![MetricSpec {
        source: Source::Resource(Resource::Cpu),
        target: MetricTarget::Utilization(50),
    }];
    let spec = Spec { min_replicas: 1, max_replicas: 100, metrics, behavior: None };
    let mut hpa = Hpa::new(ControllerSettings::default(), spec, 15_000);
    assert_eq!(instances(&tick(&mut hpa, 0, 0, view(4, 4.0, 3.6))), Some(8.0));
    // Not before the next sync.
    assert_eq!(instances(&tick(&mut hpa, 10, 10, view(8, 4.0, 7.9))), None);
    assert_eq!(instances(&tick(&mut hpa, 15, 15, view(8, 4.0, 7.2))), Some(15.0));
}

#[test]
fn hpa_continues_from_the_accepted_plan() {
    let mut hpa = Hpa::default();
    let decision = tick(&mut hpa, 0, 0, view(4, 4.0, 4.0));
    assert_eq!(instances(&decision), Some(5.0));
    // The plan is empty, so the next sync starts from 4 again.
    let observation = Observation { functions: vec![view(4, 4.0, 4.0)], ..Observation::default() };
    hpa.feedback(&TickRecord { observation, decision, ..TickRecord::default() });
    assert_eq!(instances(&tick(&mut hpa, 15, 15, view(4, 4.0, 4.0))), Some(5.0));
}

#[test]
fn vpa_sets_the_target_when_the_size_is_outside_its_bounds() {
    let mut vpa = Vpa::default();
    let mut last = Decision::default();
    for minute in 0..3000 {
        let at = minute * 60;
        let decision = tick(&mut vpa, at, at, view(2, 2.0, 0.22));
        if !decision.targets.is_empty() {
            last = decision;
            break;
        }
    }
    // 110 millicores are in the bucket that ends at 110.3; plus 15 % is 126.
    let target = last.targets.first().unwrap();
    assert_eq!(target.cpu_cores, Setting::Set(0.126));
    assert_eq!(target.memory_mib, Setting::Set(250.0));
    assert_eq!(target.instances, Setting::Keep);
}

#[test]
fn autopilot_decides_once_per_window() {
    let kind = AutopilotKind::Window(WindowSettings::serving_cpu(), WindowSettings::memory());
    let mut autopilot = Autopilot::new(kind, 300);
    for second in (0..300).step_by(10) {
        assert!(tick(&mut autopilot, second, second, view(2, 2.0, 0.8)).targets.is_empty());
    }
    let decision = tick(&mut autopilot, 300, 300, view(2, 2.0, 0.8));
    let cores = decision.targets.first().and_then(|target| target.cpu_cores.value()).unwrap();
    assert!((0.46..0.46 * 1.03).contains(&cores), "{cores}");
}
