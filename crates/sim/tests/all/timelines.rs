//! Short stories worked out by hand, to the nanosecond.

use windfall_core::{Allocation, CallDemand, CallEnd, Duration, Mebibytes};
use windfall_sim::{Placement, ScaleOut, Settings};

use crate::stage::{Script, Scripted, at, function, play, secs, work};

fn one_node(cpu: u32, memory: u32) -> Settings {
    Settings::new(1, Allocation::new(cpu, memory))
}

/// Climbs from 100 to 300 MiB over the first second of a two-second call.
fn climbing() -> CallDemand {
    CallDemand {
        memory_base: Mebibytes::new(100),
        memory_peak: Mebibytes::new(300),
        rise: Duration::from_secs(1),
        ..work(2.0, 1.0)
    }
}

#[test]
fn the_first_call_is_cold_and_the_second_warm() {
    let script = Script::new(
        vec![function(1000, 100)],
        vec![at(0.0, 0, work(2.0, 1.0)), at(10.0, 0, work(2.0, 1.0))],
    );
    let calls = play(one_node(4000, 1000), script, Scripted::default()).calls;
    // One second of cold start, two of work.
    assert_eq!((secs(calls[0].started_at), secs(calls[0].ended_at)), (1.0, 3.0));
    assert_eq!(calls[0].cold_start, Duration::from_secs(1));
    assert_eq!((secs(calls[1].started_at), secs(calls[1].ended_at)), (10.0, 12.0));
    assert!(calls[1].cold_start.is_zero());
    // The grant was held while the instance started: 3 s and 2 s of one core.
    assert_eq!(calls[0].cpu_granted, 3_000_000_000_000);
    assert_eq!(calls[1].cpu_granted, 2_000_000_000_000);
}

#[test]
fn after_the_keep_alive_the_next_call_is_cold_again() {
    let settings = Settings { keep_alive: Duration::from_secs(5), ..one_node(4000, 1000) };
    let times = |second: f64| {
        let arrivals = vec![at(0.0, 0, work(1.0, 1.0)), at(second, 0, work(1.0, 1.0))];
        let script = Script::new(vec![function(1000, 100)], arrivals);
        play(settings, script, Scripted::default()).calls[1].cold_start
    };
    // Idle from 2 s on, gone at 7 s.
    assert_eq!(times(6.999), Duration::ZERO);
    assert_eq!(times(7.001), Duration::from_secs(1));
}

#[test]
fn an_idle_instance_gives_way_when_its_memory_is_needed() {
    let script = Script::new(
        vec![function(1000, 600), function(1000, 600)],
        vec![at(0.0, 0, work(1.0, 1.0)), at(5.0, 1, work(1.0, 1.0)), at(10.0, 0, work(1.0, 1.0))],
    );
    let calls = play(one_node(4000, 1000), script, Scripted::default()).calls;
    // Function 1 has no room beside the idle instance of function 0, which goes; so does its own later.
    assert_eq!(secs(calls[1].started_at), 6.0);
    assert_eq!(secs(calls[2].started_at), 11.0);
}

#[test]
fn what_one_call_does_not_hold_another_can_have() {
    let arrivals =
        || vec![at(0.0, 0, work(4.0, 0.5)), at(0.0, 0, work(4.0, 0.5)), at(0.0, 0, work(4.0, 0.5))];
    let settings = Settings { cold_starts: false, ..one_node(2000, 1000) };
    let script = || Script::new(vec![function(1000, 100)], arrivals());
    let fixed = play(settings, script(), Scripted::default()).calls;
    // Two fit; the third waits 8 s although half of the CPU lies idle.
    assert_eq!(secs(fixed[2].started_at), 8.0);
    let half = Scripted { grant: Some(Allocation::new(500, 100)), ..Scripted::default() };
    let sized = play(settings, script(), half).calls;
    assert_eq!(secs(sized[2].started_at), 0.0);
    assert!(sized.iter().all(|call| call.run == Duration::from_secs(8)));
}

#[test]
fn crossing_the_limit_kills_and_the_second_try_has_the_users_size() {
    let script = Script::new(vec![function(1000, 400)], vec![at(0.0, 0, climbing())]);
    let settings = Settings { cold_starts: false, ..one_node(4000, 1000) };
    let control = Scripted { grant: Some(Allocation::new(1000, 150)), ..Scripted::default() };
    let calls = play(settings, script, control).calls;
    // 150 MiB are crossed after 0.25 s; then two seconds at the user's size.
    assert_eq!(secs(calls[0].ended_at), 2.25);
    assert_eq!((calls[0].attempts, calls[0].oom_kills), (2, 1));
    assert_eq!(calls[0].end, CallEnd::Completed);
    assert_eq!(calls[0].run, Duration::from_millis(2250));
    // 150 MiB for 0.25 s and 400 MiB for 2 s.
    assert_eq!(calls[0].memory_granted, 837_500_000_000);
}

