//! The thread that keeps quotas and memory limits where no cgroup does.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group, pidfd_send_signal};

use super::processes::{cpu_time, resident, tree};
use super::ration::{Counters, Ration};
use crate::control::Budget;
use crate::sensors::Sensors;

/// How often CPU time is compared with the quota.
const SAMPLE: Duration = Duration::from_millis(5);
/// Memory is sampled every so many samples: a program fills about 20 MiB in the meantime.
const MEMORY_EVERY: u32 = 4;

type Shared = Arc<Mutex<Watched>>;
/// Those whose instance still exists.
type Instances = Mutex<Vec<Weak<Mutex<Watched>>>>;

/// All instances that are watched. The thread ends with it.
pub(crate) struct Watcher {
    instances: Arc<Instances>,
}

impl Watcher {
    /// Starts the thread.
    pub(crate) fn start() -> Self {
        let instances: Arc<Instances> = Arc::default();
        let seen = Arc::downgrade(&instances);
        thread::spawn(move || {
            let mut count: u32 = 0;
            while let Some(instances) = seen.upgrade() {
                watch(&instances, count.is_multiple_of(MEMORY_EVERY));
                drop(instances);
                count = count.wrapping_add(1);
                thread::sleep(SAMPLE);
            }
        });
        Self { instances }
    }

    pub(super) fn add(&self, pid: Pid, pidfd: OwnedFd) -> Shared {
        let watched = Arc::new(Mutex::new(Watched::new(pid, pidfd)));
        let mut instances = self.instances.lock().unwrap_or_else(PoisonError::into_inner);
        instances.push(Arc::downgrade(&watched));
        watched
    }
}

fn watch(instances: &Instances, with_memory: bool) {
    let live: Vec<Shared> = {
        let mut instances = instances.lock().unwrap_or_else(PoisonError::into_inner);
        instances.retain(|instance| instance.strong_count() > 0);
        instances.iter().filter_map(Weak::upgrade).collect()
    };
    for instance in live {
        let mut watched = instance.lock().unwrap_or_else(PoisonError::into_inner);
        watched.sample_cpu();
        if with_memory {
            watched.sample_memory();
        }
    }
}

/// One instance.
pub(super) struct Watched {
    pid: Pid,
    /// None once the process is gone: its number may then belong to another.
    pidfd: Option<OwnedFd>,
    tree: Vec<Pid>,
    ration: Option<Ration>,
    counters: Counters,
    last: Instant,
    cpu: Duration,
    memory_limit: u64,
    memory: u64,
    peak: u64,
    oom_kills: u64,
    is_frozen: bool,
    is_throttled: bool,
    is_stopped: bool,
}

impl Watched {
    fn new(pid: Pid, pidfd: OwnedFd) -> Self {
        Self {
            pid,
            pidfd: Some(pidfd),
            tree: vec![pid],
            ration: None,
            counters: Counters::default(),
            last: Instant::now(),
            cpu: Duration::ZERO,
            memory_limit: u64::MAX,
            memory: 0,
            peak: 0,
            oom_kills: 0,
            is_frozen: false,
            is_throttled: false,
            is_stopped: false,
        }
    }

    pub(super) fn set_budget(&mut self, budget: Option<Budget>) {
        self.read_cpu();
        self.last = Instant::now();
        self.counters = self.ration.as_ref().map_or(self.counters, |ration| ration.counters);
        self.ration = budget.map(|budget| Ration::new(budget, self.counters));
        self.is_throttled = false;
        self.stop_or_continue();
    }

    pub(super) fn set_memory_limit(&mut self, bytes: u64) {
        self.memory_limit = bytes;
    }

    pub(super) fn set_frozen(&mut self, frozen: bool) {
        self.is_frozen = frozen;
        self.stop_or_continue();
    }

    pub(super) fn memory(&mut self) -> u64 {
        self.sample_memory();
        self.memory
    }

    pub(super) fn reset_peak(&mut self) {
        self.peak = self.memory();
    }

    pub(super) fn oom_kills(&self) -> u64 {
        self.oom_kills
    }

    pub(super) fn sense(&mut self) -> Sensors {
        self.sample_cpu();
        self.sample_memory();
        let counters = self.ration.as_ref().map_or(self.counters, |ration| ration.counters);
        Sensors {
            cpu_time: self.cpu,
            periods: counters.periods,
            throttled_periods: counters.throttled_periods,
            throttled_time: counters.throttled_time,
            memory_rss: self.memory,
            memory_usage: self.memory,
            memory_peak: self.peak,
            oom_kills: self.oom_kills,
            pressure: None,
        }
    }

    fn read_cpu(&mut self) -> Duration {
        if !self.is_alive() {
            return Duration::ZERO;
        }
        // A child that ended is counted a little later by its parent; time never goes back.
        let now = cpu_time(&self.tree).max(self.cpu);
        let used = now - self.cpu;
        self.cpu = now;
        used
    }

    fn sample_cpu(&mut self) {
        let used = self.read_cpu();
        let elapsed = self.last.elapsed();
        self.last = Instant::now();
        if let Some(ration) = &mut self.ration {
            self.is_throttled = ration.sample(elapsed, used);
            self.stop_or_continue();
        }
    }

    fn sample_memory(&mut self) {
        if !self.is_alive() {
            return;
        }
        self.tree = tree(self.pid);
        self.memory = resident(&self.tree);
        self.peak = self.peak.max(self.memory);
        if self.memory > self.memory_limit {
            self.oom_kills += 1;
            self.kill();
        }
    }

    fn stop_or_continue(&mut self) {
        let stop = self.is_frozen || self.is_throttled;
        if stop != self.is_stopped {
            self.is_stopped = stop;
            self.signal(if stop { Signal::STOP } else { Signal::CONT });
        }
    }

    pub(super) fn kill(&mut self) {
        self.signal(Signal::KILL);
    }

    /// The process is gone, or about to be killed by the spawner.
    pub(super) fn end(&mut self) {
        self.pidfd = None;
    }

    /// To the first process by its descriptor, to the others by their process group.
    fn signal(&mut self, signal: Signal) {
        if self.is_alive()
            && let Some(pidfd) = &self.pidfd
        {
            let _ = pidfd_send_signal(pidfd, signal);
            let _ = kill_process_group(self.pid, signal);
        }
    }

    /// Whether the number of the process still means this process.
    fn is_alive(&mut self) -> bool {
        let Some(pidfd) = &self.pidfd else { return false };
        let mut waiting = [PollFd::new(pidfd, PollFlags::IN)];
        let has_ended = poll(&mut waiting, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
        if has_ended {
            self.pidfd = None;
        }
        !has_ended
    }
}
