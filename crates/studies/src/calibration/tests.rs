use proptest::prelude::*;
use windfall_core::{ColdStart, FunctionId, FunctionProfile, SeenPeaks, Timestamp, Trigger};

use super::*;

fn named(name: &str) -> [NamedFunction; 1] {
    [NamedFunction {
        name: name.to_owned(),
        reservation: Allocation::new(1000, 128),
        ..NamedFunction::default()
    }]
}

fn profile(name: &str) -> FunctionProfile {
    FunctionProfile {
        name: name.to_owned(),
        application: name.to_owned(),
        trigger: Trigger::Http,
        runtime: "builtin".to_owned(),
        reservation: Allocation::new(1000, 128),
        cold_start: ColdStart { median: Duration::from_millis(5), sigma: 0.5 },
    }
}

/// A call of a function with 2 ms of work per unit of input on `parallelism` cores that waits 20 ms.
fn record(input: f64, cores: f64, parallelism: f64) -> CallRecord {
    let work = 0.002 * input;
    let run = 0.02 + busy_seconds(work, cores, parallelism);
    let grant = Allocation::new((cores * 1e3) as u32, 128);
    CallRecord {
        run: Duration::from_secs_f64(run),
        input: Some(input as f32),
        attempts: 1,
        first_grant: grant,
        lowest_grant: grant,
        highest_grant: grant,
        cpu_used: (work * 1e12) as u64,
        seen: Some(SeenPeaks { cpu_cores: 1.0, memory_mib: (20.0 + 0.1 * input) as f32 }),
        ..CallRecord::default()
    }
}

fn records(parallelism: f64) -> Vec<CallRecord> {
    let sizes = [0.5, 1.0, 2.0];
    let one = |place: u32| {
        record(50.0 + f64::from(place * 37 % 200), sizes[place as usize % 3], parallelism)
    };
    (0..30).map(one).collect()
}

#[test]
fn a_quota_is_used_at_full_speed_until_it_is_used_up() {
    // 0.3 core-seconds at 1 core with two threads: 50 ms of work and 50 ms of waiting, twice, then 50 ms.
    assert!((busy_seconds(0.3, 1.0, 2.0) - 0.25).abs() < 1e-9);
    assert!((busy_seconds(0.3, 2.0, 2.0) - 0.15).abs() < 1e-9);
    assert!((busy_seconds(0.04, 0.5, 1.0) - 0.04).abs() < 1e-9, "less than a period's budget");
}

#[test]
fn a_change_of_size_says_nothing_about_the_function() {
    let steady = record(100.0, 1.0, 2.0);
    assert!(ObservedCall::of(&steady, 2.0).is_some());
    let lowest_grant = Allocation::new(500, 128);
    assert!(ObservedCall::of(&CallRecord { lowest_grant, ..steady.clone() }, 2.0).is_none());
    assert!(ObservedCall::of(&CallRecord { attempts: 2, ..steady }, 2.0).is_none());
}

#[test]
fn calls_come_back_from_the_simulator_as_the_model_says() {
    let calibration = calibrate(&named("f"), &records(2.0), 2.0);
    let model = calibration.functions[0].clone();
    let calls: Vec<ReplayCall> = (0..5)
        .map(|place| ReplayCall {
            at: Timestamp::from_secs(10 * (place + 1)),
            function: FunctionId(0),
            input: Some(100.0 + place as f32),
        })
        .collect();
    let node = Allocation::new(2000, 2048);
    let under = ReplayUnder::policy("fixed", 1);
    let found = replay(&[(profile("f"), model.clone())], &calls, node, &under).unwrap();
    for (call, record) in calls.iter().zip(found) {
        let run = record.expect("every call ends").run.as_secs_f64();
        let law = model.run(f64::from(call.input.unwrap()), 1.0);
        assert!((run / law - 1.0).abs() < 0.35, "simulated {run}, model {law}");
    }
}

#[test]
fn few_calls_are_named_and_left_out() {
    let calibration = calibrate(&named("rare"), &records(1.0)[..3], 2.0);
    assert_eq!(calibration.left_out, [("rare".to_owned(), 3)]);
    assert!(table(&calibration).contains("rare was left out"));
}

proptest! {
    #[test]
    fn what_made_the_calls_is_found_again(hundredths in 20u32..100) {
        let parallelism = f64::from(hundredths) * 0.02;
        let calibration = calibrate(&named("f"), &records(parallelism), 2.0);
        let model = &calibration.functions[0];
        prop_assert!((model.parallelism - parallelism).abs() < 0.1, "{model:?}");
        prop_assert!((model.work_exponent - 1.0).abs() < 0.01 && (model.work(100.0) - 0.2).abs() < 0.002);
        prop_assert!((model.fixed_seconds - 0.02).abs() < 0.01, "{model:?}");
        prop_assert!((model.memory(100.0) - 30.0).abs() < 0.1);
        prop_assert!(calibration.error.median < 0.03, "{:?}", calibration.error);
    }
}
