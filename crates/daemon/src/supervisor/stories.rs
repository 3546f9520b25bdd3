//! What a manager does when the platform refuses, hangs, forgets, or the manager itself is killed.

use std::sync::Arc;

use windfall_core::conformance::{Fault, ScriptedPlatform};
use windfall_core::{
    Allocation, CallRecord, Capabilities, Decision, Duration, Episodic, FunctionId,
    FunctionProfile, Observation, Plan, Platform, PlatformError, Policy, PolicyError, Receipt,
    Refusal, SafeguardChain, Setting, Target, Timestamp,
};

use super::*;
use crate::database::{Records, Retention};
use crate::governance::{Hold, Mode, TickRule};
use crate::managed_platform::{Invoker, NodeBar};
use crate::orders::Command;

/// Takes half of everything from everyone.
struct Halve;

impl Policy for Halve {
    fn name(&self) -> &str {
        "halve"
    }
    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError> {
        let half = |view: &windfall_core::FunctionView| Target {
            cpu_cores: Setting::Set(view.reservation.cpu.cores() / 2.0),
            memory_mib: Setting::Set(view.reservation.memory.mib() / 2.0),
            ..Target::keep(view.function)
        };
        let targets = seen.functions.iter().map(half).collect();
        Ok(Decision { targets, reason: "half is enough".to_owned() })
    }
}

/// A manager in mode `auto` whose policy halves three functions, with its platform behind a shared door.
struct Story {
    manager: Supervisor,
    platform: Arc<std::sync::Mutex<ScriptedPlatform>>,
    second: u64,
}

/// The scripted platform behind a door that the story can open too. Whoever keeps the door locked hangs the platform.
struct Shared(Arc<std::sync::Mutex<ScriptedPlatform>>, Vec<FunctionProfile>);

impl Platform for Shared {
    fn functions(&self) -> &[FunctionProfile] {
        &self.1
    }
    fn capabilities(&self) -> Capabilities {
        self.0.lock().unwrap().capabilities()
    }
    fn observe(&mut self, now: Timestamp) -> Result<Observation, PlatformError> {
        let mut platform = self.0.lock().unwrap();
        platform.advance_to(now)?;
        platform.observe(now)
    }
    fn submit(&mut self, now: Timestamp, plan: &Plan) -> Receipt {
        self.0.lock().unwrap().submit(now, plan)
    }
}

impl ManagedPlatform for Shared {
    fn kind(&self) -> PlatformKind {
        PlatformKind::Simulated
    }
    fn collect(&mut self, _: Timestamp, _: &mut Vec<CallRecord>) {}
    fn nodes(&mut self, _: Timestamp) -> Vec<NodeBar> {
        Vec::new()
    }
    fn invoker(&self) -> Option<Arc<dyn Invoker>> {
        None
    }
}

impl Story {
    fn begin(records: Records) -> Self {
        let platform = Arc::new(std::sync::Mutex::new(ScriptedPlatform::new(3)));
        Self::begin_on(platform, records, 0)
    }

    fn begin_on(
        platform: Arc<std::sync::Mutex<ScriptedPlatform>>,
        records: Records,
        second: u64,
    ) -> Self {
        let settings = SupervisorSettings {
            policy: "fixed".to_owned(),
            mode: Mode::Auto,
            tick: Duration::from_secs(1),
            ..SupervisorSettings::default()
        };
        let (prepared, _) = prepare(settings).unwrap();
        let profiles = platform.lock().unwrap().functions().to_vec();
        let door = Box::new(Shared(Arc::clone(&platform), profiles));
        let mut manager = Supervisor::new(prepared, door, records);
        let chain =
            SafeguardChain::default().followed_by(Box::new(TickRule::new(manager.governance())));
        manager.control.hand_over(Box::new(Halve), chain);
        Self { manager, platform, second }
    }

    /// Lets `seconds` pass, one tick each.
    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.second += 1;
            self.manager.step(Timestamp::from_secs(self.second));
        }
    }

    fn with<T>(&self, with: impl FnOnce(&mut ScriptedPlatform) -> T) -> T {
        with(&mut self.platform.lock().unwrap())
    }

    fn order(&mut self, command: Command) -> Result<String, String> {
        let now = Timestamp::from_secs(self.second);
        self.manager.carry_out(now, &command, "story")
    }

    /// The health at this second.
    fn health(&self) -> crate::health::HealthReport {
        let live = self.manager.live();
        let live = live.read().unwrap();
        live.health.report(Timestamp::from_secs(self.second), Duration::from_secs(1))
    }

    /// Which of the three functions hold their own allocation.
    fn whole(&self) -> [bool; 3] {
        [0, 1, 2].map(|id| {
            self.with(|platform| {
                let own = platform.functions()[id as usize].reservation;
                platform.in_force(FunctionId(id)) == own
            })
        })
    }
}

