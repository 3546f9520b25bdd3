//! Idle instances on several nodes: which calls find them, what they keep, and what observations report.

use windfall_core::{
    Allocation, CallRecord, Decision, Duration, Episodic, FunctionId, FunctionView, Mebibytes,
    MilliCpu, Observation, Platform, SafeguardChain, Seed, Setting, Target, Timestamp,
};
use windfall_sim::{Placement, Settings, Simulator};

use crate::stage::{Everything, Script, Scripted, at, function, play, secs, work};

/// Two nodes of 4 cores; of equally loaded ones the first takes a call.
fn two_nodes(placement: Placement) -> Settings {
    Settings {
        placement,
        tells_presence: true,
        keep_alive: Duration::from_secs(30),
        ..Settings::new(2, Allocation::new(4000, 4096))
    }
}

/// Function 0 is called at the beginning and again after function 1 took 3 of the 4 cores of the node on which its
/// instance is idle.
fn passed_over(reserved: u32) -> Script {
    let arrivals = vec![
        at(0.0, 0, work(1.0, 8.0)),
        at(10.0, 1, work(60.0, 3.0)),
        at(12.0, 0, work(1.0, 8.0)),
        at(13.0, 0, work(1.0, 8.0)),
    ];
    Script::new(vec![function(reserved, 512), function(3000, 512)], arrivals)
}

fn second_call(placement: Placement) -> CallRecord {
    let control = Scripted { grant: Some(Allocation::new(3000, 512)), ..Scripted::default() };
    play(two_nodes(placement), passed_over(1000), control).calls.swap_remove(2)
}

#[test]
fn a_warm_node_with_less_than_wanted_comes_before_a_cold_one_with_all() {
    let warm = second_call(Placement::WarmFirst);
    // 1 core for 1 s of work, though 3 were requested.
    assert_eq!((warm.node.0, secs(warm.started_at), secs(warm.ended_at)), (0, 12.0, 13.0));
    assert_eq!(warm.cold_start, Duration::ZERO);
    assert_eq!(second_call(Placement::LeastLoaded).cold_start, Duration::from_secs(1));
}

/// A run that is looked at from second to second.
struct Watched<'a> {
    simulator: Simulator<'a>,
}

impl Watched<'_> {
    fn seen(&mut self) -> Observation {
        self.simulator.observe(self.simulator.now()).expect("nothing fails here")
    }

    fn at(&mut self, second: u64) -> FunctionView {
        self.simulator.advance_to(Timestamp::from_secs(second)).expect("nothing fails here");
        self.seen().functions.swap_remove(0)
    }

    fn set_instances(&mut self, instances: f64) {
        let seen = self.seen();
        let target = Target { instances: Setting::Set(instances), ..Target::keep(FunctionId(0)) };
        let decision = Decision { targets: vec![target], reason: String::new() };
        let plan = SafeguardChain::default().review(&seen, &decision).expect("nothing fails here");
        self.simulator.submit(seen.now, &plan);
    }
}

fn watched<'a>(control: Scripted, seen: &'a mut Everything) -> Watched<'a> {
    let settings = two_nodes(Placement::WarmFirst);
    Watched { simulator: Simulator::new(settings, passed_over(2000), control, seen, Seed::new(1)) }
}

#[test]
fn an_instance_that_no_call_can_reach_is_reported_as_one_more_that_was_needed() {
    let mut seen = Everything::default();
    let mut run = watched(Scripted::default(), &mut seen);
    let steps = |view: &FunctionView| -> Vec<(u32, u32)> {
        view.presence.iter().map(|step| (step.calls, step.passed_over)).collect()
    };
    // 1 core is left beside function 1 and 2 are needed: one instance is idle there, a second one starts elsewhere.
    assert_eq!(steps(&run.at(11)), [(1, 0), (0, 0)]);
    let view = run.at(12);
    assert_eq!((view.ready.get(), view.starting.get()), (1, 1));
    assert_eq!(steps(&view), [(1, 1), (1, 0)]);
}

