//! The only place with a clock: the control thread, the learner's thread, and a graceful stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use windfall_core::Timestamp;

use crate::governance::Governance;
use crate::learning::Learner;
use crate::managed_platform::{Invoker, PlatformKind};
use crate::orders::Desk;
use crate::supervisor::{SharedLive, Supervisor, SupervisorSettings};

/// Time between two steps: how soon a finished call is shown and an order is carried out.
const STEP: Duration = Duration::from_millis(50);
/// How often the learner looks whether a round is due.
const LEARNER_LOOKS: Duration = Duration::from_millis(100);
/// Ticks that a stop may take to see every function whole again.
const STOP_ATTEMPTS: u32 = 50;

/// The time since the service began, by a clock that never jumps: a correction of the system's time changes nothing.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Instant,
    began_unix_ms: i64,
}

impl Clock {
    /// Begins now.
    pub fn begin() -> Self {
        Self { began: Instant::now(), began_unix_ms: crate::database::unix_ms() }
    }

    /// Began at `began`: the clock of a platform that has one of its own.
    pub fn began_at(began: Instant) -> Self {
        let passed = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        Self { began, began_unix_ms: crate::database::unix_ms().saturating_sub(passed) }
    }

    /// The time since the beginning.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// The beginning by the system's clock, milliseconds since 1970.
    pub fn began_unix_ms(&self) -> i64 {
        self.began_unix_ms
    }
}

/// A running manager.
pub struct Service {
    /// The picture that everyone reads.
    pub live: SharedLive,
    /// Where orders are given.
    pub desk: Desk,
    /// Modes, holds and the kill switch.
    pub governance: Arc<Governance>,
    /// Its clock.
    pub clock: Clock,
    /// Where functions run.
    pub kind: PlatformKind,
    /// What it was started with.
    pub settings: SupervisorSettings,
    /// Runs single calls, if the platform can.
    pub invoker: Option<Arc<dyn Invoker>>,
    is_stopping: Arc<AtomicBool>,
    control: Option<JoinHandle<bool>>,
    learner: Option<JoinHandle<()>>,
}

impl Service {
    /// Starts the control thread, and the learner if the settings ask for one.
    pub fn start(manager: Supervisor, clock: Clock) -> std::io::Result<Self> {
        let is_stopping = Arc::new(AtomicBool::new(false));
        let (live, desk, governance) = (manager.live(), manager.desk(), manager.governance());
        let (kind, settings) = (manager.kind(), manager.settings().clone());
        let (invoker, slot) = (manager.platform().invoker(), manager.slot());
        let stopping = Arc::clone(&is_stopping);
        let control = std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || run(manager, clock, &stopping))?;
        let learner = settings.learns.then(|| {
            let learner = Learner::new(desk.clone(), Arc::clone(&live), slot, settings.seed);
            let stopping = Arc::clone(&is_stopping);
            std::thread::Builder::new()
                .name("learner".to_owned())
                .spawn(move || learn(learner, clock, &stopping))
        });
        Ok(Self {
            live,
            desk,
            governance,
            clock,
            kind,
            settings,
            invoker,
            is_stopping,
            control: Some(control),
            learner: learner.transpose()?,
        })
    }

    /// Whether the control thread has ended, which it only does when it is stopped or has failed.
    pub fn has_ended(&self) -> bool {
        self.control.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops and waits; whether every function is known to have its own allocation back.
    pub fn stop(&mut self) -> bool {
        self.is_stopping.store(true, Ordering::Relaxed);
        let control = self.control.take().map(JoinHandle::join);
        if let Some(learner) = self.learner.take() {
            // It sleeps in short pieces, so this takes a moment at most.
            let _ = learner.join();
        }
        matches!(control, Some(Ok(true)))
    }
}

fn run(mut manager: Supervisor, clock: Clock, stopping: &AtomicBool) -> bool {
    while !stopping.load(Ordering::Relaxed) {
        let began = Instant::now();
        manager.step(clock.now());
        std::thread::sleep(STEP.saturating_sub(began.elapsed()));
    }
    let pause_and_read = || {
        std::thread::sleep(Duration::from_millis(20));
        clock.now()
    };
    manager.stop(pause_and_read, STOP_ATTEMPTS)
}

/// Runs a round whenever one is due. It sleeps in short pieces, so that a stop need not wait for it.
fn learn(mut learner: Learner, clock: Clock, stopping: &AtomicBool) {
    while !stopping.load(Ordering::Relaxed) {
        std::thread::sleep(LEARNER_LOOKS);
        learner.step(clock.now());
    }
}
