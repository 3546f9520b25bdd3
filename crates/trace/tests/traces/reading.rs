//! Reading of published formats.

use windfall_core::statistics::Interval;
use windfall_core::{Arrival, MilliCpu, Seed, Timestamp, Trigger};
use windfall_trace::{Caps, Fold, FoldBy, Needs, Placement, ReadOptions};

use crate::{all, data, file, functions_of, small_trace};

#[test]
fn the_500_functions_are_read_completely_and_in_order() {
    let Some(path) = data("azure2019-joint-500fn-8h") else { return };
    let mut workload = file(path, ReadOptions::default()).open(Seed::new(1)).unwrap();
    assert_eq!(workload.functions().len(), 500);
    let counts = [
        (Trigger::Timer, 247),
        (Trigger::Http, 139),
        (Trigger::Queue, 69),
        (Trigger::Orchestration, 25),
        (Trigger::Event, 14),
        (Trigger::Storage, 5),
        (Trigger::Other, 1),
    ];
    for (trigger, count) in counts {
        assert_eq!(functions_of(&*workload, trigger), count, "{trigger:?}");
    }
    let (mut calls, mut last) = (0, Timestamp::ZERO);
    while let Some(arrival) = workload.next_arrival() {
        assert!(arrival.at >= last);
        assert!(arrival.demand.rise <= arrival.demand.fastest());
        assert!(arrival.demand.memory_base <= arrival.demand.memory_peak);
        last = arrival.at;
        calls += 1;
    }
    assert_eq!(calls, 3_037_902);
    assert!(last <= workload.horizon());
}

#[test]
fn the_1000_functions_are_read_completely() {
    let Some(path) = data("azure2019-joint-1000fn-60min") else { return };
    let mut workload = file(path, ReadOptions::default()).open(Seed::new(1)).unwrap();
    let counts = [
        (Trigger::Timer, 414),
        (Trigger::Http, 254),
        (Trigger::Queue, 133),
        (Trigger::Orchestration, 72),
        (Trigger::Other, 64),
        (Trigger::Event, 37),
        (Trigger::Storage, 26),
    ];
    for (trigger, count) in counts {
        assert_eq!(functions_of(&*workload, trigger), count, "{trigger:?}");
    }
    assert_eq!(all(&mut *workload).len(), 85_470);
}

#[test]
fn the_calls_of_2021_and_the_tables_of_huawei_are_read() {
    if let Some(path) = data("azure2021-invocations-tiny") {
        let mut workload = file(path, ReadOptions::default()).open(Seed::new(1)).unwrap();
        assert_eq!(workload.functions().len(), 31);
        let arrivals = all(&mut *workload);
        assert_eq!(arrivals.len(), 199);
        assert!(arrivals.is_sorted_by_key(|arrival| arrival.at));
    }
    for (table, functions) in [("datacentre_1.csv.gz", 17), ("datacentre_2.csv.gz", 16)] {
        let Some(path) = data("huawei2025-requests-5min") else { return };
        let window_minutes = Some((0, 60));
        let options = ReadOptions { window_minutes, ..ReadOptions::default() };
        let opened = file(path.join(table), options).open_with_notices(Seed::new(1)).unwrap();
        let mut workload = opened.workload;
        assert_eq!(workload.functions().len(), functions);
        assert_eq!(opened.notices.len(), if functions == 16 { 3 } else { 1 });
        assert!(all(&mut *workload).is_sorted_by_key(|arrival| arrival.at));
    }
}

#[test]
fn a_restart_equals_a_fresh_open_for_every_placement() {
    let directory = small_trace();
    for placement in [Placement::Uniform, Placement::Bursty] {
        for caps in [None, Some(Caps { busy: 0.01, busy_in_a_minute: 0.1, calls_per_second: None })]
        {
            let options = ReadOptions { placement, caps, ..ReadOptions::default() };
            let source = file(directory.path().to_owned(), options);
            let mut first = source.open(Seed::new(1)).unwrap();
            let other = all(&mut *first);
            first.restart(Seed::new(2));
            let mut fresh = source.open(Seed::new(2)).unwrap();
            assert_eq!(first.functions(), fresh.functions());
            let again = all(&mut *first);
            assert_eq!(again, all(&mut *fresh));
            assert_ne!(again, other);
            assert!(again.is_sorted_by_key(|arrival| arrival.at));
            assert_eq!(again.len() < 945, caps.is_some());
        }
    }
}

