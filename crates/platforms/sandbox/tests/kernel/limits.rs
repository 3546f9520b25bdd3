//! Limits and sensors, without measuring speed.

use std::thread::sleep;
use std::time::Duration;

use libtest_mimic::Trial;
use windfall_core::{Mebibytes, MilliCpu};
use windfall_sandbox::{
    CapabilityName, CapabilityState, Exit, Isolation, Launch, Limits, Quota, Sensors,
};

use crate::place::{Outcome, Place, expect, expect_equal, sandboxes, wait_for, wait_for_exit};

pub(crate) fn trials(place: &'static Place) -> Vec<Trial> {
    let level = *sandboxes(place).first().unwrap_or(&Isolation::Process);
    let trial = |name, needs: &[CapabilityName], test: fn(&Place, Isolation) -> Outcome| {
        place.trial(name, needs, move |place| test(place, level))
    };
    vec![
        trial("limits::a_memory_hog_is_killed_alone", &[CapabilityName::OomEvents], memory_hog),
        trial(
            "limits::a_limit_below_use_is_refused",
            &[CapabilityName::MemoryLimit],
            refused_memory,
        ),
        trial("limits::sensors_follow_what_the_program_does", &[CapabilityName::CpuTime], sensors),
        trial("limits::a_frozen_instance_uses_no_cpu", &[CapabilityName::Freezer], freezer),
        trial("limits::throttling_is_counted", &[CapabilityName::CpuThrottling], throttling),
        trial("limits::every_knob_can_be_changed_while_running", &[], live_changes),
        trial("limits::idle_comes_and_goes", &[CapabilityName::CpuIdle], idle),
    ]
}

fn memory_hog(place: &Place, level: Isolation) -> Outcome {
    let mut witness = place.start_probe(&["sleep"], level)?;
    let mut launch = Place::launch_of(&["hog"], level);
    launch.limits.memory = Mebibytes::new(64);
    let mut hog = place.host.launch(&launch)?;
    expect_equal("exit", wait_for_exit(&mut hog)?, Exit::OutOfMemory)?;
    expect_equal("the other instance", witness.exited(), None)
}

/// Waits until the probe holds what it was asked to.
fn hold(
    place: &Place,
    level: Isolation,
    mib: u32,
) -> Result<windfall_sandbox::Instance, libtest_mimic::Failed> {
    let mut launch = Place::launch_of(&["hold", &mib.to_string()], level);
    launch.limits.memory = Mebibytes::new(256);
    let mut instance = place.host.launch(&launch)?;
    wait_for("the memory to be held", || {
        let rss = instance.sense().ok()?.memory_rss;
        (rss > u64::from(mib) << 20).then_some(())
    })?;
    Ok(instance)
}

fn refused_memory(place: &Place, level: Isolation) -> Outcome {
    let mut instance = hold(place, level, 100)?;
    let lower = Limits { memory: Mebibytes::new(48), ..instance.in_force().limits() };
    let in_force = instance.set(&lower).clone();
    expect_equal("in force", in_force.memory.value, Mebibytes::new(256))?;
    let reason = in_force.memory.refused.unwrap_or_default();
    expect("the amount in use as reason", reason.contains("MiB are in use"), &reason)?;
    let enough = Limits { memory: Mebibytes::new(160), ..lower };
    let in_force = instance.set(&enough).clone();
    expect("everything applied", in_force.is_complete(), &in_force)?;
    expect_equal("still alive", instance.exited(), None)
}

fn sensors(place: &Place, level: Isolation) -> Outcome {
    let mut instance = hold(place, level, 40)?;
    let first = instance.sense()?;
    expect("a peak of at least what is held", first.memory_peak >= 40 << 20, first)?;
    instance.reset_memory_peak()?;
    let second = instance.sense()?;
    expect(
        "a peak of what is in use now",
        second.memory_peak >= second.memory_rss.min(30 << 20),
        second,
    )?;
    expect_equal("kills", second.oom_kills, 0)?;
    let is_exact =
        place.host.capabilities().state(CapabilityName::Pressure) == CapabilityState::Exact;
    expect_equal("pressure", second.pressure.is_some(), is_exact)?;
    let mut busy = place.start_probe(&["spin", "1"], level)?;
    let growing = wait_for("CPU time", || {
        let sensors = busy.sense().ok()?;
        (sensors.cpu_time > Duration::from_millis(50)).then_some(sensors)
    })?;
    expect_equal("throttled", growing.throttled_periods, 0)
}

