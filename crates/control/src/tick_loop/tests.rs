use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use windfall_core::conformance::{Fault, ScriptedPlatform, observations};
use windfall_core::{
    Allocation, Capabilities, Episodic, FunctionId, FunctionProfile, Outcome, PolicyError,
    Resource, Setting, Settled, Support, Target,
};

/// A platform that shows one view, or nothing, and remembers what it was asked for.
struct Fake {
    view: Option<Observation>,
    capabilities: Capabilities,
    plans: Vec<Plan>,
}

impl Fake {
    fn new() -> Self {
        let mut view = observations().swap_remove(1);
        view.functions[0].allocation = Allocation::new(500, 128);
        let capabilities = ScriptedPlatform::new(0).capabilities;
        Self { view: Some(view), capabilities, plans: Vec::new() }
    }
}

impl Platform for Fake {
    fn functions(&self) -> &[FunctionProfile] {
        &[]
    }
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }
    fn observe(&mut self, now: Timestamp) -> Result<Observation, PlatformError> {
        let view = self.view.clone().ok_or(PlatformError::NotReady)?;
        Ok(Observation { now, taken_at: now, ..view })
    }
    fn submit(&mut self, _now: Timestamp, plan: &Plan) -> Receipt {
        self.plans.push(plan.clone());
        Receipt::of(plan, |_| Answer::Queued)
    }
}

const NOW: Timestamp = Timestamp::from_secs(70);

/// Asks for these numbers of instances in turn; nothing means that it fails.
struct Script {
    decisions: Vec<Option<f64>>,
    asked: usize,
    fed: Arc<AtomicUsize>,
}

impl Script {
    fn new(decisions: &[Option<f64>]) -> Self {
        Self { decisions: decisions.to_vec(), asked: 0, fed: Arc::default() }
    }
}

impl Policy for Script {
    fn name(&self) -> &str {
        "script"
    }
    fn decide(&mut self, _seen: &Observation) -> Result<Decision, PolicyError> {
        let decision = self.decisions[self.asked % self.decisions.len()];
        self.asked += 1;
        let Some(count) = decision else {
            return Err(PolicyError { policy: "script".into(), problem: "no idea".into() });
        };
        let target = Target { instances: Setting::Set(count), ..Target::keep(FunctionId(0)) };
        Ok(Decision { targets: vec![target], reason: "scripted".into() })
    }
    fn feedback(&mut self, _tick: &TickRecord) {
        self.fed.fetch_add(1, Ordering::Relaxed);
    }
}

fn looped(decisions: &[Option<f64>]) -> ControlLoop {
    ControlLoop::new(Box::new(Script::new(decisions)), SafeguardChain::default())
}

#[test]
fn a_tick_is_seen_wanted_allowed_done_and_learned() {
    let script = Script::new(&[Some(7.0)]);
    let fed = Arc::clone(&script.fed);
    let mut control = ControlLoop::new(Box::new(script), SafeguardChain::default());
    let mut platform = Fake::new();
    let tick = control.tick(NOW, &mut platform);
    assert_eq!(tick.decided_by, DecidedBy::Policy);
    assert_eq!(platform.plans, [tick.plan]);
    assert_eq!(platform.plans[0].id(), PlanId(1));
    assert_eq!(fed.load(Ordering::Relaxed), 1);
}

