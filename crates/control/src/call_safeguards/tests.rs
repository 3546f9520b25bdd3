use super::*;
use proptest::prelude::*;
use windfall_core::call::Beyond;
use windfall_core::conformance::{call_safeguard_suite, calls};
use windfall_core::{
    Allocation, CallDecision, CallPlan, CallSafeguard, CallSafeguardChain, CallView, CpuCeiling,
    Duration, MilliCpu, NodeId, Proposal, Refusal, Resized, RunningCall, Sensed,
};

#[test]
fn every_rule_keeps_its_promises() {
    call_safeguard_suite(&|| Box::new(Faasrm::default()));
    call_safeguard_suite(&|| Box::new(Floor::default()));
    call_safeguard_suite(&|| Box::new(SlackBudget::default()));
    let preference = Preference::Reservation;
    let strict = SlackSettings { preference, ..SlackSettings::default() };
    call_safeguard_suite(&move || Box::new(SlackBudget::new(strict)));
    let surging = SlackSettings {
        preference: Preference::Surges,
        restores_in_stages: true,
        soonest_look: Duration::from_millis(5),
        reserve: 1.0,
        ..SlackSettings::default()
    };
    call_safeguard_suite(&move || Box::new(SlackBudget::new(surging)));
}

fn call() -> CallView {
    calls().swap_remove(0)
}

fn slack(settings: SlackSettings) -> CallSafeguardChain {
    CallSafeguardChain::new(vec![Box::new(SlackBudget::new(settings))])
}

fn look_at(millis: u64, grant: Allocation, sensed: Sensed) -> RunningCall {
    let call = call();
    RunningCall {
        id: call.id,
        function: call.function,
        node: NodeId(0),
        now: call.now + Duration::from_millis(millis),
        started_at: call.now,
        input: None,
        reservation: call.reservation,
        ceiling: call.ceiling,
        grant,
        owed: Allocation::ZERO,
        free_on_node: Allocation::new(8000, 8192),
        waiting: 0,
        node_is_short: false,
        actuation_delay: Duration::from_millis(10),
        capabilities: call.capabilities,
        sensed,
    }
}

fn sensed(cores: f64, throttled_share: f64, memory_mib: f64) -> Sensed {
    let window = Duration::from_millis(100);
    Sensed { window, cpu_used_cores: cores, throttled_share, memory_mib, delayed_share: 0.0 }
}

fn decision(cpu: u32, memory: u32) -> CallDecision {
    CallDecision::exactly(Allocation::new(cpu, memory), "test")
}

fn rules(plan: &CallPlan) -> Vec<&str> {
    plan.amendments().iter().map(|amendment| amendment.rule.as_ref()).collect()
}

#[test]
fn a_trim_stops_at_the_slack_that_was_earned() {
    // 600m at the start, 2 s run, nothing lost: 20 ms of budget over 110 ms.
    let mut chain = slack(SlackSettings::default());
    let running = look_at(2000, Allocation::new(600, 256), sensed(0.1, 0.0, 50.0));
    let plan = chain.while_running(&running, &decision(1, 256)).unwrap();
    assert_eq!(plan.grant().cpu.get(), 491); // 600 * (1 - 20/110)
    assert_eq!(rules(&plan), ["slack-budget"]);
    assert_eq!(plan.look_after(), Some(Duration::from_millis(100)));
}

#[test]
fn an_early_look_affords_a_deeper_trim_and_room_is_held_back_for_the_rest() {
    let soonest_look = Duration::from_millis(5);
    let settings = SlackSettings { soonest_look, reserve: 0.5, ..SlackSettings::default() };
    let mut chain = slack(settings);
    let running = look_at(2000, Allocation::new(600, 256), sensed(0.0, 0.0, 50.0));
    let running = RunningCall { actuation_delay: Duration::ZERO, ..running };
    let plan = chain.while_running(&running, &decision(300, 256)).unwrap();
    // Half of 600m for 40 ms costs the 20 ms of budget; half of the 300m taken is held back.
    assert_eq!((plan.grant().cpu.get(), plan.held_back().get()), (300, 150));
    assert_eq!(plan.look_after(), Some(Duration::from_millis(40)));
}

