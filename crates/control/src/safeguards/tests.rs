use super::*;
use proptest::prelude::*;
use windfall_core::conformance::{ScriptedPlatform, observations, safeguard_suite};
use windfall_core::{
    Allocation, Answer, Decision, Duration, FunctionId, Mebibytes, Observation, Outcome, Plan,
    PlanId, Receipt, Refusal, Safeguard, SafeguardChain, Settled, Target, Timestamp,
};

#[test]
fn every_rule_keeps_its_promises() {
    safeguard_suite(&|| Box::new(StaleObservation { max_age: Duration::from_secs(25) }));
    safeguard_suite(&|| Box::new(StaleObservation::default()));
    safeguard_suite(&|| Box::new(Limits::default()));
    safeguard_suite(&|| Box::new(RateOfChange::default()));
    safeguard_suite(&|| Box::new(StartsPerTick::default()));
    safeguard_suite(&|| Box::new(FlapBudget::default()));
    safeguard_suite(&|| Box::new(Capacity::default()));
    safeguard_suite(&|| Box::new(InDoubt::new(Duration::from_secs(60))));
    safeguard_suite(&|| Box::new(CapabilityCheck::default()));
    let capabilities = ScriptedPlatform::new(0).capabilities;
    safeguard_suite(&|| Box::new(CapabilityCheck { capabilities }));
}

#[test]
fn names_are_a_closed_set_without_doubles() {
    let mut names = NAMES.to_vec();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), NAMES.len());
}

/// Function 0 reserves 1000m / 256 MiB and has 4 instances; 64 cores and 64 GiB in all.
fn seen() -> Observation {
    observations().swap_remove(1)
}

fn review(rule: impl Safeguard + 'static, seen: &Observation, targets: Vec<Target>) -> Plan {
    let decision = Decision { targets, reason: String::new() };
    SafeguardChain::new(vec![Box::new(rule)]).review(seen, &decision).unwrap()
}

/// Reviews `targets` and reports `answer` to each of them.
fn submit(
    chain: &mut SafeguardChain,
    seen: &Observation,
    targets: Vec<Target>,
    answer: &Answer,
) -> Plan {
    let decision = Decision { targets, reason: String::new() };
    let plan = chain.review(seen, &decision).unwrap().numbered(PlanId(seen.now.as_nanos()));
    chain.submitted(&mut [], seen, &plan, &Receipt::of(&plan, |_| answer.clone()));
    plan
}

fn instances(count: f64) -> Target {
    Target { instances: Setting::Set(count), ..Target::keep(FunctionId(0)) }
}

fn cpu(cores: f64) -> Target {
    Target { cpu_cores: Setting::Set(cores), ..Target::keep(FunctionId(0)) }
}

fn rules(plan: &Plan) -> Vec<&str> {
    plan.amendments().iter().map(|amendment| amendment.rule.as_ref()).collect()
}

#[test]
fn limits_are_relative_to_the_reservation_or_absolute() {
    let plan = review(Limits::default(), &seen(), vec![cpu(9.0)]);
    assert_eq!(plan.targets()[0].cpu, Setting::Set(MilliCpu::new(4000)));
    assert_eq!(rules(&plan), ["limits"]);
    let bounds = Bounds { cpu: (Bound::Amount(700), Bound::Amount(800)), ..Bounds::default() };
    let mut limits = Limits::default();
    limits.per_function.insert(FunctionId(0), bounds);
    let plan = review(limits, &seen(), vec![cpu(0.1)]);
    assert_eq!(plan.targets()[0].cpu, Setting::Set(MilliCpu::new(700)));
}

#[test]
fn one_tick_goes_only_so_far_but_back_to_the_reservation_at_once() {
    let step = Step { factor: 2.0, amount: 1 };
    let rate = RateOfChange { instances: step, ..RateOfChange::default() };
    let plan = review(rate, &seen(), vec![instances(50.0)]);
    assert_eq!(plan.targets()[0].instances, Setting::Set(Instances::new(8)));
    assert_eq!(rules(&plan), ["rate"]);
    let plan = review(rate, &seen(), vec![instances(0.0)]);
    assert_eq!(plan.targets()[0].instances, Setting::Set(Instances::new(2)));

    let mut seen = seen();
    seen.functions[0].allocation = Allocation::new(100, 256);
    let plan = review(rate, &seen, vec![cpu(5.0)]);
    assert_eq!(plan.targets()[0].cpu, Setting::Set(MilliCpu::new(1000)));
}

