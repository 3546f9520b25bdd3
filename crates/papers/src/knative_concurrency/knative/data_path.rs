//! The data path piece by piece, each with a number that can be worked out by hand.

use proptest::prelude::*;
use windfall_core::{Duration, Seed};

use super::pod::{Joining, Memory, Pod};
use super::*;

/// Wants always the same.
struct Always(Scaling);

impl Autoscale for Always {
    fn record(&mut self, _second: u64, _requests: f64) {}

    fn decide(&mut self, _second: u64, _ready: u32) -> Scaling {
        self.0
    }
}

fn exact() -> KnativeSettings {
    KnativeSettings {
        cold_start_sigma: 0.0,
        pod_speed_sigma: 0.0,
        test_speed_sigma: 0.0,
        network: Duration::ZERO,
        pod_cores: 1.0,
        ..KnativeSettings::default()
    }
}

fn test(shape: RequestShape, limit: u32, load: Load, wanted: Scaling) -> LoadTestOutcome {
    load_test(&exact(), shape, limit, load, &mut Always(wanted), Seed::new(1))
}

const SLEEPER: RequestShape = RequestShape { bloat_mib: 0, prime: 0, sleep_ms: 500 };

#[test]
fn from_zero_the_first_request_waits_for_the_pod() {
    let load = Load { requests_per_second: 1, seconds: 1 };
    let outcome = test(SLEEPER, 10, load, Scaling { replicas: Some(1), is_proxied: true });
    assert_eq!(outcome.succeeded, 1);
    // 4 s of cold start, 0.5 s of sleep.
    assert!((outcome.mean_ms - 4500.0).abs() < 1.0, "{}", outcome.mean_ms);
    // And 4 s of roll-out with one more start before it.
    assert!((outcome.took.as_secs_f64() - 12.5).abs() < 0.01, "{}", outcome.took);
}

#[test]
fn the_activator_buffers_ten_thousand_and_refuses_the_rest() {
    let nobody = Scaling { replicas: None, is_proxied: true };
    let outcome = test(SLEEPER, 10, Load::default(), nobody);
    assert_eq!((outcome.refused, outcome.timed_out, outcome.succeeded), (5000, 10_000, 0));
    assert_eq!(outcome.p95_ms, 30_000.0);
}

#[test]
fn through_the_activator_a_pod_never_gets_more_than_its_limit() {
    let load = Load { requests_per_second: 20, seconds: 10 };
    let outcome = test(SLEEPER, 5, load, Scaling { replicas: Some(1), is_proxied: true });
    // Five places of half a second each serve ten a second: 200 requests take 20 s after a start of 4 s.
    assert!(outcome.in_service_per_pod <= 5.0, "{}", outcome.in_service_per_pod);
    assert_eq!((outcome.succeeded, outcome.refused), (200, 0));
    assert!((outcome.throughput - 200.0 / 24.0).abs() < 0.1, "{}", outcome.throughput);
}

#[test]
fn without_the_activator_the_queue_proxy_refuses_beyond_ten_times_the_limit() {
    let load = Load { requests_per_second: 100, seconds: 10 };
    let outcome = test(SLEEPER, 2, load, Scaling { replicas: Some(1), is_proxied: false });
    // 400 gather before the pod is ready; of the 600 that come later 4 a second are served and 20 wait.
    assert!((530..=600).contains(&outcome.refused), "{}", outcome.refused);
}

#[test]
fn ten_pods_serve_ten_times_as_much() {
    let load = Load { requests_per_second: 400, seconds: 20 };
    let busy = RequestShape { bloat_mib: 0, prime: 1_000_000, sleep_ms: 0 };
    let wanted = |pods| Scaling { replicas: Some(pods), is_proxied: true };
    let one = test(busy, 20, load, wanted(1)).throughput;
    let ten = test(busy, 20, load, wanted(10)).throughput;
    // 3.05 ms on one core: 328 a second. Ten pods keep up with what comes.
    assert!((250.0..330.0).contains(&one), "{one}");
    assert!(ten > 390.0, "{ten}");
}

#[test]
fn two_requests_share_a_core_and_end_together() {
    let memory = Memory { base: 0.0, limit: 1000.0, per_request: 0.0 };
    let mut pod = Pod::new(0, 1.0, memory);
    pod.begin(0);
    let joining = Joining { touch: 0, sieve: 10_000_000 };
    pod.join(1, joining);
    pod.join(2, joining);
    assert_eq!(pod.next_turn(), Some(20_000_001));
    pod.catch_up(20_000_001);
    assert_eq!((pod.next_computed(), pod.next_computed()), (Some(1), Some(2)));
    assert!((pod.used_cores_ns - 2e7).abs() < 10.0);
}

#[test]
fn memory_climbs_with_the_touching_and_kills_at_the_limit() {
    let memory = Memory { base: 0.0, limit: 8192.0, per_request: 40.0 };
    let mut pod = Pod::new(0, 1.0, memory);
    pod.begin(0);
    for request in 0..250 {
        pod.join(request, Joining { touch: 10_000_000, sieve: 1 });
    }
    // Each advances by 1/250: 8.192 ms of progress are 2.048 s.
    let at = pod.next_turn().expect("something happens");
    assert!((at as f64 - 2.048e9).abs() < 1000.0, "{at}");
    pod.catch_up(at);
    assert!(pod.is_out_of_memory());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_request_ends_in_exactly_one_way(
        bloat_mib in 0_u32..80,
        prime in 0_u32..2_000_000,
        sleep_ms in 0_u32..4000,
        limit in 1_u32..400,
        pods in 0_u32..80,
        is_proxied in any::<bool>(),
        seed in 0_u64..1000,
    ) {
        let shape = RequestShape { bloat_mib, prime, sleep_ms };
        let load = Load { requests_per_second: 200, seconds: 10 };
        let wanted = Scaling { replicas: Some(pods), is_proxied };
        let settings = KnativeSettings::default();
        let mut always = Always(wanted);
        let outcome = load_test(&settings, shape, limit, load, &mut always, Seed::new(seed));
        let LoadTestOutcome { requests, succeeded, refused, killed, timed_out, .. } = outcome;
        prop_assert_eq!(requests, 2000);
        prop_assert_eq!(succeeded + refused + killed + timed_out, requests);
        prop_assert!((0.0..=1.0).contains(&outcome.success));
        prop_assert!(outcome.cpu_utilisation <= 1.2 && outcome.memory_utilisation <= 1.01);
        prop_assert!(outcome.throughput.is_finite() && outcome.mean_ms <= 30_000.0);
    }
}
