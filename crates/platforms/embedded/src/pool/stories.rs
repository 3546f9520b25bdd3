//! Stories: what a pool does, event by event, with a machine that carries out every action.

use std::collections::BTreeMap;

use windfall_core::{
    Allocation, CallId, Duration, FunctionId, Instances, Mebibytes, MilliCpu, QueueOrder, Setting,
    Timestamp,
};

use super::*;

const NODE: Allocation = Allocation::new(4000, 1024);

/// Starts every call with what a table says, or with its least.
#[derive(Default)]
pub(super) struct Table {
    pub(super) grants: BTreeMap<CallId, Allocation>,
    pub(super) default: Allocation,
    pub(super) started: Vec<(CallId, Allocation)>,
}

impl Sizer for Table {
    fn least(&mut self, call: CallId) -> Allocation {
        self.grants.get(&call).copied().unwrap_or(self.default)
    }
    fn start(&mut self, call: CallId, room: Allocation) -> Allocation {
        let grant = self.least(call);
        assert!(grant.fits(room), "{grant} of {room}");
        self.started.push((call, grant));
        grant
    }
}

pub(super) struct Story {
    pub(super) pool: Pool,
    pub(super) sizer: Table,
    pub(super) now: Timestamp,
}

impl Story {
    fn new(settings: PoolSettings) -> Self {
        let sizer = Table { default: Allocation::new(500, 256), ..Table::default() };
        Self { pool: Pool::new(settings), sizer, now: Timestamp::ZERO }
    }

