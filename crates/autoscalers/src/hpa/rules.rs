//! Worked cases, one per rule and named after it. Pods request 100 millicores, so usage in millicores equals percent.

use super::*;

fn cpu_at(percent: i32) -> Vec<MetricSpec> {
    let source = Source::Resource(Resource::Cpu);
    vec![MetricSpec { source, target: MetricTarget::Utilization(percent) }]
}

fn spec(metrics: Vec<MetricSpec>) -> Spec {
    Spec { min_replicas: 1, max_replicas: 100, metrics, behavior: None }
}

fn controller(spec: Spec) -> Controller {
    Controller::new(ControllerSettings::default(), spec)
}

/// A pod that has been ready for an hour and used `cpu_m` just now.
fn pod(number: usize, cpu_m: Option<i64>) -> Pod {
    let usage = cpu_m.map(|cpu_m| Usage {
        at_ms: 0,
        window_ms: 30_000,
        containers: vec![ContainerUsage { name: "app".into(), cpu_m: Some(cpu_m), memory_m: None }],
    });
    Pod {
        name: format!("p{number}"),
        ready: Some((Ready::True, -3_600_000)),
        started_at_ms: Some(-3_600_000),
        containers: vec![Container {
            name: "app".into(),
            cpu_request_m: Some(100),
            memory_request_m: None,
        }],
        measured: Measured { usage, ..Measured::default() },
        ..Pod::default()
    }
}

fn seen(second: i64, usages: &[Option<i64>]) -> Seen {
    let count = usages.len() as i32;
    Seen {
        now_ms: second * 1000,
        replicas: count,
        status_replicas: count,
        pods: usages.iter().enumerate().map(|(number, usage)| pod(number, *usage)).collect(),
        ..Seen::default()
    }
}

fn desired(usages: &[Option<i64>]) -> i32 {
    controller(spec(cpu_at(50))).sync(&seen(0, usages)).desired
}

fn external(value_m: Option<i64>, seen: Seen) -> Seen {
    Seen { external: [("queue".to_owned(), value_m.map(|value| vec![value]))].into(), ..seen }
}

#[test]
fn ratio_times_ready_pods() {
    assert_eq!(desired(&[Some(90), Some(90), Some(90)]), 6);
    // (90 + 91) / 2 is truncated to 90 %, so the ratio is 1.8 here too.
    assert_eq!(desired(&[Some(90), Some(91)]), 4);
}

#[test]
fn tolerance_includes_both_ends() {
    assert_eq!(desired(&[Some(55), Some(55)]), 2);
    assert_eq!(desired(&[Some(56), Some(56)]), 3);
    let mut down = controller(spec(cpu_at(50)));
    assert_eq!(down.sync(&seen(0, &[Some(45); 10])).normalised.unwrap().metrics_desired, 10);
    assert_eq!(down.sync(&seen(15, &[Some(44); 10])).normalised.unwrap().metrics_desired, 9);
}

#[test]
fn own_tolerance_per_direction() {
    let written = |tolerance| Some(WrittenRules { tolerance, ..WrittenRules::default() });
    let behavior = Some(Behavior::defaulted(written(Some(0.5)), written(Some(0.0))));
    let mut controller = controller(Spec { behavior, ..spec(cpu_at(50)) });
    assert_eq!(controller.sync(&seen(0, &[Some(75); 4])).desired, 4);
    assert_eq!(controller.sync(&seen(15, &[Some(49); 4])).normalised.unwrap().metrics_desired, 4);
    assert_eq!(controller.sync(&seen(30, &[Some(37); 4])).normalised.unwrap().metrics_desired, 3);
}

#[test]
fn missing_pods_count_as_idle_when_scaling_up() {
    // 90 % over two pods; over three, with one idle, 60 %: ceil(1.2 · 3) = 4.
    assert_eq!(desired(&[Some(90), Some(90), None]), 4);
}

