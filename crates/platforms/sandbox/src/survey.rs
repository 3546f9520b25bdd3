//! Finds out what this machine permits: by trying, not by asking for versions.

use std::path::Path;

use crate::capabilities::{Capability, CapabilityName, CapabilityState, HostCapabilities};
use crate::cgroup::files::GroupFile;
use crate::cgroup::layout::Generation;
use crate::cgroup::tree::Tree;
use crate::driver::{CGROUP_FIX, Driver};
use CapabilityName as Name;
use CapabilityState::{Absent, Emulated, Exact};

/// Outcome of starting a process at the stricter levels of isolation; the reason if it was refused.
pub(crate) struct Trials {
    pub(crate) sandbox: Result<(), String>,
    pub(crate) userns: Result<(), String>,
}

/// The table of this run. `slot` is one of its instances, whose groups exist.
pub(crate) fn survey(
    driver: &Driver,
    slot: u64,
    trials: &Trials,
    is_privileged: bool,
) -> HostCapabilities {
    let mut capabilities = isolation(trials, is_privileged);
    capabilities.extend(match driver {
        Driver::Cgroup(tree) => match tree.generation {
            Generation::V1 => of_v1(tree, slot),
            Generation::V2 => of_v2(tree, slot),
        },
        Driver::Emulated { reason, .. } => of_emulated(reason, is_privileged),
    });
    HostCapabilities { driver: driver.name(), capabilities }
}

fn row(name: Name, state: CapabilityState, how: &str, fix: Option<&str>) -> Capability {
    Capability { name, state, how: how.to_owned(), fix: fix.map(str::to_owned) }
}

/// Provided by the kernel itself.
fn exact(name: Name, how: &str) -> Capability {
    row(name, Exact, how, None)
}

impl Capability {
    /// The same if `is_there`; else what stands in for it, and the fix.
    fn if_there(self, is_there: bool, state: CapabilityState, how: &str, fix: &str) -> Self {
        if is_there { self } else { row(self.name, state, how, Some(fix)) }
    }
}

fn isolation(trials: &Trials, is_privileged: bool) -> Vec<Capability> {
    let how = if is_privileged {
        "namespaces, read-only root, no capabilities, seccomp"
    } else {
        "namespaces inside a user namespace, read-only root, no capabilities, seccomp"
    };
    let fix = if is_privileged {
        "use a kernel with namespaces and seccomp (Linux 5.14 or later)"
    } else {
        "allow user namespaces (`sysctl user.max_user_namespaces=10000`, and where they exist \
         `kernel.unprivileged_userns_clone=1` or `kernel.apparmor_restrict_unprivileged_userns=0`), \
         or run as root"
    };
    let level = |name, how: &str, trial: &Result<(), String>| match trial {
        Ok(()) => row(name, Exact, how, None),
        Err(reason) => row(name, Absent, reason, Some(fix)),
    };
    vec![
        level(Name::IsolationSandbox, how, &trials.sandbox),
        level(Name::IsolationUserns, "the same in a user namespace of its own", &trials.userns),
    ]
}

const BURST_FIX: &str = "use Linux 5.14 or later";
const IDLE_FIX: &str = "use Linux 5.15 or later, which has `cpu.idle`";
const PEAK_FIX: &str = "use Linux 6.12 or later, where memory.peak can be reset";
const FREEZER_FIX: &str = "use Linux 5.2 or later with cgroup v2 mounted, or mount the freezer";
const MOUNT_FIX: &str = "mount the controller below /sys/fs/cgroup";
const PIDS_FIX: &str = "enable `pids` in cgroup.subtree_control";
const KILL_FIX: &str = "use Linux 5.14 or later with cgroup v2 mounted, which has `cgroup.kill`";
const PRESSURE_FIX: &str =
    "boot with `psi=1` and mount cgroup v2 (`mount -t cgroup2 none /sys/fs/cgroup/unified`)";

fn of_v1(tree: &Tree, slot: u64) -> Vec<Capability> {
    let has = |controller: &str, file: &str| {
        tree.slot(controller, slot).is_some_and(|group| group.join(file).exists())
    };
    let unified = tree.unified_slot(slot);
    let can_freeze = unified.as_ref().is_some_and(|group| group.join("cgroup.freeze").exists())
        || has("freezer", "freezer.state");
    let mut rows = vec![
        exact(Name::CpuWeight, "cpu.shares"),
        exact(Name::CpuQuota, "cpu.cfs_quota_us"),
        exact(Name::CpuBurst, "cpu.cfs_burst_us").if_there(
            has("cpu", "cpu.cfs_burst_us"),
            Absent,
            "no cpu.cfs_burst_us",
            BURST_FIX,
        ),
        exact(Name::CpuIdle, "cpu.idle").if_there(
            has("cpu", "cpu.idle"),
            Emulated,
            "2 shares",
            IDLE_FIX,
        ),
        exact(Name::CpuTime, "cpuacct.usage").if_there(
            has("cpuacct", "cpuacct.usage"),
            Absent,
            "cpuacct is not mounted",
            MOUNT_FIX,
        ),
        exact(Name::CpuThrottling, "cpu.stat"),
        exact(Name::MemoryLimit, "memory.limit_in_bytes"),
        exact(Name::MemoryUsage, "memory.usage_in_bytes and memory.stat"),
        exact(Name::MemoryPeakReset, "memory.max_usage_in_bytes"),
        exact(Name::OomEvents, "memory.oom_control and the exit status"),
        exact(Name::PidsLimit, "pids.max").if_there(
            has("pids", "pids.max"),
            Absent,
            "pids is not mounted",
            MOUNT_FIX,
        ),
        exact(Name::Freezer, "the freezer").if_there(
            can_freeze,
            Absent,
            "no freezer is mounted",
            FREEZER_FIX,
        ),
    ];
    rows.extend(of_unified(unified.as_deref()));
    rows.push(exact(Name::ProtectedParent, "cpu.shares of the parent"));
    rows
}