#[test]
fn the_kill_switch_gives_everyone_their_own_and_releases_again() {
    let mut story = Story::begin(Records::nowhere());
    story.pass(3);
    assert_eq!(story.whole(), [false; 3]);
    story.order(Command::Kill(true)).unwrap();
    story.pass(2);
    assert_eq!(story.whole(), [true; 3]);
    story.pass(10);
    assert_eq!(story.whole(), [true; 3], "and it stays so");
    story.order(Command::Kill(false)).unwrap();
    story.pass(2);
    assert_eq!(story.whole(), [false; 3]);
}

#[test]
fn pausing_and_pinning_concern_one_function_alone() {
    let mut story = Story::begin(Records::nowhere());
    story.pass(2);
    story.order(Command::Hold { function: FunctionId(1), hold: Some(Hold::Paused) }).unwrap();
    story.pass(2);
    assert_eq!(story.whole(), [false, true, false]);
    let size = Allocation::new(111, 99);
    let pinned = Some(Hold::Pinned { size });
    story.order(Command::Hold { function: FunctionId(2), hold: pinned }).unwrap();
    story.pass(2);
    assert_eq!(story.with(|platform| platform.in_force(FunctionId(2))), size);
    story.order(Command::Hold { function: FunctionId(1), hold: None }).unwrap();
    story.pass(2);
    assert_eq!(story.whole(), [false; 3]);
}

#[test]
fn in_observe_and_recommend_nothing_is_touched_that_was_not_touched_from_here() {
    for mode in [Mode::Observe, Mode::Recommend] {
        let mut story = Story::begin(Records::nowhere());
        story.order(Command::Mode(mode)).unwrap();
        story.pass(5);
        assert_eq!(story.whole(), [true; 3], "{mode}");
        let live = story.manager.live();
        let tape = &live.read().unwrap().tape;
        let refused = tape.entries().filter(|entry| entry.kind == TapeKind::Tick).count();
        assert_eq!(refused, 0, "nothing was submitted");
    }
}

#[test]
fn leaving_auto_gives_back_what_was_taken() {
    let mut story = Story::begin(Records::nowhere());
    story.pass(2);
    story.order(Command::Mode(Mode::Recommend)).unwrap();
    story.pass(2);
    assert_eq!(story.whole(), [true; 3]);
}

#[test]
fn a_platform_that_goes_away_is_reported_and_recovers_by_itself() {
    let mut story = Story::begin(Records::nowhere());
    story.pass(2);
    story.with(|platform| platform.is_away = true);
    story.pass(20);
    let report = story.health();
    assert_eq!(report.state, crate::health::State::Degraded);
    assert!(report.checks.iter().any(|check| check.detail.contains("it is away")));
    story.with(|platform| platform.is_away = false);
    story.pass(2);
    assert_eq!(story.whole(), [true; 3], "what was in doubt is restored first");
    story.pass(3);
    let report = story.health();
    assert_eq!(report.state, crate::health::State::Ok, "{report:?}");
}

#[test]
fn a_refusal_is_on_the_tape_and_leaves_the_function_whole() {
    let mut story = Story::begin(Records::nowhere());
    let refusal = Refusal::System("no such file".to_owned());
    story.with(|platform| platform.faults.insert(FunctionId(0), Fault::Refuse(refusal)));
    story.pass(1);
    assert!(story.whole()[0]);
    let live = story.manager.live();
    let live = live.read().unwrap();
    assert!(live.tape.entries().any(|entry| entry.outcome.contains("no such file")));
    assert_eq!(live.totals.refused, 1);
}

#[test]
fn a_stop_restores_everything() {
    let mut story = Story::begin(Records::nowhere());
    story.pass(3);
    let mut second = story.second;
    let is_whole = story.manager.stop(
        || {
            second += 1;
            Timestamp::from_secs(second)
        },
        5,
    );
    assert!(is_whole);
    assert_eq!(story.whole(), [true; 3]);
}

#[test]
fn a_killed_manager_finds_what_it_had_granted_and_gives_it_back_with_its_first_tick() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("windfall.db");
    let records = || Records::open(&file, Retention::default()).unwrap();
    let mut story = Story::begin(records());
    story.order(Command::Hold { function: FunctionId(2), hold: Some(Hold::Paused) }).unwrap();
    story.order(Command::Objective { function: FunctionId(0), target_ms: Some(250.0) }).unwrap();
    story.pass(3);
    assert_eq!(story.whole(), [false, false, true]);
    let (platform, second) = (Arc::clone(&story.platform), story.second);
    // Killed: nothing is closed, nothing is restored.
    std::mem::forget(story);

    let mut story = Story::begin_on(platform, records(), second);
    // The first tick submits it; the scripted platform carries it out when time passes.
    story.pass(2);
    assert_eq!(story.whole(), [true; 3], "by the first tick after the restart");
    story.pass(3);
    assert_eq!(story.whole(), [false, false, true], "managed again, and still paused");
    let live = story.manager.live();
    assert_eq!(live.read().unwrap().functions[0].objective.target_ms, Some(250.0));
    assert_eq!(crate::database::check(&file).unwrap(), Vec::<String>::new());
}