#[test]
fn missing_pods_count_as_busy_when_scaling_down() {
    // 10 % over nine; with 100 % assumed for the tenth 19 %: ceil(0.38 · 10) = 4.
    let mut usages = vec![Some(10); 9];
    usages.push(None);
    let synced = controller(spec(cpu_at(50))).sync(&seen(0, &usages));
    assert_eq!(synced.normalised.unwrap().metrics_desired, 4);
}

#[test]
fn a_correction_that_changes_sides_keeps_the_count() {
    // 30 % over one pod; with two at 100 % it would be 76 %, above the target.
    assert_eq!(desired(&[Some(30), None, None]), 3);
    // 90 % over one pod; with three idle ones 22 %, below the target.
    assert_eq!(desired(&[Some(90), None, None, None]), 4);
}

#[test]
fn unready_pods_count_as_idle_when_scaling_up_only() {
    let mut up = seen(0, &[Some(90), Some(90), Some(5)]);
    up.pods[2].phase = Phase::Pending;
    assert_eq!(controller(spec(cpu_at(50))).sync(&up).desired, 4);
    let mut down = seen(0, &[Some(20), Some(20), Some(5)]);
    down.pods[2].phase = Phase::Pending;
    // ceil(0.4 · 2 ready pods) = 1.
    let synced = controller(spec(cpu_at(50))).sync(&down);
    assert_eq!(synced.normalised.unwrap().metrics_desired, 1);
}

#[test]
fn cpu_initialization_needs_a_sample_from_after_readiness() {
    let young = |sampled_at_s: i64| {
        let mut seen = seen(80, &[Some(90), Some(90)]);
        let pod = &mut seen.pods[1];
        pod.started_at_ms = Some(0);
        pod.ready = Some((Ready::True, 40_000));
        pod.measured.usage.as_mut().unwrap().at_ms = sampled_at_s * 1000;
        let synced = controller(spec(cpu_at(50))).sync(&seen);
        synced.metrics.unwrap()[0].pod_groups.unwrap()
    };
    assert_eq!(young(69), GroupCounts { ready: 1, unready: 1, ..GroupCounts::default() });
    assert_eq!(young(70), GroupCounts { ready: 2, ..GroupCounts::default() });
}

#[test]
fn initial_readiness_delay_separates_never_ready_pods_from_failing_ones() {
    let groups = |changed_at_s: i64, ready| {
        let mut seen = seen(1000, &[Some(90), Some(90)]);
        seen.pods[1].started_at_ms = Some(0);
        seen.pods[1].ready = Some((ready, changed_at_s * 1000));
        let synced = controller(spec(cpu_at(50))).sync(&seen);
        synced.metrics.unwrap()[0].pod_groups.unwrap().unready
    };
    assert_eq!(groups(29, Ready::False), 1);
    assert_eq!(groups(30, Ready::False), 0);
    assert_eq!(groups(29, Ready::Unknown), 0);
}

#[test]
fn ignored_pods_give_no_sample_but_need_a_request() {
    let mut terminating = seen(0, &[Some(90), Some(10)]);
    terminating.pods[1].is_deleted = true;
    // Only the first counts: ceil(1.8 · 1) = 2.
    assert_eq!(controller(spec(cpu_at(50))).sync(&terminating).desired, 2);
    terminating.pods[1].containers[0].cpu_request_m = None;
    assert!(controller(spec(cpu_at(50))).sync(&terminating).is_failed);
}

#[test]
fn orphan_samples_count_towards_an_average_only() {
    let average =
        MetricSpec { source: Source::Resource(Resource::Cpu), target: MetricTarget::Average(50) };
    let mut seen = seen(0, &[Some(40), Some(40)]);
    let gone = pod(9, Some(160)).measured;
    seen.orphans.push(("p9".into(), gone));
    // (40 + 40 + 160) / 3 = 80, and ceil(1.6 · 2 ready) = 4.
    assert_eq!(controller(spec(vec![average])).sync(&seen).desired, 4);
    // For a utilization target the orphan has no request and is left out: 40 % of 50 %.
    let synced = controller(spec(cpu_at(50))).sync(&seen);
    assert_eq!(synced.normalised.unwrap().metrics_desired, 2);
}