#[test]
fn a_trim_that_came_late_is_charged_with_what_was_in_force() {
    // At 2 s 200m are asked for, which takes its time; at 2.1 s the call still holds 600m and 600m are asked again. In
    // between 200m were in force. Had nobody said so, the window would be charged at 600m: nothing.
    let least_after = |in_force: Option<u32>| {
        let mut chain = slack(SlackSettings::default());
        let whole = Allocation::new(600, 256);
        let busy = sensed(0.3, 0.0, 10.0);
        for (millis, asked) in [(2000, 200), (2100, 600)] {
            chain.while_running(&look_at(millis, whole, busy), &decision(asked, 256)).unwrap();
        }
        if let Some(cpu) = in_force {
            let in_force = Allocation::new(cpu, 256);
            let RunningCall { id: call, node, now: at, reservation, .. } =
                look_at(2150, in_force, busy);
            let refused = Some(Refusal::Superseded);
            let change =
                Resized { call, node, at, reservation, asked: in_force, in_force, refused };
            chain.resized(&change);
        }
        let throttled = sensed(0.3, 0.015, 10.0);
        chain
            .while_running(&look_at(2200, whole, throttled), &decision(1, 256))
            .unwrap()
            .grant()
            .cpu
    };
    assert!(least_after(Some(200)) > least_after(None), "what was lost is off the budget");
}

#[test]
fn a_lost_call_is_no_longer_watched() {
    let mut budget = SlackBudget::default();
    let look = look_at(100, Allocation::new(600, 256), sensed(0.3, 0.0, 10.0));
    let mut proposal = Proposal {
        function: look.function,
        grant: look.grant,
        cpu_ceiling: CpuCeiling::AtGrant,
        beyond: Beyond::FreeCapacity,
        expected_run: None,
        demand: None,
        look_after: None,
        held_back: MilliCpu::ZERO,
        amendments: Vec::new(),
        why: "test",
    };
    budget.while_running(&look, &mut proposal);
    assert_eq!(budget.watched(), 1);
    budget.lost(look.id);
    budget.lost(look.id);
    assert_eq!(budget.watched(), 0);
}

#[test]
fn a_saturated_call_gets_its_size_back_at_once() {
    let mut chain = slack(SlackSettings::default());
    let running = look_at(2000, Allocation::new(600, 256), sensed(0.6, 0.5, 50.0));
    let plan = chain.while_running(&running, &decision(1, 256)).unwrap();
    assert_eq!(plan.grant().cpu.get(), 1000);
    // Half of 100 ms at 600m of 600m preferred: a tenth is charged, 5 ms. 21 - 5 = 16 ms are left.
    let running = look_at(2100, Allocation::new(1000, 256), sensed(0.6, 0.0, 50.0));
    let plan = chain.while_running(&running, &decision(1, 256)).unwrap();
    assert_eq!(plan.grant().cpu.get(), 513); // 600 * (1 - 16/110), rounded up
}

#[test]
fn a_call_below_its_reservation_is_looked_at_in_time() {
    let mut chain = slack(SlackSettings::default());
    let late = CallDecision { look_after: Some(Duration::from_secs(9)), ..decision(500, 256) };
    let plan = chain.at_dispatch(&call(), &late).unwrap();
    assert_eq!(plan.look_after(), Some(Duration::from_millis(100)));
    let plan = chain.at_dispatch(&call(), &decision(500, 256)).unwrap();
    assert_eq!(plan.look_after(), Some(Duration::from_millis(100)));
    let plan = chain.at_dispatch(&call(), &decision(1000, 256)).unwrap();
    assert_eq!(plan.look_after(), None);
}

#[test]
fn memory_close_to_its_limit_grows_and_is_never_cut_below_use() {
    let mut chain = slack(SlackSettings::default());
    let running = look_at(100, Allocation::new(1000, 100), sensed(0.1, 0.0, 95.0));
    let plan = chain.while_running(&running, &decision(1000, 10)).unwrap();
    assert_eq!(plan.grant().memory.get(), 130);
    let running = look_at(200, Allocation::new(1000, 200), sensed(0.1, 0.0, 95.0));
    let plan = chain.while_running(&running, &decision(1000, 10)).unwrap();
    assert_eq!(plan.grant().memory.get(), 105); // 95 * 1.1, rounded up
}

