//! Every recorded decision of the real autoscalers must come out the same.

use std::fs::File;

use windfall_autoscalers::stories::{Report, StoryError, replay_hpa, replay_kpa, replay_vpa, replay_vpa_updater};

fn own(path: &str) -> File {
    let path = format!("{}/tests/stories/{path}", env!("CARGO_MANIFEST_DIR"));
    File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn check(report: Result<Report, StoryError>, stories: u64, decisions: u64) {
    let report = report.unwrap_or_else(|error| panic!("{error}"));
    assert!(report.is_equal(), "{report}");
    assert_eq!((report.stories, report.decisions), (stories, decisions));
}

#[test]
fn knative_decides_the_same() {
    check(replay_kpa(own("knative-kpa/stories.jsonl.gz")), 80, 8867);
}

#[test]
fn the_horizontal_pod_autoscaler_decides_the_same() {
    check(replay_hpa(own("kubernetes-hpa/stories.jsonl.gz")), 60, 2934);
}

#[test]
fn the_vertical_pod_autoscaler_recommends_the_same() {
    check(replay_vpa(own("kubernetes-vpa/stories.jsonl.gz")), 40, 20_083);
}

#[test]
fn the_updater_evicts_the_same() {
    check(replay_vpa_updater(own("kubernetes-vpa/updater.jsonl.gz")), 60, 323 + 2 * 60);
}
