use super::*;
use crate::metrics::WantedPod;
use crate::resource_policy::{Goals, LatencyGoal};

const C: &str = "app";

fn at(second: u64) -> Timestamp {
    Timestamp::from_secs(second)
}

fn pod(name: &str) -> Key {
    Key::new("n", name)
}

fn wanted(names: &[&str]) -> Wanted {
    let latency = LatencyGoal { percentile: 50, milliseconds: 100, query: None };
    Wanted {
        policy: Key::new("n", "policy"),
        container: C.to_owned(),
        revision: Some("hello-00001".to_owned()),
        goals: Goals { latency: Some(latency), ..Goals::default() },
        pods: names
            .iter()
            .map(|name| WantedPod { key: pod(name), ..WantedPod::default() })
            .collect(),
    }
}

fn usage(name: &str, seconds: f64, mib: f64) -> Vec<Reading> {
    vec![
        Reading::CpuSeconds { pod: pod(name), container: C.into(), seconds, sampled: None },
        Reading::MemoryBytes(pod(name), C.into(), mib * 1_048_576.0),
    ]
}

#[test]
fn one_reading_of_a_counter_is_no_measurement() {
    let mut store = MetricsStore::default();
    store.put(at(10), usage("a", 5.0, 64.0));
    assert_eq!(store.signals(&wanted(&["a"]), at(0)), None);
    store.put(at(20), usage("a", 8.0, 80.0));
    let signals = store.signals(&wanted(&["a"]), at(0)).unwrap();
    assert!((signals.cpu_cores - 0.3).abs() < 1e-9);
    assert_eq!((signals.memory_peak_mib, signals.taken_at), (80.0, at(20)));
}

#[test]
fn pods_without_a_measurement_are_taken_to_use_as_much_as_the_others() {
    let mut store = MetricsStore::default();
    store.put(at(10), usage("a", 5.0, 64.0));
    store.put(at(20), usage("a", 8.0, 64.0));
    let signals = store.signals(&wanted(&["a", "b"]), at(0)).unwrap();
    assert!((signals.cpu_cores - 0.6).abs() < 1e-9);
    assert_eq!(signals.measured_pods, 1);
}

#[test]
fn old_readings_are_no_measurements() {
    let mut store = MetricsStore::default();
    store.put(at(10), vec![Reading::CpuCores(pod("a"), C.into(), 0.5)]);
    store.put(at(10), vec![Reading::MemoryBytes(pod("a"), C.into(), 1e6)]);
    assert!(store.signals(&wanted(&["a"]), at(10)).is_some());
    assert!(store.signals(&wanted(&["a"]), at(11)).is_none());
    store.forget(at(11));
    assert!(store.signals(&wanted(&["a"]), at(0)).is_none());
}

#[test]
fn a_restarted_container_counts_from_zero() {
    let mut store = MetricsStore::default();
    store.put(at(10), usage("a", 500.0, 64.0));
    store.put(at(20), usage("a", 2.0, 64.0));
    assert!((store.signals(&wanted(&["a"]), at(0)).unwrap().cpu_cores - 0.2).abs() < 1e-9);
}

#[test]
fn requests_are_counted_between_two_readings() {
    let mut store = MetricsStore::default();
    let histogram = |count: f64| Histogram {
        count,
        sum: count * 0.05,
        buckets: vec![(0.1, count), (f64::INFINITY, count)],
    };
    for (second, count) in [(10, 100.0), (20, 300.0)] {
        store.put(at(second), usage("a", second as f64, 64.0));
        store.put(at(second), vec![Reading::Requests(pod("a"), histogram(count))]);
    }
    store.put(at(20), vec![Reading::Concurrency(Key::new("n", "hello-00001"), 4.5)]);
    let signals = store.signals(&wanted(&["a"]), at(0)).unwrap();
    assert_eq!((signals.completions, signals.per_second), (Some(200.0), Some(20.0)));
    assert_eq!(signals.latency, Some(Duration::from_millis(50)));
    assert_eq!(signals.mean_run, Some(Duration::from_millis(50)));
    assert_eq!(signals.concurrency, Some(4.5));
}

#[test]
fn throttling_is_the_share_of_new_periods() {
    let mut store = MetricsStore::default();
    let throttling = |periods, throttled| Reading::Throttling {
        pod: pod("a"),
        container: C.into(),
        periods,
        throttled,
    };
    for (second, reading) in [(10, throttling(100.0, 90.0)), (20, throttling(200.0, 115.0))] {
        store.put(at(second), usage("a", second as f64, 64.0));
        store.put(at(second), vec![reading]);
    }
    assert_eq!(store.signals(&wanted(&["a"]), at(0)).unwrap().throttled_share, Some(0.25));
}

#[test]
fn what_is_no_number_was_not_measured() {
    let mut store = MetricsStore::default();
    for value in [f64::NAN, -1.0, f64::INFINITY] {
        store.put(at(10), vec![Reading::CpuCores(pod("a"), C.into(), value)]);
        store.put(at(10), vec![Reading::MemoryBytes(pod("a"), C.into(), 1.0)]);
        assert!(store.signals(&wanted(&["a"]), at(0)).is_none());
    }
}

#[test]
fn a_sample_that_a_page_repeats_is_no_second_of_idleness() {
    let mut store = MetricsStore::default();
    let sample = |seconds: f64, sampled: u64| {
        let sampled = Some(Timestamp::from_secs(sampled));
        let cpu = Reading::CpuSeconds { pod: pod("a"), container: C.into(), seconds, sampled };
        vec![cpu, Reading::MemoryBytes(pod("a"), C.into(), 1e6)]
    };
    // The node's clock is an hour behind ours and it samples every ten seconds: half a core throughout.
    store.put(Timestamp::from_secs(4000), sample(1.0, 400));
    store.put(Timestamp::from_secs(4010), sample(6.0, 410));
    for second in 4011..4020 {
        store.put(Timestamp::from_secs(second), sample(6.0, 410));
    }
    let signals = store.signals(&wanted(&["a"]), Timestamp::from_secs(4005)).unwrap();
    assert!((signals.cpu_cores - 0.5).abs() < 1e-9, "{}", signals.cpu_cores);
}
