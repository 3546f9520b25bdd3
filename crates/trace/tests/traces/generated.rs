//! Generated workloads: reproducible, of the requested size, and similar to the real trace.

use windfall_core::{Duration, Seed, Trigger, Workload};
use windfall_trace::{AzureLikeSettings, ReadOptions, Source, TraceSummary, summarise};

use crate::{all, data, file, functions_of};

#[test]
fn a_generated_workload_repeats_and_another_seed_differs() {
    let settings = AzureLikeSettings { functions: 60, ..AzureLikeSettings::default() };
    let source = Source::AzureLike(settings);
    let mut first = source.open(Seed::new(3)).unwrap();
    first.restart(Seed::new(4));
    let mut fresh = source.open(Seed::new(4)).unwrap();
    assert_eq!(first.functions(), fresh.functions());
    assert_eq!(all(&mut *first), all(&mut *fresh));
}

#[test]
fn the_default_hour_has_the_documented_size_and_skew() {
    for seed in 1..6 {
        let source = Source::AzureLike(AzureLikeSettings::default());
        let mut workload = source.open(Seed::new(seed)).unwrap();
        let summary = summarise(&mut *workload, &mut |_| {});
        let calls = summary.load.calls;
        assert!((120_000..200_000).contains(&calls), "seed {seed}: {calls} calls");
        assert!(summary.top[0].share < 0.3, "seed {seed}: top share {}", summary.top[0].share);
        let timers = functions_of(&*workload, Trigger::Timer);
        assert!((75..125).contains(&timers), "seed {seed}: {timers} timers");
        assert!(summary.text().lines().all(|line| line.chars().count() <= 79));
    }
}

#[test]
fn low_rates_are_reached_too() {
    for (calls_per_hour, hours) in [(20.0, 24), (1e3, 8), (2e4, 8)] {
        let settings = AzureLikeSettings {
            calls_per_hour,
            duration: Duration::from_mins(60 * hours),
            start_hour: 0.0,
            ..AzureLikeSettings::default()
        };
        let mut workload = Source::AzureLike(settings).open(Seed::new(1)).unwrap();
        let calls = all(&mut *workload).len() as f64 / hours as f64;
        let ratio = calls / calls_per_hour;
        assert!((0.6..1.5).contains(&ratio), "requested {calls_per_hour}, got {calls} per hour");
    }
}

/// Quantiles over functions of ln(mean run time in ms); functions without calls are left out.
fn run_quantiles(workload: &mut dyn Workload) -> [f64; 5] {
    let sizes: Vec<_> = workload.functions().iter().map(|f| f.reservation.cpu).collect();
    let mut runs = vec![(0.0, 0.0); sizes.len()];
    while let Some(arrival) = workload.next_arrival() {
        let place = arrival.function.index();
        runs[place].0 += 1.0;
        runs[place].1 += arrival.demand.run_time(sizes[place]).as_millis_f64();
    }
    let mut logs: Vec<f64> = runs
        .iter()
        .filter(|(calls, _)| *calls > 0.0)
        .map(|(calls, ms)| (ms / calls).ln())
        .collect();
    logs.sort_unstable_by(f64::total_cmp);
    [0.1, 0.25, 0.5, 0.75, 0.9].map(|share| logs[(share * logs.len() as f64) as usize])
}

/// Share of the calls made by the busiest 4, 16 and 64 functions.
fn popularity(summary: &TraceSummary) -> [f64; 3] {
    [4, 16, 64].map(|rank| {
        summary.popularity.iter().find(|(here, _)| *here == rank).map_or(1.0, |(_, share)| *share)
    })
}

#[test]
fn generated_functions_resemble_the_real_ones() {
    let Some(path) = data("azure2019-joint-500fn-8h") else { return };
    // One function makes 63 % of the real calls; the generator caps such functions, so it is left out.
    let options = ReadOptions { without_busiest: true, ..ReadOptions::default() };
    let mut real = file(path, options).open(Seed::new(1)).unwrap();
    let runs = run_quantiles(&mut *real);
    real.restart(Seed::new(1));
    let summary = summarise(&mut *real, &mut |_| {});
    let settings = AzureLikeSettings {
        functions: 499,
        duration: Duration::from_mins(480),
        calls_per_hour: summary.load.calls as f64 / 8.0,
        ..AzureLikeSettings::default()
    };
    for seed in 1..4 {
        let mut made = Source::AzureLike(settings.clone()).open(Seed::new(seed)).unwrap();
        let made_runs = run_quantiles(&mut *made);
        made.restart(Seed::new(seed));
        let made_summary = summarise(&mut *made, &mut |_| {});
        let text = format!(
            "seed {seed}: run {runs:.2?} made {made_runs:.2?}; popularity {:.2?} made {:.2?}",
            popularity(&summary),
            popularity(&made_summary)
        );
        // Within a factor of 2.2, the shortest tenth within 3, where functions span five decades.
        let allowed = [3f64.ln(), 2.2f64.ln(), 2.2f64.ln(), 2.2f64.ln(), 2.2f64.ln()];
        for ((real, made), allowed) in runs.iter().zip(made_runs).zip(allowed) {
            assert!((real - made).abs() < allowed, "{text}");
        }
        for (real, made) in popularity(&summary).iter().zip(popularity(&made_summary)) {
            assert!((real - made).abs() < 0.15, "{text}");
        }
        for (trigger, functions, _) in &summary.triggers {
            let made = functions_of(&*made, *trigger) as f64;
            // Four standard deviations of a binomial draw, and one function.
            let share = *functions as f64 / 499.0;
            let allowed = 4.0 * (499.0 * share * (1.0 - share)).sqrt() + 1.0;
            assert!((made - *functions as f64).abs() < allowed, "{trigger:?}: {made} {functions}");
        }
    }
}

#[test]
fn a_workload_can_be_generated_without_functions_that_sleep() {
    // Of 4,000 functions a few sleep: calls that all take the same time, more than ten seconds.
    let settings = AzureLikeSettings {
        functions: 4000,
        duration: Duration::from_mins(2),
        ..AzureLikeSettings::default()
    };
    let awake = AzureLikeSettings { without_sleepers: true, ..settings };
    let open = |settings: &AzureLikeSettings, seed: u64| {
        Source::AzureLike(settings.clone()).open(Seed::new(seed)).unwrap()
    };
    let (whole, mut part) = (open(&settings, 1), open(&awake, 1));
    assert!(part.functions().len() < whole.functions().len());
    assert!(part.functions().len() > 3900);
    part.restart(Seed::new(2));
    assert_eq!(all(&mut *part), all(&mut *open(&awake, 2)));
}
