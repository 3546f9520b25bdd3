//! The agent with everything but processes: sockets, threads and time are real.

mod thread_machine;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration as Time;

use serde_json::json;
use windfall_control::CallLoop;
use windfall_core::conformance::{CallTally, call_platform_suite, platform_suite};
use windfall_core::{
    Allocation, CallControl, CallDecision, CallPolicy, CallSafeguardChain, CallView, Duration,
    Platform, PolicyError,
};
use windfall_openwhisk::{Outcome, StartKind};

use super::AgentSettings;
use crate::platform::EmbeddedPlatform;
use crate::pool::SizedBy;
use crate::trial::{Elsewhere, Rig};
use thread_machine::ThreadMachine;

const NODE: Allocation = Allocation::new(2000, 1024);
const HALF: Allocation = Allocation::new(500, 256);
/// Longer than a call takes on the busiest machine.
const LONG: Time = Time::from_secs(60);

/// Gives every call the same, after having thought about it for so long.
struct Constant {
    grant: Option<Allocation>,
    thinks: Time,
}

impl CallPolicy for Constant {
    fn name(&self) -> &str {
        "constant"
    }
    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        std::thread::sleep(self.thinks);
        Ok(CallDecision::exactly(self.grant.unwrap_or(call.reservation), "constant"))
    }
    fn leaves_calls_alone(&self) -> bool {
        self.grant.is_none()
    }
    fn learns(&self) -> bool {
        self.grant.is_some()
    }
}

fn fixed() -> Box<dyn CallControl> {
    let policy = Constant { grant: None, thinks: Time::ZERO };
    Box::new(CallLoop::new(Box::new(policy), CallSafeguardChain::default()))
}

/// A node on which no decision is late, however busy the machine is.
fn settings() -> AgentSettings {
    AgentSettings { decision_budget: Duration::from_secs(60), ..AgentSettings::new(NODE) }
}

fn rig(grant: Option<Allocation>) -> Rig {
    let policy = Constant { grant, thinks: Time::ZERO };
    let control = CallLoop::new(Box::new(policy), CallSafeguardChain::default());
    Rig::new(settings(), Arc::new(ThreadMachine::default()), Box::new(control))
}