#[test]
fn sensors_without_sense_bring_the_users_size() {
    let mut chain = slack(SlackSettings::default());
    let running = look_at(5000, Allocation::new(100, 100), sensed(f64::NAN, 0.0, 1.0));
    let plan = chain.while_running(&running, &decision(1, 1)).unwrap();
    assert_eq!(plan.grant(), call().reservation);
}

#[test]
fn the_floor_holds_at_dispatch_and_while_running() {
    let mut chain = CallSafeguardChain::new(vec![Box::new(Floor::default())]);
    let plan = chain.at_dispatch(&call(), &decision(1, 1)).unwrap();
    assert_eq!(plan.grant(), Allocation::new(50, 64));
    assert_eq!(rules(&plan), ["floor", "floor"]);
    let running = look_at(100, Allocation::new(50, 64), sensed(0.0, 0.0, 1.0));
    assert_eq!(chain.while_running(&running, &decision(1, 1)).unwrap().grant(), plan.grant());
}

#[test]
fn faasrm_calibrates_before_it_lets_anything_go() {
    let mut chain = CallSafeguardChain::new(vec![Box::new(Faasrm::default())]);
    let call = call();
    let plan = chain.at_dispatch(&call, &decision(1, 1)).unwrap();
    assert_eq!(plan.grant(), call.reservation);
    assert_eq!(rules(&plan), ["faasrm", "faasrm"]);
    // Half of the reservation used: 500m and 128 MiB, plus a level.
    chain.at_end(&windfall_core::conformance::outcome_of(&call, plan.grant(), false));
    let plan = chain.at_dispatch(&call, &decision(1, 1)).unwrap();
    assert_eq!(plan.grant(), Allocation::new(600, 160));
    let plan = chain.at_dispatch(&call, &decision(5000, 3000)).unwrap();
    assert_eq!(plan.grant(), call.reservation);
}

#[test]
fn names_are_a_closed_set_without_doubles() {
    let mut names = NAMES.to_vec();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), NAMES.len());
}

/// Share of its time that a call may lose in these properties.
const BETA: f64 = 0.02;

/// A running call in steps of 1 ms: it wants `demand` of each step, gets what is in force, and loses
/// the share of the step it would have needed more for. Changes come into force after `delay` steps.
/// Tells how far the loss was ever ahead of `BETA` times the time run, in ms.
fn worst_overdraft(
    chain: &mut CallSafeguardChain,
    first: u32,
    delay: u64,
    demand: &[u32],
    decisions: &[(u32, u64)],
) -> f64 {
    let plan = chain.at_dispatch(&call(), &decision(first, 256)).unwrap();
    let (mut grant, mut coming) = (plan.grant(), None);
    let mut next_look = plan.look_after().map(|after| after.as_nanos() / 1_000_000);
    let (mut lost, mut used, mut throttled, mut since) = (0.0, 0.0, 0u64, 0u64);
    let mut decisions = decisions.iter().cycle();
    let mut worst = 0.0f64;
    for (now, &wanted) in demand.iter().enumerate() {
        let now = now as u64;
        if let Some((at, new)) = coming
            && at == now
        {
            (grant, coming) = (new, None);
        }
        if next_look == Some(now) {
            let window = Duration::from_millis(now - since);
            let steps = (now - since) as f64;
            let sensed = Sensed {
                window,
                cpu_used_cores: used / steps * 1e-3,
                throttled_share: throttled as f64 / steps,
                delayed_share: 0.0,
                memory_mib: 1.0,
            };
            let actuation_delay = Duration::from_millis(delay);
            let running = RunningCall { actuation_delay, ..look_at(now, grant, sensed) };
            let &(cpu, look) = decisions.next().expect("cycles");
            let look_after = Some(Duration::from_millis(look));
            let plan =
                chain.while_running(&running, &CallDecision { look_after, ..decision(cpu, 256) });
            let plan = plan.unwrap();
            let after = plan.look_after().expect("asked for").as_nanos() / 1_000_000;
            (next_look, since, used, throttled) = (Some(now + after), now, 0.0, 0);
            if delay == 0 {
                grant = plan.grant()
            } else {
                coming = Some((now + delay, plan.grant()))
            }
        }
        let got = wanted.min(grant.cpu.get());
        used += f64::from(got);
        if got < wanted {
            throttled += 1;
            lost += 1.0 - f64::from(got) / f64::from(wanted);
        }
        worst = worst.max(lost - BETA * (now + 1) as f64);
    }
    worst
}

