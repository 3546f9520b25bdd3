//! Scenario tests of [`Libra`]: profiled, harvested, restored, distrusted, accelerated.

use super::*;
use crate::fake_platform::{FakePlatform, one_core_second, outcome, running, view};
use windfall_core::{Allocation, CallDemand, Mebibytes, MilliCpu, Sensed};

const USER: Allocation = Allocation::new(4000, 512);
const CEILING: Allocation = Allocation::new(8000, 1024);

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-5 * right
}

/// A policy that has seen five calls of 1.5 cores and 300 MiB, one second each.
fn profiled() -> Libra {
    let mut libra = Libra::default();
    (0..5).for_each(|_| libra.learn(&outcome(USER, USER, 1.5, 300.0)));
    libra
}

fn look(grant: Allocation, cpu_used_cores: f64, memory_mib: f64) -> RunningCall {
    let sensed = Sensed {
        window: Duration::from_millis(100),
        cpu_used_cores,
        memory_mib,
        ..Sensed::default()
    };
    RunningCall { grant, sensed, ..running(&view(USER, CEILING)) }
}

#[test]
fn the_first_calls_run_at_the_users_size_without_looks() {
    let mut libra = Libra::default();
    for _ in 0..5 {
        let decision = libra.size(&view(USER, CEILING)).unwrap();
        assert_eq!(
            (decision.cpu_cores, decision.memory_mib, decision.look_after),
            (4.0, 512.0, None)
        );
        libra.learn(&outcome(USER, USER, 1.5, 300.0));
    }
}

#[test]
fn a_call_that_needs_less_is_a_donor() {
    let decision = profiled().size(&view(USER, CEILING)).unwrap();
    assert!(close(decision.cpu_cores, 1.65) && close(decision.memory_mib, 330.0), "{decision:?}");
    assert_eq!(decision.expected_run, Some(Duration::from_secs(1)));
    assert_eq!(decision.look_after, Some(Duration::from_millis(100)));
}

#[test]
fn a_call_that_needs_more_borrows_from_the_pool_only() {
    let user = Allocation::new(1000, 512);
    let mut libra = Libra::default();
    (0..5).for_each(|_| libra.learn(&outcome(user, user, 1.0, 480.0)));
    let decision = libra.size(&view(user, CEILING)).unwrap();
    // Censored at 1 core: 1.25 x 1.1 = 1.375. Nothing is harvested, so the call is not supervised.
    assert!(close(decision.cpu_cores, 1.375) && close(decision.memory_mib, 528.0), "{decision:?}");
    assert_eq!((decision.beyond, decision.look_after), (Beyond::HarvestPool, None));
}

#[test]
fn predictions_follow_the_input() {
    let mut libra = Libra::default();
    for round in 0..12 {
        let input = [1.0f32, 2.0, 4.0][round % 3];
        let seen = outcome(USER, USER, 0.5 * f64::from(input), 100.0 * f64::from(input));
        libra.learn(&CallOutcome { input: Some(input), ..seen });
    }
    let small = CallView { input: Some(1.0), ..view(USER, CEILING) };
    let decision = libra.size(&small).unwrap();
    assert!(close(decision.cpu_cores, 0.55) && close(decision.memory_mib, 110.0), "{decision:?}");
    // A call without a visible input is sized by the 99th percentile.
    let decision = libra.size(&view(USER, CEILING)).unwrap();
    assert!(close(decision.cpu_cores, 2.2) && close(decision.memory_mib, 440.0), "{decision:?}");
}

#[test]
fn a_call_under_pressure_gets_its_reservation_back_immediately() {
    let small = Allocation::new(1650, 330);
    let mut libra = profiled();
    let at_ease = libra.supervise(&look(small, 1.5, 200.0)).unwrap();
    assert!(close(at_ease.cpu_cores, 1.65) && at_ease.memory_mib == 330.0, "{at_ease:?}");
    assert_eq!(at_ease.look_after, Some(Duration::from_millis(100)));
    for (cpu, memory) in [(1.6, 200.0), (0.1, 320.0), (f64::NAN, 200.0)] {
        let restored = libra.supervise(&look(small, cpu, memory)).unwrap();
        assert_eq!((restored.cpu_cores, restored.memory_mib), (4.0, 512.0), "{cpu} {memory}");
        assert_eq!(restored.look_after, None);
    }
}

#[test]
fn pressure_on_a_resource_that_was_not_harvested_restores_nothing() {
    let memory_only = Allocation::new(4000, 330);
    let decision = profiled().supervise(&look(memory_only, 4.0, 200.0)).unwrap();
    assert_eq!((decision.cpu_cores, decision.memory_mib), (4.0, 330.0));
}

#[test]
fn a_loan_survives_the_restoration_of_the_other_resource() {
    let borrowed = Allocation::new(6000, 330);
    let decision = profiled().supervise(&look(borrowed, 1.0, 329.0)).unwrap();
    assert_eq!((decision.cpu_cores, decision.memory_mib), (6.0, 512.0));
}

#[test]
fn a_function_that_is_restored_often_is_not_harvested_for_a_while() {
    let mut libra = profiled();
    let pressed = look(Allocation::new(1650, 330), 1.65, 200.0);
    let restored =
        CallOutcome { first_grant: Allocation::new(1650, 330), ..outcome(USER, USER, 1.5, 300.0) };
    // 1 - 0.9^n exceeds one half from the seventh restored call on.
    for _ in 0..7 {
        assert!(libra.size(&view(USER, CEILING)).unwrap().cpu_cores < 4.0);
        libra.supervise(&pressed).unwrap();
        libra.learn(&restored);
    }
    let decision = libra.size(&view(USER, CEILING)).unwrap();
    assert_eq!((decision.cpu_cores, decision.memory_mib, decision.look_after), (4.0, 512.0, None));
    libra.learn(&outcome(USER, USER, 1.5, 300.0));
    assert!(libra.size(&view(USER, CEILING)).unwrap().cpu_cores < 4.0);
}

#[test]
fn a_kill_sets_a_floor_under_the_memory() {
    let mut libra = profiled();
    let limit = Allocation::new(1650, 330);
    libra.learn(&CallOutcome { was_killed: true, ..outcome(USER, limit, 1.0, 330.0) });
    // 330 x 1.25 = 412.5.
    assert!(close(libra.size(&view(USER, CEILING)).unwrap().memory_mib, 412.5));
}

#[test]
fn ten_calls_on_a_platform() {
    let mut platform = FakePlatform::new(USER, CEILING);
    let mut libra = Libra::default();
    let calls: Vec<_> = (0..10).map(|_| platform.call(&mut libra, one_core_second())).collect();
    assert!(calls[..5].iter().all(|call| call.first_grant == USER && call.looks == 0));
    let harvested = Allocation { cpu: MilliCpu::new(1651), memory: Mebibytes::new(331) };
    assert!(calls[5..].iter().all(|call| call.first_grant.fits(harvested)), "{calls:?}");
    assert!(calls.iter().all(|call| call.run == one_core_second().fastest() && !call.was_killed));
    // A wider call reaches its limit at the first look and has its reservation back after 100 ms.
    let wide = CallDemand { parallelism: MilliCpu::new(3000), ..one_core_second() };
    let call = platform.call(&mut libra, wide);
    assert_eq!((call.last_grant, call.looks), (USER, 1));
    assert!(call.run < wide.run_time(MilliCpu::new(1650)));
}
