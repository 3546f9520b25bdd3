//! Worked cases of the updater, one per rule and named after it. The recommendation is 150 millicores (bounds 90 to 200)
//! and 1000 bytes (bounds 900 to 1200); a pod requests 100 millicores and 1000 bytes.

use super::*;

const HOUR: i64 = 3600;

fn recommendation() -> Vec<ContainerRecommendation> {
    vec![ContainerRecommendation {
        container: "app".to_owned(),
        target: Resources::both(150, 1000),
        lower_bound: Resources::both(90, 900),
        upper_bound: Resources::both(200, 1200),
        uncapped_target: Resources::both(150, 1000),
    }]
}

fn pod(number: usize, cpu_millicores: i64) -> UpdaterPod {
    UpdaterPod {
        name: format!("p{number}"),
        started_at: Some(-13 * HOUR),
        containers: vec![UpdaterContainer {
            name: "app".to_owned(),
            request: Resources::both(cpu_millicores, 1000),
            ..UpdaterContainer::default()
        }],
        ..UpdaterPod::default()
    }
}

fn pass(vpa: &VpaSettings, pods: &[UpdaterPod]) -> UpdatePass {
    let updater = Updater {
        settings: UpdaterSettings::default(),
        vpa,
        recommendation: &recommendation(),
        configured_replicas: pods.len() as u32,
    };
    updater.pass(pods, 0)
}

fn verdict(vpa: &VpaSettings, pod: UpdaterPod) -> UpdateVerdict {
    pass(vpa, &[pod]).verdicts.remove(0)
}

#[test]
fn priority_is_the_sum_of_relative_differences() {
    let found = verdict(&VpaSettings::default(), pod(0, 100));
    assert_eq!((found.resource_diff, found.is_scale_up, found.is_outside), (0.5, true, false));
}

#[test]
fn an_old_pod_that_differs_is_accepted_and_a_young_one_is_not() {
    let vpa = VpaSettings::default();
    assert!(verdict(&vpa, pod(0, 100)).is_accepted);
    let aged = |hours: i64| UpdaterPod { started_at: Some(-hours * HOUR), ..pod(0, 100) };
    assert!(verdict(&vpa, aged(12)).is_accepted);
    assert!(!verdict(&vpa, aged(11)).is_accepted);
    assert!(!verdict(&vpa, UpdaterPod { started_at: None, ..pod(0, 100) }).is_accepted);
    // 140 against 150 is a difference of 7 %.
    assert!(!verdict(&vpa, pod(0, 140)).is_accepted);
}

#[test]
fn outside_the_bounds_is_accepted_at_any_age() {
    let young = UpdaterPod { started_at: Some(0), ..pod(0, 80) };
    let found = verdict(&VpaSettings::default(), young);
    assert!(found.is_outside && found.is_accepted);
}

#[test]
fn a_missing_request_means_outside_and_scale_up() {
    let mut pod = pod(0, 150);
    pod.containers[0].request.cpu_millicores = None;
    let found = verdict(&VpaSettings::default(), pod);
    assert!(found.is_outside && found.is_scale_up && found.is_admitted);
    assert_eq!(found.resource_diff, 149.0);
}

#[test]
fn quick_oom_counts_unless_nothing_would_change() {
    let killed = |cpu, begun, ended| {
        let mut pod = UpdaterPod { started_at: Some(0), ..pod(0, cpu) };
        pod.containers[0].last_end = Some((true, begun, ended));
        verdict(&VpaSettings::default(), pod).is_accepted
    };
    assert!(killed(100, -700, -200));
    assert!(!killed(100, -900, -200));
    assert!(!killed(100, -700, -600));
    assert!(!killed(150, -700, -200));
}

#[test]
fn containers_that_are_not_observed_do_not_count() {
    let pod = UpdaterPod { observed: Some(vec!["other".to_owned()]), ..pod(0, 80) };
    assert_eq!(verdict(&VpaSettings::default(), pod).resource_diff, 0.0);
}

#[test]
fn requests_only_cuts_to_the_limit() {
    let policy = ContainerPolicy {
        container: "app".to_owned(),
        is_requests_only: true,
        ..ContainerPolicy::default()
    };
    let vpa = VpaSettings { policies: vec![policy], ..VpaSettings::default() };
    let mut pod = pod(0, 100);
    pod.containers[0].limit.cpu_millicores = Some(110);
    assert_eq!(verdict(&vpa, pod).resource_diff, 0.1);
}

#[test]
fn eviction_tolerance_limits_the_number_of_evictions() {
    let pods: Vec<UpdaterPod> = (0..7).map(|number| pod(number, 100)).collect();
    assert_eq!(pass(&VpaSettings::default(), &pods).evicted, ["p0", "p1", "p2"]);
    let few = pass(&VpaSettings::default(), &pods[..1]);
    assert!(few.evicted.is_empty());
}

#[test]
fn pending_pods_may_always_be_evicted_and_use_no_budget() {
    let mut pods: Vec<UpdaterPod> = (0..4).map(|number| pod(number, 100)).collect();
    pods[3].is_pending = true;
    // Three of four run and more than two must: one may be evicted, and the pending one.
    assert_eq!(pass(&VpaSettings::default(), &pods).evicted, ["p0", "p3"]);
}

#[test]
fn pods_that_scale_up_go_first_then_the_larger_difference() {
    let pods = [pod(0, 300), pod(1, 100), pod(2, 50)];
    assert_eq!(pass(&VpaSettings::default(), &pods).order, ["p2", "p1", "p0"]);
}

#[test]
fn eviction_requirements_must_all_be_met() {
    let requirement = |must_rise| EvictionRequirement { resources: vec![Resource::Cpu], must_rise };
    let vpa = |requirements| VpaSettings {
        update: UpdatePolicy { eviction_requirements: requirements, ..UpdatePolicy::default() },
        ..VpaSettings::default()
    };
    assert!(verdict(&vpa(vec![requirement(true)]), pod(0, 100)).is_admitted);
    assert!(!verdict(&vpa(vec![requirement(false)]), pod(0, 100)).is_admitted);
    assert!(!verdict(&vpa(vec![requirement(true), requirement(false)]), pod(0, 100)).is_admitted);
}
