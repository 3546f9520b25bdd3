//! Queueing formulas that the simulator must reproduce within their confidence intervals.

use rand_distr::{Distribution, Exp, LogNormal};
use windfall_core::{Allocation, CallEnd, CallRecord, Duration, Seed, Timestamp};
use windfall_sim::{ScaleOut, Settings};

use crate::stage::{Script, Scripted, at, function, play, work};

const CALLS: usize = 60_000;
const REPEATS: u64 = 20;

/// Poisson arrivals at `rate` per second of calls whose work is drawn by `draw`, one core each.
fn poisson(rate: f64, seed: u64, calls: usize, draw: impl Distribution<f64>) -> Script {
    let mut generator = Seed::new(seed).stream("test").generator();
    let gaps = Exp::new(rate).expect("a positive rate");
    let mut now = 0.0;
    let arrivals = (0..calls)
        .map(|_| {
            now += gaps.sample(&mut generator);
            at(now, 0, work(draw.sample(&mut generator).max(1e-6), 1.0))
        })
        .collect();
    Script::new(vec![function(1000, 10)], arrivals)
}

/// A node of `servers` cores on which every call reserves one: `servers` servers and one queue.
fn servers(servers: u32) -> Settings {
    Settings {
        cold_starts: false,
        interval: Duration::from_secs(100_000),
        ..Settings::new(1, Allocation::new(servers * 1000, 1_000_000))
    }
}

/// Mean and 99 % half-width over repetitions with other seeds; the first tenth of each is left out.
fn repeated(mut mean_of: impl FnMut(u64) -> f64) -> (f64, f64) {
    let values: Vec<f64> = (1..=REPEATS).map(&mut mean_of).collect();
    let mean = values.iter().sum::<f64>() / REPEATS as f64;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (REPEATS - 1) as f64;
    // Student's t for 19 degrees of freedom.
    (mean, 2.861 * (variance / REPEATS as f64).sqrt())
}

fn settled(calls: &[CallRecord]) -> &[CallRecord] {
    &calls[calls.len() / 10..]
}

fn mean_wait(calls: &[CallRecord]) -> f64 {
    let calls = settled(calls);
    let wait = |call: &CallRecord| call.started_at.since(call.arrived_at).as_secs_f64();
    calls.iter().map(wait).sum::<f64>() / calls.len() as f64
}

fn assert_within((mean, half_width): (f64, f64), exact: f64) {
    assert!((mean - exact).abs() <= half_width, "{mean} +- {half_width}, but exactly {exact}");
    assert!(half_width < 0.2 * exact, "the interval {half_width} says nothing about {exact}");
}

#[test]
fn mm1_waits_rho_over_one_minus_rho() {
    let measured = repeated(|seed| {
        let script = poisson(0.7, seed, CALLS, Exp::new(1.0).unwrap());
        mean_wait(&play(servers(1), script, Scripted::default()).calls)
    });
    assert_within(measured, 0.7 / 0.3);
}

#[test]
fn mm4_waits_as_erlang_c_says() {
    let measured = repeated(|seed| {
        let script = poisson(3.0, seed, CALLS, Exp::new(1.0).unwrap());
        mean_wait(&play(servers(4), script, Scripted::default()).calls)
    });
    // a = 3, c = 4: C = (81/24 * 4) / (13 + 13.5) = 0.50943, wait = C / (4 - 3).
    assert_within(measured, 0.509_434);
}

#[test]
fn four_places_in_one_instance_wait_like_four_servers() {
    let settings = Settings { concurrency: 4, scale_out: ScaleOut::PerCall, ..servers(4) };
    let measured = repeated(|seed| {
        let mut script = poisson(3.0, seed, CALLS, Exp::new(1.0).unwrap());
        script.functions[0].reservation = Allocation::new(4000, 100);
        mean_wait(&play(settings, script, Scripted::default()).calls)
    });
    assert_within(measured, 0.509_434);
}

#[test]
fn mg1_processor_sharing_depends_on_the_mean_alone() {
    // One core, over-committed without end: everyone runs at once and shares. Mean time in the system
    // is E[S] / (1 - rho) whatever the law of S; here lognormal with mean 1 and a long tail.
    let sigma: f64 = 1.0;
    let mut settings = servers(1);
    settings.cluster.over_commit_cpu = 4000.0;
    settings.ceiling = Allocation::new(1000, 1_000_000);
    let measured = repeated(|seed| {
        let law = LogNormal::new(-sigma * sigma / 2.0, sigma).unwrap();
        let calls = play(settings, poisson(0.5, seed, CALLS, law), Scripted::default()).calls;
        let calls = settled(&calls);
        let time = |call: &CallRecord| call.ended_at.since(call.arrived_at).as_secs_f64();
        calls.iter().map(time).sum::<f64>() / calls.len() as f64
    });
    assert_within(measured, 2.0);
}

#[test]
fn without_a_queue_calls_are_lost_as_erlang_b_says() {
    let settings = Settings { queue_limit: Some(0), ..servers(4) };
    let measured = repeated(|seed| {
        let script = poisson(3.0, seed, CALLS, Exp::new(1.0).unwrap());
        lost_share(&play(settings, script, Scripted::default()).calls)
    });
    // B(4, 3) = (81/24) / (1 + 3 + 4.5 + 4.5 + 3.375).
    assert_within(measured, 0.206_107);
}

#[test]
fn with_a_finite_queue_calls_are_lost_as_mm1k_says() {
    let settings = Settings { queue_limit: Some(4), ..servers(1) };
    let measured = repeated(|seed| {
        let script = poisson(0.9, seed, CALLS, Exp::new(1.0).unwrap());
        lost_share(&play(settings, script, Scripted::default()).calls)
    });
    // K = 5 places in the system: (1 - rho) rho^5 / (1 - rho^6).
    let rho: f64 = 0.9;
    assert_within(measured, (1.0 - rho) * rho.powi(5) / (1.0 - rho.powi(6)));
}

fn lost_share(calls: &[CallRecord]) -> f64 {
    let calls = settled(calls);
    let lost = calls.iter().filter(|call| call.end == CallEnd::Rejected).count();
    lost as f64 / calls.len() as f64
}

#[test]
fn fixed_grants_are_reservation_times_run_time() {
    let script = poisson(0.5, 3, 5_000, Exp::new(1.0).unwrap());
    let seen = play(servers(4), script, Scripted::default());
    let expected: u64 = seen
        .calls
        .iter()
        .map(|call| {
            u64::from(call.reservation.cpu.get())
                * call.baseline.expect("a simulator knows it").as_nanos()
        })
        .sum();
    let granted: u64 = seen.calls.iter().map(|call| call.cpu_granted).sum();
    assert_eq!(granted, expected);
    let from_intervals: f64 = seen
        .intervals
        .iter()
        .map(|stretch| stretch.granted_cores * stretch.until.since(stretch.from).as_secs_f64())
        .sum();
    assert!((from_intervals - granted as f64 * 1e-12).abs() < 1e-6 * from_intervals);
    assert!(seen.calls.iter().all(|call| call.ended_at > Timestamp::ZERO));
}