#[test]
fn a_call_that_outgrows_the_users_own_size_fails() {
    let script = Script::new(vec![function(1000, 200)], vec![at(0.0, 0, climbing())]);
    let settings = Settings { cold_starts: false, ..one_node(4000, 1000) };
    let calls = play(settings, script, Scripted::default()).calls;
    assert_eq!(calls[0].end, CallEnd::OutOfMemory);
    assert_eq!(secs(calls[0].ended_at), 1.0);
    assert_eq!(calls[0].oom_kills, 2);
}

/// Raises memory to 400 MiB at the first look, `after` the start.
fn raise_memory(after: Duration) -> Scripted {
    Scripted {
        grant: Some(Allocation::new(1000, 150)),
        look_after: Some(after),
        on_look: Box::new(|running| (Allocation::new(running.grant.cpu.get(), 400), None)),
        ..Scripted::default()
    }
}

#[test]
fn a_live_raise_of_memory_can_come_in_time_or_too_late() {
    let play_with = |after: u64, delay: u64| {
        let script = Script::new(vec![function(1000, 400)], vec![at(0.0, 0, climbing())]);
        let settings = Settings {
            cold_starts: false,
            actuation_delay: Duration::from_millis(delay),
            ..one_node(4000, 1000)
        };
        play(settings, script, raise_memory(Duration::from_millis(after))).calls[0].oom_kills
    };
    // The limit is crossed after 250 ms.
    assert_eq!(play_with(200, 0), 0);
    assert_eq!(play_with(200, 40), 0);
    assert_eq!(play_with(200, 60), 1);
    assert_eq!(play_with(260, 0), 1);
}

#[test]
fn a_live_raise_of_cpu_speeds_up_what_is_left() {
    let script = Script::new(vec![function(2000, 100)], vec![at(0.0, 0, work(2.0, 2.0))]);
    let settings = Settings { cold_starts: false, ..one_node(4000, 1000) };
    let control = Scripted {
        grant: Some(Allocation::new(500, 100)),
        look_after: Some(Duration::from_secs(2)),
        on_look: Box::new(|running| {
            let sensed = running.sensed;
            assert_eq!(sensed.throttled_share, 1.0);
            assert!((sensed.cpu_used_cores - 0.5).abs() < 0.05);
            (Allocation::new(2000, 100), None)
        }),
        ..Scripted::default()
    };
    let calls = play(settings, script, control).calls;
    // Two seconds at half a core leave one core-second: half a second on two cores.
    assert_eq!(secs(calls[0].ended_at), 2.5);
    assert_eq!(calls[0].cpu_granted, 1_000_000_000_000 + 1_000_000_000_000);
    assert_eq!(calls[0].changes, 1);
}

#[test]
fn a_raise_without_room_is_a_debt_paid_before_new_calls_start() {
    // A two-core node: the first call was trimmed to one core, the second took the other.
    let script = Script::new(
        vec![function(2000, 100), function(1000, 100)],
        vec![at(0.0, 0, work(10.0, 2.0)), at(0.0, 1, work(4.0, 1.0)), at(1.0, 1, work(4.0, 1.0))],
    );
    let settings = Settings { cold_starts: false, ..one_node(2000, 1000) };
    let control = Scripted {
        grant: Some(Allocation::new(1000, 100)),
        look_after: Some(Duration::from_secs(2)),
        on_look: Box::new(|running| (running.reservation, None)),
        ..Scripted::default()
    };
    let calls = play(settings, script, control).calls;
    // The raise at 2 s finds nothing. At 4 s the second call ends: the debt is paid before the third,
    // which has waited since 1 s, may start. The first call: 4 core-s by then, 6 left on two cores.
    assert_eq!(secs(calls[0].ended_at), 7.0);
    assert_eq!(secs(calls[2].started_at), 7.0);
}

#[test]
fn what_is_held_back_is_for_raises_and_not_for_new_calls() {
    // Two cores. The first call is trimmed to one at 1 s, with the other held back for it; another call
    // comes at 1.5 s and has to wait. At 2 s the first gets its core back at once.
    let script = Script::new(
        vec![function(2000, 100), function(1000, 100)],
        vec![at(0.0, 0, work(5.0, 2.0)), at(1.5, 1, work(1.0, 1.0))],
    );
    let settings = Settings { cold_starts: false, ..one_node(2000, 1000) };
    let control = Scripted {
        look_after: Some(Duration::from_secs(1)),
        on_look: Box::new(|running| {
            let is_first = running.elapsed() < Duration::from_millis(1500);
            let grant = if is_first { Allocation::new(1000, 100) } else { running.reservation };
            (grant, is_first.then_some(Duration::from_secs(1)))
        }),
        holds_back: true,
        ..Scripted::default()
    };
    let seen = play(settings, script, control);
    let calls = &seen.calls;
    // 2 core-s in the first second, 1 in the next, the last 2 at two cores.
    assert_eq!(secs(calls[0].ended_at), 3.0);
    assert_eq!(secs(calls[1].started_at), 3.0);
    // One core was kept from 1 s to 2 s, and it counts: 5 core-s granted and 1 held back.
    assert_eq!(
        (calls[0].cpu_granted, calls[0].cpu_held_back),
        (5_000_000_000_000, 1_000_000_000_000)
    );
    let kept = seen
        .intervals
        .iter()
        .map(|one| one.held_back_cores * one.until.since(one.from).as_secs_f64());
    assert!((kept.sum::<f64>() - 1.0).abs() < 1e-9);
}

