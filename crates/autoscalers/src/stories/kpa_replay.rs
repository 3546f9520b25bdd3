//! Replays Knative's stories: load and ready pods per second, a decision every two seconds.

use std::io::Read;

use serde::Deserialize;

use super::report::{Difference, Report, StoryError};
use super::story_lines::for_each_story;
use crate::kpa::{Aggregation, Autoscaler, Averages, DeciderSettings, Scale, WindowSettings};

/// Longest window of a story, seconds; Knative's longest is an hour.
const WINDOW_LIMIT: u32 = 86_400;
/// Latest second of a story.
const TIME_LIMIT: u64 = 1 << 40;

#[derive(Deserialize)]
struct Story {
    id: String,
    config: Config,
    seconds: Vec<Second>,
    decisions: Vec<Decision>,
}

#[derive(Deserialize)]
struct Config {
    target: f64,
    total: f64,
    stable_window_s: u32,
    panic_window_s: u32,
    panic_threshold: f64,
    max_scale_up_rate: f64,
    max_scale_down_rate: f64,
    target_burst_capacity: f64,
    activation_scale: i32,
    scale_down_delay_s: u32,
    reachable: bool,
    aggregation: String,
    initial_ready: u32,
}

#[derive(Deserialize)]
struct Second {
    t: u64,
    load: Option<f64>,
    ready: u32,
}

#[derive(Debug, Deserialize)]
struct Decision {
    t: u64,
    valid: bool,
    desired: i32,
    excess_burst: i32,
    stable: f64,
    panic: f64,
}

/// Replays Knative's stories from JSON lines, plain or gzip.
pub fn replay_kpa(source: impl Read) -> Result<Report, StoryError> {
    let mut report = Report::default();
    for_each_story(source, |line, story: Story| {
        report.stories += 1;
        play(line, &story, &mut report)
    })?;
    Ok(report)
}

fn play(line: u64, story: &Story, report: &mut Report) -> Result<(), StoryError> {
    let config = &story.config;
    let aggregation = match config.aggregation.as_str() {
        "linear" => Aggregation::Linear,
        "weighted-exponential" => Aggregation::WeightedExponential,
        other => {
            let problem =
                format!("aggregation is {other:?}, allowed are linear and weighted-exponential");
            return Err(StoryError::at(line, problem));
        }
    };
    for window in [config.stable_window_s, config.panic_window_s] {
        if !(1..=WINDOW_LIMIT).contains(&window) {
            let problem = format!("a window is {window} s, allowed is 1 to {WINDOW_LIMIT}");
            return Err(StoryError::at(line, problem));
        }
    }
    if let Some(late) = story.seconds.iter().find(|second| second.t > TIME_LIMIT) {
        let problem = format!("t is {}, allowed is up to {TIME_LIMIT}", late.t);
        return Err(StoryError::at(line, problem));
    }
    let windows = WindowSettings {
        stable_seconds: config.stable_window_s,
        panic_seconds: config.panic_window_s,
        aggregation,
        is_scraped: true,
    };
    let mut autoscaler = Autoscaler::new(windows, decider(config), 0, config.initial_ready);
    let mut decisions = story.decisions.iter().peekable();
    for second in &story.seconds {
        if let Some(load) = second.load {
            autoscaler.record(second.t, load);
        }
        while let Some(decision) = decisions.next_if(|decision| decision.t == second.t) {
            let seen = autoscaler.averages(second.t);
            let ours = autoscaler.scale(second.t, second.ready);
            report.count(is_equal(decision, ours, seen), || Difference {
                story: story.id.clone(),
                time: second.t.to_string(),
                expected: format!("{decision:?}"),
                ours: format!("{ours:?}"),
                seen: format!("{seen:?}, ready {}, load {:?}", second.ready, second.load),
            });
        }
    }
    match decisions.next() {
        None => Ok(()),
        Some(decision) => {
            let problem = format!("story {}: no second {} for a decision", story.id, decision.t);
            Err(StoryError::at(line, problem))
        }
    }
}

fn decider(config: &Config) -> DeciderSettings {
    DeciderSettings {
        max_scale_up_rate: config.max_scale_up_rate,
        max_scale_down_rate: config.max_scale_down_rate,
        target_value: config.target,
        total_value: config.total,
        target_burst_capacity: config.target_burst_capacity,
        panic_threshold: config.panic_threshold,
        stable_window_seconds: config.stable_window_s,
        scale_down_delay_seconds: config.scale_down_delay_s,
        activation_scale: config.activation_scale,
        reachable: config.reachable,
    }
}

/// Compares counts exactly and averages to 1e-6; without data, only that both have none.
fn is_equal(recorded: &Decision, ours: Option<Scale>, seen: Option<Averages>) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-6;
    match (ours, seen) {
        (Some(ours), Some(seen)) => {
            recorded.valid
                && ours.desired == recorded.desired
                && ours.excess_burst_capacity == recorded.excess_burst
                && near(seen.stable, recorded.stable)
                && near(seen.panic, recorded.panic)
        }
        _ => !recorded.valid,
    }
}
