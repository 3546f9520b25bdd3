//! What a manager does about demand that changes and about a policy that is worse than the one in charge.

use windfall_core::{
    Allocation, CallCapabilities, CallClose, CallControl, CallId, CallOutcome, CallView, Duration,
    FunctionId, NodeId, NodeOffer, Room, Timestamp,
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

fn view(id: u64) -> CallView {
    let now = Timestamp::from_secs(id);
    CallView {
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
    }
}

/// One call of a function that uses `cores` of what it is given; what it was given.
fn call(calls: &mut impl CallControl, id: u64, cores: f64) -> f64 {
    let view = view(id);
    let now = view.now;
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
    busy_with(busy_settings("fixed"))
}

fn busy_settings(policy: &str) -> SupervisorSettings {
    SupervisorSettings {
        policy: policy.to_owned(),
        mode: Mode::Auto,
        tick: Duration::from_secs(2),
        ..SupervisorSettings::default()
    }
}

fn busy_with(settings: SupervisorSettings) -> Supervisor {
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
    let platform = SimulatedPlatform::start(&world, parts).unwrap();
    Supervisor::new(prepared, Box::new(platform), Records::nowhere())
}

/// A twentieth of the smallest peak there was instead of nearly the largest.
fn starving() -> PolicySettings {
    let table = "quantile = 0.01\nwarm_calls = 1\ncpu_margin = -0.95\nmemory_margin = 4.0\n";
    PolicySettings::from([("histogram".to_owned(), table.parse().unwrap())])
}

#[test]
fn a_policy_that_starves_calls_is_refused_and_stays_out_of_charge() {
    let mut manager = busy();
    pass(&mut manager, 1..=300);
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

/// Runs a manager until `second`, one step a second.
fn pass(manager: &mut Supervisor, seconds: std::ops::RangeInclusive<u64>) {
    for second in seconds {
        manager.step(Timestamp::from_secs(second));
    }
}

#[test]
fn a_policy_that_degrades_service_is_rolled_back_within_a_minute_with_the_reason_on_the_tape() {
    let mut manager = busy();
    pass(&mut manager, 1..=600);
    let forced = Command::Policy {
        name: "histogram".to_owned(),
        settings: starving(),
        force: true,
        origin: "user",
    };
    let taken = manager.carry_out(Timestamp::from_secs(600), &forced, "story");
    assert!(taken.is_ok_and(|done| done.contains("forced although the check refused it")));
    pass(&mut manager, 601..=660);
    let live = manager.live();
    let live = live.read().unwrap();
    let totals = &live.totals;
    let versions = &live.learning.versions;
    let fates: Vec<Fate> = versions.iter().map(|version| version.fate).collect();
    assert_eq!(fates, [Fate::Replaced, Fate::RolledBack, Fate::InCharge], "{totals:?}");
    assert_eq!(live.policy, "fixed", "the version before is in charge again");
    let reason = &versions[1].reason;
    assert!(reason.starts_with("service degraded: "), "{reason}");
    let is_shown = live.tape.entries().any(|entry| entry.done == format!("rolled back: {reason}"));
    assert!(is_shown, "the tape has the reason");
    assert!(live.learning.on_trial_until.is_none());
}

/// Weights of FaaSRM's agent whose score falls with the size of a candidate, so that the smallest one always wins.
fn broken_weights(file: &std::path::Path) {
    use windfall_agents::faasrm::{ScoreAgent, sizing};
    let seed = windfall_core::Seed::new(1);
    let mut actor = ScoreAgent::new(seed).actor().clone();
    let mut flat = vec![0.0; actor.parameters().len()];
    for layer in 0..actor.depth() {
        let (inputs, outputs) = actor.layer_shape(layer);
        let mut weight = vec![0.0; inputs * outputs];
        if layer == 0 {
            // The last two features are the candidate's shares of CPU and memory.
            weight[inputs - 2..inputs].fill(-1.0);
        } else {
            weight[0] = 1.0;
        }
        actor.set_layer_of(&mut flat, layer, &weight, &vec![0.0; outputs]);
    }
    actor.parameters_mut().copy_from_slice(&flat);
    let mut checkpoint = sizing::empty_checkpoint(seed, 1, 1, serde_json::json!({}));
    checkpoint.put_network("actor", &actor);
    checkpoint.save(file).unwrap();
}

#[test]
fn a_deliberately_broken_set_of_weights_is_refused_by_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("broken.safetensors");
    broken_weights(&file);
    let mut manager = busy();
    pass(&mut manager, 1..=300);
    let offer = |name: String| Command::Policy {
        name,
        settings: PolicySettings::new(),
        force: false,
        origin: "user",
    };
    let refused =
        manager.carry_out(Timestamp::from_secs(300), &offer(file.display().to_string()), "story");
    let why = refused.expect_err("it would starve calls");
    assert!(why.contains("the check refused it: it would"), "{why}");
    // The agent as it was trained is judged by the same check and is not broken in that way.
    let trained =
        manager.carry_out(Timestamp::from_secs(300), &offer("faasrm".to_owned()), "story");
    assert!(
        trained.as_ref().map_or_else(|why| !why.contains("no numbers"), |_| true),
        "{trained:?}"
    );
    let live = manager.live();
    let live = live.read().unwrap();
    let refused = live.learning.versions.iter().find(|version| version.fate == Fate::Refused);
    assert!(refused.is_some_and(|version| version.reason.starts_with("it would")));
}

#[test]
fn a_policy_that_fills_nodes_in_another_way_has_to_wait_for_a_restart() {
    let mut manager = busy();
    pass(&mut manager, 1..=30);
    let next = Command::Policy {
        name: "windfall-admission".to_owned(),
        settings: PolicySettings::new(),
        force: true,
        origin: "user",
    };
    let why = manager.carry_out(Timestamp::from_secs(30), &next, "story").unwrap_err();
    assert!(why.contains("restart with --policy"), "{why}");
    assert_eq!(manager.live().read().unwrap().policy, "fixed");
}

/// Calls of a function whose use is known are packed; with the kill switch they count with their reservations again.
#[test]
fn the_kill_switch_ends_packing_by_expected_use() {
    let settings = SupervisorSettings {
        mode: Mode::Auto,
        policy: "windfall-admission".to_owned(),
        ..SupervisorSettings::default()
    };
    let (prepared, parts) = prepare(settings).unwrap();
    let mut calls = parts.calls;
    for id in 0..300 {
        call(&mut calls, id, 0.2);
    }
    let packed = taken(&mut calls, 1000);
    prepared.governance.set_killed(true);
    let reserved = taken(&mut calls, 2000);
    assert!(packed > reserved, "{packed} calls, {reserved} with the kill switch");
    assert_eq!(reserved, 4, "8 cores, 2 reserved by each call");
}

/// How many calls an empty node of 8 cores takes.
fn taken(calls: &mut impl CallControl, first: u64) -> u64 {
    let offer = NodeOffer { node: NodeId(0), cores: 8.0, over_commit: 1.0 };
    let begun: Vec<u64> = (first..first + 100)
        .take_while(|&id| {
            let view = view(id);
            let plan = calls.size(&view);
            let fits = calls.admit(&view, &plan, &offer).is_some();
            if fits {
                calls.start(&view, &plan, NodeId(0), OWN);
            }
            fits
        })
        .collect();
    for id in first..=first + begun.len() as u64 {
        let end = CallClose::Lost { call: CallId(id), node: NodeId(0) };
        calls.close(end, &mut Vec::new());
    }
    begun.len() as u64
}

#[test]
fn a_user_can_return_to_the_version_before() {
    let mut manager = busy();
    pass(&mut manager, 1..=300);
    let now = Timestamp::from_secs(300);
    assert!(manager.carry_out(now, &Command::RollBack, "story").is_err(), "there is none");
    let next = Command::Policy {
        name: "histogram".to_owned(),
        settings: PolicySettings::new(),
        force: true,
        origin: "user",
    };
    manager.carry_out(now, &next, "story").unwrap();
    let back = manager.carry_out(now, &Command::RollBack, "story").unwrap();
    assert_eq!(back, "fixed is in charge again");
    let live = manager.live();
    let live = live.read().unwrap();
    assert_eq!((live.policy.as_str(), live.learning.on_trial_until), ("fixed", None));
}

#[test]
fn what_the_learner_offers_was_checked_and_is_on_trial() {
    let mut manager = busy_with(busy_settings("windfall"));
    let slot = manager.slot();
    let mut learner = crate::learning::Learner::new(manager.desk(), manager.live(), slot, 5);
    let live = manager.live();
    let offered = || live.read().unwrap().learning.versions.len() > 1;
    let mut second = 300;
    pass(&mut manager, 1..=second);
    for _ in 0..30 {
        let now = Timestamp::from_secs(second);
        std::thread::scope(|scope| {
            let round = scope.spawn(|| learner.step(now));
            // The learner waits for the loop's answer, as it does in its own thread.
            while !round.is_finished() {
                manager.step(now);
                std::thread::yield_now();
            }
        });
        if offered() {
            break;
        }
        pass(&mut manager, second + 1..=second + 20);
        second += 20;
    }
    let live = live.read().unwrap();
    assert!(live.learning.tried > 0, "candidates were tried on recent calls");
    let version = live.learning.versions.back().unwrap();
    assert_eq!((version.origin, version.fate), ("learner", Fate::InCharge), "{version:?}");
    assert!(version.score.is_some_and(|score| score.nonsense == 0), "{version:?}");
    assert!(live.learning.on_trial_until.is_some_and(|until| until > second as f64));
}