#[test]
fn the_first_call_is_cold_the_next_warm_and_fixed_reads_no_sensor() {
    let rig = rig(None);
    rig.deploy("f", HALF, LONG);
    let first = rig.call("f", json!({"print": "hello"}));
    assert_eq!(first.start_kind, StartKind::Cold);
    assert_eq!(first.outcome, Outcome::Success(r#"{"done":true}"#.into()));
    assert!(first.times.init.is_some() && first.times.start > Time::ZERO);
    assert_eq!(first.logs.len(), 1);
    assert!(first.logs[0].ends_with(" stdout: hello"), "{:?}", first.logs);
    let second = rig.call("f", json!({}));
    assert_eq!((second.start_kind, second.times.init), (StartKind::Warm, None));
    assert_eq!(second.granted.map(|granted| granted.cpu), Some(HALF.cpu));
    let status = rig.agent().status().unwrap();
    assert_eq!((status.sensor_reads, status.instances, status.open_calls), (0, 1, 0));
}

#[test]
fn a_call_killed_for_memory_below_the_users_size_succeeds_at_it() {
    let rig = rig(Some(Allocation::new(500, 64)));
    rig.deploy("f", HALF, LONG);
    let ran = rig.call("f", json!({"needs": 200}));
    assert_eq!(ran.outcome, Outcome::Success(r#"{"done":true}"#.into()));
    assert_eq!(ran.annotations.value("memoryKills"), Some(&json!(1)));
    assert_eq!(ran.granted.map(|granted| granted.memory), Some(HALF.memory));
    let ran = rig.call("f", json!({"needs": 300}));
    assert_eq!(ran.outcome, Outcome::out_of_memory());
    let counters = rig.agent().status().unwrap().pool;
    assert_eq!((counters.retried, counters.memory_kills), (2, 3));
}

#[test]
fn crashes_time_outs_and_failures_are_distinguished() {
    let rig = rig(None);
    rig.deploy("f", HALF, LONG);
    // Long enough for its start, short of what it sleeps.
    rig.deploy("g", HALF, Time::from_secs(2));
    assert_eq!(rig.call("f", json!({"crash": true})).outcome, Outcome::exited(false));
    let slow = rig.call("g", json!({"sleep": 60_000}));
    assert_eq!(slow.outcome, Outcome::timed_out(Time::from_secs(2), false));
    let failed = rig.call("f", json!({"fail": true}));
    assert_eq!(failed.outcome, Outcome::DeveloperError("no".into()));
    let next = rig.call("f", json!({}));
    assert_eq!(next.start_kind, StartKind::Warm, "a failure leaves the instance alone");
    assert_eq!(rig.agent().status().unwrap().pool.crashes, 1);
}

#[test]
fn a_machine_that_starts_nothing_is_an_error_with_its_reason() {
    let machine = ThreadMachine::default();
    machine.is_broken.store(true, Ordering::SeqCst);
    let rig = Rig::new(AgentSettings::new(NODE), Arc::new(machine), fixed());
    rig.deploy("f", HALF, LONG);
    let Outcome::SystemError(why) = rig.call("f", json!({})).outcome else { panic!() };
    assert_eq!(why, "no instance could be started: no processes left");
}

#[test]
fn a_late_decision_means_the_users_size_and_is_recorded() {
    let policy = Constant { grant: Some(Allocation::new(100, 64)), thinks: Time::from_millis(30) };
    let control = CallLoop::new(Box::new(policy), CallSafeguardChain::default());
    let machine = Arc::new(ThreadMachine::default());
    let rig = Rig::new(AgentSettings::new(NODE), machine, Box::new(control));
    rig.deploy("f", HALF, LONG);
    let ran = rig.call("f", json!({}));
    assert_eq!(ran.granted.map(|granted| granted.cpu), Some(HALF.cpu));
    let why = ran.annotations.value("fallback").unwrap().as_str().unwrap().to_owned();
    assert!(why.ends_with("allowed are 5.0 ms"), "{why}");
    assert_eq!(rig.agent().status().unwrap().late_decisions, 1);
}

#[test]
fn a_call_that_waits_for_room_is_sized_by_the_policy_all_the_same() {
    let grant = Allocation::new(450, 64);
    let policy = Constant { grant: Some(grant), thinks: Time::ZERO };
    let control = CallLoop::new(Box::new(policy), CallSafeguardChain::default());
    let mut settings = AgentSettings::new(NODE);
    settings.decision_budget = Duration::from_millis(300);
    let rig = Rig::new(settings, Arc::new(ThreadMachine::default()), Box::new(control));
    rig.deploy("f", HALF, Time::from_secs(5));
    // Four at a time: the last ones wait for most of a second.
    let ran = rig.call_all((0..40).map(|_| ("f", json!({"sleep": 100}))));
    assert!(ran.iter().any(|one| one.times.wait > Time::from_millis(300)));
    assert!(ran.iter().all(|one| one.granted.map(|granted| granted.cpu) == Some(grant.cpu)));
    assert_eq!(rig.agent().status().unwrap().late_decisions, 0);
}

#[test]
fn calls_beyond_the_node_wait_for_each_other_and_all_end() {
    let rig = rig(None);
    rig.deploy("f", HALF, LONG);
    let ran = rig.call_all((0..40).map(|_| ("f", json!({"sleep": 5}))));
    assert!(ran.iter().all(|one| one.outcome.status_code() == 0));
    let status = rig.agent().status().unwrap();
    assert!(status.instances <= 4, "{status:?}");
    assert_eq!((status.open_calls, status.pool.answered), (0, 40));
}

#[test]
fn stopping_ends_every_instance() {
    let machine = Arc::new(ThreadMachine::default());
    let mut rig = Rig::new(AgentSettings::new(NODE), Arc::clone(&machine) as _, fixed());
    rig.deploy("f", HALF, LONG);
    rig.call_all((0..4).map(|_| ("f", json!({"sleep": 20}))));
    assert!(machine.alive.load(Ordering::SeqCst) > 0);
    rig.agent.take();
    assert_eq!(machine.alive.load(Ordering::SeqCst), 0);
}

/// 120 calls under each control of the suite, on a machine that refuses some lowerings of memory.
fn play_suite() -> CallTally {
    call_platform_suite(NODE, &mut |control| {
        let (elsewhere, questions) = Elsewhere::new();
        let machine = ThreadMachine { refuses_memory: 3, ..ThreadMachine::default() };
        let player = std::thread::spawn(move || {
            let rig = Rig::new(settings(), Arc::new(machine), Box::new(elsewhere));
            rig.deploy("f", HALF, LONG);
            rig.deploy("g", Allocation::new(900, 128), LONG);
            let call = |number: u64| match number % 8 {
                0 => ("g", json!({"crash": true})),
                1 => ("f", json!({"needs": 100, "sleep": 30})),
                2 => ("g", json!({"fail": true})),
                _ => (["f", "g"][(number % 2) as usize], json!({"sleep": 10 + number * 7 % 90})),
            };
            rig.call_all((0..120).map(call));
        });
        while let Ok(question) = questions.recv() {
            question(control);
        }
        player.join().unwrap();
    })
}

#[test]
fn the_control_is_served_as_promised_whatever_it_asks() {
    // On a busy machine calls end before they are looked at, so that a refusal may need several rounds.
    for _ in 0..20 {
        let tally = play_suite();
        assert!(tally.looks > 0 && tally.changes > 0, "{tally:?}");
        assert!(tally.lost > 0, "crashes are lost calls: {tally:?}");
        if tally.refused > 0 {
            return;
        }
    }
    panic!("no change of memory was refused in 20 rounds");
}

fn platform(sized_by: SizedBy) -> EmbeddedPlatform {
    let mut settings = AgentSettings::new(NODE);
    settings.pool.sized_by = sized_by;
    let mut rig = Rig::new(settings, Arc::new(ThreadMachine::default()), fixed());
    rig.deploy("f", HALF, LONG);
    rig.deploy("g", Allocation::new(900, 128), LONG);
    rig.call("f", json!({}));
    let agent = Arc::new(rig.agent.take().unwrap());
    // The runtime must outlive the agent, and a suite ends when it ends.
    std::mem::forget(rig);
    EmbeddedPlatform::new(agent)
}

#[test]
fn ticks_are_served_as_promised_in_both_kinds() {
    for sized_by in [SizedBy::Call, SizedBy::Instance] {
        platform_suite(&|| Box::new(platform(sized_by)), &|platform: &mut EmbeddedPlatform| {
            std::thread::sleep(Time::from_millis(5));
            platform.agent().clock().now()
        });
    }
}

#[test]
fn an_observation_counts_what_happened() {
    let mut platform = platform(SizedBy::Instance);
    let now = platform.agent().clock().now();
    let seen = platform.observe(now).unwrap();
    let view = &seen.functions[0];
    assert_eq!((view.arrivals, view.completions, view.cold_starts), (1, 1, 1));
    assert_eq!((view.ready.get(), view.in_flight, view.queued), (1, 0, 0));
    assert!(view.mean_run.is_some() && view.memory_peak_mib > 1.0);
    assert_eq!(seen.cluster.granted_cores, 0.5, "an instance holds its size");
    assert_eq!(platform.functions()[1].name, "/guest/g".trim_start_matches('/'));
}
