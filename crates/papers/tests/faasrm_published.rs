//! The published table, met on the authors' own sample. The sample is no part of the repository:
//! `WINDFALL_DATA` says where it lies, and without it these tests say that they were skipped.

use std::collections::BTreeMap;
use std::path::PathBuf;

use windfall_core::Trigger;
use windfall_papers::faasrm::paper_agent::TrainingSettings;
use windfall_papers::faasrm::published::{Row, reproduce};
use windfall_papers::faasrm::{Calls, FunctionModel, Levels};
use windfall_rl::parallel::Workers;
use windfall_trace::freyr_sample::{SampledFunction, open_sample};

fn sample() -> Option<Vec<SampledFunction>> {
    let data = std::env::var_os("WINDFALL_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let directory = data.join("azure2019-joint-1000fn-60min");
    if !directory.exists() {
        #[expect(clippy::print_stderr, reason = "a skipped test says so")]
        {
            eprintln!("skipped: {} is not there; set WINDFALL_DATA", directory.display());
        }
        return None;
    }
    Some(open_sample(&directory).expect("the sample is whole"))
}

#[test]
fn the_sample_has_its_known_shape() {
    let Some(sample) = sample() else { return };
    let mut triggers = BTreeMap::new();
    sample.iter().for_each(|function| *triggers.entry(function.trigger).or_insert(0) += 1);
    let expected = [
        (Trigger::Http, 254),
        (Trigger::Timer, 414),
        (Trigger::Queue, 133),
        (Trigger::Orchestration, 72),
        (Trigger::Event, 37),
        (Trigger::Storage, 26),
        (Trigger::Other, 64),
    ];
    assert_eq!(triggers, BTreeMap::from(expected));
    let calls = Calls::new(&sample, true);
    assert_eq!(calls.events.len(), 85_470);
    assert!((calls.mean_baseline() - 10.197).abs() < 0.0005);
    assert!((Calls::new(&sample, false).mean_baseline() - 10.409).abs() < 0.0005);
    let of_level = |level| {
        let is_there = |function: &&FunctionModel| function.user == Levels::both(level);
        calls.functions.iter().filter(is_there).count()
    };
    assert_eq!([1, 2, 3, 4, 5, 6, 7, 8].map(of_level), [332, 427, 178, 31, 13, 5, 7, 7]);
    let over = calls.functions.iter().filter(|f| f.ideal_cpu < f.user.cpu).count();
    let under = calls.functions.iter().filter(|f| f.ideal_cpu > f.user.cpu).count();
    assert_eq!((over, under), (131, 252));
}

#[test]
fn the_published_table_is_met() {
    let Some(sample) = sample() else { return };
    let training = TrainingSettings { episodes: 1, functions: 5, ..TrainingSettings::quick() };
    let table = reproduce(&sample, &[1, 2, 3, 4], &training, &Workers::new(2), &mut |_| ());
    let row = |policy: &str| -> &Row { table.row(policy).expect("in the table") };
    let exact = [
        ("fixed", 1.000, 121.0),
        ("greedy-2", 1.459, 76.0),
        ("greedy-1", 0.761, 17.0),
        ("ensure", 0.905, 48.0),
        ("safeguard-top", 0.760, 15.0),
        ("oracle", 0.750, 13.0),
    ];
    for (policy, rfet, seconds) in exact {
        let Row { rfet_mean, p98_s, .. } = *row(policy);
        assert!(
            (rfet_mean - rfet).abs() <= 0.005 && p98_s == seconds,
            "{policy}: {rfet_mean} {p98_s}"
        );
    }
    let random = row("safeguard-random");
    assert!(
        random.rfet_range.low >= 0.755 && random.rfet_range.high <= 0.765,
        "{:?}",
        random.rfet_range
    );
    assert!(
        random.p98_range.low >= 14.0 && random.p98_range.high <= 16.0,
        "{:?}",
        random.p98_range
    );
    // An agent that has learned next to nothing: the safeguard does the work.
    let agent = row("faasrm");
    assert!(
        agent.rfet_range.low >= 0.755 && agent.rfet_range.high <= 0.765,
        "{:?}",
        agent.rfet_range
    );
    // What a replay needs beside the scores: all but the lost call, and never more than the published peak.
    assert_eq!(row("fixed").summary.calls, 85_469);
    let busiest = ["fixed", "greedy-2", "greedy-1", "safeguard-top", "safeguard-bottom"];
    let cores: Vec<f64> = busiest.iter().map(|policy| row(policy).summary.busy_cores_max).collect();
    assert_eq!(cores, [254.0, 183.0, 218.0, 256.0, 141.0]);
    let best = &row("oracle").summary;
    assert_eq!(best.calls, 85_470);
    assert!(best.busy_cores_max > 0.0 && best.busy_cores_max < 254.0, "{}", best.busy_cores_max);
}
