//! Whatever happens in whatever order, the books balance and no call is lost.

use proptest::prelude::*;
use windfall_core::{Allocation, CallId, Duration, Instances, Mebibytes, Setting, Timestamp};

use super::stories::Table;
use super::*;

const NODE: Allocation = Allocation::new(2000, 1024);

/// One step of a random story; numbers choose among what is possible then.
#[derive(Clone, Debug)]
enum Step {
    Arrive(u8),
    Launch(u8, bool),
    Initialise(u8),
    Finish(u8, u8),
    Exit(u8, bool),
    Abandon(u8),
    Target(u8, u8),
    Resize(u8, u16),
    Lower(u8),
    Raise(u8, u16),
    Update(u8),
    Pass(u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => any::<u8>().prop_map(Step::Arrive),
        6 => (any::<u8>(), prop::bool::weighted(0.9)).prop_map(|(n, ok)| Step::Launch(n, ok)),
        6 => any::<u8>().prop_map(Step::Initialise),
        6 => (any::<u8>(), any::<u8>()).prop_map(|(n, how)| Step::Finish(n, how)),
        2 => (any::<u8>(), any::<bool>()).prop_map(|(n, oom)| Step::Exit(n, oom)),
        1 => any::<u8>().prop_map(Step::Abandon),
        1 => (any::<u8>(), 0..4u8).prop_map(|(n, count)| Step::Target(n, count)),
        1 => (any::<u8>(), 100..3000u16).prop_map(|(n, cpu)| Step::Resize(n, cpu)),
        1 => any::<u8>().prop_map(Step::Lower),
        1 => (any::<u8>(), 1..800u16).prop_map(|(n, cpu)| Step::Raise(n, cpu)),
        1 => any::<u8>().prop_map(Step::Update),
        2 => any::<u16>().prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..120)
}

/// The machine's side: what was asked for and has not been reported.
#[derive(Default)]
struct Machine {
    launching: Vec<InstanceId>,
    initialising: Vec<InstanceId>,
    running: Vec<(CallId, InstanceId)>,
    alive: Vec<InstanceId>,
    killing: Vec<InstanceId>,
}

impl Machine {
    fn carry_out(&mut self, pool: &mut Pool, actions: Vec<Action>, ended: &mut u64) {
        for action in actions {
            match action {
                Action::Launch { instance, .. } => self.launching.push(instance),
                Action::Initialise { instance } => self.initialising.push(instance),
                Action::Dispatch { call, instance, start } => {
                    assert!(self.alive.contains(&instance), "{instance:?} is not there");
                    if start != StartKind::Warm {
                        self.initialising.push(instance);
                    }
                    self.running.push((call, instance));
                }
                Action::Resize { instance, to } => pool.set_held(instance, to),
                Action::Freeze { .. } | Action::Thaw { .. } => {}
                Action::Kill { instance, .. } => {
                    if self.alive.contains(&instance) {
                        self.killing.push(instance);
                    }
                }
                Action::Reply { .. } => *ended += 1,
            }
        }
    }

    fn gone(&mut self, id: InstanceId) {
        self.alive.retain(|one| *one != id);
        self.killing.retain(|one| *one != id);
        self.initialising.retain(|one| *one != id);
        self.running.retain(|(_, at)| *at != id);
    }
}

fn pick<T: Copy>(list: &[T], number: u8) -> Option<T> {
    (!list.is_empty()).then(|| list[usize::from(number) % list.len()])
}

struct Play {
    pool: Pool,
    sizer: Table,
    machine: Machine,
    now: Timestamp,
    arrived: u64,
    ended: u64,
}

impl Play {
    fn new(sized_by: SizedBy) -> Self {
        let prewarm =
            vec![Prewarm { kind: "builtin".into(), memory: Mebibytes::new(128), count: 1 }];
        let settings =
            PoolSettings { sized_by, prewarm, most_instances: 6, ..PoolSettings::new(NODE) };
        let mut pool = Pool::new(settings);
        for (name, memory, concurrency) in [("a", 128, 1), ("b", 256, 1), ("c", 256, 3)] {
            let reservation = Allocation::new(600, memory);
            let mut settings = FunctionSettings::new(name, "builtin", reservation);
            (settings.concurrency, settings.most_waiting) = (concurrency, 5);
            pool.deploy(settings);
        }
        let sizer = Table { default: Allocation::new(400, 100), ..Table::default() };
        Self {
            pool,
            sizer,
            machine: Machine::default(),
            now: Timestamp::ZERO,
            arrived: 0,
            ended: 0,
        }
    }

    fn event(&mut self, event: Event) {
        let mut actions = Vec::new();
        self.pool.on(self.now, event, &mut actions);
        self.settle(actions);
    }