#[test]
fn one_more_instance_starts_on_a_node_without_one() {
    let mut seen = Everything::default();
    let mut run = watched(Scripted::default(), &mut seen);
    run.at(5);
    run.set_instances(2.0);
    run.at(14);
    drop(run);
    assert!(seen.calls[1].cold_start.is_zero(), "{:#?}", seen.calls[1]);
    assert_eq!((seen.calls[1].function.0, seen.calls[1].node.0), (0, 1));
}

#[test]
fn an_idle_instance_keeps_what_its_call_had_and_so_does_the_next_that_starts_ahead() {
    let small = Allocation::new(1000, 100);
    let mut seen = Everything::default();
    let mut run = watched(Scripted { grant: Some(small), ..Scripted::default() }, &mut seen);
    assert_eq!(run.at(0).kept, Some(Mebibytes::new(512)), "nothing but the user's size is known");
    let view = run.at(5);
    assert_eq!(view.kept, Some(Mebibytes::new(100)));
    assert_eq!(view.idle_size(), Allocation::new(0, 100));
    // The calls of function 0 are over at 15 s and the last instance goes at 45 s; function 1 runs until 71 s on
    // 100 MiB, which its instance keeps until 101 s.
    assert_eq!(run.at(59).ready.get(), 0);
    run.set_instances(1.0);
    assert_eq!(run.at(180).ready.get(), 1);
    drop(run);
    let third_minute = seen.intervals[2];
    assert!((third_minute.idle_mib - 100.0).abs() < 1e-9, "{third_minute:?}");
}

#[test]
fn what_a_tick_starts_counts_from_the_tick_on() {
    let script = Script::new(vec![function(1000, 512)], vec![at(100.0, 0, work(1.0, 1.0))]);
    let mut seen = Everything::default();
    let settings = two_nodes(Placement::WarmFirst);
    let mut run = Watched {
        simulator: Simulator::new(settings, script, Scripted::default(), &mut seen, Seed::new(1)),
    };
    run.at(59);
    run.set_instances(1.0);
    run.at(70);
    drop(run);
    assert!((seen.intervals[0].instances - 1.0 / 60.0).abs() < 1e-9, "{:?}", seen.intervals[0]);
}

#[test]
fn a_start_ahead_takes_the_cpu_that_the_last_call_began_with_until_it_is_ready() {
    let mut seen = Everything::default();
    let grant = Some(Allocation::new(1500, 100));
    let mut run = watched(Scripted { grant, ..Scripted::default() }, &mut seen);
    run.at(59);
    run.set_instances(1.0);
    assert_eq!(run.at(59).start_cpu, Some(MilliCpu::new(1500)));
    run.at(120);
    drop(run);
    let [first, second] = [seen.intervals[0], seen.intervals[1]];
    // 1.5 cores for the second from 59 to 60, beside function 1, which runs on as many until 51 s.
    assert!((first.starting_cores - 1.5 / 60.0).abs() < 1e-9, "{first:?}");
    assert_eq!((second.starting_cores, second.granted_cores), (0.0, 0.0), "{second:?}");
}

#[test]
fn nothing_is_started_ahead_where_running_calls_hold_the_cores() {
    // One node of 4 cores, of which function 1 holds 3 from 10 s to 31 s.
    let settings = Settings {
        keep_alive: Duration::from_secs(5),
        ..Settings::new(1, Allocation::new(4000, 4096))
    };
    let arrivals = vec![at(0.0, 0, work(1.0, 2.0)), at(10.0, 1, work(60.0, 3.0))];
    let script = Script::new(vec![function(2000, 512), function(3000, 512)], arrivals);
    let mut seen = Everything::default();
    let simulator = Simulator::new(settings, script, Scripted::default(), &mut seen, Seed::new(1));
    let mut run = Watched { simulator };
    run.at(20);
    run.set_instances(1.0);
    assert_eq!(run.at(21).starting.get(), 0);
    run.at(40);
    run.set_instances(1.0);
    assert_eq!(run.at(40).starting.get(), 1);
}
