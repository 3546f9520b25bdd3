//! Generated workloads: repeatable, of the size they promise, and like the trace they imitate.

use windfall_core::{Seed, Trigger};
use windfall_trace::{AzureLikeSettings, Source, summarise};

use crate::{all, functions_of};

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
fn the_default_hour_has_the_size_and_skew_it_promises() {
    for seed in 1..6 {
        let source = Source::AzureLike(AzureLikeSettings::default());
        let mut workload = source.open(Seed::new(seed)).unwrap();
        let summary = summarise(&mut *workload, &mut |_| {});
        let calls = summary.load.calls;
        assert!((90_000..250_000).contains(&calls), "seed {seed}: {calls} calls");
        assert!(summary.top[0].share < 0.35, "seed {seed}: top share {}", summary.top[0].share);
        let timers = functions_of(&*workload, Trigger::Timer);
        assert!((75..125).contains(&timers), "seed {seed}: {timers} timers");
        assert!(summary.text().lines().all(|line| line.chars().count() <= 79));
    }
}