#[test]
fn failure_and_nonsense_bring_the_users_sizes_back() {
    for decision in [None, Some(f64::NAN), Some(-1.0), Some(f64::INFINITY), Some(1e300)] {
        let mut platform = Fake::new();
        let tick = looped(&[decision]).tick(NOW, &mut platform);
        assert!(matches!(tick.decided_by, DecidedBy::Fallback(_)), "{decision:?}");
        let target = &platform.plans[0].targets()[0];
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
    let decided: Vec<bool> =
        (0..6).map(|_| control.tick(NOW, &mut platform).decided_by == DecidedBy::Policy).collect();
    assert_eq!(decided, [false, false, false, false, false, true]);
    let counters = control.counters();
    assert_eq!((counters.ticks, counters.fallbacks, counters.quarantines), (6, 5, 1));
}

#[test]
fn a_shadow_is_recorded_and_never_obeyed() {
    let shadow = Script::new(&[Some(99.0), None]);
    let mut control = looped(&[Some(2.0)]).with_shadow(Box::new(shadow));
    let mut platform = Fake::new();
    let tick = control.tick(NOW, &mut platform);
    assert_eq!(tick.shadow.unwrap().targets[0].instances, Setting::Set(99.0));
    assert_eq!(platform.plans[0].targets()[0].instances.value().unwrap().get(), 2);
    let tick = control.tick(NOW, &mut platform);
    assert_eq!((tick.shadow, tick.decided_by), (None, DecidedBy::Policy));
}

#[test]
fn even_a_failing_fallback_leaves_a_quiet_tick() {
    let mut control = looped(&[None]).with_fallback(Box::new(Script::new(&[Some(f64::NAN)])));
    let mut platform = Fake::new();
    let tick = control.tick(NOW, &mut platform);
    assert!(tick.plan.targets().is_empty() && tick.plan.amendments().is_empty());
}

#[test]
fn an_action_from_outside_takes_the_same_road() {
    let mut control = looped(&[Some(1.0)]);
    let mut platform = Fake::new();
    let decision = |count| Decision {
        targets: vec![Target { instances: Setting::Set(count), ..Target::keep(FunctionId(0)) }],
        reason: "step".into(),
    };
    let seen = platform.observe(NOW).unwrap();
    let tick = control.carry_out(&mut platform, seen.clone(), decision(3.0));
    assert_eq!(tick.plan.targets()[0].instances.value().unwrap().get(), 3);
    let tick = control.carry_out(&mut platform, seen, decision(f64::NAN));
    assert!(matches!(tick.decided_by, DecidedBy::Fallback(_)));
}

#[test]
fn the_last_resort_keeps_the_promises_of_a_policy() {
    windfall_core::conformance::policy_suite(&|| Box::new(RestoreReservations));
}

/// Panics in its decision, or in its feedback.
struct Panics {
    in_feedback: bool,
}

impl Policy for Panics {
    fn name(&self) -> &str {
        "panics"
    }
    fn decide(&mut self, _seen: &Observation) -> Result<Decision, PolicyError> {
        assert!(self.in_feedback, "a bug of the policy");
        Ok(Decision::default())
    }
    fn feedback(&mut self, _tick: &TickRecord) {
        assert!(!self.in_feedback, "a bug of the policy");
    }
}

#[test]
fn a_panic_of_a_policy_is_a_failure_and_ends_nothing() {
    for in_feedback in [false, true] {
        let mut control =
            ControlLoop::new(Box::new(Panics { in_feedback }), SafeguardChain::default())
                .with_shadow(Box::new(Panics { in_feedback }))
                .with_quarantine(Quarantine::new(1, 2));
        let tick = control.tick(NOW, &mut Fake::new());
        assert!(control.is_quarantined(), "in feedback: {in_feedback}");
        if !in_feedback {
            let expected = DecidedBy::Fallback("it panicked: a bug of the policy".to_owned());
            assert_eq!(tick.decided_by, expected);
            assert_eq!(tick.plan.targets()[0].cpu.value().unwrap().get(), 1000);
        }
    }
}

#[test]
fn without_an_observation_there_is_a_record_and_the_policy_is_not_asked() {
    let script = Script::new(&[Some(7.0)]);
    let mut control = ControlLoop::new(Box::new(script), SafeguardChain::default());
    let mut platform = Fake { view: None, ..Fake::new() };
    let tick = control.tick(NOW, &mut platform);
    assert_eq!(tick.error.as_deref(), Some("nothing has been measured yet"));
    assert!(tick.plan.targets().is_empty() && tick.observation.functions.is_empty());

    platform.view = Fake::new().view;
    let seen = control.tick(NOW, &mut platform);
    assert_eq!(seen.decided_by, DecidedBy::Policy);
    platform.view = None;
    let later = NOW + Duration::from_secs(2);
    let tick = control.tick(later, &mut platform);
    assert_eq!((tick.observation.now, tick.observation.taken_at), (later, NOW));
    assert_eq!(tick.observation.functions[0].arrivals, 0, "nothing is counted twice");
    // Function 0 holds half of what it reserves: without a view of it, it gets its own back.
    let target = &tick.plan.targets()[0];
    assert_eq!((target.cpu.value().unwrap().get(), target.instances), (1000, Setting::Keep));
    assert_eq!(tick.plan.amendments()[0].rule, "in-doubt");
    let counters = control.counters();
    assert_eq!((counters.ticks, counters.blind, counters.fallbacks), (3, 2, 2));
}

#[test]
fn what_the_platform_cannot_set_is_dropped_and_named() {
    let mut platform = Fake::new();
    platform.capabilities.memory = Support::Absent;
    // The fallback restores CPU and memory; only CPU can be set here.
    let tick = looped(&[None]).tick(NOW, &mut platform);
    let target = &tick.plan.targets()[0];
    assert_eq!((target.cpu.value().unwrap().get(), target.memory), (1000, Setting::Keep));
    let amendment = &tick.plan.amendments()[0];
    assert_eq!((amendment.rule.as_ref(), amendment.resource), ("capabilities", Resource::Memory));
    assert_eq!((amendment.proposed, amendment.allowed), (Some(256.0), None));
    assert_eq!(amendment.reason, "this platform cannot set memory");
}

/// Leaves out an answer.
struct Silent(Fake);

impl Platform for Silent {
    fn functions(&self) -> &[FunctionProfile] {
        &[]
    }
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities
    }
    fn observe(&mut self, now: Timestamp) -> Result<Observation, PlatformError> {
        self.0.observe(now)
    }
    fn submit(&mut self, _now: Timestamp, _plan: &Plan) -> Receipt {
        Receipt::default()
    }
}

