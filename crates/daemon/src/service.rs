//! The only place with a clock: the control thread, the learner's thread, and a graceful stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use windfall_core::{Seed, Timestamp};
use windfall_policy::WindfallSizingSettings;
use windfall_registry::{PolicySettings, assemble};

use crate::governance::Governance;
use crate::learning::{Tuner, check};
use crate::managed_platform::{Invoker, PlatformKind};
use crate::orders::{Command, Desk};
use crate::supervisor::{SharedLive, Supervisor, SupervisorSettings};
use crate::switched_calls::PolicySlot;

/// Time between two steps: how soon a finished call is shown and an order is carried out.
const STEP: Duration = Duration::from_millis(50);
/// Time between two rounds of the learner.
const LEARN_EVERY: Duration = Duration::from_secs(20);
/// Candidates per round.
const CANDIDATES: usize = 4;
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
            let learner = Learner {
                desk: desk.clone(),
                live: Arc::clone(&live),
                slot,
                tuner: Tuner::new(WindfallSizingSettings::default(), Seed::new(settings.seed)),
                seed: settings.seed,
            };
            let stopping = Arc::clone(&is_stopping);
            std::thread::Builder::new()
                .name("learner".to_owned())
                .spawn(move || learner.run(&stopping))
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

/// Tries other settings of the policy in charge on recent calls, and offers what the check accepts.
struct Learner {
    desk: Desk,
    live: SharedLive,
    slot: Arc<PolicySlot>,
    tuner: Tuner,
    seed: u64,
}

impl Learner {
    fn run(mut self, stopping: &AtomicBool) {
        let mut next = Instant::now() + LEARN_EVERY;
        while !stopping.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(100));
            if Instant::now() >= next {
                next = Instant::now() + LEARN_EVERY;
                self.round();
            }
        }
    }

    /// One round; none while a version is on trial or another policy is in charge.
    fn round(&mut self) {
        let is_free = {
            let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
            live.policy == "windfall" && live.learning.on_trial_until.is_none()
        };
        if !is_free {
            return;
        }
        let calls = self.slot.finished();
        let seed = Seed::new(self.seed).stream("policy");
        let build = |settings: &WindfallSizingSettings| {
            let table = toml::Table::try_from(settings).ok()?;
            let settings = PolicySettings::from([("windfall".to_owned(), table)]);
            Some((assemble("windfall", &settings, seed).ok()?, settings))
        };
        for _ in 0..CANDIDATES {
            let proposed = self.tuner.propose();
            let (Some((mut candidate, settings)), Some((mut present, _))) =
                (build(&proposed), build(self.tuner.best()))
            else {
                continue;
            };
            let verdict = check(present.call.as_mut(), candidate.call.as_mut(), &calls);
            self.live.write().unwrap_or_else(PoisonError::into_inner).learning.tried += 1;
            if !verdict.is_accepted {
                continue;
            }
            let offer = Command::Policy {
                name: "windfall".to_owned(),
                settings,
                force: false,
                origin: "learner",
            };
            if self.desk.give(offer, "learner").is_ok() {
                self.tuner.settle(proposed);
            }
            return;
        }
    }
}
