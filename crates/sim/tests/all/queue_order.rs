//! Who starts first, and calls without a ceiling, worked out by hand.

use windfall_core::{Allocation, ColdStart, CpuCeiling, Duration, FunctionProfile};
use windfall_sim::{QueueOrder, Settings};

use crate::stage::{Script, Scripted, at, function, play, secs, work};

fn one_core(queue_order: QueueOrder) -> Settings {
    let usual = Settings::new(1, Allocation::new(1000, 1000));
    Settings { cold_starts: false, queue_order, ..usual }
}

/// Functions 0 and 1 are known to run for 1 s and 4 s when function 2 fills the node from 10 s on.
fn two_wait(until: f64) -> Script {
    let functions = vec![function(1000, 100), function(1000, 100), function(1000, 100)];
    let arrivals = vec![
        at(0.0, 0, work(1.0, 1.0)),
        at(2.0, 1, work(4.0, 1.0)),
        at(10.0, 2, work(until - 10.0, 1.0)),
        at(until - 0.6, 1, work(4.0, 1.0)),
        at(until - 0.5, 0, work(1.0, 1.0)),
    ];
    Script::new(functions, arrivals)
}

#[test]
fn the_shortest_starts_first_unless_order_is_first_come() {
    let starts = |order: QueueOrder| {
        let calls = play(one_core(order), two_wait(20.0), Scripted::default()).calls;
        (secs(calls[3].started_at), secs(calls[4].started_at))
    };
    assert_eq!(starts(QueueOrder::FirstCome), (20.0, 24.0));
    assert_eq!(starts(QueueOrder::SHORTEST_FIRST), (21.0, 20.0));
}

#[test]
fn a_late_call_gives_way_and_one_that_has_waited_too_long_goes_first() {
    let functions = vec![function(1000, 100), function(1000, 100), function(1000, 100)];
    let arrivals = |early: f64| {
        vec![
            at(0.0, 0, work(1.0, 1.0)),
            at(2.0, 1, work(4.0, 1.0)),
            at(10.0, 2, work(40.0, 1.0)),
            // The short one has waited longer than it runs when the long one comes.
            at(early, 0, work(1.0, 1.0)),
            at(49.0, 1, work(4.0, 1.0)),
        ]
    };
    let starts = |early: f64| {
        let script = Script::new(functions.clone(), arrivals(early));
        let order = QueueOrder::ShortestFirst { starved_after: Duration::from_secs(30) };
        let calls = play(one_core(order), script, Scripted::default()).calls;
        (secs(calls[3].started_at), secs(calls[4].started_at))
    };
    assert_eq!(starts(45.0), (54.0, 50.0), "5 s are late for a call of 1 s");
    assert_eq!(starts(15.0), (50.0, 51.0), "35 s are too long");
}

#[test]
fn a_call_waits_for_a_warm_instance_as_long_as_it_is_on_time_and_a_new_one_takes_longer() {
    // A new instance takes 2 s for calls of 1 s. The first call is done at 3 s, the second at 11 s.
    let slow_start = FunctionProfile {
        cold_start: ColdStart { median: Duration::from_secs(2), sigma: 0.0 },
        ..function(1000, 100)
    };
    let starts = |waits_for_warm: bool, second: f64| {
        let arrivals = vec![
            at(0.0, 0, work(1.0, 1.0)),
            at(10.0, 0, work(1.0, 1.0)),
            at(second, 0, work(1.0, 1.0)),
        ];
        let settings = Settings {
            cold_starts: true,
            waits_for_warm,
            queue_order: QueueOrder::SHORTEST_FIRST,
            ..Settings::new(1, Allocation::new(4000, 1000))
        };
        let script = Script::new(vec![slow_start.clone()], arrivals);
        let calls = play(settings, script, Scripted::default()).calls;
        let third = calls.iter().find(|call| call.id.0 == 2).expect("it ends");
        (secs(third.ended_at), third.cold_start.is_zero())
    };
    assert_eq!(starts(false, 10.5), (13.5, false));
    assert_eq!(starts(true, 10.5), (12.0, true), "for the one that is busy until 11 s");
    assert_eq!(starts(true, 11.0), (12.0, true));
}

#[test]
fn without_a_ceiling_a_call_uses_what_others_leave_and_is_delayed_only_below_its_reservation() {
    let settings = Settings {
        cold_starts: false,
        cpu_weights: true,
        cluster: windfall_sim::Cluster {
            over_commit_cpu: 2.0,
            ..Settings::new(1, Allocation::new(2000, 1000)).cluster
        },
        ..Settings::new(1, Allocation::new(2000, 1000))
    };
    let control = || Scripted { ceiling: CpuCeiling::Unlimited, ..Scripted::default() };
    // Alone it has both cores although it reserves one: 4 core-seconds in 2 s.
    let alone = Script::new(vec![function(1000, 100)], vec![at(0.0, 0, work(4.0, 2.0))]);
    let calls = play(settings, alone, control()).calls;
    assert_eq!(secs(calls[0].ended_at), 2.0);
    assert_eq!(calls[0].cpu_ceiling, CpuCeiling::Unlimited);
    // Beside another that reserves as much it has its reservation: 4 s each.
    let two = vec![at(0.0, 0, work(4.0, 2.0)), at(0.0, 1, work(4.0, 2.0))];
    let functions = vec![function(1000, 100), function(1000, 100)];
    let calls = play(settings, Script::new(functions, two), control()).calls;
    assert_eq!([secs(calls[0].ended_at), secs(calls[1].ended_at)], [4.0, 4.0]);
}
