//! What a manager does about demand that changes and about a policy that is worse than the one in charge.

use windfall_core::{
    Allocation, CallCapabilities, CallClose, CallControl, CallId, CallOutcome, CallView, Duration,
    FunctionId, NodeId, Room, Timestamp,
};
use windfall_registry::PolicySettings;
use windfall_scenario::Scenario;
use windfall_trace::{AzureLikeSettings, Source};

use super::*;
use crate::database::Records;
use crate::governance::Mode;
use crate::learning::Fate;
use crate::orders::Command;
use crate::simulated::{SimulatedPlatform, SimulatedWorld};

const OWN: Allocation = Allocation::new(2000, 512);

/// One call of a function that uses `cores` of what it is given; what it was given.
fn call(calls: &mut impl CallControl, id: u64, cores: f64) -> f64 {
    let now = Timestamp::from_secs(id);
    let view = CallView {
        id: CallId(id),
        function: FunctionId(0),
        now,
        arrived_at: now,
        input: None,
        reservation: OWN,
        ceiling: Allocation::new(8000, 4096),
        free_in_cluster: Room { cores: 8.0, mib: 4096.0 },
        waiting: 0,
        capabilities: CallCapabilities {
            cpu_weight: false,
            cpu_ceiling: true,
            cpu_live: false,
            memory_live: false,
        },
        foresight: None,
    };
    let plan = calls.size(&view);
    let start = calls.start(&view, &plan, NodeId(0), Allocation::new(8000, 4096));
    let given = start.grant.cpu.cores();
    let used = cores.min(given);
    let ended_at = now + Duration::from_secs_f64(0.5 * cores / used);
    let outcome = CallOutcome {
        id: view.id,
        function: view.function,
        node: NodeId(0),
        input: None,
        reservation: OWN,
        first_grant: start.grant,
        last_grant: start.grant,
        arrived_at: now,
        started_at: now,
        ended_at,
        was_killed: false,
        cpu_peak_cores: used,
        memory_peak_mib: 128.0,
        cpu_mean_cores: used,
        throttled: Duration::from_secs_f64(0.5 * (cores / used - 1.0)),
        delayed: Duration::from_secs_f64(0.0),
    };
    calls.close(CallClose::Measured(&outcome), &mut Vec::new());
    given
}

/// One call a second: five minutes with little demand, then with much, then with little again.
#[test]
fn demand_that_changes_at_minute_five_is_followed() {
    let settings = SupervisorSettings { mode: Mode::Auto, ..SupervisorSettings::default() };
    let (_, parts) = prepare(settings).unwrap();
    let mut calls = parts.calls;
    let mut given = Vec::new();
    for id in 0..600 {
        let cores = if id < 300 { 0.3 } else { 1.6 };
        given.push(call(&mut calls, id, cores));
    }
    let mean = |range: std::ops::Range<usize>| {
        given[range.clone()].iter().sum::<f64>() / range.len() as f64
    };
    let (before, after) = (mean(240..300), mean(360..600));
    assert!(before < 1.0, "a function that uses 0.3 cores holds {before} of its 2");
    assert!(after >= 1.5, "a minute after its demand rose to 1.6 cores it holds {after}");
}

/// A manager of a busy simulated cluster, in virtual time.
fn busy() -> Supervisor {
    let settings = SupervisorSettings {
        policy: "fixed".to_owned(),
        mode: Mode::Auto,
        tick: Duration::from_secs(2),
        ..SupervisorSettings::default()
    };
    let (prepared, parts) = prepare(settings).unwrap();
    let generator = AzureLikeSettings {
        functions: 10,
        calls_per_hour: 36_000.0,
        without_sleepers: true,
        ..AzureLikeSettings::default()
    };
    let scenario =
        Scenario { trace: Source::AzureLike(generator), loads: vec![0.3], ..Scenario::default() };
    let world = SimulatedWorld { scenario, seed: 3, speed: 1.0 };
    let platform = SimulatedPlatform::start(&world, parts.calls, parts.needs).unwrap();
    Supervisor::new(prepared, Box::new(platform), Records::nowhere())
}

/// The smallest of the peaks there were instead of nearly the largest.
fn starving() -> PolicySettings {
    let table = "quantile = 0.01\nwarm_calls = 1\ncpu_margin = 0.0\nmemory_margin = 4.0\n";
    PolicySettings::from([("histogram".to_owned(), table.parse().unwrap())])
}

#[test]
fn a_policy_that_starves_calls_is_refused_and_stays_out_of_charge() {
    let mut manager = busy();
    for second in 1..=300 {
        manager.step(Timestamp::from_secs(second));
    }
    let offer = Command::Policy {
        name: "histogram".to_owned(),
        settings: starving(),
        force: false,
        origin: "user",
    };
    let refused = manager.carry_out(Timestamp::from_secs(300), &offer, "story");
    assert!(refused.is_err_and(|why| why.contains("the check refused it")), "it is refused");
    let live = manager.live();
    let live = live.read().unwrap();
    assert_eq!(live.policy, "fixed");
    let fates: Vec<Fate> = live.learning.versions.iter().map(|version| version.fate).collect();
    assert_eq!(fates, [Fate::InCharge, Fate::Refused]);
    let is_shown = live.tape.entries().any(|entry| entry.done.starts_with("refused: "));
    assert!(is_shown, "the tape has the reason");
}
