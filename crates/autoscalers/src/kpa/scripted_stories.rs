//! Scripted scenarios with worked numbers: load and ready pods per second, and the expected count at each second.
//! Target 10 per pod, stable window 20 s, panic window 2 s, threshold 200 %.

use super::*;

fn settings() -> DeciderSettings {
    DeciderSettings {
        max_scale_up_rate: 1000.0,
        max_scale_down_rate: 2.0,
        target_value: 10.0,
        total_value: 10.0,
        target_burst_capacity: 0.0,
        panic_threshold: 2.0,
        stable_window_seconds: 20,
        scale_down_delay_seconds: 0,
        activation_scale: 0,
        reachable: true,
    }
}

const WINDOWS: WindowSettings = WindowSettings {
    stable_seconds: 20,
    panic_seconds: 2,
    aggregation: Aggregation::Linear,
    is_scraped: true,
};

/// Plays seconds 0 to `until`. `ready` returns the ready pods, given the last decision. `expected` holds pairs of (first
/// second, count from there on); `None` means no decision.
struct Script<'a> {
    until: u64,
    load: &'a dyn Fn(u64) -> Option<f64>,
    ready: &'a dyn Fn(u64, Option<i32>) -> u32,
    expected: &'a [(u64, Option<i32>)],
}

impl Script<'_> {
    fn play(&self) {
        let mut decided = None;
        let mut autoscaler = Autoscaler::new(WINDOWS, settings(), 0, (self.ready)(0, None));
        for second in 0..=self.until {
            if let Some(load) = (self.load)(second) {
                autoscaler.record(second, load);
            }
            let ready = (self.ready)(second, decided);
            if second % u64::from(TICK_SECONDS) == 0 {
                decided = autoscaler.scale(second, ready).map(|scale| scale.desired);
            }
            let wanted = self.expected.iter().rev().find(|(from, _)| *from <= second);
            assert_eq!(Some(decided), wanted.map(|(_, count)| *count), "second {second}");
        }
    }
}

#[test]
fn a_burst_leads_into_panic_and_is_held() {
    // At 10 the panic window holds 5 and 100: ceil(52.5 / 10) = 6. At 12 it is full: 10. At 16 ten pods
    // are ready and 10 / 10 < 2, so the last renewal is at 14 and panic ends after 34. The burst is over
    // at 18, but until then the count does not drop: at 36 the stable window (17 to 36) holds 100 once and 5 nineteen
    // times: 195 / 20 -> 1, not below floor(10 / 2) = 5.
    Script {
        until: 37,
        load: &|second| Some(if (10..18).contains(&second) { 100.0 } else { 5.0 }),
        ready: &|second, _| if second < 16 { 1 } else { 10 },
        expected: &[(0, Some(1)), (10, Some(6)), (12, Some(10)), (36, Some(5))],
    }
    .play();
}

#[test]
fn a_constant_load_keeps_the_count() {
    Script { until: 120, load: &|_| Some(50.0), ready: &|_, _| 5, expected: &[(0, Some(5))] }
        .play();
}

#[test]
fn a_drained_revision_scales_to_zero() {
    // Four pods at the start mean panic until 20. From 22 on the stable mean falls by 4 per decision:
    // 34, 30, 26, 22, 18, 14, 10, 6, 2, 0.
    Script {
        until: 50,
        load: &|second| Some(if second < 20 { 40.0 } else { 0.0 }),
        ready: &|_, decided| decided.map_or(4, |count| count as u32),
        expected: &[(0, Some(4)), (24, Some(3)), (30, Some(2)), (34, Some(1)), (40, Some(0))],
    }
    .play();
}

#[test]
fn an_open_gap_keeps_the_count_and_a_window_without_samples_decides_nothing() {
    // Last sample at 9. Until 28 the mean is taken over the remaining samples; at 30 more than 20 s have passed. The
    // sample at 40 starts a new window.
    Script {
        until: 44,
        load: &|second| (!(10..40).contains(&second)).then_some(30.0),
        ready: &|second, _| if second == 0 { 1 } else { 3 },
        expected: &[(0, Some(3)), (30, None), (40, Some(3))],
    }
    .play();
}

#[test]
fn a_restart_begins_in_panic_and_keeps_the_running_pods() {
    // Six pods run; samples arrive from 5 on and need one pod. Panic holds six until 20; then half may be removed per
    // decision.
    Script {
        until: 40,
        load: &|second| (second >= 5).then_some(10.0),
        ready: &|second, decided| match decided {
            Some(count) if second > 6 => count as u32,
            _ => 6,
        },
        expected: &[(0, None), (6, Some(6)), (22, Some(3)), (24, Some(1))],
    }
    .play();
}

#[test]
fn the_last_pod_of_a_drained_revision_is_removed_after_window_and_grace() {
    // Load until 9. The stable window of 20 s holds some of it until 28; at 30 the desired count is 0. The revision was
    // active for 30 s, so it becomes inactive immediately, and 30 s of grace later, at 60, the pod is removed. A request
    // at 70 scales up immediately.
    let cluster = ClusterSettings {
        stable_window_seconds: 20,
        container_concurrency_target_fraction: 1.0,
        container_concurrency_target_default: 10.0,
        target_burst_capacity: 0.0,
        ..ClusterSettings::default()
    };
    let revision = RevisionSettings::default();
    let (windows, decider) = (cluster.windows(&revision), cluster.decider(&revision));
    let mut autoscaler = Autoscaler::new(windows, decider, 0, 1);
    let mut reconciler = Reconciler::running(cluster, revision, 0);
    let mut replicas = 1;
    for second in 0..=74 {
        let load = if (10..70).contains(&second) { 0.0 } else { 5.0 };
        autoscaler.record(second, load);
        if second.is_multiple_of(u64::from(TICK_SECONDS)) {
            let scale = autoscaler.scale(second, replicas as u32);
            let outcome = reconciler.reconcile(Seen {
                now_ms: second * 1000,
                desired: scale.map(|scale| scale.desired),
                excess_burst_capacity: scale.map_or(0, |scale| scale.excess_burst_capacity),
                ready: replicas,
                activator_answers: true,
            });
            replicas = outcome.apply.unwrap_or(replicas);
        }
        let expected = i32::from(!(60..70).contains(&second));
        assert_eq!(replicas, expected, "second {second}");
    }
}
