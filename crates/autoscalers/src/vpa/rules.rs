//! Worked cases of the recommender, one per rule and named after it.

use super::*;

const DAY: i64 = 86_400;
const MB: i64 = 1_000_000;
const OF: (&str, &str) = ("p", "app");

fn recommender(vpa: VpaSettings) -> Recommender {
    let mut recommender = Recommender::new(RecommenderSettings::default(), vpa);
    recommender.start_pod("p", "r", &["app".to_owned()], 0);
    recommender
}

fn only(recommender: &mut Recommender, now: i64) -> ContainerRecommendation {
    let merged = recommender.merged(now);
    recommender.recommend(&merged).remove(0)
}

/// The bucket that holds the memory peak, by its end.
fn peak_mb(recommender: &mut Recommender) -> i64 {
    recommender.merged(0)["app"].memory.percentile(1.0) as i64 / MB
}

#[test]
fn target_is_the_percentile_with_its_margin() {
    let mut recommender = recommender(VpaSettings::default());
    for minute in 0..100 {
        recommender.cpu(OF, 107, minute * 60, 0);
    }
    // 107 millicores are in the bucket that ends at 110.27: 110 + 16.
    assert_eq!(only(&mut recommender, 6000).target.cpu_millicores, Some(126));
}

#[test]
fn confidence_widens_the_bounds() {
    let mut recommender = recommender(VpaSettings::default());
    for minute in 0..=720 {
        recommender.cpu(OF, 107, minute * 60, 0);
    }
    // Half a day and 721 of 1440 samples: 0.5. Upper 126 · 3, lower 126 / 1.002² = 125.5.
    let bounds = only(&mut recommender, DAY / 2);
    assert_eq!(bounds.upper_bound.cpu_millicores, Some(378));
    assert_eq!(bounds.lower_bound.cpu_millicores, Some(125));
}

#[test]
fn without_history_the_upper_bound_is_unlimited() {
    let mut recommender = recommender(VpaSettings::default());
    recommender.cpu(OF, 107, 10, 0);
    let bounds = only(&mut recommender, 20);
    assert_eq!(bounds.upper_bound.cpu_millicores, Some(100_000_000_000_000));
    assert_eq!(bounds.lower_bound.cpu_millicores, Some(25));
}

#[test]
fn containers_share_the_pod_minimum() {
    let mut recommender = recommender(VpaSettings::default());
    recommender.start_pod("q", "r", &["side".to_owned(), "log".to_owned()], 0);
    let merged = recommender.merged(0);
    let targets: Vec<Resources> =
        recommender.recommend(&merged).into_iter().map(|it| it.target).collect();
    assert_eq!(targets, [Resources::both(8, 87_381_333); 3]);
}

#[test]
fn cpu_samples_must_be_newer_and_memory_samples_not_older() {
    let mut recommender = recommender(VpaSettings::default());
    assert!(recommender.cpu(OF, 1, 10, 0));
    assert!(!recommender.cpu(OF, 1, 10, 0));
    assert!(!recommender.cpu(OF, -1, 20, 0));
    assert!(!recommender.cpu(("q", "app"), 1, 20, 0));
    assert!(recommender.memory(OF, 1, 10, 0));
    assert!(recommender.memory(OF, 1, 10, 0));
    assert!(!recommender.memory(OF, 1, 9, 0));
}

#[test]
fn only_the_peak_of_a_window_counts_and_at_its_end() {
    let mut recommender = recommender(VpaSettings::default());
    recommender.memory(OF, 300 * MB, 100, 0);
    let one = recommender.merged(0)["app"].memory.total_weight();
    recommender.memory(OF, 200 * MB, 200, 0);
    recommender.memory(OF, 400 * MB, 300, 0);
    let merged = recommender.merged(0);
    assert!((merged["app"].memory.total_weight() - one).abs() < 1e-9);
    assert!((400..=420).contains(&peak_mb(&mut recommender)));
    let end = recommender.container_states().next().and_then(|(.., state)| state.window_end);
    assert_eq!(end, Some(100 + DAY));
}

#[test]
fn a_window_that_began_with_zero_stays_zero() {
    let mut recommender = recommender(VpaSettings::default());
    recommender.memory(OF, 0, 100, 0);
    recommender.memory(OF, 400 * MB, 200, 0);
    assert!(peak_mb(&mut recommender) <= 10);
}

