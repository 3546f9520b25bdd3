//! Limits and sensors of cgroup v1, with what a v2 tree beside it adds (the "hybrid" layout).

use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use windfall_core::{Mebibytes, MilliCpu};

use super::files::{GroupFile, total_waits, value_of};
use super::leftovers::kill_tree;
use super::tree::Tree;
use crate::control::{Budget, Control};
use crate::error::SandboxError;
use crate::sensors::{Pressure, Sensors};

/// Shares of a group that runs only when nobody else wants to, where the kernel has no `cpu.idle`.
const FEWEST_SHARES: u64 = 2;
const MOST_SHARES: u64 = 262_144;

/// One instance under cgroup v1.
pub(crate) struct V1 {
    shares: GroupFile,
    quota: GroupFile,
    period: GroupFile,
    burst: Option<GroupFile>,
    idle: Option<GroupFile>,
    cpu_stat: GroupFile,
    cpu_time: Option<GroupFile>,
    memory_limit: GroupFile,
    memory_usage: GroupFile,
    memory_peak: GroupFile,
    memory_stat: GroupFile,
    oom_control: GroupFile,
    pids: Option<GroupFile>,
    freezer: Option<Freezer>,
    kill: Option<GroupFile>,
    pressure: Option<(GroupFile, GroupFile)>,
    /// Where to look for processes if the kernel has no `cgroup.kill`.
    group: std::path::PathBuf,
}

impl V1 {
    /// Opens the files of an instance's groups.
    pub(crate) fn open(tree: &Tree, slot: u64) -> Result<Self, SandboxError> {
        let missing = |controller| SandboxError::Driver {
            driver: "v1",
            reason: format!("the controller `{controller}` is not mounted"),
            fix: "mount it below /sys/fs/cgroup".to_owned(),
        };
        let cpu = tree.slot("cpu", slot).ok_or_else(|| missing("cpu"))?;
        let memory = tree.slot("memory", slot).ok_or_else(|| missing("memory"))?;
        let there = |controller: &str, file: &str| {
            GroupFile::open_if_there(&tree.slot(controller, slot)?.join(file))
        };
        let unified = |file: &str| GroupFile::open_if_there(&tree.unified_slot(slot)?.join(file));
        Ok(Self {
            shares: GroupFile::open(&cpu.join("cpu.shares"))?,
            quota: GroupFile::open(&cpu.join("cpu.cfs_quota_us"))?,
            period: GroupFile::open(&cpu.join("cpu.cfs_period_us"))?,
            burst: there("cpu", "cpu.cfs_burst_us"),
            idle: there("cpu", "cpu.idle"),
            cpu_stat: GroupFile::open(&cpu.join("cpu.stat"))?,
            cpu_time: there("cpuacct", "cpuacct.usage"),
            memory_limit: GroupFile::open(&memory.join("memory.limit_in_bytes"))?,
            memory_usage: GroupFile::open(&memory.join("memory.usage_in_bytes"))?,
            memory_peak: GroupFile::open(&memory.join("memory.max_usage_in_bytes"))?,
            memory_stat: GroupFile::open(&memory.join("memory.stat"))?,
            oom_control: GroupFile::open(&memory.join("memory.oom_control"))?,
            pids: there("pids", "pids.max"),
            freezer: Freezer::open(tree, slot),
            kill: unified("cgroup.kill"),
            pressure: unified("cpu.pressure").zip(unified("memory.pressure")),
            group: cpu,
        })
    }
}

impl Control for V1 {
    fn write_weight(&mut self, weight: MilliCpu) -> io::Result<()> {
        let shares = u64::from(weight.get()) * 1024 / 1000;
        self.shares.write(&shares.clamp(FEWEST_SHARES, MOST_SHARES).to_string())
    }

    fn write_idle(&mut self, idle: bool) -> io::Result<()> {
        match &self.idle {
            Some(file) => file.write(if idle { "1" } else { "0" }),
            None if idle => self.shares.write(&FEWEST_SHARES.to_string()),
            // The caller writes the weight next.
            None => Ok(()),
        }
    }

    fn write_quota(&mut self, budget: Option<Budget>) -> io::Result<()> {
        // The burst must never exceed the quota, not even between two writes.
        if let Some(burst) = &self.burst {
            burst.write("0")?;
        }
        let Some(budget) = budget else { return self.quota.write("-1") };
        self.period.write(&budget.period.as_micros().to_string())?;
        self.quota.write(&budget.time.as_micros().to_string())?;
        match &self.burst {
            Some(burst) if !budget.burst.is_zero() => {
                burst.write(&budget.burst.as_micros().to_string())
            }
            _ => Ok(()),
        }
    }

