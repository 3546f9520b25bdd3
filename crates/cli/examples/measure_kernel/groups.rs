//! Control groups of the measurement (cgroup v1), below one parent with the largest weight, so that whatever else runs on
//! the machine hardly takes part.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// The name of the parent group in each hierarchy.
const PARENT: &str = "windfall-measure";
/// The largest `cpu.shares` that the kernel accepts.
const LARGEST_SHARES: &str = "262144";
/// The weight of a group that is not set apart.
pub(crate) const USUAL_SHARES: u64 = 1024;

/// All groups of the measurement; removed when it is dropped.
pub(crate) struct Tree {
    names: Vec<&'static str>,
}

/// How the CPU of one group is limited.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits {
    pub(crate) shares: u64,
    pub(crate) is_idle: bool,
    /// Cores, with the period in milliseconds and the burst as a share of the quota.
    pub(crate) quota: Option<(f64, u64, f64)>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { shares: USUAL_SHARES, is_idle: false, quota: None }
    }
}

fn folder(controller: &str, name: &str) -> PathBuf {
    Path::new("/sys/fs/cgroup").join(controller).join(PARENT).join(name)
}

fn set(controller: &str, name: &str, file: &str, value: &str) -> anyhow::Result<()> {
    let path = folder(controller, name).join(file);
    fs::write(&path, value).with_context(|| format!("writing `{value}` to {}", path.display()))
}

/// A number from a file of a group.
pub(crate) fn counter(controller: &str, name: &str, file: &str, key: &str) -> anyhow::Result<u64> {
    let path = folder(controller, name).join(file);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    find(&text, key).with_context(|| format!("no `{key}` in {}", path.display()))
}

/// The number that follows `key` in `text`; the first word if `key` is empty.
pub(crate) fn find(text: &str, key: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The file through which a group's counter is read again and again.
pub(crate) fn file(controller: &str, name: &str, file: &str) -> PathBuf {
    folder(controller, name).join(file)
}

impl Tree {
    pub(crate) fn make(names: &[&'static str]) -> anyhow::Result<Self> {
        for controller in ["cpu", "cpuacct"] {
            for name in [""].iter().chain(names) {
                let path = folder(controller, name);
                fs::create_dir_all(&path).with_context(|| {
                    format!("making {}; this needs root and cgroup v1", path.display())
                })?;
            }
        }
        set("cpu", "", "cpu.shares", LARGEST_SHARES)?;
        Ok(Self { names: names.to_vec() })
    }

    /// Sets weight, class and quota of a group. A quota that is written anew also fills the bucket and starts its period.
    pub(crate) fn limit(&self, name: &str, limits: Limits) -> anyhow::Result<()> {
        set("cpu", name, "cpu.cfs_burst_us", "0")?;
        set("cpu", name, "cpu.cfs_quota_us", "-1")?;
        set("cpu", name, "cpu.idle", if limits.is_idle { "1" } else { "0" })?;
        if !limits.is_idle {
            set("cpu", name, "cpu.shares", &limits.shares.to_string())?;
        }
        if let Some((cores, period_ms, burst)) = limits.quota {
            let quota = (cores * period_ms as f64 * 1e3) as u64;
            set("cpu", name, "cpu.cfs_period_us", &(period_ms * 1000).to_string())?;
            set("cpu", name, "cpu.cfs_quota_us", &quota.to_string())?;
            if burst > 0.0 {
                let burst = (burst * quota as f64) as u64;
                set("cpu", name, "cpu.cfs_burst_us", &burst.to_string())?;
            }
        }
        Ok(())
    }
}

/// Moves this process into a group.
pub(crate) fn join(name: &str) -> anyhow::Result<()> {
    set("cpu", name, "cgroup.procs", "0")?;
    set("cpuacct", name, "cgroup.procs", "0")
}

impl Drop for Tree {
    fn drop(&mut self) {
        for controller in ["cpu", "cpuacct"] {
            // Whoever is left, this process among them, goes back to the root.
            let _ =
                fs::write(Path::new("/sys/fs/cgroup").join(controller).join("cgroup.procs"), "0");
            for name in self.names.iter().chain(&[""]) {
                let _ = fs::remove_dir(folder(controller, name));
            }
        }
    }
}