#[test]
fn a_subset_keeps_the_draws_of_its_functions() {
    let directory = small_trace();
    let open = |options| file(directory.path().to_owned(), options).open(Seed::new(5)).unwrap();
    let mut whole = open(ReadOptions::default());
    let mut part = open(ReadOptions { without_busiest: true, ..ReadOptions::default() });
    assert_eq!(part.functions(), &whole.functions()[..2]);
    let kept: Vec<Arrival> = all(&mut *whole).into_iter().filter(|a| a.function.0 < 2).collect();
    assert_eq!(all(&mut *part), kept);
}

#[test]
fn the_two_halves_are_complementary_and_share_no_application() {
    let directory = small_trace();
    let open = |fold| {
        let fold_by = FoldBy::Application;
        let options = ReadOptions { fold, fold_by, ..ReadOptions::default() };
        file(directory.path().to_owned(), options).open(Seed::new(5))
    };
    let names = |fold| -> Vec<String> {
        let workload = open(fold).ok();
        workload.map_or(Vec::new(), |w| w.functions().iter().map(|f| f.name.clone()).collect())
    };
    let (train, test) = (names(Some(Fold::Train)), names(Some(Fold::Test)));
    assert_eq!(train.len() + test.len(), names(None).len());
    assert!(train.iter().all(|name| !test.contains(name)));
}

#[test]
fn with_times_only_the_run_time_does_not_depend_on_the_size() {
    let directory = small_trace();
    let open = |needs| {
        let options = ReadOptions { needs, ..ReadOptions::default() };
        file(directory.path().to_owned(), options).open(Seed::new(5)).unwrap()
    };
    let (mut usual, mut bare) = (open(Needs::Modelled), open(Needs::TimesOnly));
    let size = usual.functions()[0].reservation.cpu;
    let (usual, bare) = (all(&mut *usual), all(&mut *bare));
    assert_eq!(usual.len(), bare.len());
    for (usual, bare) in usual.iter().zip(&bare).filter(|(usual, _)| usual.function.0 == 0) {
        let run = usual.demand.run_time(size);
        assert_eq!((bare.at, bare.demand.run_time(MilliCpu::new(1))), (usual.at, run));
    }
}

#[test]
fn caps_apply_to_huawei_tables_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("h.csv");
    let table = "date,1---2---pool-300-128\n2016-07-01 00:00:00,60000\n2016-07-01 00:05:00,60000\n";
    std::fs::write(&path, table).unwrap();
    let calls = |caps| {
        let options = ReadOptions { huawei_scale: 1.0, caps, ..ReadOptions::default() };
        all(&mut *file(path.clone(), options).open(Seed::new(1)).unwrap()).len()
    };
    let (whole, capped) = (
        calls(None),
        calls(Some(Caps { busy: 1.0, busy_in_a_minute: 2.0, calls_per_second: None })),
    );
    assert!((115_000..125_000).contains(&whole), "{whole}");
    // 10 minutes at one busy-second per second, at 50 to 600 ms a call.
    assert!((800..15_000).contains(&capped), "{capped}");
}

/// A table of one function with 6,000 requests in each of `bins` bins of five minutes.
fn steady_requests(bins: u32) -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("h.csv");
    let rows =
        (0..bins).map(|bin| format!("2016-07-01 {:02}:{:02}:00,6000\n", bin / 12, bin % 12 * 5));
    let table = format!("date,1---2---pool-300-128\n{}", rows.collect::<String>());
    std::fs::write(&path, table).unwrap();
    (directory, path)
}

#[test]
fn the_concurrent_calls_of_a_huawei_function_can_be_set() {
    let (_directory, path) = steady_requests(12);
    for seed in 1..6 {
        let options = ReadOptions {
            calls_at_once: Some(Interval { low: 4.0, high: 8.0 }),
            ..ReadOptions::default()
        };
        let mut workload = file(path.clone(), options).open(Seed::new(seed)).unwrap();
        let size = workload.functions()[0].reservation.cpu;
        let calls = all(&mut *workload);
        let busy: f64 = calls.iter().map(|call| call.demand.run_time(size).as_secs_f64()).sum();
        assert!((3.6..8.8).contains(&(busy / 3600.0)), "seed {seed}: {}", busy / 3600.0);
    }
}