    fn write_memory(&mut self, memory: Mebibytes) -> io::Result<()> {
        let bytes = u64::from(memory.get()) << 20;
        self.memory_limit.write(&bytes.to_string()).map_err(|error| {
            if error.kind() != io::ErrorKind::ResourceBusy {
                return error;
            }
            let used = self.memory_usage.number().unwrap_or(0) >> 20;
            let reason = format!("{used} MiB are in use and cannot be reclaimed");
            io::Error::new(io::ErrorKind::ResourceBusy, reason)
        })
    }

    fn write_pids(&mut self, pids: u32) -> io::Result<()> {
        self.pids.as_ref().ok_or_else(no_pids)?.write(&pids.to_string())
    }

    fn sense(&mut self) -> io::Result<Sensors> {
        let mut sensors = Sensors {
            memory_rss: self.memory_stat.read(|stat| value_of(stat, "rss"))?,
            memory_usage: self.memory_usage.number()?,
            memory_peak: self.memory_peak.number()?,
            oom_kills: self.oom_kills(),
            ..Sensors::default()
        };
        self.cpu_stat.read(|stat| {
            sensors.periods = value_of(stat, "nr_periods");
            sensors.throttled_periods = value_of(stat, "nr_throttled");
            sensors.throttled_time = Duration::from_nanos(value_of(stat, "throttled_time"));
        })?;
        if let Some(cpu_time) = &self.cpu_time {
            sensors.cpu_time = Duration::from_nanos(cpu_time.number()?);
        }
        sensors.pressure = self.pressure.as_ref().and_then(read_pressure);
        Ok(sensors)
    }

    fn reset_memory_peak(&mut self) -> io::Result<()> {
        self.memory_peak.write("0")
    }

    fn set_frozen(&mut self, frozen: bool) -> io::Result<()> {
        self.freezer.as_ref().ok_or_else(no_freezer)?.set(frozen)
    }

    fn kill(&mut self) -> io::Result<()> {
        if let Some(kill) = &self.kill {
            return kill.write("1");
        }
        if let Some(freezer) = &self.freezer {
            freezer.set(false)?;
        }
        kill_tree(&self.group);
        Ok(())
    }

    fn oom_kills(&mut self) -> u64 {
        self.oom_control.read(|control| value_of(control, "oom_kill")).unwrap_or(0)
    }
}

fn no_pids() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "the controller `pids` is not mounted")
}

fn no_freezer() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "neither a freezer nor a v2 tree is mounted")
}

/// Pressure of a group; nothing if the kernel does not keep it (`psi=0`), which shows only when reading.
pub(super) fn read_pressure(files: &(GroupFile, GroupFile)) -> Option<Pressure> {
    let [cpu, cpu_full] = files.0.read(total_waits).ok()?.map(Duration::from_micros);
    let [memory, _] = files.1.read(total_waits).ok()?.map(Duration::from_micros);
    Some(Pressure { cpu, cpu_full, memory })
}

/// Stops and continues all processes of a group.
pub(super) enum Freezer {
    /// `freezer.state` of cgroup v1.
    State(GroupFile),
    /// `cgroup.freeze` of the v2 tree, and the file that says when it is done.
    Unified(GroupFile, GroupFile),
}

/// The freezer takes about 0.4 ms; a task that hangs in the kernel may take longer.
const PATIENCE: Duration = Duration::from_millis(500);
const STEP: Duration = Duration::from_micros(50);

impl Freezer {
    /// That of an instance; the one of the v2 tree if there is one.
    pub(super) fn open(tree: &Tree, slot: u64) -> Option<Self> {
        let Some(group) = tree.unified_slot(slot) else {
            let state = tree.slot("freezer", slot)?.join("freezer.state");
            return GroupFile::open_if_there(&state).map(Self::State);
        };
        let freeze = GroupFile::open_if_there(&group.join("cgroup.freeze"))?;
        Some(Self::Unified(freeze, GroupFile::open_if_there(&group.join("cgroup.events"))?))
    }

    /// Freezes or thaws; returns when it is done.
    pub(super) fn set(&self, frozen: bool) -> io::Result<()> {
        match self {
            Self::State(state) => state.write(if frozen { "FROZEN" } else { "THAWED" })?,
            Self::Unified(freeze, _) => freeze.write(if frozen { "1" } else { "0" })?,
        }
        let start = Instant::now();
        while self.is_frozen()? != frozen {
            if start.elapsed() > PATIENCE {
                let reason = "the processes did not stop within 0.5 s";
                return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
            }
            sleep(STEP);
        }
        Ok(())
    }

    fn is_frozen(&self) -> io::Result<bool> {
        match self {
            Self::State(state) => state.read(|state| state.trim() == "FROZEN"),
            Self::Unified(_, events) => events.read(|events| value_of(events, "frozen") == 1),
        }
    }
}