#[test]
fn what_others_have_taken_already_is_not_held_back() {
    // Three cores. Two calls of two cores each start with one and a half; the first look asks that half a
    // core be kept for each, and nothing is free: nothing is kept. At 2 s the second ends, its 1.5 cores
    // are free, and half a core is kept for the first until it ends at 4 s.
    let script = Script::new(
        vec![function(2000, 100)],
        vec![at(0.0, 0, work(6.0, 1.5)), at(0.0, 0, work(3.0, 1.5))],
    );
    let settings = Settings { cold_starts: false, ..one_node(3000, 1000) };
    let control = Scripted {
        grant: Some(Allocation::new(1500, 100)),
        look_after: Some(Duration::from_secs(1)),
        holds_back: true,
        ..Scripted::default()
    };
    let calls = play(settings, script, control).calls;
    assert_eq!((secs(calls[0].ended_at), secs(calls[1].ended_at)), (4.0, 2.0));
    assert_eq!((calls[0].cpu_held_back, calls[1].cpu_held_back), (1_000_000_000_000, 0));
}

#[test]
fn a_contended_node_shares_by_weight() {
    // Two calls on a one-core node that may grant four: weights 3 to 1, both could use a core.
    let script = Script::new(
        vec![function(3000, 100), function(1000, 100)],
        vec![at(0.0, 0, work(3.0, 1.0)), at(0.0, 1, work(3.0, 1.0))],
    );
    let mut settings = Settings { cold_starts: false, ..one_node(1000, 1000) };
    settings.cluster.over_commit_cpu = 4.0;
    settings.ceiling = Allocation::new(4000, 1000);
    let calls = play(settings, script, Scripted::default()).calls;
    // 0.75 and 0.25 of a core until 4 s; then the second has 2 core-seconds left and the core alone.
    assert_eq!(secs(calls[0].ended_at), 4.0);
    assert_eq!(secs(calls[1].ended_at), 6.0);
    assert_eq!(calls[1].cpu_used, 3_000_000_000_000);
}

#[test]
fn what_a_narrow_call_cannot_use_goes_to_the_others() {
    // Caps 0.25 / 1 / 1 on one core, equal weights: 0.25 / 0.375 / 0.375.
    let script = Script::new(
        vec![function(1000, 100)],
        vec![at(0.0, 0, work(1.0, 0.25)), at(0.0, 0, work(1.5, 1.0)), at(0.0, 0, work(1.5, 1.0))],
    );
    let mut settings = Settings { cold_starts: false, ..one_node(1000, 1000) };
    settings.cluster.over_commit_cpu = 3.0;
    let calls = play(settings, script, Scripted::default()).calls;
    for call in &calls {
        assert_eq!(secs(call.ended_at), 4.0);
    }
}

#[test]
fn calls_on_one_instance_share_its_quota() {
    let script = Script::new(
        vec![function(1000, 100)],
        vec![at(0.0, 0, work(1.0, 1.0)), at(0.5, 0, work(1.0, 1.0))],
    );
    let settings = Settings {
        cold_starts: false,
        concurrency: 2,
        scale_out: ScaleOut::OnTick,
        ..one_node(8000, 1000)
    };
    let calls = play(settings, script, Scripted::default()).calls;
    // Half a core-second alone, then half a core each: 1.5 s; the second has half left: 2.0 s.
    assert_eq!(secs(calls[0].ended_at), 1.5);
    assert_eq!(secs(calls[1].ended_at), 2.0);
}

#[test]
fn calls_that_outgrow_their_instance_together_die_together() {
    // Alone each fits 400 MiB; together they cross it while the second climbs.
    let script = Script::new(
        vec![function(2000, 400)],
        vec![at(0.0, 0, climbing()), at(1.0, 0, climbing())],
    );
    let settings = Settings {
        cold_starts: false,
        concurrency: 2,
        scale_out: ScaleOut::PerCall,
        ..one_node(8000, 2000)
    };
    let calls = play(settings, script, Scripted::default()).calls;
    // At 1 s the first uses 300 MiB, the second 100: exactly the limit. Any climb crosses it.
    assert!(calls.iter().all(|call| call.oom_kills >= 1), "{calls:#?}");
}

#[test]
fn the_home_walk_fills_the_home_first_and_least_loaded_spreads() {
    let nodes = |placement| {
        let settings = Settings {
            cold_starts: false,
            placement,
            ..Settings::new(4, Allocation::new(2000, 1000))
        };
        let arrivals = (0..4).map(|_| at(0.0, 0, work(1.0, 1.0))).collect();
        let script = Script::new(vec![function(1000, 100)], arrivals);
        let calls = play(settings, script, Scripted::default()).calls;
        let mut nodes: Vec<u32> = calls.iter().map(|call| call.node.0).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.len()
    };
    assert_eq!(nodes(Placement::HomeInvoker), 2);
    assert_eq!(nodes(Placement::LeastLoaded), 4);
}