proptest! {
    #[test]
    fn within_its_preference_no_call_loses_more_than_its_slack(
        target in 1u32..=1000,
        delay in 0u64..20,
        shares in prop::collection::vec((prop_oneof![0u32..=100, Just(0), Just(100)], 1usize..200), 1..40),
        decisions in prop::collection::vec((prop_oneof![0u32..1200, Just(0)], 20u64..300), 1..20),
        saturated in prop::sample::select(vec![0.0, 0.02, 0.5]),
    ) {
        let demand: Vec<u32> = shares
            .iter()
            .flat_map(|&(share, length)| std::iter::repeat_n(target * share / 100, length))
            .collect();
        let settings = SlackSettings { beta: BETA, saturated, ..SlackSettings::default() };
        let worst = worst_overdraft(&mut slack(settings), target, delay, &demand, &decisions);
        prop_assert!(worst <= 1e-6, "{worst} ms more than the slack");
    }

    #[test]
    fn early_looks_and_staged_returns_cost_no_more_than_the_slack(
        target in 1u32..=1000,
        delay in 0u64..20,
        shares in prop::collection::vec((prop_oneof![0u32..=100, Just(0), Just(100)], 1usize..200), 1..40),
        decisions in prop::collection::vec((prop_oneof![0u32..1200, Just(0)], 20u64..300), 1..20),
        soonest in 1u64..40,
    ) {
        let demand: Vec<u32> = shares
            .iter()
            .flat_map(|&(share, length)| std::iter::repeat_n(target * share / 100, length))
            .collect();
        let settings = SlackSettings {
            beta: BETA,
            beta_queued: BETA,
            soonest_look: Duration::from_millis(soonest),
            restores_in_stages: true,
            reserve: 1.0,
            ..SlackSettings::default()
        };
        let worst = worst_overdraft(&mut slack(settings), target, delay, &demand, &decisions);
        prop_assert!(worst <= 1e-6, "{worst} ms more than the slack");
    }

    #[test]
    fn with_the_reservation_preferred_that_holds_for_any_demand(
        first in 1u32..=1000,
        delay in 0u64..20,
        shares in prop::collection::vec((0u32..=1000, 1usize..200), 1..40),
        decisions in prop::collection::vec((prop_oneof![0u32..1200, Just(0)], 20u64..300), 1..20),
    ) {
        let demand: Vec<u32> = shares
            .iter()
            .flat_map(|&(wanted, length)| std::iter::repeat_n(wanted, length))
            .collect();
        let preference = Preference::Reservation;
        let settings = SlackSettings { beta: BETA, preference, ..SlackSettings::default() };
        let worst = worst_overdraft(&mut slack(settings), first, delay, &demand, &decisions);
        prop_assert!(worst <= 1e-6, "{worst} ms more than the slack");
    }
}

mod slack_weights {
    use super::*;
    use crate::call_safeguards::{SlackWeights, SlackWeightsSettings};

    fn look(millis: u64, window: u64, delayed_share: f64, node_is_short: bool) -> RunningCall {
        using(1.0, millis, window, delayed_share, node_is_short)
    }

    fn using(
        cores: f64,
        millis: u64,
        window: u64,
        delayed_share: f64,
        node_is_short: bool,
    ) -> RunningCall {
        let window = Duration::from_millis(window);
        let sensed = Sensed { window, delayed_share, ..sensed(cores, delayed_share, 10.0) };
        RunningCall { node_is_short, ..look_at(millis, Allocation::new(1000, 256), sensed) }
    }

