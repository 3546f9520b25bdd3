//! The agent: one thread that owns pool, node book, call control and deadlines of the node.
//!
//! ```text
//!   request task ── Arrive ──► agent thread ── Verdict::Go(address, size) ──► request task ──► instance
//!                └─ Finished ►   │    ▲
//!                                │    └── Launched, Exited ── launcher and reaper threads
//!                                └── set, sense, pause: a few microseconds each, through kept descriptors
//! ```
//!
//! Request tasks never touch the state; they send messages and wait for one answer. A decision has a time budget: where
//! the policy takes longer, or the thread comes to a message too late, the call starts at the user's own size and the
//! record says why. So one slow decision delays the calls behind it by at most itself: they are not put to the policy
//! any more.

mod call_state;
mod changes;
mod deadlines;
mod desk;
mod levels;
mod looks;
mod machine;
pub(crate) mod message;
mod node;
mod perform;
mod ticks;
mod workshop;

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread::JoinHandle;

use tokio::runtime::Handle;
use windfall_core::{
    AdmitBy, Allocation, CallControl, Capabilities, CpuCeiling, Duration, FunctionId,
    FunctionProfile, Mebibytes, MilliCpu, Observation, Plan, Receipt, TelemetrySink, Timestamp,
};
use windfall_sandbox::{Limits, Quota};

pub use machine::{Machine, MachineCapabilities, Worker};
use message::Message;
pub use message::{NodeLevels, Status};
use node::Node;

use crate::clock::Clock;
use crate::pool::PoolSettings;

/// How long a caller of the tick side waits for the thread. It answers in microseconds unless a policy blocks it.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);

/// Guarantees by weight never add up to more than this for each core: the worst case of a call is an eighth of its
/// reservation, as in the simulator.
const GUARANTEE_BOUND: f64 = 8.0;

/// How an agent is set up.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// The pool of the node.
    pub pool: PoolSettings,
    /// The most that one call may be granted.
    pub ceiling: Allocation,
    /// The cores that do the work.
    pub cores: f64,
    /// CPU that may be claimed for each core.
    pub over_commit: f64,
    /// A decision that takes longer is not used.
    pub decision_budget: Duration,
    /// How often sensors of a running call are read for its outcome, where anyone wants one.
    pub sample_every: Duration,
    /// Period of CPU quotas.
    pub quota_period: std::time::Duration,
    /// Processes and threads that an instance may have.
    pub pids: u32,
}

impl AgentSettings {
    /// A node that may grant `limit`, to one call as much as to all.
    pub fn new(limit: Allocation) -> Self {
        Self {
            pool: PoolSettings::new(limit),
            ceiling: limit,
            cores: limit.cpu.cores(),
            over_commit: 1.0,
            decision_budget: Duration::from_millis(5),
            sample_every: Duration::from_millis(100),
            quota_period: std::time::Duration::from_millis(100),
            pids: 256,
        }
    }
}

impl AgentSettings {
    /// A node of this size on which `over_commit` cores may be granted for each one there is.
    pub fn over_committed(node: Allocation, over_commit: f64) -> Self {
        let mut settings = Self { over_commit, ..Self::new(node) };
        settings.pool.limit.cpu = claims(settings.cores, over_commit);
        settings
    }

    /// What the book of the node may grant under a control that admits calls itself: what they are expected to use
    /// decides, and the book bounds the guarantees in all.
    fn admitting_by(mut self, admit_by: AdmitBy) -> Self {
        if admit_by != AdmitBy::Grants {
            self.pool.limit.cpu = claims(self.cores, self.over_commit.max(GUARANTEE_BOUND));
        }
        self
    }
}

/// What may be claimed on so many cores.
fn claims(cores: f64, for_each: f64) -> MilliCpu {
    MilliCpu::new((cores * for_each * 1e3).round() as u32)
}

/// A running agent. Dropping it ends every instance.
pub struct Agent {
    inbox: Sender<Message>,
    clock: Clock,
    capabilities: Capabilities,
    thread: Option<JoinHandle<()>>,
}

