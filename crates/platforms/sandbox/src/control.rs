//! Limits and sensors of one instance, whatever provides them.

use std::io;
use std::time::Duration;

use windfall_core::{Mebibytes, MilliCpu};

use crate::limits::{InForce, Limits, Quota, Setting};
use crate::sensors::Sensors;

/// The kernel refuses a quota below 1 ms with EINVAL.
const SHORTEST_QUOTA: Duration = Duration::from_millis(1);
/// The kernel's range of periods.
const PERIODS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(1));

/// A quota in the kernel's terms: `time` per `period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) time: Duration,
    pub(crate) period: Duration,
    pub(crate) burst: Duration,
}

impl Budget {
    /// The nearest budget that a kernel accepts.
    fn of(quota: Quota) -> Self {
        let period = quota.period.clamp(PERIODS.0, PERIODS.1);
        let time = (period * quota.cpu.get() / 1000).max(SHORTEST_QUOTA);
        // The kernel refuses a burst above the quota.
        Self { time, period, burst: quota.burst.min(time) }
    }

    /// Back in cores.
    fn quota(self) -> Quota {
        let millis = self.time.as_micros() * 1000 / self.period.as_micros().max(1);
        let cpu = MilliCpu::new(u32::try_from(millis).unwrap_or(u32::MAX));
        Quota { cpu, period: self.period, burst: self.burst }
    }
}

/// Limits and sensors of one instance, as a driver provides them.
pub(crate) trait Control: Send {
    /// Sets the share of the CPU while cores are short.
    fn write_weight(&mut self, weight: MilliCpu) -> io::Result<()>;
    /// Lets the instance run on idle CPU time only, or no longer so.
    fn write_idle(&mut self, idle: bool) -> io::Result<()>;
    /// Sets or removes the ceiling.
    fn write_quota(&mut self, budget: Option<Budget>) -> io::Result<()>;
    /// Sets the memory limit.
    fn write_memory(&mut self, memory: Mebibytes) -> io::Result<()>;
    /// Limits processes and threads.
    fn write_pids(&mut self, pids: u32) -> io::Result<()>;
    /// Reads all sensors.
    fn sense(&mut self) -> io::Result<Sensors>;
    /// Starts a new memory peak.
    fn reset_memory_peak(&mut self) -> io::Result<()>;
    /// Stops all processes, or lets them go on. Returns when it is so.
    fn set_frozen(&mut self, frozen: bool) -> io::Result<()>;
    /// Kills all processes; does not wait.
    fn kill(&mut self) -> io::Result<()>;
    /// Tasks killed because of the memory limit.
    fn oom_kills(&mut self) -> u64;
}

/// Nothing is limited in a new group.
pub(crate) const UNLIMITED: Limits = Limits {
    weight: MilliCpu::new(1000),
    quota: None,
    idle: false,
    memory: Mebibytes::MAX,
    pids: u32::MAX,
};

/// Writes what differs between `now` and `asked`, and reports what is in force afterwards.
pub(crate) fn apply(control: &mut dyn Control, asked: &Limits, now: &Limits) -> InForce {
    let idle = setting(asked.idle, now.idle, |idle| control.write_idle(idle));
    // A group that leaves `cpu.idle` gets the default weight from the kernel, so the weight is written again; while it
    // is idle the kernel refuses a weight.
    let known = if idle.value == now.idle { Some(now.weight) } else { None };
    let weight = match known {
        Some(known) if known == asked.weight => Setting::applied(known),
        _ if idle.value => Setting::applied(asked.weight),
        _ => written(asked.weight, now.weight, control.write_weight(asked.weight)),
    };
    InForce {
        weight,
        idle,
        quota: apply_quota(control, asked.quota, now.quota),
        memory: setting(asked.memory, now.memory, |memory| control.write_memory(memory)),
        pids: setting(asked.pids, now.pids, |pids| control.write_pids(pids)),
    }
}

fn apply_quota(
    control: &mut dyn Control,
    asked: Option<Quota>,
    now: Option<Quota>,
) -> Setting<Option<Quota>> {
    let budget = asked.map(Budget::of);
    let possible = budget.map(Budget::quota);
    if possible != now
        && let Err(error) = control.write_quota(budget)
    {
        return Setting::refused(now, error.to_string());
    }
    match (asked, budget) {
        (Some(asked), Some(budget)) if budget.time == SHORTEST_QUOTA && possible != Some(asked) => {
            let period = budget.period.as_millis();
            let reason = format!("a quota is at least 1 ms of each period of {period} ms");
            Setting::refused(possible, reason)
        }
        _ => Setting::applied(possible),
    }
}