#[test]
fn starts_are_counted_over_all_functions_of_a_tick() {
    let mut second = instances(20.0);
    second.function = FunctionId(1);
    // 4 and 1 instances stand: 6 more for the first leave 4 of 10 for the second.
    let plan = review(StartsPerTick::new(10), &seen(), vec![instances(10.0), second]);
    assert_eq!(plan.targets()[0].instances, Setting::Set(Instances::new(10)));
    assert_eq!(plan.targets()[1].instances, Setting::Set(Instances::new(5)));
    assert_eq!(rules(&plan), ["starts"]);
    let plan = review(StartsPerTick::new(0), &seen(), vec![instances(2.0)]);
    assert_eq!(rules(&plan), [""; 0], "what goes down starts nothing");
}

#[test]
fn a_stale_view_changes_nothing_and_says_so() {
    let rule = StaleObservation { max_age: Duration::from_secs(20) };
    let mut seen = seen();
    seen.now += Duration::from_secs(11);
    let plan = review(rule, &seen, vec![instances(1.0)]);
    assert!(plan.targets().is_empty(), "nothing is taken away past half the age");
    assert_eq!(review(rule, &seen, vec![instances(9.0)]).targets().len(), 1);
    seen.now += Duration::from_secs(10);
    let plan = review(rule, &seen, vec![instances(9.0)]);
    assert!(plan.targets().is_empty());
    assert_eq!(rules(&plan), ["stale-observation"]);
}

#[test]
fn a_function_that_flaps_may_only_grow() {
    let mut chain = SafeguardChain::new(vec![Box::new(FlapBudget::new(2))]);
    let mut seen = seen();
    // (minute, decision, allowed): up, down (1st reversal), up (2nd), then down is refused for an hour.
    let story = [
        (0, 6.0, Some(6)),
        (1, 3.0, Some(3)),
        (2, 8.0, Some(8)),
        (3, 2.0, None),
        (4, 9.0, Some(9)),
        (5, 1.0, None),
        (63, 1.0, Some(1)),
    ];
    let start = seen.now;
    for (minute, decision, allowed) in story {
        seen.now = start + Duration::from_mins(minute);
        seen.taken_at = seen.now;
        let plan = submit(&mut chain, &seen, vec![instances(decision)], &Answer::Queued);
        let found = plan.targets().first().and_then(|target| target.instances.value());
        assert_eq!(found.map(Instances::get), allowed, "minute {minute}");
        assert_eq!(rules(&plan).len(), usize::from(allowed.is_none()));
    }
}

#[test]
fn only_accepted_changes_are_charged_and_failed_ones_are_credited() {
    let mut budget = FlapBudget::new(2);
    let mut seen = seen();
    // Up, down, up, down: three reversals if all of it is accepted.
    let mut turn = |budget: &mut FlapBudget, count, answer: &Answer, settled: Option<Settled>| {
        seen.now += Duration::from_secs(60);
        seen.settled = settled.into_iter().collect();
        let decision = Decision { targets: vec![instances(count)], reason: String::new() };
        let plan = SafeguardChain::default()
            .review_then(&mut [budget], &seen, &decision)
            .unwrap()
            .numbered(PlanId(seen.now.as_nanos()));
        budget.submitted(&seen, &plan, &Receipt::of(&plan, |_| answer.clone()));
        plan.id()
    };
    let failed = |plan, reason| Settled {
        plan,
        function: FunctionId(0),
        at: Timestamp::ZERO,
        outcome: Outcome::Failed(reason),
    };
    let used = |budget: &FlapBudget| budget.used(FunctionId(0));
    let refused = Answer::Refused(Refusal::Unreachable);
    for count in [6.0, 3.0, 8.0, 2.0] {
        turn(&mut budget, count, &refused, None);
    }
    assert_eq!(used(&budget), 0, "refused changes cost nothing");
    turn(&mut budget, 6.0, &Answer::Queued, None);
    let down = turn(&mut budget, 3.0, &Answer::Queued, None);
    assert_eq!(used(&budget), 1);
    // The way down failed, so 6 still stands and 8 is no reversal.
    turn(&mut budget, 8.0, &Answer::Queued, Some(failed(down, Refusal::NoRoom)));
    assert_eq!(used(&budget), 0);
    let down = turn(&mut budget, 5.0, &Answer::Queued, None);
    let replaced = failed(down, Refusal::Superseded);
    turn(&mut budget, 9.0, &Answer::Queued, Some(replaced));
    assert_eq!(used(&budget), 2, "a change of mind before it took effect is one all the same");
}