fn freezer(place: &Place, level: Isolation) -> Outcome {
    let mut instance = place.start_probe(&["spin", "2"], level)?;
    let used = |sensors: Sensors| sensors.cpu_time;
    wait_for("CPU time", || {
        (used(instance.sense().ok()?) > Duration::from_millis(20)).then_some(())
    })?;
    instance.freeze()?;
    let frozen = used(instance.sense()?);
    sleep(Duration::from_millis(200));
    let later = used(instance.sense()?);
    expect(
        "less than 5 ms while frozen",
        later - frozen < Duration::from_millis(5),
        later - frozen,
    )?;
    instance.thaw()?;
    wait_for("more CPU time", || {
        (used(instance.sense().ok()?) > later + Duration::from_millis(20)).then_some(())
    })?;
    instance.freeze()?;
    expect_equal("a frozen instance can be killed", instance.kill(), Exit::Signal(9))
}

fn throttling(place: &Place, level: Isolation) -> Outcome {
    let launch = Place::launch_of(&["spin", "1"], level);
    let limits = launch.limits.with_quota(MilliCpu::new(100));
    let mut instance = place.host.launch(&Launch { limits, ..launch })?;
    let sensors = wait_for("throttled periods", || {
        let sensors = instance.sense().ok()?;
        (sensors.throttled_periods >= 5).then_some(sensors)
    })?;
    expect(
        "periods at least as many as throttled",
        sensors.periods >= sensors.throttled_periods,
        sensors,
    )?;
    expect("throttled time", sensors.throttled_time > Duration::from_millis(100), sensors)
}

fn live_changes(place: &Place, level: Isolation) -> Outcome {
    let mut instance = place.start_probe(&["spin", "1"], level)?;
    let period = Duration::from_millis(20);
    let quota = Quota { cpu: MilliCpu::new(500), period, burst: Duration::from_millis(5) };
    // Downwards, since a nice value cannot be lowered without rights.
    for (weight, cpu) in [(900, 500), (500, 250), (300, 1500)] {
        let limits = Limits {
            weight: MilliCpu::new(weight),
            quota: Some(Quota { cpu: MilliCpu::new(cpu), ..quota }),
            memory: Mebibytes::new(200 + weight),
            ..Limits::new(MilliCpu::new(weight), Mebibytes::new(200))
        };
        let in_force = instance.set(&limits).clone();
        expect("everything applied", in_force.is_complete(), &in_force)?;
        expect_equal("in force", in_force.limits(), limits)?;
    }
    let free = Limits { quota: None, ..instance.in_force().limits() };
    expect("no quota", instance.set(&free).is_complete(), ())?;
    let tiny = free.with_quota(MilliCpu::new(1));
    let in_force = instance.set(&tiny).clone();
    expect_equal(
        "the smallest quota",
        in_force.quota.value.map(|quota| quota.cpu),
        Some(MilliCpu::new(10)),
    )
}

fn idle(place: &Place, level: Isolation) -> Outcome {
    let mut instance = place.start_probe(&["spin", "1"], level)?;
    let normal = instance.in_force().limits();
    let in_force = instance.set(&Limits { idle: true, ..normal }).clone();
    expect("idle applied", in_force.is_complete() && in_force.idle.value, &in_force)?;
    if place.host.capabilities().state(CapabilityName::CpuIdle) == CapabilityState::Exact {
        let in_force = instance.set(&normal).clone();
        expect("back to normal", in_force.is_complete() && !in_force.idle.value, &in_force)?;
    }
    Ok(())
}
