//! What every platform must do, whoever owns its time.

use super::Audited;
use crate::decision::{Decision, Setting, Target};
use crate::observation::Observation;
use crate::platform::{Answer, Outcome, PlanId, Platform, PlatformError, Refusal};
use crate::record::Resource;
use crate::safeguard::{Plan, SafeguardChain};
use crate::time::{Duration, Timestamp};
use crate::units::CpuCeiling;
use crate::workload::FunctionId;

/// How often the suite waits for something that must happen.
const PATIENCE: u32 = 50;

/// Shows its functions in the order of their ids and under names of their own; answers every target once and settles
/// every accepted change once; does nothing for an empty plan; refuses what its capabilities do not name; and lets the
/// later of two changes win.
///
/// `wait` lets some time pass on a platform and returns the new time: it advances a simulated platform, and sleeps for
/// a real one. What the platform does by itself meanwhile does not matter.
pub fn platform_suite<P: Platform + ?Sized>(
    make: &dyn Fn() -> Box<P>,
    wait: &dyn Fn(&mut P) -> Timestamp,
) {
    shows_its_functions(make().as_mut(), wait);
    settles_what_it_accepts(make().as_mut(), wait);
    refuses_what_it_cannot_do(make().as_mut(), wait);
    lets_the_later_change_win(make().as_mut(), wait);
}

/// Waits until the platform has something to show.
fn first_picture<P: Platform + ?Sized>(
    platform: &mut Audited<'_, P>,
    wait: &dyn Fn(&mut P) -> Timestamp,
) -> Observation {
    for _ in 0..PATIENCE {
        let now = wait(platform.inner());
        match platform.observe(now) {
            Ok(seen) => return seen,
            Err(PlatformError::NotReady | PlatformError::Unreachable(_)) => {}
            Err(error) => panic!("a new platform cannot be observed: {error}"),
        }
    }
    panic!("nothing was measured in {PATIENCE} waits");
}

fn next_picture<P: Platform + ?Sized>(
    platform: &mut Audited<'_, P>,
    wait: &dyn Fn(&mut P) -> Timestamp,
) -> Observation {
    let now = wait(platform.inner());
    platform.observe(now).unwrap_or_else(|error| panic!("observing at {now}: {error}"))
}

/// Waits until every accepted change has settled, and returns the last picture with all that settled.
fn until_settled<P: Platform + ?Sized>(
    platform: &mut Audited<'_, P>,
    wait: &dyn Fn(&mut P) -> Timestamp,
) -> Observation {
    let mut settled = Vec::new();
    for _ in 0..PATIENCE {
        let mut seen = next_picture(platform, wait);
        settled.append(&mut seen.settled);
        if platform.open().is_empty() {
            return Observation { settled, ..seen };
        }
    }
    panic!("after {PATIENCE} waits these changes have not settled: {:?}", platform.open());
}

fn plan(id: u64, seen: &Observation, targets: Vec<Target>) -> Plan {
    let decision = Decision { targets, reason: String::new() };
    let plan = SafeguardChain::default().review(seen, &decision).expect("amounts");
    plan.numbered(PlanId(id))
}

fn shows_its_functions<P: Platform + ?Sized>(platform: &mut P, wait: &dyn Fn(&mut P) -> Timestamp) {
    let mut platform = Audited::new(platform);
    let mut last = first_picture(&mut platform, wait);
    for tick in 0..4 {
        check_view(tick, &last);
        let functions = platform.functions();
        for (place, profile) in functions.iter().enumerate() {
            let same = functions[..place].iter().find(|other| other.name == profile.name);
            assert!(same.is_none(), "two functions are called {:?}", profile.name);
        }
        for view in &last.functions {
            let Some(profile) = functions.get(view.function.index()) else {
                panic!("{:?} is observed, but is not among the functions", view.function);
            };
            assert_eq!(view.reservation, profile.reservation, "of {:?}", profile.name);
        }
        let receipt = platform.submit(last.now, &Plan::default().numbered(PlanId(tick)));
        assert!(receipt.answers.is_empty(), "an empty plan was answered with {receipt:?}");
        let next = next_picture(&mut platform, wait);
        assert!(last.now < next.now, "time went from {} to {}", last.now, next.now);
        assert!(last.taken_at <= next.taken_at, "an older picture came after a newer one");
        last = next;
    }
}

fn check_view(tick: u64, seen: &Observation) {
    assert!(
        seen.functions.is_sorted_by(|a, b| a.function < b.function),
        "tick {tick}: functions are not in the order of their ids"
    );
    for view in &seen.functions {
        let numbers = [view.mean_concurrency, view.cpu_used_cores, view.memory_peak_mib];
        assert!(
            numbers.iter().all(|number| number.is_finite() && *number >= 0.0),
            "tick {tick}: {:?} was measured as {numbers:?}",
            view.function
        );
    }
}