#[test]
fn gusts_change_the_rate_of_a_minute_and_keep_that_of_an_hour() {
    let (_directory, path) = steady_requests(48);
    let minutes = |placement| {
        let options = ReadOptions { huawei_scale: 1.0, placement, ..ReadOptions::default() };
        let mut counts = vec![0.0f64; 240];
        for call in all(&mut *file(path.clone(), options).open(Seed::new(3)).unwrap()) {
            counts[(call.at.as_secs_f64() / 60.0) as usize] += 1.0;
        }
        let mean = counts.iter().sum::<f64>() / 240.0;
        let spread = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 240.0;
        (mean, spread.sqrt() / mean)
    };
    // 1,200 a minute: chance alone spreads counts by 1/sqrt(1200) = 3 %.
    let ((calm, calm_spread), (gusty, gusty_spread)) =
        (minutes(Placement::Uniform), minutes(Placement::Gusty));
    assert!((1190.0..1210.0).contains(&calm) && calm_spread < 0.05, "{calm} {calm_spread}");
    assert!((1100.0..1300.0).contains(&gusty), "{gusty}");
    assert!(gusty_spread > 0.2, "{gusty_spread}");
}

#[test]
fn stretches_laid_over_each_other_keep_every_call() {
    let directory = small_trace();
    let arrivals = |overlay_minutes| {
        let options = ReadOptions { overlay_minutes, ..ReadOptions::default() };
        all(&mut *file(directory.path().to_owned(), options).open(Seed::new(1)).unwrap())
    };
    let (apart, together) = (arrivals(None), arrivals(Some(1)));
    let last = |arrivals: &[Arrival]| arrivals.last().unwrap().at.as_secs_f64();
    assert_eq!(apart.len(), together.len());
    assert!(last(&apart) > 60.0 && last(&together) < 60.0);
    let of_each = |arrivals: &[Arrival]| {
        let mut calls = [0; 3];
        arrivals.iter().for_each(|arrival| calls[arrival.function.index()] += 1);
        calls
    };
    assert_eq!(of_each(&apart), of_each(&together));
    assert_eq!(arrivals(Some(9)), apart, "longer than the trace");
}

#[test]
fn functions_that_sleep_can_be_left_out() {
    let Some(path) = data("azure2019-joint-500fn-8h") else { return };
    let open = |without_sleepers| {
        let window_minutes = Some((0, 60));
        let options = ReadOptions { window_minutes, without_sleepers, ..ReadOptions::default() };
        file(path.clone(), options).open(Seed::new(1)).unwrap()
    };
    let (mut whole, mut part) = (open(false), open(true));
    assert!(part.functions().len() < whole.functions().len());
    // Nobody else waits for more than 0.635 of its run time.
    let sleeps = |arrival: &Arrival| {
        let run = arrival.demand.run_time(MilliCpu::new(8000)).as_secs_f64();
        arrival.demand.fixed.as_secs_f64() > 0.9 * run
    };
    let awake: Vec<_> = all(&mut *whole).into_iter().filter(|one| !sleeps(one)).collect();
    let kept = all(&mut *part);
    assert!(kept.iter().all(|arrival| !sleeps(arrival)));
    let demands = |arrivals: &[Arrival]| arrivals.iter().map(|one| one.demand).collect::<Vec<_>>();
    assert_eq!(demands(&kept), demands(&awake), "the others keep their draws");
}

#[test]
fn leaving_out_sleepers_is_refused_where_run_times_are_not_known() {
    let Some(path) = data("huawei2025-requests-5min") else { return };
    let options = ReadOptions { without_sleepers: true, ..ReadOptions::default() };
    let refused = file(path.join("datacentre_1.csv.gz"), options).open(Seed::new(1));
    let message = refused.err().expect("it has no run times").to_string();
    assert!(message.contains("without_sleepers"), "{message}");
}
