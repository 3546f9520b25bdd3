//! Every recorded decision of the real autoscalers must be reproduced exactly.

use std::fs::File;
use std::path::{Path, PathBuf};

use windfall_autoscalers::stories::{
    Report, StoryError, replay_hpa, replay_kpa, replay_vpa, replay_vpa_updater,
};
use windfall_autoscalers::vpa::BucketLayout;

type Replay = fn(File) -> Result<Report, StoryError>;

/// Folder here, folder in the shared data, file, and replay function.
const SETS: [(&str, &str, &str, Replay); 4] = [
    ("knative-kpa", "knative-kpa-stories", "stories.jsonl.gz", replay_kpa),
    ("kubernetes-hpa", "kubernetes-hpa-stories", "stories.jsonl.gz", replay_hpa),
    ("kubernetes-vpa", "kubernetes-vpa-stories", "stories.jsonl.gz", replay_vpa),
    ("kubernetes-vpa", "kubernetes-vpa-stories", "updater.jsonl.gz", replay_vpa_updater),
];

/// Number of stories and decisions of each set.
const SIZES: [(u64, u64); 4] = [(80, 8867), (60, 2934), (40, 20_083), (60, 443)];

fn own_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories")
}

/// Replays one file; every decision must be equal.
fn replay_file(path: &Path, replay: Replay) -> Report {
    let name = path.display().to_string();
    let file = File::open(path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let report = replay(file).unwrap_or_else(|error| panic!("{}", error.in_file(&name)));
    assert!(report.is_equal(), "{name}: {report}");
    report
}

#[test]
fn every_decision_of_every_story_is_equal() {
    for ((folder, _, file, replay), size) in SETS.into_iter().zip(SIZES) {
        let report = replay_file(&own_folder().join(folder).join(file), replay);
        assert_eq!((report.stories, report.decisions), size, "{folder}/{file}");
    }
}

/// The same for the full sets, which may hold more than the copies here.
#[test]
fn every_decision_of_the_full_sets_is_equal() {
    #[expect(
        clippy::disallowed_methods,
        reason = "the location of the data sets can be overridden"
    )]
    let configured = std::env::var("WINDFALL_DATA").ok();
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let root = configured.map_or_else(usual, PathBuf::from);
    for (_, folder, file, replay) in SETS {
        let path = root.join(folder).join(file);
        if path.exists() {
            replay_file(&path, replay);
        }
    }
}

#[test]
fn a_wrong_decision_is_found_and_reported() {
    let story = r#"{"id":"s","config":{"target":10,"total":10,"stable_window_s":6,"panic_window_s":1,
        "panic_threshold":2,"max_scale_up_rate":10,"max_scale_down_rate":2,"target_burst_capacity":0,
        "activation_scale":0,"scale_down_delay_s":0,"reachable":true,"aggregation":"linear",
        "initial_ready":1},"seconds":[{"t":0,"load":5,"ready":1}],"decisions":[{"t":0,"valid":true,
        "desired":7,"excess_burst":0,"stable":5,"panic":5}]}"#;
    let report = replay_kpa(story.replace('\n', " ").as_bytes()).unwrap();
    assert_eq!((report.stories, report.decisions, report.equal), (1, 1, 0));
    let difference = report.first_difference.unwrap();
    assert_eq!((difference.story.as_str(), difference.time.as_str()), ("s", "0"));
    assert!(difference.ours.contains("desired: 1"), "{}", difference.ours);
}

#[test]
fn an_unreadable_story_is_named_by_file_and_line() {
    let error = replay_hpa(&b"\n{\"id\": 3}\n"[..]).unwrap_err().in_file("stories.jsonl");
    let message = error.to_string();
    assert!(
        message.starts_with("stories.jsonl: line 2: is not a story of this kind:"),
        "{message}"
    );
    // Truncated gzip: only the header is there.
    let error = replay_vpa(&[0x1f, 0x8b, 8, 0][..]).unwrap_err().to_string();
    assert!(error.starts_with("line 1: cannot be read:"), "{error}");
    assert_eq!(replay_vpa_updater(&b""[..]).unwrap(), Report::default());
}

#[test]
fn bucket_layouts_equal_the_recorded_ones() {
    let file = File::open(own_folder().join("kubernetes-vpa/buckets.json")).unwrap();
    let recorded: serde_json::Value = serde_json::from_reader(file).unwrap();
    for (name, layout) in [("cpu", BucketLayout::cpu()), ("memory", BucketLayout::memory())] {
        let starts = recorded[name]["bucket_starts"].as_array().unwrap();
        assert_eq!(layout.count(), starts.len());
        for (bucket, start) in starts.iter().enumerate() {
            assert_eq!(layout.start(bucket), start.as_f64().unwrap(), "{name} {bucket}");
        }
        for case in recorded[name]["find_bucket"].as_array().unwrap() {
            let value = case["value"].as_f64().unwrap();
            assert_eq!(Some(layout.find(value) as u64), case["bucket"].as_u64(), "{name} {value}");
        }
    }
}
