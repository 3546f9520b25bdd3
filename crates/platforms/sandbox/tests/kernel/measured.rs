//! Quotas and weights, measured. Ignored by default: they take half a minute and want a machine that does not stand
//! still for seconds.

use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use windfall_core::MilliCpu;
use windfall_sandbox::{CapabilityName, CapabilityState, Instance, Isolation, Launch};

use crate::place::{Outcome, Place, expect, sandboxes};

const WARM_UP: Duration = Duration::from_millis(500);
const WINDOW: Duration = Duration::from_secs(4);

pub(crate) fn trials(place: &'static Place) -> Vec<Trial> {
    let measured = |name, test: fn(&Place) -> Outcome| {
        Trial::test(name, move || test(place)).with_ignored_flag(true)
    };
    let mut trials =
        vec![measured("measured::quotas_are_kept_within_three_points (takes 18 s)", quotas)];
    // A nice value is too coarse for a ratio within 5 %, and what it competes with is not ours to choose.
    if place.host.capabilities().state(CapabilityName::CpuWeight) == CapabilityState::Exact {
        trials
            .push(measured("measured::weights_are_kept_within_five_percent (takes 5 s)", weights));
    }
    trials
}

fn spinning(
    place: &Place,
    threads: usize,
    change: impl FnOnce(&mut Launch),
) -> Result<Instance, Failed> {
    let level = *sandboxes(place).first().unwrap_or(&Isolation::Process);
    let mut launch = Place::launch_of(&["spin", &threads.to_string()], level);
    change(&mut launch);
    Ok(place.host.launch(&launch)?)
}

/// Cores that each instance used over the window.
fn cores(instances: &mut [Instance]) -> Result<Vec<f64>, Failed> {
    sleep(WARM_UP);
    let mut read = || -> Result<Vec<Duration>, Failed> {
        instances.iter_mut().map(|instance| Ok(instance.sense()?.cpu_time)).collect()
    };
    let start = Instant::now();
    let before = read()?;
    sleep(WINDOW);
    let (after, elapsed) = (read()?, start.elapsed().as_secs_f64());
    Ok(after
        .iter()
        .zip(before)
        .map(|(after, before)| (*after - before).as_secs_f64() / elapsed)
        .collect())
}

fn quotas(place: &Place) -> Outcome {
    for share in [75, 50, 25, 10] {
        let quota = MilliCpu::new(share * 10);
        let instance =
            spinning(place, 1, |launch| launch.limits = launch.limits.with_quota(quota))?;
        let found = cores(&mut [instance])?[0] * 100.0;
        let asked = f64::from(share);
        expect(&format!("{asked} % within 3 points"), (found - asked).abs() <= 3.0, found)?;
    }
    Ok(())
}

fn weights(place: &Place) -> Outcome {
    let threads = thread_count();
    let start = |weight: u32| {
        spinning(place, threads, |launch| launch.limits.weight = MilliCpu::new(weight))
    };
    let found = cores(&mut [start(250)?, start(750)?])?;
    let ratio = found[1] / found[0];
    expect("a ratio of 3 within 5 %", (ratio - 3.0).abs() <= 0.15, (ratio, found))
}

fn thread_count() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