    fn after(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    /// What the pool asks for after an event.
    fn on(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        self.pool.on(self.now, event, &mut actions);
        self.pool.place_waiting(self.now, &mut self.sizer, &mut actions);
        actions
    }

    fn arrive(&mut self, call: u64, function: FunctionId) -> Vec<Action> {
        self.on(Event::Arrived { call: CallId(call), function })
    }

    fn finish(&mut self, call: u64, instance: InstanceId, finish: CallFinish) -> Vec<Action> {
        self.on(Event::Finished { call: CallId(call), instance, finish })
    }

    /// Lets an instance become ready with its first call in it.
    fn bring_up(&mut self, instance: InstanceId) -> Vec<Action> {
        let mut actions = self.on(Event::Launched { instance });
        actions.extend(self.on(Event::Initialised { instance }));
        actions
    }

    fn function(&mut self, name: &str) -> FunctionId {
        self.pool.deploy(FunctionSettings::new(name, "builtin", Allocation::new(500, 256)))
    }
}

fn launched(actions: &[Action]) -> Vec<InstanceId> {
    let launch = |action: &Action| match action {
        Action::Launch { instance, .. } => Some(*instance),
        _ => None,
    };
    actions.iter().filter_map(launch).collect()
}

fn dispatched(actions: &[Action]) -> Vec<(u64, InstanceId, StartKind)> {
    let dispatch = |action: &Action| match action {
        Action::Dispatch { call, instance, start } => Some((call.0, *instance, *start)),
        _ => None,
    };
    actions.iter().filter_map(dispatch).collect()
}

fn killed(actions: &[Action]) -> Vec<InstanceId> {
    let kill = |action: &Action| match action {
        Action::Kill { instance, .. } => Some(*instance),
        _ => None,
    };
    actions.iter().filter_map(kill).collect()
}

fn replies(actions: &[Action]) -> Vec<(u64, ReplyReason)> {
    let reply = |action: &Action| match action {
        Action::Reply { call, reason } => Some((call.0, reason.clone())),
        _ => None,
    };
    actions.iter().filter_map(reply).collect()
}

#[test]
fn the_first_call_is_cold_and_the_next_one_warm() {
    let mut story = Story::new(PoolSettings::new(NODE));
    let f = story.function("f");
    let actions = story.arrive(1, f);
    let [one] = launched(&actions)[..] else { panic!("{actions:?}") };
    assert_eq!(
        dispatched(&story.on(Event::Launched { instance: one })),
        [(1, one, StartKind::Cold)]
    );
    assert_eq!(story.on(Event::Initialised { instance: one }), []);
    assert_eq!(story.pool.book().in_force(), Allocation::new(500, 256));
    assert_eq!(story.finish(1, one, CallFinish::Answered), []);
    assert_eq!(story.pool.book().in_force(), Allocation::ZERO);
    assert_eq!(story.pool.idle_memory(), Mebibytes::new(256));
    assert_eq!(dispatched(&story.arrive(2, f)), [(2, one, StartKind::Warm)]);
}

#[test]
fn calls_that_find_no_room_wait_and_start_in_order() {
    let mut story = Story::new(PoolSettings::new(Allocation::new(1000, 1024)));
    let f = story.function("f");
    let mut instances = Vec::new();
    for call in 1..=4 {
        instances.extend(launched(&story.arrive(call, f)));
    }
    assert_eq!((instances.len(), story.pool.waiting()), (2, 2));
    instances.iter().for_each(|id| {
        story.bring_up(*id);
    });
    let next = story.finish(1, instances[0], CallFinish::Answered);
    assert_eq!(dispatched(&next), [(3, instances[0], StartKind::Warm)]);
    let next = story.finish(2, instances[1], CallFinish::Answered);
    assert_eq!(dispatched(&next), [(4, instances[1], StartKind::Warm)]);
}

#[test]
fn a_large_call_at_the_head_does_not_hold_up_another_function() {
    let mut story = Story::new(PoolSettings::new(Allocation::new(1000, 1024)));
    let (f, g) = (story.function("f"), story.function("g"));
    story.sizer.grants.insert(CallId(2), Allocation::new(900, 256));
    assert_eq!(launched(&story.arrive(1, f)).len(), 1);
    assert_eq!(launched(&story.arrive(2, g)), []);
    assert_eq!(launched(&story.arrive(3, f)).len(), 1, "it is younger, but it fits");
}

#[test]
fn the_least_recently_used_idle_instances_make_room() {
    let mut story = Story::new(PoolSettings::new(NODE));
    let functions: Vec<_> = ["a", "b", "c", "d"].map(|name| story.function(name)).into();
    let mut instances = Vec::new();
    for (call, function) in functions[..3].iter().enumerate() {
        story.after(1);
        let id = launched(&story.arrive(call as u64, *function))[0];
        story.bring_up(id);
        story.finish(call as u64, id, CallFinish::Answered);
        instances.push(id);
    }
    // 1024 MiB, of which 768 are kept idle: 512 more need 256 of them back.
    story.sizer.grants.insert(CallId(9), Allocation::new(500, 512));
    let actions = story.arrive(9, functions[3]);
    assert_eq!((killed(&actions), launched(&actions).len()), (vec![instances[0]], 1));
    assert_eq!(story.pool.counters().evictions, 1);
}

#[test]
fn idle_instances_are_paused_then_stopped_and_a_call_thaws_them() {
    let mut story = Story::new(PoolSettings::new(NODE));
    let f = story.function("f");
    let one = launched(&story.arrive(1, f))[0];
    story.bring_up(one);
    story.finish(1, one, CallFinish::Answered);
    assert_eq!(story.pool.next_alarm(), Some(Timestamp::from_secs(10)));
    story.after(10_000);
    assert_eq!(story.on(Event::Timer), [Action::Freeze { instance: one }]);
    let actions = story.arrive(2, f);
    assert_eq!(actions[0], Action::Thaw { instance: one });
    assert_eq!(dispatched(&actions), [(2, one, StartKind::Warm)]);
    story.finish(2, one, CallFinish::Answered);
    story.after(10_000);
    story.on(Event::Timer);
    assert_eq!(story.pool.next_alarm(), Some(Timestamp::from_secs(610)));
    story.after(590_000);
    assert_eq!(killed(&story.on(Event::Timer)), [one]);
    story.on(Event::Exited { instance: one, exit: Exit::Ended("killed".into()) });
    assert_eq!(story.pool.instance_count(), Instances::new(0));
    assert_eq!(story.pool.counters().crashes, 0, "it was stopped on purpose");
}

#[test]
fn a_call_killed_below_the_users_memory_is_tried_once_more_at_it() {
    let mut story = Story::new(PoolSettings::new(NODE));
    let f = story.function("f");
    story.sizer.grants.insert(CallId(1), Allocation::new(500, 64));
    let one = launched(&story.arrive(1, f))[0];
    story.bring_up(one);
    let broken = story.finish(1, one, CallFinish::Broken);
    assert_eq!(broken, [Action::Kill { instance: one, may_be_ending: true }]);
    story.sizer.grants.insert(CallId(1), Allocation::new(500, 256));
    let again = story.on(Event::Exited { instance: one, exit: Exit::OutOfMemory });
    let [two] = launched(&again)[..] else { panic!("{again:?}") };
    assert!(story.pool.is_second_attempt(CallId(1)));
    story.bring_up(two);
    story.finish(1, two, CallFinish::Broken);
    let last = story.on(Event::Exited { instance: two, exit: Exit::OutOfMemory });
    assert_eq!(replies(&last), [(1, ReplyReason::OutOfMemory)]);
    let counters = story.pool.counters();
    assert_eq!((counters.retried, counters.memory_kills), (1, 2));
    assert_eq!(story.pool.book().in_force(), Allocation::ZERO);
}

#[test]
fn a_crash_is_answered_and_not_tried_again() {
    let mut story = Story::new(PoolSettings::new(NODE));
    let f = story.function("f");
    story.sizer.grants.insert(CallId(1), Allocation::new(500, 64));
    let one = launched(&story.arrive(1, f))[0];
    story.bring_up(one);
    story.finish(1, one, CallFinish::Broken);
    let exit = Exit::Ended("signal 11".into());
    let last = story.on(Event::Exited { instance: one, exit });
    assert_eq!(replies(&last), [(1, ReplyReason::Crashed("signal 11".into()))]);
    assert_eq!(story.pool.counters().crashes, 1);
}

#[test]
fn a_report_about_an_earlier_attempt_is_ignored() {
    let mut story = Story::new(PoolSettings::new(NODE));
    let f = story.function("f");
    story.sizer.grants.insert(CallId(1), Allocation::new(500, 64));
    let one = launched(&story.arrive(1, f))[0];
    story.bring_up(one);
    // The exit is noticed before the gateway notices the broken connection.
    let again = story.on(Event::Exited { instance: one, exit: Exit::OutOfMemory });
    let two = launched(&again)[0];
    story.bring_up(two);
    assert_eq!(story.finish(1, one, CallFinish::Broken), []);
    assert_eq!(story.pool.seat_of(CallId(1)).map(|(id, _)| id), Some(two));
}

#[test]
fn a_target_starts_instances_ahead_and_a_call_waits_for_one_of_them() {
    let mut story = Story::new(PoolSettings::new(NODE));
    let f = story.function("f");
    let mut actions = Vec::new();
    let two = Setting::Set(Instances::new(2));
    story.pool.set_target(story.now, f, two, Setting::Keep, &mut actions);
    story.pool.place_waiting(story.now, &mut story.sizer, &mut actions);
    let instances = launched(&actions);
    assert_eq!(instances.len(), 2);
    let up = story.on(Event::Launched { instance: instances[0] });
    assert_eq!(up, [Action::Initialise { instance: instances[0] }]);
    assert_eq!(story.arrive(1, f), [], "it waits for one that is on its way");
    let ready = story.on(Event::Initialised { instance: instances[0] });
    assert_eq!(dispatched(&ready), [(1, instances[0], StartKind::Warm)]);
    story.on(Event::Launched { instance: instances[1] });
    story.on(Event::Initialised { instance: instances[1] });
    assert_eq!(story.pool.book().in_force(), Allocation::new(500, 256), "the call's alone");
    // Both stay however long, because the target says so.
    story.finish(1, instances[0], CallFinish::Answered);
    story.after(3_600_000);
    assert_eq!(killed(&story.on(Event::Timer)), []);
    let mut actions = Vec::new();
    let none = Setting::Set(Instances::new(0));
    story.pool.set_target(story.now, f, none, Setting::Keep, &mut actions);
    assert_eq!(killed(&actions).len(), 2);
}

#[test]
fn a_spare_of_the_same_kind_and_memory_is_taken_and_replaced() {
    let spares = Prewarm { kind: "builtin".into(), memory: Mebibytes::new(256), count: 1 };
    let settings = PoolSettings { prewarm: vec![spares], ..PoolSettings::new(NODE) };
    let mut story = Story::new(settings);
    let f = story.function("f");
    let spare = launched(&story.on(Event::Timer))[0];
    story.on(Event::Launched { instance: spare });
    assert_eq!(story.pool.book().in_force(), Allocation::new(0, 256));
    let actions = story.arrive(1, f);
    assert_eq!(dispatched(&actions), [(1, spare, StartKind::Prewarmed)]);
    assert_eq!(launched(&actions).len(), 1, "another spare takes its place");
    assert_eq!(story.pool.book().in_force(), Allocation::new(500, 512));
}

#[test]
fn several_calls_share_an_instance_that_holds_its_reservation_once() {
    let mut story = Story::new(PoolSettings::new(NODE));
    let mut settings = FunctionSettings::new("f", "node", Allocation::new(500, 256));
    settings.concurrency = 3;
    let f = story.pool.deploy(settings);
    let one = launched(&story.arrive(1, f))[0];
    assert_eq!(story.arrive(2, f), [], "it waits for the instance that starts");
    let up = story.bring_up(one);
    assert_eq!(dispatched(&up), [(1, one, StartKind::Cold), (2, one, StartKind::Warm)]);
    assert_eq!(dispatched(&story.arrive(3, f)), [(3, one, StartKind::Warm)]);
    assert_eq!(story.pool.book().in_force(), Allocation::new(500, 256));
    assert_eq!(launched(&story.arrive(4, f)).len(), 1, "the fourth starts another");
    for call in 1..=3 {
        story.finish(call, one, CallFinish::Answered);
    }
    assert_eq!(story.pool.book().in_force(), Allocation::new(500, 256));
    assert!(story.sizer.started.is_empty(), "calls that share are not sized");
}

#[test]
fn instances_sized_by_ticks_hold_their_size_and_are_resized_live() {
    let settings = PoolSettings { sized_by: SizedBy::Instance, ..PoolSettings::new(NODE) };
    let mut story = Story::new(settings);
    let f = story.function("f");
    let one = launched(&story.arrive(1, f))[0];
    story.bring_up(one);
    story.finish(1, one, CallFinish::Answered);
    assert_eq!(story.pool.book().in_force(), Allocation::new(500, 256), "busy or idle");
    let mut actions = Vec::new();
    let to = Allocation::new(1000, 128);
    assert!(story.pool.resize(f, to, &mut actions));
    assert_eq!(actions, [Action::Resize { instance: one, to }]);
    assert_eq!(story.pool.book().in_force(), Allocation::new(1000, 256), "lowered when it is");
    story.pool.set_held(one, to);
    assert_eq!(story.pool.book().in_force(), to);
    let busy = launched(&story.arrive(2, f));
    assert_eq!(busy, [], "the idle one takes it");
    let two = launched(&story.arrive(3, f))[0];
    assert_eq!(story.pool.held(two), Some(to));
    assert!(!story.pool.resize(f, Allocation::new(9000, 128), &mut actions), "no room for that");
    assert_eq!(story.pool.held(one), Some(Allocation::new(3000, 128)), "what is free");
}

#[test]
fn limits_turn_calls_away_with_a_reason() {
    let mut story = Story::new(PoolSettings::new(NODE));
    let mut settings = FunctionSettings::new("f", "builtin", Allocation::new(500, 256));
    (settings.most_waiting, settings.most_instances) = (1, Some(1));
    let f = story.pool.deploy(settings);
    assert_eq!(launched(&story.arrive(1, f)).len(), 1);
    assert_eq!(story.arrive(2, f), []);
    assert_eq!(replies(&story.arrive(3, f)), [(3, ReplyReason::QueueFull { most: 1 })]);
    let g = story.function("g");
    let needs = Allocation::new(500, 4096);
    story.sizer.grants.insert(CallId(4), needs);
    let expected = ReplyReason::TooLarge { needs, limit: NODE };
    assert_eq!(replies(&story.arrive(4, g)), [(4, expected)]);
}

#[test]
fn instances_of_an_older_version_serve_nobody_new() {
    let mut story = Story::new(PoolSettings::new(NODE));
    let f = story.function("f");
    let busy = launched(&story.arrive(1, f))[0];
    let idle = launched(&story.arrive(2, f))[0];
    story.bring_up(busy);
    story.bring_up(idle);
    story.finish(2, idle, CallFinish::Answered);
    let mut actions = Vec::new();
    let newer = FunctionSettings::new("f", "builtin", Allocation::new(250, 128));
    story.pool.update(f, newer, &mut actions);
    assert_eq!(killed(&actions), [idle]);
    assert_eq!(launched(&story.arrive(3, f)).len(), 1);
    assert_eq!(killed(&story.finish(1, busy, CallFinish::Answered)), [busy]);
}

#[test]
fn removing_a_function_answers_its_waiting_calls() {
    let mut story = Story::new(PoolSettings::new(Allocation::new(500, 1024)));
    let f = story.function("f");
    story.arrive(1, f);
    story.arrive(2, f);
    let mut actions = Vec::new();
    story.pool.remove(f, &mut actions);
    assert_eq!(replies(&actions), [(2, ReplyReason::Removed)]);
    assert_eq!(replies(&story.arrive(3, f)), [(3, ReplyReason::Removed)]);
}

#[test]
fn a_failed_launch_answers_its_call_and_starts_ahead_only_later() {
    let mut story = Story::new(PoolSettings::new(NODE));
    let f = story.function("f");
    let one = launched(&story.arrive(1, f))[0];
    let failed = story.on(Event::LaunchFailed { instance: one, problem: "no pids".into() });
    assert_eq!(replies(&failed), [(1, ReplyReason::LaunchFailed("no pids".into()))]);
    assert_eq!(story.pool.book().in_force(), Allocation::ZERO);
    let mut actions = Vec::new();
    story.pool.set_target(
        story.now,
        f,
        Setting::Set(Instances::new(1)),
        Setting::Keep,
        &mut actions,
    );
    let ahead = launched(&story.on(Event::Timer))[0];
    let failed = story.on(Event::LaunchFailed { instance: ahead, problem: "no pids".into() });
    assert_eq!(failed, [], "not immediately");
    assert_eq!(story.pool.next_alarm(), Some(Timestamp::from_secs(1)));
    story.after(1000);
    assert_eq!(launched(&story.on(Event::Timer)).len(), 1);
}

#[test]
fn raises_are_owed_paid_first_and_keep_new_calls_out() {
    let mut story = Story::new(PoolSettings::new(Allocation::new(1000, 1024)));
    let f = story.function("f");
    let (one, two) = (launched(&story.arrive(1, f))[0], launched(&story.arrive(2, f))[0]);
    story.bring_up(one);
    story.bring_up(two);
    story.pool.lower(CallId(1), Allocation::new(300, 256));
    story.pool.owe(CallId(2), Allocation::new(400, 0));
    let mut actions = Vec::new();
    let paid = story.pool.pay(&mut actions).expect("200m are free");
    assert_eq!((paid.amount.cpu, paid.still_owed.cpu), (MilliCpu::new(200), MilliCpu::new(200)));
    assert_eq!(story.arrive(3, f), [], "nobody starts while anything is owed");
    story.finish(1, one, CallFinish::Answered);
    assert!(story.pool.pay(&mut actions).is_some());
    assert_eq!(story.pool.seat_of(CallId(2)), Some((two, Allocation::new(900, 256))));
}

/// A node that serves one call at a time, shortest first.
fn one_at_a_time(starved_after: Duration) -> Story {
    let order = QueueOrder::ShortestFirst { starved_after };
    Story::new(PoolSettings { order, ..PoolSettings::new(Allocation::new(500, 1024)) })
}

/// Runs `call` of `function` to its end, so that the pool knows how long its calls take.
fn run_once(story: &mut Story, call: u64, function: FunctionId, millis: u64) -> InstanceId {
    let actions = story.arrive(call, function);
    let [instance] = launched(&actions)[..] else { panic!("{actions:?}") };
    story.bring_up(instance);
    story.after(millis);
    let run = Duration::from_millis(millis);
    story.pool.count_completion(function, Duration::ZERO, run);
    story.finish(call, instance, CallFinish::Answered);
    instance
}

#[test]
fn shortest_first_serves_the_short_and_then_those_that_are_late() {
    let mut story = one_at_a_time(Duration::from_secs(30));
    let (short, long) = (story.function("short"), story.function("long"));
    run_once(&mut story, 1, short, 50);
    run_once(&mut story, 2, long, 1500);
    // One runs, and four wait: the short ones came last.
    let served = story.arrive(3, long);
    let [(3, mut instance, StartKind::Warm)] = dispatched(&served)[..] else {
        panic!("{served:?}")
    };
    for (call, function) in [(4, long), (5, long), (6, short)] {
        assert!(story.arrive(call, function).is_empty());
    }
    let mut order = Vec::new();
    for call in [3, 6, 4] {
        story.after(90);
        let next = story.finish(call, instance, CallFinish::Answered);
        let [(call, taken, _)] = dispatched(&next)[..] else { panic!("{next:?}") };
        instance = taken;
        order.push(call);
    }
    assert_eq!(order, [6, 4, 5]);
    // A short call that has waited for 2 s is late and stands behind a long one that is not.
    story.arrive(7, short);
    story.after(2000);
    story.arrive(8, long);
    let next = story.finish(5, instance, CallFinish::Answered);
    assert_eq!(dispatched(&next)[0].0, 8);
}

#[test]
fn a_short_call_waits_for_a_warm_instance_while_it_is_on_time() {
    let order = QueueOrder::SHORTEST_FIRST;
    let settings = PoolSettings { order, waits_for_warm: true, ..PoolSettings::new(NODE) };
    let mut story = Story::new(settings);
    let (short, long) = (story.function("short"), story.function("long"));
    // Its instance starts in 700 ms, its calls run for 200.
    let [instance] = launched(&story.arrive(1, short))[..] else { panic!("the first starts one") };
    story.after(700);
    story.bring_up(instance);
    story.after(200);
    story.pool.count_completion(short, Duration::ZERO, Duration::from_millis(200));
    story.finish(1, instance, CallFinish::Answered);
    assert_eq!(dispatched(&story.arrive(2, short)), [(2, instance, StartKind::Warm)]);
    assert_eq!(story.arrive(3, short), [], "the busy one comes free in time");
    story.after(150);
    let next = story.finish(2, instance, CallFinish::Answered);
    assert_eq!(dispatched(&next), [(3, instance, StartKind::Warm)]);
    // Whoever is late has nothing to wait for, and nobody knows how long the other function runs.
    assert_eq!(story.arrive(4, short), []);
    story.after(201);
    assert_eq!(launched(&story.arrive(5, long)).len(), 2);
}

#[test]
fn who_has_waited_too_long_is_next_and_nobody_overtakes_it() {
    let mut story = one_at_a_time(Duration::from_secs(3));
    let (short, long) = (story.function("short"), story.function("long"));
    run_once(&mut story, 1, short, 50);
    run_once(&mut story, 2, long, 100);
    story.arrive(3, short);
    story.arrive(4, long);
    story.after(3100);
    story.arrive(5, short);
    let instance = story.pool.seat_of(CallId(3)).expect("it runs").0;
    let next = story.finish(3, instance, CallFinish::Answered);
    assert_eq!(dispatched(&next)[0].0, 4, "call 5 is shorter and on time, call 4 is starved");
}

#[test]
fn a_call_that_is_not_admitted_waits_beside_free_room() {
    struct Closed(Table, bool);
    impl Sizer for Closed {
        fn least(&mut self, call: CallId) -> Allocation {
            self.0.least(call)
        }
        fn start(&mut self, call: CallId, room: Allocation) -> Allocation {
            self.0.start(call, room)
        }
        fn admits(&mut self, _call: CallId) -> bool {
            self.1
        }
    }
    let mut pool = Pool::new(PoolSettings::new(NODE));
    let size = Allocation::new(500, 256);
    let function = pool.deploy(FunctionSettings::new("one", "builtin", size));
    let mut sizer = Closed(Table { default: size, ..Table::default() }, false);
    let mut actions = Vec::new();
    pool.on(Timestamp::ZERO, Event::Arrived { call: CallId(1), function }, &mut actions);
    pool.place_waiting(Timestamp::ZERO, &mut sizer, &mut actions);
    assert!(actions.is_empty() && pool.waiting() == 1 && pool.book().room() == NODE);
    sizer.1 = true;
    pool.place_waiting(Timestamp::ZERO, &mut sizer, &mut actions);
    assert_eq!(launched(&actions).len(), 1);
}
