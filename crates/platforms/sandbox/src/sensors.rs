//! What an instance used.

use std::time::Duration;

/// Time in which at least one task of the instance waited for a resource although it could have run.
///
/// Counted since the instance was created, so the difference of two samples over the time between them is a share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Waited for a CPU, for weights as well as for quotas.
    pub cpu: Duration,
    /// All of its tasks that could run waited for a CPU, none had one.
    pub cpu_full: Duration,
    /// Waited for memory to be reclaimed.
    pub memory: Duration,
}

/// What an instance used since it was created; counters never go back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sensors {
    /// CPU time of all its processes.
    pub cpu_time: Duration,
    /// Quota periods in which it wanted to run.
    pub periods: u64,
    /// Those in which it used up the quota. Counted at the end of a period, so up to one period late.
    pub throttled_periods: u64,
    /// Time in which it wanted to run and the quota was used up.
    pub throttled_time: Duration,
    /// Anonymous memory, bytes: what the program itself holds.
    pub memory_rss: u64,
    /// Everything charged to it, bytes: with page cache (charged to whoever touched a file first), `/tmp` and kernel
    /// memory.
    pub memory_usage: u64,
    /// Largest `memory_usage` since the start or the last reset, bytes.
    pub memory_peak: u64,
    /// Tasks that the kernel killed because the memory limit was exceeded.
    pub oom_kills: u64,
    /// Pressure stall information, where the kernel keeps it per group.
    pub pressure: Option<Pressure>,
}