    fn weight(chain: &mut CallSafeguardChain, running: &RunningCall, cpu: u32) -> u32 {
        let plan = chain.while_running(running, &decision(cpu, 256)).unwrap();
        plan.grant().cpu.get()
    }

    #[test]
    fn a_call_gives_way_only_where_cpu_is_short_and_as_long_as_it_has_slack() {
        let mut chain = CallSafeguardChain::new(vec![Box::new(SlackWeights::default())]);
        assert_eq!(weight(&mut chain, &look(2000, 2000, 0.0, false), 50), 1000, "nobody waits");
        assert_eq!(weight(&mut chain, &look(2000, 0, 0.0, true), 50), 50);
        assert_eq!(weight(&mut chain, &look(2000, 0, 0.0, true), 1), 50, "never less");
        // 100 ms lost in the last 200 ms: 0.04 x 2.1 s = 84 ms are gone.
        assert_eq!(weight(&mut chain, &look(2200, 200, 0.5, true), 50), 1000);
    }

    #[test]
    fn a_call_with_enough_slack_may_hold_the_lower_weight_before_its_node_is_short() {
        let settings =
            SlackWeightsSettings { ahead_seconds: Some(0.008), ..SlackWeightsSettings::default() };
        let mut chain = CallSafeguardChain::new(vec![Box::new(SlackWeights::new(settings))]);
        assert_eq!(weight(&mut chain, &look(190, 190, 0.0, false), 50), 1000, "7.6 ms");
        assert_eq!(weight(&mut chain, &look(210, 20, 0.0, false), 50), 50, "8.4 ms");
        assert_eq!(weight(&mut chain, &look(215, 5, 1.0, true), 50), 50, "3.4 ms are left");
        assert_eq!(weight(&mut chain, &look(216, 1, 1.0, true), 50), 1000, "2.4 ms are not enough");
    }

    #[test]
    fn a_call_may_give_back_what_it_gained_beyond_its_reservation() {
        let mut chain = CallSafeguardChain::new(vec![Box::new(SlackWeights::default())]);
        // 100 ms on 2 cores where 1 is reserved: it is 100 ms ahead.
        assert_eq!(weight(&mut chain, &using(2.0, 100, 100, 0.0, true), 50), 50);
        assert_eq!(weight(&mut chain, &using(0.1, 190, 90, 0.9, true), 50), 50, "81 ms are back");
        assert_eq!(weight(&mut chain, &using(0.1, 220, 30, 0.9, true), 50), 1000, "all of it is");
    }

    proptest! {
        /// Whatever a policy asks for, a call that has lost its share and what it gained holds its reservation.
        #[test]
        fn no_call_is_below_its_guaranteed_weight_beyond_its_slack(
            looks in proptest::collection::vec(
                (1u64..50, 0.0f64..1.0, any::<bool>(), 0u32..3000, 0.0f64..1.2),
                1..200,
            ),
            ahead_seconds in proptest::option::of(0.003f64..0.1),
        ) {
            let settings = SlackWeightsSettings { ahead_seconds, ..SlackWeightsSettings::default() };
            let mut chain = CallSafeguardChain::new(vec![Box::new(SlackWeights::new(settings))]);
            let (mut now, mut lost, mut gained) = (0, 0.0, 0.0);
            for (window, delayed, short, cpu, cores) in looks {
                now += window;
                lost += delayed * window as f64 * 1e-3;
                gained += (cores - 1.0f64).max(0.0) * window as f64 * 1e-3;
                let held = weight(&mut chain, &using(cores, now, window, delayed, short), cpu);
                let alone = now as f64 * 1e-3 - lost + gained;
                let slack = settings.beta * alone - lost + gained;
                let enough = if short { Some(settings.margin_seconds) } else { ahead_seconds };
                if enough.is_none_or(|enough| slack <= enough - 1e-9) {
                    prop_assert!(held >= 1000, "{held} with a slack of {slack}");
                }
                prop_assert!(held >= 50);
            }
        }
    }
}
