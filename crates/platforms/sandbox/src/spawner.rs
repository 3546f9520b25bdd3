//! The spawner: a process with one thread that makes, reaps and removes instances.
//!
//! It waits for requests of the manager and for the end of its children, and keeps a few children parked: isolated and
//! in their groups, waiting for an order. When the manager's socket ends, it kills what it started, removes the groups
//! and ends.

mod child;
mod failure;
mod orphans;
mod root;
mod seccomp;

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::net::RecvFlags;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, kill_process_group, pidfd_open,
    pidfd_send_signal, setsid, waitid,
};

use crate::cgroup::leftovers::kill_tree;
use crate::cgroup::tree::Tree;
use crate::launch::Isolation;
use crate::syscalls::{
    Fork, clone3, close_all_but, duplicate_above, exit_now, ignore_signal, place,
};
use crate::wire::{Answer, Request, Status, pair, receive, send};
use child::Plan;
use seccomp::Filters;

/// A new child is parked only after this long without a request, so that it does not compete with a program that has
/// just been started.
const QUIET: Duration = Duration::from_millis(20);
/// Groups of killed instances are tried to be removed this often.
const SWEEP: Duration = Duration::from_millis(5);
/// How long the end of all instances is awaited when the spawner ends.
const PATIENCE: Duration = Duration::from_secs(5);
/// No more children are parked after so many failures in a row.
const MOST_FAILURES: u32 = 3;
/// Token of the manager's socket; slots begin at 1.
const MANAGER: u64 = 0;
/// Above every number that a child gives to a program.
const SAFE_NUMBER: i32 = 16;

/// What the spawner works with.
pub(crate) struct Setup {
    /// Groups of the run; none without cgroups.
    pub(crate) tree: Option<Tree>,
    /// Whether it may make namespaces and change users without a user namespace.
    pub(crate) is_privileged: bool,
    /// Isolation of parked children.
    pub(crate) isolation: Isolation,
    /// How many to keep parked.
    pub(crate) parked: usize,
}

/// One child.
struct Slot {
    pid: Pid,
    pidfd: OwnedFd,
    isolation: Isolation,
    /// The child's end of its control socket, kept to report its exit.
    report: OwnedFd,
    /// The manager's end, until the child is claimed.
    control: Option<OwnedFd>,
    is_reaped: bool,
    is_discarded: bool,
}

struct Spawner {
    setup: Setup,
    filters: Filters,
    /// This process, for its children to see whether it has ended.
    own: OwnedFd,
    manager: OwnedFd,
    epoll: OwnedFd,
    slots: BTreeMap<u64, Slot>,
    parked: VecDeque<u64>,
    /// Discarded and reaped, with groups to remove.
    emptied: Vec<u64>,
    /// Whether processes may be left whose instance has ended.
    has_orphans: bool,
    next: u64,
    failures: u32,
    last_request: Instant,
}

/// Runs the spawner in a process that was just forked. Never returns.
pub(crate) fn run(setup: Setup, manager: OwnedFd) -> ! {
    // Ctrl-C goes to the manager, which ends the spawner when it is ready; a service manager stops all processes of a
    // service with SIGTERM, and instances must outlive the calls in flight.
    let _ = setsid();
    ignore_signal(libc::SIGTERM);
    let _ = rustix::thread::set_name(c"windfall-spawn");
    // A panic must not unwind into the code of the process that this one was forked from.
    let ended = catch_unwind(AssertUnwindSafe(|| -> io::Result<()> {
        close_all_but(&[manager.as_raw_fd()])?;
        // A pipe that the manager's output goes to must end with the manager.
        for number in [0, 1] {
            place(File::options().read(true).write(true).open("/dev/null")?.into(), number)?;
        }
        let mut spawner = Spawner::new(setup, manager)?;
        while let Ok(true) = spawner.turn() {}
        spawner.end();
        Ok(())
    }));
    exit_now(i32::from(!matches!(ended, Ok(Ok(())))))
}

