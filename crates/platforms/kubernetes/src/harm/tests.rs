use super::*;
use crate::cluster::samples;
use crate::cluster::{Cluster, PodFacts, Termination};
use crate::resource_policy::LatencyGoal;

const SECOND: u64 = 1_000_000;

fn at(second: u64) -> Timestamp {
    Timestamp::from_secs(SECOND + second)
}

/// Looks once before the change and once after it, with `harm` done to the first pod in between.
fn seen(harm: impl Fn(&mut PodFacts), signals: Option<&Signals>) -> Option<String> {
    seen_after(Change::Less, harm, signals)
}

fn seen_after(
    change: Change,
    harm: impl Fn(&mut PodFacts),
    signals: Option<&Signals>,
) -> Option<String> {
    let mut cluster = samples::deployment("n", "hello", 2);
    let goals = Goals::default();
    let mut watchman = Watchman::default();
    let mut look = |cluster: &Cluster, change, now| {
        let target = cluster.target("n", &samples::reference("hello")).unwrap();
        watchman.look(&target, signals, &goals, change, now)
    };
    assert_eq!(look(&cluster, Change::Nothing, at(0)), None);
    assert_eq!(look(&cluster, change, at(1)).filter(|_| signals.is_none()), None);
    samples::change_pod(&mut cluster, "n", "hello", 0, harm);
    look(&cluster, change, at(2));
    look(&cluster, change, at(40))
}

#[test]
fn a_memory_kill_after_the_change_is_harm_and_one_before_is_not() {
    let killed = |at: i64| {
        move |pod: &mut PodFacts| {
            let ended = Termination { reason: "OOMKilled".into(), at };
            pod.containers[0].terminated = Some(ended);
        }
    };
    assert!(seen(killed(SECOND as i64 + 5), None).unwrap().contains("killed for its memory"));
    assert_eq!(seen(killed(SECOND as i64 - 5), None), None);
    let of_its_own = seen_after(Change::NoLess, killed(SECOND as i64 + 5), None);
    assert_eq!(of_its_own, None, "the user's own limit is too low");
}

#[test]
fn two_restarts_are_harm_and_one_is_not() {
    assert_eq!(seen(|pod| pod.containers[0].restarts = 1, None), None);
    assert!(
        seen(|pod| pod.containers[0].restarts = 2, None).unwrap().contains("restarted 2 times")
    );
}

#[test]
fn a_pod_that_is_no_longer_ready_is_harm_after_half_a_minute() {
    assert!(seen(|pod| pod.is_ready = false, None).unwrap().contains("has not been ready"));
}

#[test]
fn throttling_above_half_is_harm_where_less_cpu_was_left() {
    let signals = |share| Signals { throttled_share: Some(share), ..Signals::default() };
    assert_eq!(seen(|_| (), Some(&signals(0.5))), None);
    assert!(seen(|_| (), Some(&signals(0.6))).unwrap().contains("60 %"));
    let of_its_own = seen_after(Change::NoLess, |_| (), Some(&signals(0.6)));
    assert_eq!(of_its_own, None, "the user's own limit is too low");
}

#[test]
fn a_goal_that_was_met_before_is_missed_after_four_passes() {
    let cluster = samples::deployment("n", "hello", 2);
    let target = cluster.target("n", &samples::reference("hello")).unwrap();
    let latency = LatencyGoal { percentile: 95, milliseconds: 100, query: None };
    let goals = Goals { latency: Some(latency), ..Goals::default() };
    let signals =
        |millis| Signals { latency: Some(Duration::from_millis(millis)), ..Signals::default() };
    let passes = |before: u64| {
        let mut watchman = Watchman::default();
        watchman.look(&target, Some(&signals(before)), &goals, Change::Nothing, at(0));
        (1..=4)
            .map(|pass| {
                watchman.look(&target, Some(&signals(150)), &goals, Change::NoLess, at(pass))
            })
            .collect::<Vec<_>>()
    };
    let met_before = passes(50);
    assert!(met_before[2].is_none() && met_before[3].as_ref().unwrap().contains("p95 is 150 ms"));
    assert!(passes(150).iter().all(Option::is_none), "it was missed before the change too");
}

#[test]
fn cooldowns_double_up_to_sixteen_times_and_are_forgotten_after_peace() {
    let cooldown = Duration::from_mins(10);
    let minutes = |entry: &Reverted| {
        let until = from_rfc3339(&entry.until).unwrap();
        until.since(from_rfc3339(&entry.time).unwrap()).as_secs_f64() / 60.0
    };
    let mut last: Option<Reverted> = None;
    let mut found = Vec::new();
    let mut now = at(0);
    for _ in 0..6 {
        let next = reverted(last.as_ref(), "x".into(), cooldown, now);
        found.push(minutes(&next));
        now = from_rfc3339(&next.until).unwrap();
        last = Some(next);
    }
    assert_eq!(found, [10.0, 20.0, 40.0, 80.0, 160.0, 160.0]);
    assert!(cools_down(last.as_ref(), now).is_none());
    let much_later = Timestamp::from_nanos(now.as_nanos() + Duration::from_mins(161).as_nanos());
    assert_eq!(reverted(last.as_ref(), "y".into(), cooldown, much_later).times, 1);
}
