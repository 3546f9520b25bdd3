//! How the CPU of a node is shared: by an ideal that shares continuously, or as the Linux scheduler does it.

use serde::{Deserialize, Serialize};
use windfall_core::Duration;

/// Which model of a node's CPU a run uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuModel {
    /// Every share is a constant rate, limits included: a call with half a core advances at half speed from moment to
    /// moment. What published simulations do, and our own until the kernel was measured.
    #[default]
    Fluid,
    /// Weights, quotas refilled once per period, and the idle class, as Linux has them.
    Kernel(KernelCpu),
}

/// The parameters of the kernel's CPU.
///
/// A call with a quota of 0.5 cores and a period of 100 ms has 50 ms of CPU time at the beginning of each period. It
/// uses them at full speed; then it is throttled until the period ends. 30 ms of work take 30 ms, 70 ms take 120 ms if
/// they begin with the period.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelCpu {
    /// How often a quota is refilled (`cpu.cfs_period_us`).
    pub period: Duration,
    /// CPU time that unused quota can be saved up to, as a share of one period's quota (`cpu.cfs_burst_us`).
    pub burst: f64,
    /// How long a call that wakes up on a full node has a core to itself: it takes the core at once and keeps it for one
    /// slice. Only where rounds are followed one by one.
    pub slice: Duration,
    /// How long after that it shares this core with a thread of the same weight, before load balancing has given it its
    /// share of the whole node; less beside a lighter thread, in proportion. Only where rounds are followed one by one.
    pub settling: Duration,
    /// Length of one round of work and wait inside the work of a call that waits at all, at full speed.
    pub round: Duration,
    /// Share of a call's waiting that lies in such rounds; the rest is a few long waits.
    pub round_waits: f64,
    /// Whether rounds and periods are followed one by one where calls compete. Otherwise their mean counts there: a
    /// call that works for 2 ms and waits for 6 wants a quarter of a core.
    pub follows_rounds: bool,
}

impl Default for KernelCpu {
    fn default() -> Self {
        Self {
            period: Duration::from_millis(100),
            burst: 0.0,
            slice: Duration::from_nanos(1_400_000),
            settling: Duration::from_millis(440),
            round: Duration::from_millis(10),
            round_waits: 0.5,
            follows_rounds: false,
        }
    }
}

impl CpuModel {
    /// The kernel's CPU with everything as usual.
    pub fn kernel() -> Self {
        Self::Kernel(KernelCpu::default())
    }

    /// The kernel's CPU with rounds followed one by one.
    #[must_use]
    pub fn following_rounds(self) -> Self {
        let kernel = match self {
            Self::Fluid => KernelCpu::default(),
            Self::Kernel(kernel) => kernel,
        };
        Self::Kernel(KernelCpu { follows_rounds: true, ..kernel })
    }

    /// Whether this is the fluid model, which journals and digests do not mention.
    pub fn is_fluid(&self) -> bool {
        *self == Self::Fluid
    }
}