#[test]
fn the_largest_proposal_wins_and_names_the_reason() {
    let mut metrics = cpu_at(50);
    let target = MetricTarget::Average(1000);
    metrics.push(MetricSpec { source: Source::External("queue".into()), target });
    let seen = external(Some(5000), seen(0, &[Some(50), Some(50)]));
    let synced = controller(spec(metrics)).sync(&seen);
    assert_eq!(synced.desired, 4);
    assert_eq!(synced.normalised.unwrap().metrics_desired, 5);
    assert_eq!(synced.normalised.unwrap().scaling_limited, "ScaleUpLimit");
    assert_eq!(synced.reason.as_deref(), Some("external metric queue(nil) above target"));
}

#[test]
fn an_unreadable_metric_blocks_scale_down_only() {
    let mut metrics = cpu_at(50);
    let target = MetricTarget::Average(1000);
    metrics.push(MetricSpec { source: Source::External("queue".into()), target });
    let down = external(None, seen(0, &[Some(10); 4]));
    let synced = controller(spec(metrics.clone())).sync(&down);
    assert!(synced.is_failed);
    assert_eq!((synced.desired, synced.scaling_active), (4, Some("FailedGetExternalMetric")));
    let up = external(None, seen(0, &[Some(90); 4]));
    assert_eq!(controller(spec(metrics)).sync(&up).desired, 8);
}

#[test]
fn legacy_window_holds_the_highest_recommendation_for_exactly_its_length() {
    let mut controller = controller(spec(cpu_at(50)));
    assert_eq!(controller.sync(&seen(0, &[Some(50); 6])).desired, 6);
    assert_eq!(controller.sync(&seen(299, &[Some(10); 6])).desired, 6);
    assert_eq!(controller.sync(&seen(300, &[Some(10); 6])).desired, 6);
    assert_eq!(controller.sync(&seen(301, &[Some(10); 6])).desired, 2);
}

#[test]
fn legacy_limit_is_double_or_four() {
    assert_eq!(desired(&[Some(1000)]), 4);
    assert_eq!(desired(&[Some(1000), Some(1000), Some(1000)]), 6);
}

#[test]
fn bounds_gate_skips_everything_else() {
    let mut controller = controller(Spec { max_replicas: 3, ..spec(cpu_at(50)) });
    let synced = controller.sync(&seen(0, &[Some(90); 5]));
    assert_eq!((synced.desired, synced.metrics), (3, None));
    let reason = "Current number of replicas above Spec.MaxReplicas";
    assert_eq!(synced.reason.as_deref(), Some(reason));
}

#[test]
fn zero_replicas_disable_scaling() {
    let synced = controller(spec(cpu_at(50))).sync(&seen(0, &[]));
    assert_eq!((synced.desired, synced.scaling_active), (0, Some("ScalingDisabled")));
}

fn with_behavior(up: WrittenRules, down: WrittenRules) -> Controller {
    let behavior = Some(Behavior::defaulted(Some(up), Some(down)));
    controller(Spec { behavior, ..spec(cpu_at(50)) })
}

#[test]
fn behavior_windows_exclude_their_end() {
    let window = |seconds| WrittenRules {
        stabilization_window_seconds: Some(seconds),
        ..WrittenRules::default()
    };
    let mut controller = with_behavior(window(0), window(60));
    assert_eq!(controller.sync(&seen(0, &[Some(50); 6])).desired, 6);
    assert_eq!(controller.sync(&seen(59, &[Some(10); 6])).desired, 6);
    // A recommendation of exactly that age no longer counts, unlike without behavior.
    assert_eq!(controller.sync(&seen(60, &[Some(10); 6])).desired, 2);
}

#[test]
fn scale_up_window_takes_the_lowest_recommendation() {
    let up = WrittenRules { stabilization_window_seconds: Some(60), ..WrittenRules::default() };
    let mut controller = with_behavior(up, WrittenRules::default());
    assert_eq!(controller.sync(&seen(0, &[Some(50); 4])).desired, 4);
    let held = controller.sync(&seen(30, &[Some(90); 4]));
    assert_eq!((held.desired, held.able_to_scale), (4, "ScaleUpStabilized"));
    assert_eq!(controller.sync(&seen(60, &[Some(90); 4])).desired, 8);
}