#[test]
fn a_target_without_an_answer_counts_as_refused() {
    let tick = looped(&[Some(3.0)]).tick(NOW, &mut Silent(Fake::new()));
    let refusals: Vec<_> = tick.receipt.refusals().collect();
    assert_eq!(refusals, [(FunctionId(0), &Refusal::System("it gave no answer".to_owned()))]);
}

/// Sets the CPU of function 0 to these shares of a core in turn, then leaves it alone.
struct Sizes(Vec<f64>);

impl Policy for Sizes {
    fn name(&self) -> &str {
        "sizes"
    }
    fn decide(&mut self, _seen: &Observation) -> Result<Decision, PolicyError> {
        let cores =
            if self.0.is_empty() { return Ok(Decision::default()) } else { self.0.remove(0) };
        let target = Target { cpu_cores: Setting::Set(cores), ..Target::keep(FunctionId(0)) };
        Ok(Decision { targets: vec![target], reason: "scripted".into() })
    }
}

/// Plays `faults`, one per tick of two seconds, and returns what was in force after each tick, in millicores.
fn in_force(sizes: &[f64], faults: &[Option<Fault>]) -> Vec<u32> {
    let mut platform = ScriptedPlatform::new(1);
    let mut control = ControlLoop::new(Box::new(Sizes(sizes.to_vec())), SafeguardChain::default());
    let mut found = Vec::new();
    for fault in faults {
        platform.advance_to(platform.now() + Duration::from_secs(2)).unwrap();
        platform.faults.extend(fault.clone().map(|fault| (FunctionId(0), fault)));
        control.tick(platform.now(), &mut platform);
        platform.faults.clear();
        platform.advance_to(platform.now() + Duration::from_millis(1)).unwrap();
        found.push(platform.in_force(FunctionId(0)).cpu.get());
    }
    found
}