impl Agent {
    /// Starts the thread. `runtime` runs what waits for sockets: loading code ahead of calls, and watching processes.
    pub fn start(
        settings: AgentSettings,
        machine: Arc<dyn Machine>,
        control: Box<dyn CallControl>,
        sinks: Vec<Box<dyn TelemetrySink>>,
        runtime: Handle,
    ) -> std::io::Result<Self> {
        let clock = Clock::start();
        let (inbox, messages) = channel();
        let workshop = workshop::Workshop::open(&machine, &inbox, runtime)?;
        let machine = machine.capabilities();
        let mut settings = settings.admitting_by(control.hints().admit_by);
        if !machine.pauses {
            settings.pool.pause_after = None;
        }
        let capabilities = ticks::tick_capabilities(machine, settings.pool.sized_by);
        let desk = desk::Desk::new(control, clock, &settings);
        let node = Node::new(settings, machine, clock, desk, workshop, sinks);
        let thread = std::thread::Builder::new()
            .name("windfall-agent".to_owned())
            .spawn(move || node.run(&messages))?;
        Ok(Self { inbox, clock, capabilities, thread: Some(thread) })
    }

    /// The clock that all times of this platform refer to.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// What ticks can set.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Where to send messages.
    pub(crate) fn inbox(&self) -> Sender<Message> {
        self.inbox.clone()
    }

    /// How it goes; nothing if the thread does not answer.
    pub fn status(&self) -> Option<Status> {
        self.ask(|reply| Message::Status { reply })
    }

    /// What running calls hold now; nothing if the thread does not answer.
    pub fn levels(&self) -> Option<NodeLevels> {
        self.ask(|reply| Message::Levels { reply })
    }

    /// Where the instances of a function accept connections, for measurements beside the gateway.
    pub fn addresses(&self, function: FunctionId) -> Vec<std::net::SocketAddr> {
        self.ask(|reply| Message::Addresses { function, reply }).unwrap_or_default()
    }

    /// Throws away what instances of `function` printed to nobody: calls made past the gateway print too.
    pub fn discard_output(&self, function: FunctionId) {
        // A thread that has ended has nothing to throw away.
        let _ = self.inbox.send(Message::DiscardOutput { function });
    }

    /// Functions from the one with the id `from` on.
    pub(crate) fn functions(&self, from: usize) -> Option<Vec<FunctionProfile>> {
        self.ask(|reply| Message::Functions { from, reply })
    }

    /// A picture of the node.
    pub(crate) fn observe(&self, now: Timestamp) -> Option<Observation> {
        self.ask(|reply| Message::Observe { now, reply })
    }

    /// Has a plan carried out.
    pub(crate) fn submit(&self, now: Timestamp, plan: &Plan) -> Option<Receipt> {
        let plan = plan.clone();
        self.ask(|reply| Message::Submit { now, plan, reply })
    }

    fn ask<T>(&self, message: impl FnOnce(std::sync::mpsc::SyncSender<T>) -> Message) -> Option<T> {
        let (reply, answer) = sync_channel(1);
        self.inbox.send(message(reply)).ok()?;
        answer.recv_timeout(PATIENCE).ok()
    }

    /// Ends every instance and waits for the thread. Calls that still run are answered as lost.
    pub fn stop(&mut self) {
        let _ = self.inbox.send(Message::Stop);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to end; the sandbox ends what it started.
            let _ = thread.join();
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What the kernel is asked for: weight is the guarantee, quota the ceiling.
fn limits_of(size: Allocation, ceiling: CpuCeiling, settings: &AgentSettings) -> Limits {
    // The kernel refuses quotas below 1 ms per period: 10m at 100 ms.
    const SMALLEST: MilliCpu = MilliCpu::new(10);
    let quota = ceiling.limit(size.cpu).map(|cpu| Quota {
        cpu: cpu.max(SMALLEST),
        period: settings.quota_period,
        burst: std::time::Duration::ZERO,
    });
    let memory = size.memory.max(Mebibytes::new(4));
    Limits { weight: size.cpu.max(SMALLEST), quota, idle: false, memory, pids: settings.pids }
}

#[cfg(test)]
mod tests;