fn setting<T: PartialEq + Copy>(
    asked: T,
    now: T,
    write: impl FnOnce(T) -> io::Result<()>,
) -> Setting<T> {
    if asked == now { Setting::applied(now) } else { written(asked, now, write(asked)) }
}

fn written<T>(asked: T, now: T, answer: io::Result<()>) -> Setting<T> {
    match answer {
        Ok(()) => Setting::applied(asked),
        Err(error) => Setting::refused(now, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes down what it is asked, and refuses memory limits below 100 MiB.
    #[derive(Default)]
    struct Noted(Vec<String>);

    impl Control for Noted {
        fn write_weight(&mut self, weight: MilliCpu) -> io::Result<()> {
            self.0.push(format!("weight {weight}"));
            Ok(())
        }
        fn write_idle(&mut self, idle: bool) -> io::Result<()> {
            self.0.push(format!("idle {idle}"));
            Ok(())
        }
        fn write_quota(&mut self, budget: Option<Budget>) -> io::Result<()> {
            self.0.push(format!("quota {:?}", budget.map(|budget| budget.time)));
            Ok(())
        }
        fn write_memory(&mut self, memory: Mebibytes) -> io::Result<()> {
            self.0.push(format!("memory {memory}"));
            if memory.get() < 100 { Err(io::ErrorKind::ResourceBusy.into()) } else { Ok(()) }
        }
        fn write_pids(&mut self, pids: u32) -> io::Result<()> {
            self.0.push(format!("pids {pids}"));
            Ok(())
        }
        fn sense(&mut self) -> io::Result<Sensors> {
            Ok(Sensors::default())
        }
        fn reset_memory_peak(&mut self) -> io::Result<()> {
            Ok(())
        }
        fn set_frozen(&mut self, _frozen: bool) -> io::Result<()> {
            Ok(())
        }
        fn kill(&mut self) -> io::Result<()> {
            Ok(())
        }
        fn oom_kills(&mut self) -> u64 {
            0
        }
    }

    fn start() -> Limits {
        Limits::new(MilliCpu::new(500), Mebibytes::new(256))
    }

    #[test]
    fn only_what_differs_is_written() {
        let mut noted = Noted::default();
        let wider = Limits { memory: Mebibytes::new(512), ..start() };
        assert!(apply(&mut noted, &wider, &start()).is_complete());
        assert_eq!(noted.0, ["memory 512 MiB"]);
    }

    #[test]
    fn a_group_that_leaves_idle_gets_its_weight_back() {
        let mut noted = Noted::default();
        let idle = Limits { idle: true, ..start() };
        let changed = Limits { weight: MilliCpu::new(700), ..idle };
        let now = apply(&mut noted, &idle, &start()).limits();
        let now = apply(&mut noted, &changed, &now).limits();
        apply(&mut noted, &Limits { idle: false, ..changed }, &now);
        assert_eq!(noted.0, ["idle true", "idle false", "weight 700m"]);
    }

    #[test]
    fn a_refused_limit_leaves_the_old_one_in_force() {
        let lower = Limits { memory: Mebibytes::new(64), ..start() };
        let in_force = apply(&mut Noted::default(), &lower, &start());
        assert_eq!(in_force.memory.value, Mebibytes::new(256));
        assert_eq!(in_force.reasons().count(), 1);
    }

    #[test]
    fn a_quota_too_small_for_the_kernel_is_raised_and_reported() {
        let tiny = start().with_quota(MilliCpu::new(3));
        let in_force = apply(&mut Noted::default(), &tiny, &start());
        assert_eq!(in_force.quota.value.unwrap().cpu, MilliCpu::new(10));
        let reason = "a quota is at least 1 ms of each period of 100 ms";
        assert_eq!(in_force.quota.refused.as_deref(), Some(reason));
        assert!(
            apply(&mut Noted::default(), &start().with_quota(MilliCpu::new(10)), &start())
                .is_complete()
        );
    }
}