#[test]
fn a_database_that_takes_nothing_keeps_the_manager_from_taking_anything() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("windfall.db");
    let mut story = Story::begin(Records::open(&file, Retention::default()).unwrap());
    let breaker = rusqlite::Connection::open(&file).unwrap();
    breaker.execute_batch("DROP TABLE grants").unwrap();
    story.pass(3);
    assert_eq!(story.whole(), [true; 3], "what cannot be written down is not taken");
    let live = story.manager.live();
    let problem = live.read().unwrap().health.database.clone();
    assert!(problem.unwrap().contains("grants"));
}

#[test]
fn a_platform_that_hangs_is_failing_in_health_and_does_not_hold_the_kill_switch_up() {
    let story = Story::begin(Records::nowhere());
    let (platform, live) = (Arc::clone(&story.platform), story.manager.live());
    let mut service = crate::Service::start(story.manager, crate::Clock::begin()).unwrap();
    let (clock, tick) = (service.clock, Duration::from_secs(1));
    let state = || live.read().unwrap().health.report(clock.now(), tick).state;
    let until = |what: &str, holds: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !holds() {
            assert!(began.elapsed().as_secs() < 60, "not within a minute: {what}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    let touched = || service.governance.touched().len();
    until("the policy has halved something", &|| touched() > 0);
    // Every question to the platform waits from here on, as one to a machine that does not answer.
    let hung = platform.lock().unwrap();
    until("it is seen by everyone's own clock", &|| state() == crate::health::State::Failing);
    let answer = service.desk.give(Command::Kill(true), "story").unwrap();
    assert!(answer.contains("in force for new calls"), "{answer}");
    assert!(service.governance.is_killed());
    drop(hung);
    until("what was taken is given back", &|| touched() == 0);
    until("it recovers by itself", &|| state() == crate::health::State::Ok);
    assert!(service.stop());
}

#[test]
fn a_clock_that_jumps_is_one_late_tick_and_nothing_else() {
    let mut story = Story::begin(Records::nowhere());
    story.pass(3);
    // A day passes between two steps: a laptop that slept, or a machine that was paused.
    story.second += 86_400;
    story.pass(1);
    let live = story.manager.live();
    let ticks = live.read().unwrap().totals.ticks;
    assert_eq!(ticks, 4, "one tick makes up for all that were missed");
    // Back again, which the service's own clock never does.
    story.second -= 86_400;
    story.pass(2);
    assert_eq!(live.read().unwrap().totals.ticks, 4, "nothing is due in the past");
    story.second += 86_400;
    story.pass(3);
    let report = story.health();
    assert_eq!(report.state, crate::health::State::Ok, "{report:?}");
    story.order(Command::Kill(true)).unwrap();
    story.pass(3);
    assert_eq!(story.whole(), [true; 3]);
}

#[test]
fn orders_given_while_the_disk_takes_nothing_are_on_it_as_soon_as_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("missing").join("windfall.db");
    let mut story = Story::begin(Records::open(&file, Retention::default()).unwrap());
    story.order(Command::Hold { function: FunctionId(1), hold: Some(Hold::Paused) }).unwrap();
    story.pass(3);
    assert_eq!(story.whole(), [true; 3], "what cannot be written down is not taken");
    let live = story.manager.live();
    let problem = || live.read().unwrap().health.database.clone();
    assert!(problem().is_some_and(|problem| problem.contains("unable to open")), "{:?}", problem());
    std::fs::create_dir(folder.path().join("missing")).unwrap();
    let began = Instant::now();
    while problem().is_some() {
        assert!(began.elapsed().as_secs() < 60, "{:?}", problem());
        std::thread::sleep(std::time::Duration::from_millis(100));
        story.pass(1);
    }
    story.pass(3);
    assert_eq!(story.whole(), [false, true, false], "managed again, and still paused");
    std::mem::forget(story);
    let mut records = Records::open(&file, Retention::default()).unwrap();
    let earlier = records.earlier_run().unwrap();
    assert_eq!(earlier.holds.values().collect::<Vec<_>>(), [&Hold::Paused]);
    assert_eq!(records.version_kept().unwrap().policy, "fixed");
}