fn policy(change: Change, period_seconds: u32) -> RatePolicy {
    RatePolicy { change, period_seconds }
}

#[test]
fn rate_policies_count_from_the_start_of_their_period() {
    let up = WrittenRules {
        policies: Some(vec![policy(Change::Pods(2), 60)]),
        ..WrittenRules::default()
    };
    let mut controller = with_behavior(up, WrittenRules::default());
    assert_eq!(controller.sync(&seen(0, &[Some(90); 4])).desired, 6);
    let limited = controller.sync(&seen(15, &[Some(90); 6]));
    assert_eq!((limited.desired, limited.normalised.unwrap().rate_limit), (6, Some(6)));
    // At 60 s the change of second 0 is exactly a period old and no longer counts.
    assert_eq!(controller.sync(&seen(60, &[Some(90); 6])).desired, 8);
}

#[test]
fn max_min_and_disabled_select_among_policies() {
    let up = |select| WrittenRules {
        select_policy: Some(select),
        policies: Some(vec![policy(Change::Pods(1), 60), policy(Change::Percent(50), 60)]),
        ..WrittenRules::default()
    };
    for (select, wanted) in
        [(SelectPolicy::Max, 6), (SelectPolicy::Min, 5), (SelectPolicy::Disabled, 4)]
    {
        let mut controller = with_behavior(up(select), WrittenRules::default());
        assert_eq!(controller.sync(&seen(0, &[Some(90); 4])).desired, wanted, "{select:?}");
    }
}

#[test]
fn percent_down_is_truncated_and_up_is_rounded_up() {
    let rules = || WrittenRules {
        stabilization_window_seconds: Some(0),
        policies: Some(vec![policy(Change::Percent(10), 60)]),
        ..WrittenRules::default()
    };
    // 5 · 1.1 = 5.5 -> 6 and 5 · 0.9 = 4.5 -> 4.
    assert_eq!(with_behavior(rules(), rules()).sync(&seen(0, &[Some(90); 5])).desired, 6);
    let mut down = with_behavior(rules(), rules());
    down.sync(&seen(0, &[Some(50); 5]));
    assert_eq!(down.sync(&seen(15, &[Some(10); 5])).desired, 4);
}

#[test]
fn value_target_counts_terminating_pods_and_average_target_keeps_the_status_count() {
    let value = MetricTarget::Value(1000);
    let metric = |target| vec![MetricSpec { source: Source::External("queue".into()), target }];
    let mut seen = external(Some(2000), seen(0, &[None, None]));
    seen.pods[1].is_deleted = true;
    assert_eq!(controller(spec(metric(value))).sync(&seen).desired, 4);
    seen.status_replicas = 3;
    // 2000 / (667 · 3) is within tolerance: the status count is proposed.
    let average = MetricTarget::Average(667);
    let synced = controller(spec(metric(average))).sync(&seen);
    assert_eq!(synced.normalised.unwrap().metrics_desired, 3);
}

#[test]
fn scale_to_zero_and_back() {
    let target = MetricTarget::Average(1000);
    let metrics = vec![MetricSpec { source: Source::External("queue".into()), target }];
    let settings = ControllerSettings {
        scale_to_zero_enabled: true,
        downscale_stabilization_ms: 0,
        ..ControllerSettings::default()
    };
    let mut controller = Controller::new(settings, Spec { min_replicas: 0, ..spec(metrics) });
    let at =
        |second, value, replicas: &[Option<i64>]| external(Some(value), seen(second, replicas));
    assert_eq!(controller.sync(&at(0, 1000, &[None])).desired, 1);
    assert_eq!(controller.sync(&at(15, 0, &[None])).desired, 0);
    assert_eq!(controller.sync(&at(30, 0, &[])).desired, 0);
    assert_eq!(controller.sync(&at(45, 3000, &[])).desired, 3);
    // Set to zero by another actor: disabled.
    assert_eq!(controller.sync(&at(60, 3000, &[])).scaling_active, Some("ScalingDisabled"));
}
