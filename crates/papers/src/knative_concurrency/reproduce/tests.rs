use super::super::workloads::{WORKLOADS, Workload};
use super::*;

fn named(name: &str) -> Workload {
    *WORKLOADS.iter().find(|workload| workload.name == name).expect("in the table")
}

fn swept(name: &str) -> WorkloadSweep {
    let workload = named(name);
    let judging = simulate(&workload, 2, "test", &|| ());
    sweep_of(&WorkloadTests { workload, judging, learning: Vec::new() })
}

fn at(sweep: &WorkloadSweep, limit: u32) -> &SweepPoint {
    sweep.points.iter().find(|point| point.limit == limit).expect("a limit of the sweep")
}

#[test]
fn memory_is_served_best_at_the_lowest_limit() {
    for name in ["#9", "#10", "#16"] {
        assert_eq!(swept(name).best().limit, 10, "{name}");
    }
    // Two repetitions do not tell 10 from 30 where the cluster is full either way.
    assert!(swept("#17").best().limit <= 30);
}

#[test]
fn sleepers_want_a_high_limit_but_not_the_highest() {
    let sleeper = swept("#7");
    let best = sleeper.best();
    assert!((50..=90).contains(&best.limit), "{}", best.limit);
    assert!(at(&sleeper, 10).throughput < 0.8 * best.throughput);
    assert!(at(&sleeper, 310).throughput < 0.95 * best.throughput);
    let limits = sleeper.points.iter().filter(|point| point.limit >= 210);
    let throughputs: Vec<f64> = limits.map(|point| point.throughput).collect();
    assert!(throughputs.last() < throughputs.first(), "{throughputs:?}");
}

#[test]
fn much_memory_fails_at_high_limits_and_more_memory_earlier() {
    let (much, most) = (swept("#16"), swept("#17"));
    assert!(at(&much, 150).success > 0.99 && at(&much, 170).success < 0.9);
    assert!(at(&most, 70).success > 0.99 && at(&most, 90).success < 0.9);
}

#[test]
fn a_load_test_is_a_function_of_its_seed() {
    let workload = named("#10");
    let once = test_limit(&workload, 30, Seed::new(7));
    assert_eq!(once, test_limit(&workload, 30, Seed::new(7)));
    assert_ne!(once, test_limit(&workload, 30, Seed::new(8)));
    assert_eq!(once.requests, 15_000);
}

#[test]
fn the_bracket_search_is_quicker_than_the_table_and_safe() {
    let plan = Plan { workloads: vec![named("#10"), named("#17")], ..Plan::quick() };
    let plan = Plan { repetitions: 2, ..plan };
    let result = reproduce(&plan, &|| ());
    for rows in result.learners.chunks(2) {
        let [table, bracket] = rows else { panic!("two learners each") };
        assert_eq!(bracket.within_5_percent_after_15, 1.0, "{}", bracket.workload);
        assert_eq!(bracket.unsafe_picks_after_third, 0, "{}", bracket.workload);
        assert!(table.unsafe_picks_after_third > 0, "{}", table.workload);
        let tests = |row: &LearnerRow| row.median_load_tests_to_within_5_percent;
        assert!(tests(bracket) * 10.0 <= tests(table), "{} {}", tests(bracket), tests(table));
    }
}
