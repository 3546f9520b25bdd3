use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use windfall_core::conformance::observations;
use windfall_core::platform::Capabilities;
use windfall_core::{Allocation, FunctionId, PolicyError, Receipt, Setting, Target};

/// A platform that shows one view and remembers what it was told.
struct Fake {
    view: Observation,
    told: Vec<Plan>,
}

impl Fake {
    fn new() -> Self {
        let mut view = observations().swap_remove(1);
        view.functions[0].allocation = Allocation::new(500, 128);
        Self { view, told: Vec::new() }
    }
}

impl Platform for Fake {
    fn capabilities(&self) -> Capabilities {
        let (cpu_live, memory_live, instances, concurrency) = (true, true, true, true);
        Capabilities { cpu_live, memory_live, instances, concurrency, per_call: false }
    }
    fn observe(&mut self) -> Result<Observation, PlatformError> {
        Ok(self.view.clone())
    }
    fn submit(&mut self, plan: &Plan) -> Result<Receipt, PlatformError> {
        self.told.push(plan.clone());
        Ok(Receipt::default())
    }
}

/// Wishes for these numbers of instances in turn; nothing means that it fails.
struct Script {
    wishes: Vec<Option<f64>>,
    asked: usize,
    fed: Arc<AtomicUsize>,
}

impl Script {
    fn new(wishes: &[Option<f64>]) -> Self {
        Self { wishes: wishes.to_vec(), asked: 0, fed: Arc::default() }
    }
}

impl Policy for Script {
    fn name(&self) -> &str {
        "script"
    }
    fn decide(&mut self, _seen: &Observation) -> Result<Decision, PolicyError> {
        let wish = self.wishes[self.asked % self.wishes.len()];
        self.asked += 1;
        let Some(count) = wish else {
            return Err(PolicyError { policy: "script".into(), problem: "no idea".into() });
        };
        let target = Target { instances: Setting::Set(count), ..Target::keep(FunctionId(0)) };
        Ok(Decision { targets: vec![target], reason: "scripted".into() })
    }
    fn feedback(&mut self, _tick: &TickRecord) {
        self.fed.fetch_add(1, Ordering::Relaxed);
    }
}

fn looped(wishes: &[Option<f64>]) -> ControlLoop {
    ControlLoop::new(Box::new(Script::new(wishes)), SafeguardChain::default())
}

#[test]
fn a_tick_is_seen_wanted_allowed_done_and_learned() {
    let script = Script::new(&[Some(7.0)]);
    let fed = Arc::clone(&script.fed);
    let mut control = ControlLoop::new(Box::new(script), SafeguardChain::default());
    let mut platform = Fake::new();
    let tick = control.tick(&mut platform).unwrap();
    assert_eq!(tick.decided_by, DecidedBy::Policy);
    assert_eq!(platform.told, [tick.plan]);
    assert_eq!(fed.load(Ordering::Relaxed), 1);
}

#[test]
fn failure_and_nonsense_bring_the_users_sizes_back() {
    for wish in [None, Some(f64::NAN), Some(-1.0), Some(f64::INFINITY), Some(1e300)] {
        let mut platform = Fake::new();
        let tick = looped(&[wish]).tick(&mut platform).unwrap();
        assert!(matches!(tick.decided_by, DecidedBy::Fallback(_)), "{wish:?}");
        let target = &platform.told[0].targets()[0];
        assert_eq!(target.cpu.value().unwrap().get(), 1000);
        assert_eq!(target.memory.value().unwrap().get(), 256);
        assert_eq!(target.instances, Setting::Keep);
    }
}

#[test]
fn a_policy_that_keeps_failing_rests_and_is_tried_again() {
    let mut control = looped(&[None, None, None, Some(5.0)]);
    control = control.with_quarantine(Quarantine::new(3, 2));
    let mut platform = Fake::new();
    let decided: Vec<bool> = (0..6)
        .map(|_| control.tick(&mut platform).unwrap().decided_by == DecidedBy::Policy)
        .collect();
    assert_eq!(decided, [false, false, false, false, false, true]);
    let counters = control.counters();
    assert_eq!((counters.ticks, counters.fallbacks, counters.quarantines), (6, 5, 1));
}

#[test]
fn a_shadow_is_recorded_and_never_obeyed() {
    let shadow = Script::new(&[Some(99.0), None]);
    let mut control = looped(&[Some(2.0)]).with_shadow(Box::new(shadow));
    let mut platform = Fake::new();
    let tick = control.tick(&mut platform).unwrap();
    assert_eq!(tick.shadow.unwrap().targets[0].instances, Setting::Set(99.0));
    assert_eq!(platform.told[0].targets()[0].instances.value().unwrap().get(), 2);
    let tick = control.tick(&mut platform).unwrap();
    assert_eq!((tick.shadow, tick.decided_by), (None, DecidedBy::Policy));
}

#[test]
fn even_a_failing_fallback_leaves_a_quiet_tick() {
    let mut control = looped(&[None]).with_fallback(Box::new(Script::new(&[Some(f64::NAN)])));
    let mut platform = Fake::new();
    let tick = control.tick(&mut platform).unwrap();
    assert_eq!(tick.plan, Plan::default());
}

#[test]
fn an_action_from_outside_takes_the_same_road() {
    let mut control = looped(&[Some(1.0)]);
    let mut platform = Fake::new();
    let wish = |count| Decision {
        targets: vec![Target { instances: Setting::Set(count), ..Target::keep(FunctionId(0)) }],
        reason: "step".into(),
    };
    let seen = platform.observe().unwrap();
    let tick = control.carry_out(&mut platform, seen.clone(), wish(3.0)).unwrap();
    assert_eq!(tick.plan.targets()[0].instances.value().unwrap().get(), 3);
    let tick = control.carry_out(&mut platform, seen, wish(f64::NAN)).unwrap();
    assert!(matches!(tick.decided_by, DecidedBy::Fallback(_)));
}

#[test]
fn the_last_resort_keeps_the_promises_of_a_policy() {
    windfall_core::conformance::policy_suite(&|| Box::new(RestoreReservations));
}
