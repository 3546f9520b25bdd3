//! Limits and sensors without cgroups and without rights.
//!
//! | Limit or sensor | Replacement |
//! |---|---|
//! | quota | processes are stopped and continued (SIGSTOP, SIGCONT) so that the CPU time used follows the quota |
//! | weight, idle | nice value, which can only be raised |
//! | memory limit | a watcher samples resident memory and kills; `RLIMIT_DATA` stops what is faster than it |
//! | CPU time, memory | `/proc` and the CPU clocks of the processes, summed over the process tree |
//! | freezer | SIGSTOP, SIGCONT |
//!
//! The watcher is one thread for all instances.

mod processes;
mod ration;
mod watcher;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use windfall_core::{Mebibytes, MilliCpu};

use crate::control::{Budget, Control};
use crate::sensors::Sensors;
use crate::syscalls::set_group_nice;
use watcher::Watched;
pub(crate) use watcher::Watcher;

/// Each step of the nice value changes the weight by this factor.
const NICE_FACTOR: f64 = 1.25;
const LOWEST_PRIORITY: i32 = 19;
/// Address space that may be allocated above twice the memory limit: what is reserved is not all touched.
const SPARE_DATA: u64 = 64 << 20;
const PATIENCE: Duration = Duration::from_millis(200);
const STEP: Duration = Duration::from_micros(100);

/// One instance without a group.
pub(crate) struct Emulated {
    pid: Pid,
    watched: Arc<Mutex<Watched>>,
}

impl Emulated {
    /// Watches over the process `pid` and its descendants.
    pub(crate) fn new(watcher: &Watcher, pid: Pid, pidfd: OwnedFd) -> Self {
        Self { pid, watched: watcher.add(pid, pidfd) }
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nice value whose weight comes nearest; one core has nice value 0.
fn nice_of(weight: MilliCpu) -> i32 {
    let steps = (1000.0 / f64::from(weight.get().max(1))).log(NICE_FACTOR).round();
    (steps as i32).clamp(0, LOWEST_PRIORITY)
}

/// EACCES says nothing about nice values.
fn explain(error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return error;
    }
    let reason = "without rights a nice value can only be raised, so a weight can only be lowered";
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}

impl Control for Emulated {
    fn write_weight(&mut self, weight: MilliCpu) -> io::Result<()> {
        set_group_nice(self.pid, nice_of(weight)).map_err(explain)
    }

    fn write_idle(&mut self, idle: bool) -> io::Result<()> {
        // When it ends, the caller writes the weight next, which is refused where rights are missing.
        if idle { set_group_nice(self.pid, LOWEST_PRIORITY).map_err(explain) } else { Ok(()) }
    }

    fn write_quota(&mut self, budget: Option<Budget>) -> io::Result<()> {
        self.watched().set_budget(budget);
        Ok(())
    }

    fn write_memory(&mut self, memory: Mebibytes) -> io::Result<()> {
        let bytes = u64::from(memory.get()) << 20;
        let used = self.watched().memory();
        if used > bytes {
            let reason = format!("{} MiB are in use", used >> 20);
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, reason));
        }
        self.watched().set_memory_limit(bytes);
        // Only a second line of defence: it may be refused, and the watcher is enough without it.
        let data = Rlimit { current: Some(bytes.saturating_mul(2) + SPARE_DATA), maximum: None };
        let _ = prlimit(Some(self.pid), Resource::Data, data);
        Ok(())
    }

    fn write_pids(&mut self, _pids: u32) -> io::Result<()> {
        // Set before the program starts, as a limit of its user in its own user namespace.
        Ok(())
    }

    fn sense(&mut self) -> io::Result<Sensors> {
        Ok(self.watched().sense())
    }

    fn reset_memory_peak(&mut self) -> io::Result<()> {
        self.watched().reset_peak();
        Ok(())
    }

    fn set_frozen(&mut self, frozen: bool) -> io::Result<()> {
        self.watched().set_frozen(frozen);
        let start = Instant::now();
        while frozen && !processes::is_stopped(self.pid) && start.elapsed() < PATIENCE {
            sleep(STEP);
        }
        Ok(())
    }

    fn kill(&mut self) -> io::Result<()> {
        self.watched().kill();
        Ok(())
    }

    fn oom_kills(&mut self) -> u64 {
        self.watched().oom_kills()
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        self.watched().end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_become_nice_values() {
        assert_eq!(nice_of(MilliCpu::new(1000)), 0);
        assert_eq!(nice_of(MilliCpu::new(4000)), 0);
        // 1.25^6 is 3.8, nearest to 4.
        assert_eq!(nice_of(MilliCpu::new(250)), 6);
        assert_eq!(nice_of(MilliCpu::ZERO), LOWEST_PRIORITY);
    }
}
