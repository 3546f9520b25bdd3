use windfall_core::Duration;
use windfall_trace::{AzureLikeSettings, Source};

use super::summary::summarize;
use super::*;

fn small_world() -> CapacityWorld {
    let trace = AzureLikeSettings {
        functions: 30,
        duration: Duration::from_mins(6),
        calls_per_hour: 30_000.0,
        ..AzureLikeSettings::default()
    };
    let scenario = Scenario {
        trace: Source::AzureLike(trace),
        warm_up: Duration::from_mins(1),
        ..Scenario::default()
    };
    let mut world = CapacityWorld { nodes: 2, ..CapacityWorld::new("small", scenario) };
    // In so few minutes most functions are new, and cold starts would decide.
    world.scenario.platform.cold_starts = false;
    world
}

fn capacity() -> Capacity {
    let ours = Contestant::new("windfall-admission", Role::Ours).ordered(Role::Ours);
    let oracle = Contestant::new("peak-oracle", Role::Oracle).ordered(Role::Oracle);
    let weights = Contestant::new("weights", Role::Incumbent).over_committed(&[1.0, 2.0]);
    Capacity {
        worlds: vec![small_world()],
        contestants: vec![Contestant::new("fixed", Role::Fixed), weights, ours, oracle],
        // A short run has few calls, so one of them must not decide.
        objective: Objective { slow_share: 0.05, violation_share: 0.02, ..Objective::default() },
        seeds: vec![1, 2],
        search: Search { precision: 1.2, ..Search::default() },
        races: false,
    }
}

#[test]
fn in_a_race_incumbents_that_hold_far_less_than_the_best_of_their_kind_have_one_seed() {
    let row = |policy: &str, role: Role, load_held: f64| CapacityRow {
        world: "w".into(),
        policy: policy.into(),
        over_commit: 1.0,
        seed: 1,
        load_held,
        role,
        measured: Vec::new(),
    };
    let firsts = [
        vec![row("fixed", Role::Fixed, 0.5)],
        vec![row("weights", Role::Incumbent, 1.0)],
        vec![row("libra", Role::Incumbent, 0.9)],
        vec![row("vpa", Role::Incumbent, 0.8)],
        vec![row("vpa, ordered", Role::OrderedIncumbent, 0.8)],
        vec![row("ours", Role::Ours, 0.1)],
    ];
    assert_eq!(contenders(&firsts), [true, true, true, false, true, true]);
}

#[test]
fn threads_cannot_be_seen_in_the_result() {
    let capacity = capacity();
    let held = |threads: usize| {
        let result = capacity.play_on(threads, &Nobody).expect("it can be played");
        let rows: Vec<_> = result
            .rows
            .iter()
            .map(|row| (row.policy.clone(), row.over_commit, row.seed, row.load_held))
            .collect();
        (rows, summarize(&capacity.objective, &result))
    };
    let (rows, summaries) = held(1);
    assert_eq!((&rows, &summaries), (&held(3).0, &held(3).1));
    let seeds = |policy: &str, over_commit: f64| {
        let of = rows.iter().filter(|row| row.0 == policy && row.1 == over_commit);
        of.map(|row| row.2).collect::<Vec<u64>>()
    };
    for (policy, over_commit, ..) in &rows {
        assert_eq!(
            seeds(policy, *over_commit),
            [1, 2],
            "{policy}: whoever is listed has all seeds"
        );
    }
    let best = |policy: &str| rows.iter().filter(|row| row.0 == policy).count() / 2;
    assert!(best("weights") <= 2 && best("fixed") == 1, "hopeless over-commits are not listed");
    let of = |policy: &str| summaries.iter().find(|one| one.policy == policy).expect(policy);
    assert!(of("fixed").load_held > 0.0, "{summaries:?}");
    assert!(of("packing bound").load_held > of("fixed").load_held, "{summaries:?}");
}