impl Spawner {
    fn new(setup: Setup, manager: OwnedFd) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &manager, EventData::new_u64(MANAGER), EventFlags::IN)?;
        orphans::adopt_all()?;
        let own = pidfd_open(getpid(), PidfdFlags::empty())?;
        Ok(Self {
            own: duplicate_above(own.as_fd(), SAFE_NUMBER)?,
            setup,
            filters: Filters::compile().map_err(io::Error::other)?,
            manager,
            epoll,
            slots: BTreeMap::new(),
            parked: VecDeque::new(),
            emptied: Vec::new(),
            has_orphans: false,
            next: 1,
            failures: 0,
            last_request: Instant::now(),
        })
    }

    /// Waits for something and handles it; false at the end of the manager's socket.
    fn turn(&mut self) -> io::Result<bool> {
        for token in self.wait(self.patience())? {
            if token != MANAGER {
                self.reap(token);
            } else if !self.serve()? {
                return Ok(false);
            }
        }
        self.sweep();
        if self.wants_to_park() && self.last_request.elapsed() >= QUIET {
            match self.spawn(self.setup.isolation) {
                Ok(slot) => self.parked.push_back(slot),
                Err(_) => self.failures += 1,
            }
        }
        Ok(true)
    }

    fn wants_to_park(&self) -> bool {
        self.parked.len() < self.setup.parked && self.failures < MOST_FAILURES
    }

    /// How long to wait at most; none is without end.
    fn patience(&self) -> Option<Duration> {
        if self.has_orphans || !self.emptied.is_empty() {
            Some(SWEEP)
        } else if self.wants_to_park() {
            Some(QUIET.saturating_sub(self.last_request.elapsed()))
        } else {
            None
        }
    }

    fn wait(&self, patience: Option<Duration>) -> io::Result<Vec<u64>> {
        let timeout = patience.map(|time| Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: i64::from(time.subsec_nanos()),
        });
        let mut events = Vec::with_capacity(64);
        let spare = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&self.epoll, spare, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(events.iter().map(|event: &epoll::Event| event.data.u64()).collect())
    }

    /// Handles the requests that have arrived; false at the end of the socket.
    fn serve(&mut self) -> io::Result<bool> {
        loop {
            let request = match receive::<Request>(&self.manager, RecvFlags::DONTWAIT) {
                Ok(Some((request, _))) => request,
                Ok(None) => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            };
            match request {
                Request::Claim { isolation } => self.claim(isolation)?,
                Request::Discard { slot } => self.discard(slot),
            }
            self.last_request = Instant::now();
        }
    }

    /// Hands out a parked child, or a new one.
    fn claim(&mut self, isolation: Isolation) -> io::Result<()> {
        let fitting = |slot: &u64| self.slots[slot].isolation == isolation;
        let parked = self.parked.iter().position(fitting);
        let slot = match parked.and_then(|place| self.parked.remove(place)) {
            Some(slot) => Ok(slot),
            None => self.spawn(isolation),
        };
        let claimed = slot.and_then(|number| {
            let slot = self.slots.get_mut(&number).ok_or(io::ErrorKind::NotFound)?;
            let control = slot.control.take().ok_or(io::ErrorKind::NotFound)?;
            Ok((number, slot.pid, control, slot.pidfd.as_fd()))
        });
        match claimed {
            Ok((slot, pid, control, pidfd)) => {
                let answer = Answer::Claimed { slot, pid: pid.as_raw_nonzero().get() };
                let sent = send(&self.manager, &answer, &[control.as_fd(), pidfd]);
                // A shortage of the kernel's, for instance of descriptors under way, must not end every instance.
                sent.or_else(|error| {
                    self.discard(slot);
                    self.refuse(&error)
                })
            }
            Err(error) => self.refuse(&error),
        }
    }

    fn refuse(&self, error: &io::Error) -> io::Result<()> {
        send(&self.manager, &Answer::Refused { reason: error.to_string() }, &[])
    }

    /// Makes a child that waits for its order.
    fn spawn(&mut self, isolation: Isolation) -> io::Result<u64> {
        let number = self.next;
        self.next += 1;
        let (control, report) = pair()?;
        let report = duplicate_above(report.as_fd(), SAFE_NUMBER)?;
        if let Some(tree) = &self.setup.tree {
            tree.create_slot(number).map_err(io::Error::other)?;
        }
        let cloned = self.clone_into(number, isolation, &report);
        let (pid, pidfd) = match cloned {
            Ok(child) => child,
            Err(error) => {
                self.emptied.push(number);
                return Err(error);
            }
        };
        epoll::add(&self.epoll, &pidfd, EventData::new_u64(number), EventFlags::IN)?;
        let slot = Slot {
            pid,
            pidfd,
            isolation,
            report,
            control: Some(control),
            is_reaped: false,
            is_discarded: false,
        };
        self.slots.insert(number, slot);
        Ok(number)
    }

    fn clone_into(
        &self,
        number: u64,
        isolation: Isolation,
        report: &OwnedFd,
    ) -> io::Result<(Pid, OwnedFd)> {
        let (unified, groups) = self.groups_of(number)?;
        let is_in_userns = isolation != Isolation::Process && !self.setup.is_privileged;
        let into = unified.as_ref().map(AsFd::as_fd);
        match clone3(namespaces(isolation, is_in_userns), into)? {
            Fork::Parent(cloned) => Ok((cloned.pid, cloned.pidfd)),
            Fork::Child => {
                let others = [report.as_raw_fd(), self.own.as_raw_fd()];
                let keep: Vec<i32> = groups.iter().map(AsRawFd::as_raw_fd).chain(others).collect();
                let kept = close_all_but(&keep);
                let plan = Plan {
                    isolation,
                    is_in_userns,
                    groups: &groups,
                    filters: &self.filters,
                    control: report,
                    spawner: &self.own,
                };
                child::run(&plan, kept)
            }
        }
    }

    /// The v2 group to be cloned into, and the other groups to join.
    fn groups_of(&self, number: u64) -> io::Result<(Option<File>, Vec<File>)> {
        let mut unified = None;
        let mut groups = Vec::new();
        for (folder, is_unified) in
            self.setup.tree.iter().flat_map(|tree| tree.slot_folders(number))
        {
            if is_unified {
                unified = Some(File::open(folder)?);
            } else {
                groups.push(child::open_group(&folder)?);
            }
        }
        Ok((unified, groups))
    }

    /// Kills what is in a slot; its groups are removed when it is gone.
    fn discard(&mut self, number: u64) {
        let Some(slot) = self.slots.get_mut(&number) else { return };
        slot.is_discarded = true;
        if slot.is_reaped {
            // Its own children may live on, if it had no pid namespace.
            kill_groups(self.setup.tree.as_ref(), number);
            self.slots.remove(&number);
            self.emptied.push(number);
        } else {
            kill(self.setup.tree.as_ref(), number, slot);
        }
    }

    /// Takes note of the end of a child and reports it.
    fn reap(&mut self, number: u64) {
        let Some(slot) = self.slots.get_mut(&number).filter(|slot| !slot.is_reaped) else { return };
        let waited = waitid(WaitId::PidFd(slot.pidfd.as_fd()), WaitIdOptions::EXITED);
        let Ok(Some(ended)) = waited else { return };
        slot.is_reaped = true;
        let status = match ended.terminating_signal() {
            Some(signal) => Status::Killed { signal },
            None => Status::Exited { code: ended.exit_status().unwrap_or(-1) },
        };
        let _ = epoll::delete(&self.epoll, &slot.pidfd);
        // The manager may have closed its end.
        let _ = send(&slot.report, &status, &[]);
        if let Some(place) = self.parked.iter().position(|parked| *parked == number) {
            // Nobody knows of it, and what ended it would end the next one as well.
            self.parked.remove(place);
            self.failures += 1;
            slot.is_discarded = true;
        }
        if slot.is_discarded {
            kill_groups(self.setup.tree.as_ref(), number);
            self.slots.remove(&number);
            self.emptied.push(number);
        }
        // What it left behind is among the children of this process by now.
        self.has_orphans = true;
    }

    /// Ends what instances left behind, and removes groups whose last process is gone.
    fn sweep(&mut self) {
        if self.has_orphans {
            let slots = &self.slots;
            let known = |pid| slots.values().any(|slot| slot.pid == pid && !slot.is_reaped);
            self.has_orphans = orphans::bury(known);
        }
        let Some(tree) = &self.setup.tree else { return self.emptied.clear() };
        self.emptied.retain(|slot| tree.remove_slot(*slot).is_err());
    }

    /// Kills everything and removes all groups.
    fn end(&mut self) {
        let start = Instant::now();
        for number in self.slots.keys().copied().collect::<Vec<_>>() {
            self.discard(number);
        }
        let is_done =
            |this: &Self| this.slots.is_empty() && this.emptied.is_empty() && !this.has_orphans;
        while !is_done(self) && start.elapsed() < PATIENCE {
            for token in self.wait(Some(SWEEP)).unwrap_or_default() {
                if token == MANAGER {
                    let _ = epoll::delete(&self.epoll, &self.manager);
                } else {
                    self.reap(token);
                }
            }
            self.sweep();
        }
        if let Some(tree) = &self.setup.tree {
            tree.leave();
            tree.remove();
        }
    }
}

fn namespaces(isolation: Isolation, is_in_userns: bool) -> i32 {
    if isolation == Isolation::Process {
        return 0;
    }
    let user = if is_in_userns { libc::CLONE_NEWUSER } else { 0 };
    libc::CLONE_NEWPID
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWNET
        | user
}

/// Kills all processes of an instance.
fn kill(tree: Option<&Tree>, number: u64, slot: &Slot) {
    // In a pid namespace the end of the first process is the end of all.
    let _ = pidfd_send_signal(&slot.pidfd, Signal::KILL);
    if slot.isolation == Isolation::Process {
        let _ = kill_process_group(slot.pid, Signal::KILL);
    }
    kill_groups(tree, number);
}

fn kill_groups(tree: Option<&Tree>, number: u64) {
    let Some(tree) = tree else { return };
    if let Some(group) = tree.unified_slot(number)
        && fs::write(group.join("cgroup.kill"), "1").is_ok()
    {
        return;
    }
    tree.slot_folders(number).for_each(|(group, _)| kill_tree(&group));
}