    fn settle(&mut self, mut actions: Vec<Action>) {
        while self.pool.pay(&mut actions).is_some() {}
        self.pool.place_waiting(self.now, &mut self.sizer, &mut actions);
        self.machine.carry_out(&mut self.pool, actions, &mut self.ended);
        self.check();
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Arrive(n) => {
                self.arrived += 1;
                let call = CallId(self.arrived);
                self.event(Event::Arrived { call, function: FunctionId(u32::from(n % 3)) });
            }
            Step::Launch(n, is_fine) => {
                let Some(instance) = pick(&self.machine.launching, n) else { return };
                self.machine.launching.retain(|one| *one != instance);
                if is_fine {
                    self.machine.alive.push(instance);
                    self.event(Event::Launched { instance });
                } else {
                    self.event(Event::LaunchFailed { instance, problem: "no".into() });
                }
            }
            Step::Initialise(n) => {
                let Some(instance) = pick(&self.machine.initialising, n) else { return };
                self.machine.initialising.retain(|one| *one != instance);
                self.event(Event::Initialised { instance });
            }
            Step::Finish(n, how) => self.finish(n, how),
            Step::Exit(n, oom) => {
                let dying = pick(&self.machine.killing, n);
                let Some(instance) = dying.or_else(|| pick(&self.machine.alive, n)) else { return };
                self.machine.gone(instance);
                let exit = if oom { Exit::OutOfMemory } else { Exit::Ended("gone".into()) };
                self.event(Event::Exited { instance, exit });
            }
            Step::Abandon(n) => {
                self.event(Event::Abandoned { call: CallId(u64::from(n) % self.arrived.max(1)) });
            }
            Step::Target(..) | Step::Resize(..) | Step::Lower(_) | Step::Raise(..) => {
                self.change(step);
            }
            Step::Update(n) => {
                let function = FunctionId(u32::from(n % 3));
                let settings = self.pool.function(function).expect("it is there").clone();
                let mut actions = Vec::new();
                self.pool.update(function, settings, &mut actions);
                self.settle(actions);
            }
            Step::Pass(millis) => {
                self.now += Duration::from_millis(u64::from(millis) * 20);
                self.event(Event::Timer);
            }
        }
    }

    fn finish(&mut self, n: u8, how: u8) {
        let Some((call, instance)) = pick(&self.machine.running, n) else { return };
        // A call that is cold answers after its instance was initialised.
        if self.machine.initialising.contains(&instance) {
            return;
        }
        self.machine.running.retain(|one| *one != (call, instance));
        let finish = match how % 8 {
            0 => CallFinish::Broken,
            1 => CallFinish::Unusable,
            _ => CallFinish::Answered,
        };
        self.ended += u64::from(finish != CallFinish::Broken);
        self.event(Event::Finished { call, instance, finish });
    }

    fn change(&mut self, step: &Step) {
        let mut actions = Vec::new();
        match *step {
            Step::Target(n, count) => {
                let function = FunctionId(u32::from(n % 3));
                let count = Setting::Set(Instances::new(u32::from(count)));
                self.pool.set_target(self.now, function, count, Setting::Keep, &mut actions);
            }
            Step::Resize(n, cpu) => {
                let to = Allocation::new(u32::from(cpu), 128);
                self.pool.resize(FunctionId(u32::from(n % 3)), to, &mut actions);
            }
            Step::Lower(n) => {
                let Some((call, id)) = pick(&self.machine.running, n) else { return };
                if self.pool.instances[&id].is_sized {
                    self.pool.forgive(call);
                    self.pool.lower(call, Allocation::new(200, 60));
                }
            }
            Step::Raise(n, cpu) => {
                let Some((call, id)) = pick(&self.machine.running, n) else { return };
                if self.pool.instances[&id].is_sized {
                    self.pool.owe(call, Allocation::new(u32::from(cpu), 10));
                }
            }
            _ => {}
        }
        self.settle(actions);
    }

    /// What must hold at every moment.
    fn check(&self) {
        let pool = &self.pool;
        let held = pool.instances.values().fold(Allocation::ZERO, |sum, one| sum + one.held);
        assert_eq!(held, pool.book.in_force(), "the book holds what the instances hold");
        assert!(held.fits(NODE), "{held} is in force on a node of {NODE}");
        let back = pool.instances.values().map(|one| one.held_back.get()).sum::<u32>();
        assert_eq!(back, pool.book.held_back().get());
        if pool.settings.sized_by == SizedBy::Call {
            let idle = pool.instances.values().filter(|one| one.idle_since.is_some());
            let kept: u32 = idle.map(|one| one.kept.get()).sum();
            assert_eq!(kept, pool.idle_memory.get());
            assert!(pool.idle_memory <= pool.book.free().memory, "idle instances make way");
        }
        for (place, state) in pool.functions.iter().enumerate() {
            let function = FunctionId(place as u32);
            let all = || pool.of_function(function).map(|(_, one)| one);
            let seats: usize = all().map(|one| one.seats.len()).sum();
            assert_eq!(state.seated as usize, seats, "of {place}");
            let ready = all().filter(|one| one.can_serve()).count();
            assert_eq!(state.ready as usize, ready, "of {place}");
            let is_busy = |one: &&Instance| one.can_serve() && one.idle_since.is_none();
            let busy = all().filter(is_busy).count();
            assert_eq!(state.busy as usize, busy, "of {place}");
            let most = all().map(|one| one.seats.len()).max().unwrap_or(0);
            assert!(most as u32 <= state.concurrency, "{most} calls in one instance");
        }
        let open = pool.calls.len() as u64;
        assert_eq!(self.arrived, self.ended + pool.counters.abandoned + open, "a call was lost");
    }

    /// Everything that was asked for happens, and every call gets its answer.
    fn conclude(&mut self) {
        for _ in 0..2000 {
            self.step(&Step::Launch(0, true));
            self.step(&Step::Initialise(0));
            if let Some(instance) = pick(&self.machine.killing, 0) {
                self.machine.gone(instance);
                self.event(Event::Exited { instance, exit: Exit::Ended("gone".into()) });
            }
            self.finish(0, 2);
            if self.pool.open_calls() == 0 && self.machine.killing.is_empty() {
                return;
            }
        }
        panic!("{} calls never ended: {:?}", self.pool.open_calls(), self.pool);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn books_balance_and_every_call_ends_where_calls_are_sized(steps in steps()) {
        let mut play = Play::new(SizedBy::Call);
        steps.iter().for_each(|step| play.step(step));
        play.conclude();
    }

    #[test]
    fn books_balance_and_every_call_ends_where_instances_are_sized(steps in steps()) {
        let mut play = Play::new(SizedBy::Instance);
        steps.iter().for_each(|step| play.step(step));
        play.conclude();
    }
}