fn of_v2(tree: &Tree, slot: u64) -> Vec<Capability> {
    let group = tree.unified_slot(slot).unwrap_or_default();
    let has = |file: &str| group.join(file).exists();
    let can_reset = GroupFile::open_if_there(&group.join("memory.peak"))
        .is_some_and(|peak| peak.write("reset").is_ok());
    let mut rows = vec![
        exact(Name::CpuWeight, "cpu.weight"),
        exact(Name::CpuQuota, "cpu.max"),
        exact(Name::CpuBurst, "cpu.max.burst").if_there(
            has("cpu.max.burst"),
            Absent,
            "no cpu.max.burst",
            BURST_FIX,
        ),
        exact(Name::CpuIdle, "cpu.idle").if_there(has("cpu.idle"), Emulated, "weight 1", IDLE_FIX),
        exact(Name::CpuTime, "cpu.stat"),
        exact(Name::CpuThrottling, "cpu.stat"),
        exact(Name::MemoryLimit, "memory.max, refused below what is in use"),
        exact(Name::MemoryUsage, "memory.current and memory.stat"),
        exact(Name::MemoryPeakReset, "memory.peak").if_there(
            can_reset,
            Emulated,
            "largest sample since the reset",
            PEAK_FIX,
        ),
        exact(Name::OomEvents, "memory.events and the exit status"),
        exact(Name::PidsLimit, "pids.max").if_there(
            has("pids.max"),
            Absent,
            "no controller `pids`",
            PIDS_FIX,
        ),
        exact(Name::Freezer, "cgroup.freeze").if_there(
            has("cgroup.freeze"),
            Absent,
            "no cgroup.freeze",
            FREEZER_FIX,
        ),
    ];
    rows.extend(of_unified(Some(&group)));
    rows.push(exact(Name::ProtectedParent, "cpu.weight of the parent"));
    rows
}

/// What the v2 tree provides even where it controls nothing.
fn of_unified(group: Option<&Path>) -> [Capability; 2] {
    let can_kill = group.is_some_and(|group| group.join("cgroup.kill").exists());
    let has_pressure = group.is_some_and(has_pressure);
    [
        exact(Name::TreeKill, "cgroup.kill").if_there(
            can_kill,
            Emulated,
            "SIGKILL to every process of the group",
            KILL_FIX,
        ),
        exact(Name::Pressure, "cpu.pressure and memory.pressure").if_there(
            has_pressure,
            Absent,
            "no pressure files per group",
            PRESSURE_FIX,
        ),
    ]
}

fn of_emulated(reason: &str, is_privileged: bool) -> Vec<Capability> {
    let fix = Some(CGROUP_FIX);
    let emulated = |name, how: &str| row(name, Emulated, how, fix);
    let absent = |name| row(name, Absent, reason, fix);
    vec![
        emulated(Name::CpuWeight, "nice value, which can only be raised"),
        emulated(Name::CpuQuota, "SIGSTOP and SIGCONT, sampled every 5 ms"),
        emulated(Name::CpuBurst, "SIGSTOP and SIGCONT, sampled every 5 ms"),
        emulated(Name::CpuIdle, "nice value 19"),
        emulated(Name::CpuTime, "CPU clocks of the process tree"),
        emulated(Name::CpuThrottling, "time in which the manager stopped the processes"),
        emulated(Name::MemoryLimit, "resident memory sampled every 20 ms, and RLIMIT_DATA"),
        emulated(Name::MemoryUsage, "resident memory of the process tree, without /tmp"),
        emulated(Name::MemoryPeakReset, "largest sample since the reset"),
        emulated(Name::OomEvents, "kills by the manager's own watcher"),
        if is_privileged {
            row(Name::PidsLimit, Absent, "RLIMIT_NPROC would count all instances together", fix)
        } else {
            emulated(Name::PidsLimit, "RLIMIT_NPROC in a user namespace, fixed at the start")
        },
        emulated(Name::Freezer, "SIGSTOP and SIGCONT to the process group"),
        emulated(Name::TreeKill, "end of the pid namespace; of the process group without one"),
        absent(Name::Pressure),
        absent(Name::ProtectedParent),
    ]
}

/// The files exist with `psi=0` too, but cannot be read then.
fn has_pressure(group: &Path) -> bool {
    GroupFile::open_if_there(&group.join("cpu.pressure"))
        .is_some_and(|file| file.read(|content| content.starts_with("some")).unwrap_or(false))
}
