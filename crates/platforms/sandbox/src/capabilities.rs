//! What this machine permits, with the fix for everything that is missing.

use std::fmt;

use serde::Serialize;

/// Something that a resource manager may want from the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapabilityName {
    /// Namespaces, read-only root, system call filter.
    IsolationSandbox,
    /// The same inside a user namespace.
    IsolationUserns,
    /// CPU shares while cores are short.
    CpuWeight,
    /// CPU ceiling.
    CpuQuota,
    /// Unused quota of earlier periods.
    CpuBurst,
    /// Running on idle CPU time only.
    CpuIdle,
    /// CPU time used, per instance.
    CpuTime,
    /// Throttled periods and time.
    CpuThrottling,
    /// Memory limit.
    MemoryLimit,
    /// Memory in use, per instance.
    MemoryUsage,
    /// Reset of the memory peak.
    MemoryPeakReset,
    /// Exceeding the memory limit distinguished from a crash.
    OomEvents,
    /// Limit of processes and threads.
    PidsLimit,
    /// Stopping an instance that nobody calls.
    Freezer,
    /// Killing all processes of an instance.
    TreeKill,
    /// Pressure stall information per instance.
    Pressure,
    /// A parent group with high shares, so that other programs do not disturb measurements.
    ProtectedParent,
}

/// How well the machine provides a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapabilityState {
    /// By the kernel's own mechanism.
    Exact,
    /// Approximated by the manager; `how` of the capability says by what.
    Emulated,
    /// Not at all.
    Absent,
}

/// One capability of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Capability {
    /// Which one.
    pub name: CapabilityName,
    /// How well it is provided.
    pub state: CapabilityState,
    /// The mechanism, or what is missing.
    pub how: String,
    /// What to do to get the exact one; nothing if it is exact.
    pub fix: Option<String>,
}

/// All capabilities of this machine, in a fixed order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostCapabilities {
    /// The cgroup driver in use: `v1`, `hybrid`, `v2` or `emulated`.
    pub driver: &'static str,
    /// One row per capability.
    pub capabilities: Vec<Capability>,
}

impl HostCapabilities {
    /// The row of `name`.
    pub fn get(&self, name: CapabilityName) -> Option<&Capability> {
        self.capabilities.iter().find(|capability| capability.name == name)
    }

    /// How well `name` is provided.
    pub fn state(&self, name: CapabilityName) -> CapabilityState {
        self.get(name).map_or(CapabilityState::Absent, |capability| capability.state)
    }
}

impl fmt::Display for CapabilityName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IsolationSandbox => "isolation-sandbox",
            Self::IsolationUserns => "isolation-userns",
            Self::CpuWeight => "cpu-weight",
            Self::CpuQuota => "cpu-quota",
            Self::CpuBurst => "cpu-burst",
            Self::CpuIdle => "cpu-idle",
            Self::CpuTime => "cpu-time",
            Self::CpuThrottling => "cpu-throttling",
            Self::MemoryLimit => "memory-limit",
            Self::MemoryUsage => "memory-usage",
            Self::MemoryPeakReset => "memory-peak-reset",
            Self::OomEvents => "oom-events",
            Self::PidsLimit => "pids-limit",
            Self::Freezer => "freezer",
            Self::TreeKill => "tree-kill",
            Self::Pressure => "pressure",
            Self::ProtectedParent => "protected-parent",
        })
    }
}

impl fmt::Display for CapabilityState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "exact",
            Self::Emulated => "emulated",
            Self::Absent => "absent",
        })
    }
}
