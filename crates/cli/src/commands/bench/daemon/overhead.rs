//! What the manager costs on the embedded platform: CPU of its own threads, and time in which calls are sized, while real
//! functions are called.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use windfall_core::{
    Allocation, CallClose, CallControl, CallHints, CallPlan, CallView, GrantChange, Look, NodeId,
    NodeOffer, Resized, RunningCall, Start, Timestamp,
};
use windfall_daemon::database::{Records, Retention, file_in};
use windfall_daemon::embedded::load::{Amount, Called, SampleLoad};
use windfall_daemon::embedded::samples::SAMPLES;
use windfall_daemon::embedded::{EmbeddedWorld, ManagedEmbedded};
use windfall_daemon::switched_calls::SwitchedCalls;
use windfall_daemon::{Mode, Service, Supervisor, SupervisorSettings, prepare};
use windfall_embedded::pool::SizedBy;
use windfall_sandbox::{Child, Host, HostOptions, Isolation};

use super::Overhead;
use crate::commands::functions::folder;
use crate::commands::serve::machine_limit;
use crate::output::directory;

/// Calls per second that are sent.
const RATE: f64 = 100.0;
/// Until every instance is warm, and then how long it is measured.
const WARM_UP: Duration = Duration::from_secs(4);
const MEASURED: Duration = Duration::from_secs(15);
/// Threads that would not be there without a manager: the loop and the writer of its database.
const OWN_THREADS: [&str; 2] = ["control", "database"];

/// The manager's call control with a clock around every question: that time is spent on the platform's thread.
struct Timed {
    control: SwitchedCalls,
    nanos: Arc<AtomicU64>,
}

impl Timed {
    fn time<T>(&mut self, ask: impl FnOnce(&mut SwitchedCalls) -> T) -> T {
        let began = Instant::now();
        let answer = ask(&mut self.control);
        self.nanos.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
        answer
    }
}

impl CallControl for Timed {
    fn size(&mut self, call: &CallView) -> CallPlan {
        self.time(|control| control.size(call))
    }

    fn start(&mut self, call: &CallView, plan: &CallPlan, node: NodeId, room: Allocation) -> Start {
        self.time(|control| control.start(call, plan, node, room))
    }

    fn look(&mut self, running: &RunningCall, changes: &mut Vec<GrantChange>) -> Look {
        self.time(|control| control.look(running, changes))
    }

    fn resized(&mut self, change: &Resized, changes: &mut Vec<GrantChange>) {
        self.time(|control| control.resized(change, changes));
    }

    fn close(&mut self, end: CallClose<'_>, changes: &mut Vec<GrantChange>) {
        self.time(|control| control.close(end, changes));
    }

    fn admit(&self, call: &CallView, plan: &CallPlan, offer: &NodeOffer) -> Option<f64> {
        let began = Instant::now();
        let full = self.control.admit(call, plan, offer);
        self.nanos.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
        full
    }

    fn hints(&self) -> CallHints {
        self.control.hints()
    }

    fn coverage(&self, node: NodeId, plan: &CallPlan, now: Timestamp) -> f64 {
        self.control.coverage(node, plan, now)
    }
}

/// Calls a small function 100 times a second and adds up the CPU time of the manager's threads and the time that its call
/// control takes on the agent's thread.
pub(super) fn on_embedded(out: &Path) -> anyhow::Result<Overhead> {
    let host = Host::start(&HostOptions::default())?;
    host.join(Child::Gateway)?;
    let settings = SupervisorSettings { mode: Mode::Auto, ..SupervisorSettings::default() };
    let (prepared, parts) = prepare(settings)?;
    let state = out.join("embedded");
    directory(&state)?;
    let world = EmbeddedWorld {
        listen: ([127, 0, 0, 1], 0).into(),
        database: state.join("platform.db"),
        limit: machine_limit()?,
        isolation: Isolation::Sandbox,
        sized_by: SizedBy::Call,
    };
    let nanos = Arc::new(AtomicU64::new(0));
    let calls = Timed { control: parts.calls, nanos: Arc::clone(&nanos) };
    let mut platform = ManagedEmbedded::start(&world, host, calls)?;
    let greet = SAMPLES.iter().find(|sample| sample.name == "greet").context("no sample")?;
    let (address, key) = (platform.address(), platform.key().to_owned());
    folder::deploy(address, &key, [(greet.name, greet.action())])?;
    platform.learn_functions()?;
    let clock = platform.clock();
    let records = Records::open(&file_in(&state), Retention::default())?;
    let mut service =
        Service::start(Supervisor::new(prepared, Box::new(platform), records), clock)?;
    let calls = vec![Called::sample(greet)];
    let mut load = SampleLoad::start(address, &key, calls, Amount::PerHour(RATE * 3600.0), 1)?;
    let count = || service.live.read().unwrap_or_else(PoisonError::into_inner).totals.calls;
    std::thread::sleep(WARM_UP);
    let spent = || own_cpu().map(|cpu| cpu + nanos.load(Ordering::Relaxed) as f64 * 1e-9);
    let (cpu, ended) = (spent()?, count());
    std::thread::sleep(MEASURED);
    let (cpu, ended) = (spent()? - cpu, count() - ended);
    load.stop();
    service.stop();
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let seconds = MEASURED.as_secs_f64();
    Ok(Overhead {
        share: cpu / seconds / cores,
        calls_per_second: ended as f64 / seconds,
        on: "embedded",
    })
}

/// CPU time of the manager's own threads so far, seconds.
fn own_cpu() -> anyhow::Result<f64> {
    let mut nanos = 0.0;
    for task in std::fs::read_dir("/proc/self/task").context("threads of this process")? {
        let task = task?.path();
        // A thread that has just ended has no files any more.
        let Ok(name) = std::fs::read_to_string(task.join("comm")) else { continue };
        if OWN_THREADS.contains(&name.trim()) {
            let spent = std::fs::read_to_string(task.join("schedstat")).unwrap_or_default();
            let first = spent.split_whitespace().next().and_then(|text| text.parse::<f64>().ok());
            nanos += first.unwrap_or(0.0);
        }
    }
    Ok(nanos * 1e-9)
}