/// Everything that a tick can set on this platform, for every function: its own size, and one instance.
fn everything<P: Platform + ?Sized>(platform: &P, seen: &Observation) -> Vec<Target> {
    let can = |resource| platform.capabilities().can_set(resource);
    let only = |resource, value| if can(resource) { Setting::Set(value) } else { Setting::Keep };
    let target = |view: &crate::FunctionView| Target {
        instances: only(Resource::Instances, 1.0),
        cpu_cores: only(Resource::Cpu, view.reservation.cpu.cores()),
        memory_mib: only(Resource::Memory, view.reservation.memory.mib()),
        concurrency: only(Resource::Concurrency, 1.0),
        ..Target::keep(view.function)
    };
    seen.functions.iter().map(target).collect()
}

fn settles_what_it_accepts<P: Platform + ?Sized>(
    platform: &mut P,
    wait: &dyn Fn(&mut P) -> Timestamp,
) {
    let mut platform = Audited::new(platform);
    let mut seen = first_picture(&mut platform, wait);
    for id in 0..3 {
        let plan = plan(id, &seen, everything(&platform, &seen));
        let receipt = platform.submit(seen.now, &plan);
        for (function, refusal) in receipt.refusals() {
            let is_transient = !matches!(refusal, Refusal::Unsupported(_) | Refusal::Superseded);
            assert!(is_transient, "{function:?}: refused what it says it can do: {refusal}");
        }
        seen = until_settled(&mut platform, wait);
    }
    assert_eq!(platform.settled(), platform.accepted());
}

/// A target of `function` that sets only `resource`.
fn only(function: FunctionId, resource: Resource) -> Target {
    let mut target = Target::keep(function);
    match resource {
        Resource::Cpu => target.cpu_cores = Setting::Set(0.5),
        Resource::CpuCeiling => target.cpu_ceiling = Setting::Set(CpuCeiling::At(1.0)),
        Resource::Memory => target.memory_mib = Setting::Set(256.0),
        Resource::Instances => target.instances = Setting::Set(2.0),
        Resource::Concurrency => target.concurrency = Setting::Set(2.0),
        Resource::KeepAlive => target.keep_alive = Setting::Set(Duration::from_secs(60)),
        Resource::All => {}
    }
    target
}

fn refuses_what_it_cannot_do<P: Platform + ?Sized>(
    platform: &mut P,
    wait: &dyn Fn(&mut P) -> Timestamp,
) {
    let mut platform = Audited::new(platform);
    let mut seen = first_picture(&mut platform, wait);
    let stranger = plan(0, &seen, vec![only(FunctionId(u32::MAX), Resource::Instances)]);
    let receipt = platform.submit(seen.now, &stranger);
    assert!(receipt.refusals().count() == 1, "a function that does not exist: {receipt:?}");
    let Some(function) = seen.functions.first().map(|view| view.function) else { return };
    for (id, resource) in (1..).zip(Resource::SETTABLE) {
        if platform.capabilities().can_set(resource) {
            continue;
        }
        let plan = plan(id, &seen, vec![only(function, resource)]);
        let receipt = platform.submit(seen.now, &plan);
        let expected = Answer::Refused(Refusal::Unsupported(resource));
        assert_eq!(receipt.answers[0].answer, expected, "its capabilities do not name {resource}");
        let next = next_picture(&mut platform, wait);
        let allocation = |seen: &Observation| seen.functions[0].allocation;
        assert_eq!(allocation(&next), allocation(&seen), "a refused change took effect");
        seen = next;
    }
}

fn lets_the_later_change_win<P: Platform + ?Sized>(
    platform: &mut P,
    wait: &dyn Fn(&mut P) -> Timestamp,
) {
    let mut platform = Audited::new(platform);
    let seen = first_picture(&mut platform, wait);
    let Some(view) = seen.functions.first() else { return };
    if !platform.capabilities().can_set(Resource::Cpu) {
        return;
    }
    let half = view.reservation.cpu.get().div_ceil(2);
    for (id, millis) in [(1, view.reservation.cpu.get()), (2, half)] {
        let cpu_cores = Setting::Set(f64::from(millis) * 1e-3);
        let target = Target { cpu_cores, ..Target::keep(view.function) };
        platform.submit(seen.now, &plan(id, &seen, vec![target]));
    }
    let last = until_settled(&mut platform, wait);
    let outcome_of = |id| last.settled.iter().find(|one| one.plan == PlanId(id));
    let Some(later) = outcome_of(2) else { return };
    assert_ne!(
        later.outcome,
        Outcome::Failed(Refusal::Superseded),
        "the later change was replaced by the earlier one"
    );
    if later.outcome == Outcome::Applied {
        let found = last.functions[0].allocation.cpu.get();
        assert_eq!(found, half, "the earlier of two changes is in force");
    }
}
