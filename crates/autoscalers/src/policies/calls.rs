//! Tests of the policies with per-call sizing: conformance, and one worked number each.

use windfall_core::conformance::call_policy_suite;
use windfall_core::{
    Allocation, CallCapabilities, CallId, CallOutcome, CallPolicy, CallView, Duration, FunctionId,
    NodeId, Room, Timestamp,
};

use super::{AutopilotForCalls, VpaForCalls};
use crate::vpa::{RecommenderSettings, UpdateMode, UpdatePolicy, VpaSettings};

const USER: Allocation = Allocation::new(2000, 512);

fn call(second: u64) -> CallView {
    CallView {
        id: CallId(second),
        function: FunctionId(0),
        now: Timestamp::from_secs(second),
        arrived_at: Timestamp::from_secs(second),
        input: None,
        reservation: USER,
        ceiling: Allocation::new(8000, 4096),
        free_in_cluster: Room { cores: 16.0, mib: 65_536.0 },
        waiting: 0,
        capabilities: CallCapabilities::QUOTA,
        foresight: None,
    }
}

/// A call of a second that ends at `second`.
fn outcome(second: u64, cpu_mean_cores: f64, memory_peak_mib: f64) -> CallOutcome {
    CallOutcome {
        id: CallId(second),
        function: FunctionId(0),
        node: NodeId(0),
        input: None,
        reservation: USER,
        first_grant: USER,
        last_grant: USER,
        arrived_at: Timestamp::from_secs(second - 1),
        started_at: Timestamp::from_secs(second - 1),
        ended_at: Timestamp::from_secs(second),
        was_killed: false,
        cpu_peak_cores: cpu_mean_cores,
        memory_peak_mib,
        cpu_mean_cores,
        throttled: Duration::ZERO,
        delayed: Duration::ZERO,
    }
}

fn size(policy: &mut dyn CallPolicy, second: u64) -> (f64, f64) {
    let decision = policy.size(&call(second)).unwrap();
    (decision.cpu_cores, decision.memory_mib)
}

#[test]
fn every_call_policy_conforms() {
    call_policy_suite(&|| Box::new(VpaForCalls::default()));
    call_policy_suite(&|| Box::new(AutopilotForCalls::default()));
}

#[test]
fn vpa_gives_a_call_the_last_target_of_its_function() {
    let mut vpa = VpaForCalls::default();
    assert_eq!(size(&mut vpa, 1), (2.0, 512.0));
    for second in 2..12 {
        vpa.learn(&outcome(second, 0.4, 100.0));
    }
    assert_eq!(size(&mut vpa, 12), (0.476, 250.0));
    // Heavier calls have an effect from the next round of the recommender on.
    for second in 12..52 {
        vpa.learn(&outcome(second, 1.5, 100.0));
    }
    assert_eq!(size(&mut vpa, 60), (0.476, 250.0));
    assert!(size(&mut vpa, 72).0 > 1.7);
}

#[test]
fn vpa_raises_memory_after_a_kill() {
    let mut vpa = VpaForCalls::default();
    let killed = CallOutcome {
        was_killed: true,
        last_grant: Allocation::new(2000, 300),
        ..outcome(5, 0.5, 300.0)
    };
    vpa.learn(&killed);
    let (_, memory) = size(&mut vpa, 6);
    // 400 MiB are in a bucket that ends at most 7 % higher; plus 15 %.
    assert!((400.0 * 1.15..400.0 * 1.15 * 1.07).contains(&memory), "{memory}");
}

#[test]
fn vpa_switched_off_only_recommends() {
    let update = UpdatePolicy { mode: UpdateMode::Off, ..UpdatePolicy::default() };
    let settings = VpaSettings { update, ..VpaSettings::default() };
    let mut vpa = VpaForCalls::new(RecommenderSettings::default(), settings);
    vpa.learn(&outcome(2, 0.4, 100.0));
    assert_eq!(size(&mut vpa, 100), (2.0, 512.0));
}

#[test]
fn autopilot_sizes_calls_after_the_first_window() {
    let mut autopilot = AutopilotForCalls::default();
    assert_eq!(size(&mut autopilot, 0), (2.0, 512.0));
    for second in 1..300 {
        autopilot.learn(&outcome(second, 0.4, 100.0));
    }
    assert_eq!(size(&mut autopilot, 299), (2.0, 512.0));
    let (cpu, memory) = size(&mut autopilot, 300);
    assert!((0.46..0.46 * 1.03).contains(&cpu), "{cpu}");
    assert!((115.0..115.0 * 1.03).contains(&memory), "{memory}");
}