#[test]
fn a_size_in_doubt_goes_back_to_the_users_own() {
    // Function 0 reserves 500m. A clean change stays, whatever it is.
    assert_eq!(in_force(&[0.2], &[None, None, None]), [200, 200, 200]);
    // It was lowered although nobody heard of it: the next tick restores it.
    assert_eq!(in_force(&[0.2], &[Some(Fault::AnswerLost), None, None]), [200, 500, 500]);
    let half = Fault::Half(Refusal::System("in use".into()));
    assert_eq!(in_force(&[0.2], &[Some(half), None, None]), [350, 500, 500]);
    let late = Fault::Late(Duration::from_secs(60));
    assert_eq!(in_force(&[0.2], &[Some(late), None, None]), [500, 500, 500]);
    // The restoring is refused too, and repeated; the policy is held off until it is confirmed.
    let refused = Some(Fault::Refuse(Refusal::NoRoom));
    let faults = [Some(Fault::AnswerLost), refused, None, None, None];
    assert_eq!(in_force(&[0.2, 0.1, 0.1, 0.1, 0.1], &faults), [200, 200, 500, 100, 100]);
    // A definite no leaves no doubt: what was in force is in force.
    let refused = Some(Fault::Refuse(Refusal::NoRoom));
    assert_eq!(in_force(&[0.2, 0.3], &[None, refused, None]), [200, 200, 200]);
}

#[test]
fn while_its_own_is_being_restored_a_function_is_not_resized() {
    let mut platform = ScriptedPlatform::new(1);
    platform.delay = Duration::from_millis(2500);
    platform.capabilities.settles_within = Duration::from_secs(3);
    let mut control = ControlLoop::new(Box::new(Sizes(vec![0.2; 9])), SafeguardChain::default());
    let mut rules = Vec::new();
    for tick in 0..5 {
        platform.advance_to(platform.now() + Duration::from_secs(2)).unwrap();
        if tick == 0 {
            platform.faults.insert(FunctionId(0), Fault::AnswerLost);
        }
        let tick = control.tick(platform.now(), &mut platform);
        rules.push((tick.plan.targets().len(), control.in_doubt().functions().count()));
    }
    // Lost; restored; waiting, so nothing is asked for; confirmed, so the policy decides again.
    assert_eq!(rules, [(1, 1), (1, 1), (0, 1), (1, 0), (1, 0)]);
}

#[test]
fn an_outcome_of_an_older_change_says_nothing_about_a_newer_one() {
    let settled = |plan| Settled {
        plan: PlanId(plan),
        function: FunctionId(0),
        at: NOW,
        outcome: Outcome::Failed(Refusal::System("gone".into())),
    };
    let mut platform = Fake::new();
    let mut control = ControlLoop::new(Box::new(Sizes(vec![1.5, 1.6])), SafeguardChain::default());
    control.tick(NOW, &mut platform);
    control.tick(NOW, &mut platform);
    for (plan, doubts) in [(1, 0), (2, 1)] {
        platform.view.as_mut().unwrap().settled = vec![settled(plan)];
        control.tick(NOW, &mut platform);
        assert_eq!(control.in_doubt().functions().count(), doubts, "plan {plan}");
    }
}

/// Notes the names it hears and the ticks it sees.
#[derive(Clone, Default)]
struct Notes(Arc<std::sync::Mutex<Vec<String>>>);

impl TelemetrySink for Notes {
    fn functions(&mut self, first: FunctionId, functions: &[FunctionProfile]) {
        let mut notes = self.0.lock().unwrap();
        notes.extend((first.0..).zip(functions).map(|(id, one)| format!("{id} {}", one.name)));
    }
    fn tick(&mut self, _tick: &TickRecord) {
        self.0.lock().unwrap().push("tick".to_owned());
    }
}

#[test]
fn sinks_hear_a_functions_name_once_and_before_its_first_tick() {
    let notes = Notes::default();
    let mut control = looped(&[Some(1.0)]).with_sink(Box::new(notes.clone()));
    for functions in [1, 1, 3] {
        let mut platform = ScriptedPlatform::new(functions);
        control.tick(platform.now(), &mut platform);
    }
    let heard = notes.0.lock().unwrap().join(", ");
    let want = "0 function-0, tick, tick, 1 function-1, 2 function-2, tick";
    assert_eq!(heard, want);
}
