//! Starting and ending processes beside the agent thread, which must not wait for either.
//!
//! Entering a group of cgroup v1 can take 15 ms and a kill some hundred microseconds; a call that finds a warm instance
//! meanwhile must not notice.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use windfall_sandbox::{Exit, Launch, Limits};

use super::machine::{Machine, Worker};
use super::message::Message;
use super::node::Employed;
use crate::function::FunctionSpec;
use crate::link::Link;
use crate::pool::InstanceId;

/// Threads that start processes. The spawner behind them is one process; a second request can wait in its socket while
/// the first is carried out.
const LAUNCHERS: usize = 2;
/// How long a process whose connection broke may take to end by itself, so that its reason is found out.
const PATIENCE: Duration = Duration::from_millis(200);

enum Job {
    Launch {
        instance: InstanceId,
        launch: Box<Launch>,
    },
    Kill {
        instance: InstanceId,
        worker: Box<dyn Worker>,
        may_be_ending: bool,
    },
    /// It has ended already; only its groups are left to remove.
    Clear(Box<dyn Worker>),
}

pub(super) struct Workshop {
    launches: Sender<Job>,
    kills: Sender<Job>,
    /// Jobs that were given and not reported.
    launching: usize,
    killing: usize,
    inbox: Sender<Message>,
    runtime: Handle,
    threads: Vec<JoinHandle<()>>,
}

impl Workshop {
    pub(super) fn open(
        machine: &Arc<dyn Machine>,
        inbox: &Sender<Message>,
        runtime: Handle,
    ) -> std::io::Result<Self> {
        let (launches, launch_jobs) = channel();
        let (kills, kill_jobs) = channel();
        let launch_jobs = Arc::new(Mutex::new(launch_jobs));
        let mut threads = Vec::new();
        for number in 0..LAUNCHERS {
            let (jobs, machine, inbox) =
                (Arc::clone(&launch_jobs), Arc::clone(machine), inbox.clone());
            let name = format!("windfall-launch-{number}");
            threads.push(std::thread::Builder::new().name(name).spawn(move || {
                while let Some(job) = take(&jobs) {
                    work(job, Some(machine.as_ref()), &inbox);
                }
            })?);
        }
        let reports = inbox.clone();
        let reaper = std::thread::Builder::new().name("windfall-reap".to_owned());
        threads.push(reaper.spawn(move || {
            while let Ok(job) = kill_jobs.recv() {
                work(job, None, &reports);
            }
        })?);
        let (launching, killing) = (0, 0);
        Ok(Self { launches, kills, launching, killing, inbox: inbox.clone(), runtime, threads })
    }

    /// Whether nothing is being started or ended.
    pub(super) fn is_idle(&self) -> bool {
        self.launching == 0 && self.killing == 0
    }

    pub(super) fn launch(
        &mut self,
        instance: InstanceId,
        spec: Option<&Arc<FunctionSpec>>,
        limits: Limits,
    ) {
        self.launching += 1;
        let Some(spec) = spec else {
            let problem = "no deployed function has this kind".to_owned();
            return self.report(Message::Launched { instance, result: Err(problem) });
        };
        let launch = Launch {
            name: format!("{}/{}", spec.settings.name, instance.0),
            program: spec.program.clone(),
            environment: spec.environment.clone(),
            isolation: spec.isolation,
            limits,
            scratch: spec.scratch,
        };
        // The threads end with this value, so someone is there to take the job.
        let _ = self.launches.send(Job::Launch { instance, launch: Box::new(launch) });
    }

    pub(super) fn launch_ended(&mut self) {
        self.launching -= 1;
    }

    /// Ends a process; `Message::Exited` follows.
    pub(super) fn dismiss(
        &mut self,
        instance: InstanceId,
        employed: Employed,
        may_be_ending: bool,
    ) {
        self.killing += 1;
        employed.link.close();
        let worker = employed.worker;
        let _ = self.kills.send(Job::Kill { instance, worker, may_be_ending });
    }

    /// A process is gone; `employed` is what is left of it if it ended by itself.
    pub(super) fn dismiss_ended(&mut self, employed: Option<Employed>) {
        if let Some(employed) = employed {
            employed.link.close();
            let _ = self.kills.send(Job::Clear(employed.worker));
        }
    }

    /// A kill was reported.
    pub(super) fn kill_ended(&mut self) {
        self.killing = self.killing.saturating_sub(1);
    }

    fn report(&self, message: Message) {
        let _ = self.inbox.send(message);
    }

    /// The way to a new process: its address, its output, and a watch over its end.
    pub(super) fn link(&self, instance: InstanceId, worker: &mut dyn Worker) -> Link {
        let _inside = self.runtime.enter();
        let inbox = self.inbox.clone();
        if let Some(descriptor) = worker.exit_descriptor() {
            self.runtime.spawn(async move {
                #[expect(
                    deprecated,
                    reason = "an owned descriptor stays open as long as it is watched, and its successor is unsafe"
                )]
                if let Ok(descriptor) = tokio::io::unix::AsyncFd::new(descriptor) {
                    let _ = descriptor.readable().await;
                }
                let _ = inbox.send(Message::MayHaveExited { instance });
            });
        }
        Link::new(worker.address(), worker.take_output())
    }

    /// Loads the code of an instance that no call waits for.
    pub(super) fn initialise(
        &self,
        instance: InstanceId,
        link: &Arc<Link>,
        spec: &Arc<FunctionSpec>,
    ) {
        let (link, spec, inbox) = (Arc::clone(link), Arc::clone(spec), self.inbox.clone());
        self.runtime.spawn(async move {
            let is_fine = crate::exchange::initialise(&link, &spec).await.is_ok();
            let _ = inbox.send(Message::Initialised { instance, is_fine });
        });
    }
}

fn take(jobs: &Mutex<Receiver<Job>>) -> Option<Job> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

fn work(job: Job, machine: Option<&dyn Machine>, inbox: &Sender<Message>) {
    let report = match job {
        Job::Launch { instance, launch } => {
            let Some(machine) = machine else { return };
            Message::Launched { instance, result: machine.launch(&launch) }
        }
        Job::Kill { instance, worker, may_be_ending } => {
            Message::Exited { instance, exit: end(worker, may_be_ending) }
        }
        Job::Clear(worker) => return drop(worker),
    };
    // The agent may be gone; then there is nobody to report to.
    let _ = inbox.send(report);
}

fn end(mut worker: Box<dyn Worker>, may_be_ending: bool) -> Exit {
    let until = Instant::now() + PATIENCE;
    while may_be_ending && Instant::now() < until {
        if let Some(exit) = worker.exited() {
            return exit;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    worker.kill()
}

impl Drop for Workshop {
    /// Waits until everything that was to be ended is.
    fn drop(&mut self) {
        (self.launches, self.kills) = (channel().0, channel().0);
        for thread in self.threads.drain(..) {
            // A thread that panicked has left nothing to wait for.
            let _ = thread.join();
        }
    }
}
