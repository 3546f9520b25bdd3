//! Limits and sensors of cgroup v2.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use windfall_core::{Mebibytes, MilliCpu};

use super::files::{GroupFile, value_of};
use super::leftovers::kill_tree;
use super::tree::Tree;
use super::v1::{Freezer, read_pressure};
use crate::control::{Budget, Control};
use crate::error::SandboxError;
use crate::sensors::Sensors;

/// Memory that a limit must leave above what the program holds. cgroup v2 accepts any limit and then kills, so the
/// refusal that v1 gives is given here.
const MARGIN: u64 = 1 << 20;

/// Weight of cgroup v2 for shares of v1. Only ratios count, so 1024 shares become 100 and ratios are kept; the usual
/// formula 1 + (shares - 2) * 9999 / 262142 rounds 256 shares to 10 and makes 1:4 out of 10:39.
pub(crate) fn weight_of_shares(shares: u32) -> u32 {
    (u64::from(shares) * 100 / 1024).clamp(1, 10_000) as u32
}

/// One instance under cgroup v2.
pub(crate) struct V2 {
    weight: GroupFile,
    idle: Option<GroupFile>,
    max: GroupFile,
    burst: Option<GroupFile>,
    cpu_stat: GroupFile,
    memory_max: GroupFile,
    memory_current: GroupFile,
    memory_peak: Peak,
    memory_stat: GroupFile,
    memory_events: GroupFile,
    pids: Option<GroupFile>,
    freezer: Option<Freezer>,
    kill: Option<GroupFile>,
    pressure: Option<(GroupFile, GroupFile)>,
    group: PathBuf,
}

/// Largest memory in use.
enum Peak {
    /// `memory.peak`, which can be reset for one descriptor since Linux 6.12.
    Kernel(GroupFile),
    /// The largest sample so far.
    Samples(u64),
}

impl V2 {
    /// Opens the files of an instance's group.
    pub(crate) fn open(tree: &Tree, slot: u64) -> Result<Self, SandboxError> {
        let group = tree.unified_slot(slot).ok_or_else(|| SandboxError::Driver {
            driver: "v2",
            reason: "cgroup v2 is not mounted".to_owned(),
            fix: "mount it at /sys/fs/cgroup".to_owned(),
        })?;
        let file = |name: &str| GroupFile::open(&group.join(name));
        let there = |name: &str| GroupFile::open_if_there(&group.join(name));
        // All processes of an instance die together. Swap would make a limit of memory one of disk.
        for (name, value) in [("memory.oom.group", "1"), ("memory.swap.max", "0")] {
            if let Some(file) = there(name) {
                file.write(value).map_err(SandboxError::file("write", group.join(name)))?;
            }
        }
        Ok(Self {
            weight: file("cpu.weight")?,
            idle: there("cpu.idle"),
            max: file("cpu.max")?,
            burst: there("cpu.max.burst"),
            cpu_stat: file("cpu.stat")?,
            memory_max: file("memory.max")?,
            memory_current: file("memory.current")?,
            memory_peak: there("memory.peak").map_or(Peak::Samples(0), Peak::Kernel),
            memory_stat: file("memory.stat")?,
            memory_events: file("memory.events")?,
            pids: there("pids.max"),
            freezer: Freezer::open(tree, slot),
            kill: there("cgroup.kill"),
            pressure: there("cpu.pressure").zip(there("memory.pressure")),
            group,
        })
    }
}

impl Control for V2 {
    fn write_weight(&mut self, weight: MilliCpu) -> io::Result<()> {
        let shares = u32::try_from(u64::from(weight.get()) * 1024 / 1000).unwrap_or(u32::MAX);
        self.weight.write(&weight_of_shares(shares).to_string())
    }

    fn write_idle(&mut self, idle: bool) -> io::Result<()> {
        match &self.idle {
            Some(file) => file.write(if idle { "1" } else { "0" }),
            None if idle => self.weight.write("1"),
            None => Ok(()),
        }
    }

    fn write_quota(&mut self, budget: Option<Budget>) -> io::Result<()> {
        if let Some(burst) = &self.burst {
            burst.write("0")?;
        }
        let Some(budget) = budget else { return self.max.write("max") };
        self.max.write(&format!("{} {}", budget.time.as_micros(), budget.period.as_micros()))?;
        match &self.burst {
            Some(burst) if !budget.burst.is_zero() => {
                burst.write(&budget.burst.as_micros().to_string())
            }
            _ => Ok(()),
        }
    }

    fn write_memory(&mut self, memory: Mebibytes) -> io::Result<()> {
        let bytes = u64::from(memory.get()) << 20;
        let held =
            self.memory_stat.read(|stat| value_of(stat, "anon") + value_of(stat, "shmem"))?;
        if bytes < held + MARGIN {
            let reason = format!("{} MiB are in use and cannot be reclaimed", held >> 20);
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, reason));
        }
        self.memory_max.write(&bytes.to_string())
    }

    fn write_pids(&mut self, pids: u32) -> io::Result<()> {
        let missing = || io::Error::new(io::ErrorKind::Unsupported, "no controller `pids`");
        self.pids.as_ref().ok_or_else(missing)?.write(&pids.to_string())
    }

    fn sense(&mut self) -> io::Result<Sensors> {
        let memory_usage = self.memory_current.number()?;
        let memory_peak = match &mut self.memory_peak {
            Peak::Kernel(peak) => peak.number()?,
            Peak::Samples(largest) => {
                *largest = memory_usage.max(*largest);
                *largest
            }
        };
        let mut sensors = Sensors {
            memory_rss: self.memory_stat.read(|stat| value_of(stat, "anon"))?,
            memory_usage,
            memory_peak,
            oom_kills: self.oom_kills(),
            pressure: self.pressure.as_ref().and_then(read_pressure),
            ..Sensors::default()
        };
        self.cpu_stat.read(|stat| {
            sensors.cpu_time = Duration::from_micros(value_of(stat, "usage_usec"));
            sensors.periods = value_of(stat, "nr_periods");
            sensors.throttled_periods = value_of(stat, "nr_throttled");
            sensors.throttled_time = Duration::from_micros(value_of(stat, "throttled_usec"));
        })?;
        Ok(sensors)
    }

    fn reset_memory_peak(&mut self) -> io::Result<()> {
        if let Peak::Kernel(peak) = &self.memory_peak
            && peak.write("reset").is_err()
        {
            self.memory_peak = Peak::Samples(0);
        }
        if let Peak::Samples(largest) = &mut self.memory_peak {
            *largest = self.memory_current.number()?;
        }
        Ok(())
    }

    fn set_frozen(&mut self, frozen: bool) -> io::Result<()> {
        let missing = || io::Error::new(io::ErrorKind::Unsupported, "no `cgroup.freeze`");
        self.freezer.as_ref().ok_or_else(missing)?.set(frozen)
    }

    fn kill(&mut self) -> io::Result<()> {
        match &self.kill {
            Some(kill) => kill.write("1"),
            None => {
                kill_tree(&self.group);
                Ok(())
            }
        }
    }

    fn oom_kills(&mut self) -> u64 {
        self.memory_events.read(|events| value_of(events, "oom_kill")).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_keep_the_ratio_of_shares() {
        assert_eq!((weight_of_shares(256), weight_of_shares(768)), (25, 75));
        assert_eq!(weight_of_shares(1024), 100);
        assert_eq!((weight_of_shares(2), weight_of_shares(262_144)), (1, 10_000));
    }
}