#[test]
fn a_function_with_many_calls_may_turn_more_often() {
    let turns = |arrivals: u32| {
        let mut chain = SafeguardChain::new(vec![Box::new(FlapBudget::new(2).or_per_call(0.05))]);
        let mut seen = seen();
        seen.functions[0].arrivals = arrivals;
        let allowed = (0..40).filter(|turn| {
            seen.now += seen.window;
            seen.taken_at = seen.now;
            let decision = if turn % 2 == 0 { 6.0 } else { 3.0 };
            let plan = submit(&mut chain, &seen, vec![instances(decision)], &Answer::Queued);
            rules(&plan).is_empty()
        });
        allowed.count()
    };
    assert_eq!(turns(40), 40, "forty calls a tick pay for two reversals, and there is one");
    assert_eq!(turns(0), 21, "every other decision is up, and one way down was free");
}

#[test]
fn what_does_not_fit_is_trimmed_in_order() {
    // 64 cores; function 1 stands with 1 instance of 1m.
    let plan = review(Capacity::default(), &seen(), vec![instances(100.0)]);
    assert_eq!(plan.targets()[0].instances, Setting::Set(Instances::new(63)));
    assert_eq!(rules(&plan), ["capacity"]);
    // 4 instances of 20 cores do not fit; the size stays.
    let plan = review(Capacity::default(), &seen(), vec![cpu(20.0)]);
    assert!(plan.targets().is_empty());
    // Function 0 takes 60 cores; 4 cores are left for function 1 with its 1m instances.
    let mut second = instances(1e6);
    second.function = FunctionId(1);
    let plan = review(Capacity::default(), &seen(), vec![instances(60.0), second]);
    assert_eq!(plan.targets()[1].instances, Setting::Set(Instances::new(4000)));
}

#[test]
fn where_calls_bring_their_own_cpu_instances_are_counted_by_the_memory_they_keep() {
    // 64 GiB hold 1,024 instances that keep 64 MiB, one of them function 1's; 64 cores would allow 63.
    let mut seen = seen();
    seen.functions.iter_mut().for_each(|view| view.kept = Some(Mebibytes::new(64)));
    let plan = review(Capacity::default(), &seen, vec![instances(800.0)]);
    assert_eq!(plan.targets()[0].instances, Setting::Set(Instances::new(800)));
    let plan = review(Capacity::default(), &seen, vec![instances(5000.0)]);
    assert_eq!(plan.targets()[0].instances, Setting::Set(Instances::new(1023)));
}

proptest! {
    #[test]
    fn no_plan_leaves_limits_or_cluster(
        decisions in prop::collection::vec(
            (any::<bool>(), 0.0..1e7f64, 0.0..1e6f64, 0.0..1e6f64, 0.0..1e9f64), 0..6),
        which in 0usize..5,
    ) {
        let seen = observations().swap_remove(which);
        let standing_need: f64 = seen.functions.iter()
            .map(|view| f64::from(standing(view).get()) * view.allocation.cpu.cores()).sum();
        let decision = Decision {
            targets: decisions.iter().map(|&(second, count, cores, mib, calls)| Target {
                function: FunctionId(u32::from(second)),
                instances: Setting::Set(count),
                cpu_cores: Setting::Set(cores),
                memory_mib: Setting::Set(mib),
                concurrency: Setting::Set(calls),
                ..Target::default()
            }).collect(),
            reason: String::new(),
        };
        let mut chain = SafeguardChain::new(vec![
            Box::new(Limits::default()),
            Box::new(Capacity::default()),
        ]);
        let plan = chain.review(&seen, &decision).unwrap();
        let mut need: Vec<f64> = seen.functions.iter()
            .map(|view| f64::from(standing(view).get()) * view.allocation.cpu.cores()).collect();
        for target in plan.targets() {
            let view = seen.function(target.function).unwrap();
            let cpu = target.cpu.value().unwrap_or(view.allocation.cpu);
            let count = target.instances.value().unwrap_or(standing(view));
            prop_assert!(cpu.get() <= 4 * view.reservation.cpu.get());
            prop_assert!(count.get() <= 1000);
            need[target.function.index()] = f64::from(count.get()) * cpu.cores();
        }
        let most = seen.cluster.capacity_cores.max(standing_need);
        prop_assert!(need.iter().sum::<f64>() <= most + 1e-6, "{need:?}");
        prop_assert!(plan.amendments().iter().all(|a| NAMES.contains(&a.rule.as_ref())));
    }
}