#[test]
fn oom_bump_up_is_the_larger_of_ratio_and_minimum() {
    for (requested_mb, needed_mb) in [(400, 504), (1000, 1200)] {
        let mut recommender = recommender(VpaSettings::default());
        recommender.memory(OF, 300 * MB, 100, 0);
        assert!(recommender.oom(OF, requested_mb * MB, 200, 0));
        let peak = recommender.container_states().next().map(|(.., state)| state.peak() / MB);
        assert_eq!(peak, Some(needed_mb));
    }
}

#[test]
fn an_oom_older_than_an_interval_is_rejected() {
    let mut recommender = recommender(VpaSettings::default());
    recommender.memory(OF, 300 * MB, 2 * DAY, 0);
    assert!(!recommender.oom(OF, 300 * MB, DAY - 1, 0));
    assert!(recommender.oom(OF, 300 * MB, DAY, 0));
    // It has moved the last memory time back.
    assert!(recommender.memory(OF, 300 * MB, DAY, 0));
}

#[test]
fn policies_cap_and_the_named_one_wins() {
    let policy = |container: &str, min, max| ContainerPolicy {
        container: container.to_owned(),
        min_allowed: Resources { cpu_millicores: min, ..Resources::default() },
        max_allowed: Resources { cpu_millicores: max, ..Resources::default() },
        ..ContainerPolicy::default()
    };
    let vpa = |policies| VpaSettings { policies, ..VpaSettings::default() };
    let policies = vec![policy("*", Some(500), None), policy("app", None, Some(20))];
    let capped = only(&mut recommender(vpa(policies)), 0);
    assert_eq!(capped.target.cpu_millicores, Some(20));
    assert_eq!(capped.uncapped_target.cpu_millicores, Some(25));
    let policies = vec![policy("*", Some(500), None)];
    assert_eq!(only(&mut recommender(vpa(policies)), 0).target.cpu_millicores, Some(500));
}

#[test]
fn off_containers_are_dropped_and_uncontrolled_resources_left_out() {
    let policy = ContainerPolicy {
        container: "app".to_owned(),
        controlled: Some(vec![Resource::Memory]),
        ..ContainerPolicy::default()
    };
    let vpa = VpaSettings { policies: vec![policy.clone()], ..VpaSettings::default() };
    assert_eq!(only(&mut recommender(vpa), 0).target.cpu_millicores, None);
    let off = ContainerPolicy { is_off: true, ..policy };
    let mut recommender =
        recommender(VpaSettings { policies: vec![off], ..VpaSettings::default() });
    let merged = recommender.merged(0);
    assert!(recommender.recommend(&merged).is_empty());
}

#[test]
fn cpu_is_rounded_to_whole_cores_if_configured() {
    let vpa =
        VpaSettings { integer_cpu_containers: vec!["app".to_owned()], ..VpaSettings::default() };
    let recommended = only(&mut recommender(vpa), 0);
    assert_eq!(recommended.target.cpu_millicores, Some(1000));
    assert_eq!(recommended.uncapped_target.cpu_millicores, Some(1000));
}

#[test]
fn a_checkpoint_leaves_out_the_open_window() {
    let mut recommender = recommender(VpaSettings::default());
    recommender.cpu(OF, 107, 10, 0);
    recommender.memory(OF, 300 * MB, 100, 0);
    let saved = recommender.save(200);
    assert!(saved["app"].memory.bucket_weights.is_empty());
    assert_eq!(saved["app"].cpu.bucket_weights.values().sum::<u32>(), 10_000);
    let closed = recommender.save(100 + DAY);
    assert_eq!(closed["app"].memory.bucket_weights.len(), 1);
    let settings = RecommenderSettings::default();
    let mut back = Recommender::restored(settings, VpaSettings::default(), &closed, 100 + DAY);
    assert_eq!(only(&mut back, 100 + DAY).target, only(&mut recommender, 100 + DAY).target);
}

#[test]
fn aggregates_without_samples_are_collected() {
    let mut recommender = recommender(VpaSettings::default());
    recommender.stop_pod("p");
    recommender.collect_garbage(100);
    assert!(recommender.merged(100).is_empty());
    recommender.start_pod("p", "r", &["app".to_owned()], 200);
    recommender.cpu(OF, 100, 300, 200);
    recommender.stop_pod("p");
    // Not before an hour has passed, and not before eight days without a sample.
    recommender.collect_garbage(4000);
    assert_eq!(recommender.merged(4000).len(), 1);
    recommender.collect_garbage(300 + 8 * DAY - 1);
    assert_eq!(recommender.merged(0).len(), 1);
    recommender.collect_garbage(300 + 8 * DAY + 3600);
    assert!(recommender.merged(0).is_empty());
}
