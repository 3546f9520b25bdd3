//! Knative's ConfigMap `config-autoscaler`.
//!
//! ```text
//!  data:
//!    stable-window: "60s"          strings only, parsed as in Go
//!    _example: |                   ignored, as in Knative
//! ```
//!
//! Knative ignores unknown keys, so a typo silently means the default. Here an unknown key is reported with its line,
//! as is everything that Knative itself rejects: `stable-window: "5s"` is below 6 s.

use super::fields::one_of_kind;
use super::go_texts::{boolean, duration_nanos, float, int32};
use super::problems::{ManifestError, Problems};
use super::yaml_tree::{Node, Value};
use crate::kpa::{ClusterSettings, TARGET_MIN, WINDOW_MAX_SECONDS, WINDOW_MIN_SECONDS};

const SECOND: i64 = 1_000_000_000;

/// The strings under `data` that have not been read yet.
struct Data<'a> {
    left: Vec<(&'a str, usize, &'a str)>,
    lines: Vec<(&'a str, usize)>,
}

impl<'a> Data<'a> {
    fn read(entries: Vec<(&'a str, usize, &'a Node)>, problems: &mut Problems) -> Self {
        let mut left = Vec::new();
        for (key, line, node) in entries {
            match &node.value {
                Value::Scalar(text, is_plain) if !is_plain || is_text(text) => {
                    left.push((key, line, text.as_str()));
                }
                Value::Scalar(text, _) => {
                    let what = format!("{key} must be a string; quote the value: \"{text}\"");
                    problems.add(line, what);
                }
                Value::List(_) | Value::Map(_) => {
                    problems.add(line, format!("{key} must be a string"));
                }
            }
        }
        let lines = left.iter().map(|(key, line, _)| (*key, *line)).collect();
        Self { left, lines }
    }

    /// Line of a key, or of the first key if it is not set.
    fn line(&self, key: &str) -> usize {
        let own = self.lines.iter().find(|(name, _)| *name == key);
        own.or(self.lines.first()).map_or(1, |(_, line)| *line)
    }

    /// Parses a key into `into`, if it is set.
    fn set<T>(
        &mut self,
        key: &str,
        into: &mut T,
        read: impl Fn(&str) -> Option<T>,
        kind: &str,
        problems: &mut Problems,
    ) {
        let Some(place) = self.left.iter().position(|(name, ..)| *name == key) else { return };
        let (_, line, text) = self.left.remove(place);
        match read(text) {
            Some(value) => *into = value,
            None => problems.add(line, format!("{key} is {text:?}, which is not {kind}")),
        }
    }
}

/// Whether YAML parses an unquoted word as a string. The API server rejects anything else.
fn is_text(plain: &str) -> bool {
    let words = ["true", "false", "null", "~", "", "yes", "no", "on", "off"];
    float(plain).is_none() && !words.contains(&plain.to_ascii_lowercase().as_str())
}

/// Durations as parsed, before their bounds are checked.
struct Durations {
    stable_window: i64,
    scale_down_delay: i64,
    grace_period: i64,
    retention: i64,
}

impl ClusterSettings {
    /// Reads the ConfigMap `config-autoscaler` from YAML.
    ///
    /// # Errors
    ///
    /// Returns all problems together: unknown keys, strings that do not parse, values that Knative rejects and values
    /// that contradict each other.
    pub fn from_yaml(text: &str) -> Result<Self, ManifestError> {
        one_of_kind(text, "ConfigMap", |fields, problems| {
            fields.ignore(&["immutable"]);
            let entries = fields.map("data", problems).map(|mut data| data.take_all());
            let mut data = Data::read(entries.unwrap_or_default(), problems);
            let settings = read(&mut data, problems);
            for (key, line, _) in data.left.iter().filter(|(key, ..)| *key != "_example") {
                problems.add(*line, format!("{key} is not a key of config-autoscaler"));
            }
            settings
        })
    }
}

fn read(data: &mut Data<'_>, problems: &mut Problems) -> ClusterSettings {
    let mut it = ClusterSettings::default();
    let mut percentage = it.container_concurrency_target_fraction;
    let class = |text: &str| Some(text.trim().to_owned());
    data.set("pod-autoscaler-class", &mut it.pod_autoscaler_class, class, "a string", problems);
    for (key, into) in [
        ("enable-scale-to-zero", &mut it.enable_scale_to_zero),
        ("allow-zero-initial-scale", &mut it.allow_zero_initial_scale),
    ] {
        data.set(key, into, boolean, "a boolean", problems);
    }
    for (key, into) in [
        ("max-scale-up-rate", &mut it.max_scale_up_rate),
        ("max-scale-down-rate", &mut it.max_scale_down_rate),
        ("container-concurrency-target-percentage", &mut percentage),
        ("container-concurrency-target-default", &mut it.container_concurrency_target_default),
        ("requests-per-second-target-default", &mut it.requests_per_second_target_default),
        ("target-burst-capacity", &mut it.target_burst_capacity),
        ("panic-window-percentage", &mut it.panic_window_percentage),
        ("activator-capacity", &mut it.activator_capacity),
        ("panic-threshold-percentage", &mut it.panic_threshold_percentage),
    ] {
        data.set(key, into, float, "a number", problems);
    }
    for (key, into) in [
        ("initial-scale", &mut it.initial_scale),
        ("min-scale", &mut it.min_scale),
        ("max-scale", &mut it.max_scale),
        ("max-scale-limit", &mut it.max_scale_limit),
    ] {
        data.set(key, into, int32, "a whole number of 32 bits", problems);
    }
    // Values up to 1 are fractions, for compatibility with old files.
    it.container_concurrency_target_fraction =
        if percentage > 1.0 { percentage / 100.0 } else { percentage };
    let durations = read_durations(data, problems);
    check_durations(&durations, data, problems);
    check_numbers(&it, data, problems);
    check_scales(&it, data, problems);
    it.stable_window_seconds = (durations.stable_window / SECOND) as u32;
    it.scale_down_delay_seconds =
        (durations.scale_down_delay / SECOND).clamp(0, i64::from(u32::MAX)) as u32;
    it.scale_to_zero_grace_period_ms = millis(durations.grace_period);
    it.scale_to_zero_pod_retention_period_ms = millis(durations.retention);
    it
}

/// Milliseconds, rounded up so that a wait does not become shorter.
fn millis(nanos: i64) -> u64 {
    (nanos.max(0) as u64).div_ceil(1_000_000)
}

fn read_durations(data: &mut Data<'_>, problems: &mut Problems) -> Durations {
    let mut it = Durations {
        stable_window: 60 * SECOND,
        scale_down_delay: 0,
        grace_period: 30 * SECOND,
        retention: 0,
    };
    for (key, into) in [
        ("stable-window", &mut it.stable_window),
        ("scale-down-delay", &mut it.scale_down_delay),
        ("scale-to-zero-grace-period", &mut it.grace_period),
        ("scale-to-zero-pod-retention-period", &mut it.retention),
    ] {
        data.set(key, into, duration_nanos, "a duration such as 60s or 1m30s", problems);
    }
    it
}

fn check_durations(it: &Durations, data: &Data<'_>, problems: &mut Problems) {
    let window = i64::from(WINDOW_MIN_SECONDS) * SECOND..=i64::from(WINDOW_MAX_SECONDS) * SECOND;
    let is_whole = |nanos: i64| nanos % SECOND == 0;
    let mut reject_if = |is_wrong: bool, key: &str, what: &str| {
        if is_wrong {
            problems.add(data.line(key), format!("{key} {what}"));
        }
    };
    reject_if(it.grace_period <= 0, "scale-to-zero-grace-period", "must be above 0");
    reject_if(it.scale_down_delay < 0, "scale-down-delay", "must not be negative");
    reject_if(!is_whole(it.scale_down_delay), "scale-down-delay", "must be whole seconds");
    reject_if(it.retention < 0, "scale-to-zero-pod-retention-period", "must not be negative");
    reject_if(!window.contains(&it.stable_window), "stable-window", "must be 6s to 1h");
    reject_if(!is_whole(it.stable_window), "stable-window", "must be whole seconds");
}

fn check_numbers(it: &ClusterSettings, data: &Data<'_>, problems: &mut Problems) {
    let mut reject_if = |is_wrong: bool, key: &str, what: String| {
        if is_wrong {
            problems.add(data.line(key), format!("{key} {what}"));
        }
    };
    let burst = it.target_burst_capacity;
    let what = format!("is {burst}, allowed is -1 (unlimited), 0 (none) or more");
    reject_if(burst < 0.0 && burst != -1.0, "target-burst-capacity", what);
    let fraction = it.container_concurrency_target_fraction;
    let is_share = fraction > 0.0 && fraction <= 1.0;
    let percentage = "container-concurrency-target-percentage";
    reject_if(!is_share, percentage, "must be above 0 and at most 100".to_owned());
    let target = fraction * it.container_concurrency_target_default;
    let what = format!(
        "and container-concurrency-target-default make a target of {target}, allowed is {TARGET_MIN} \
         or more"
    );
    reject_if(is_share && target < TARGET_MIN, percentage, what);
    for (key, value, least) in [
        ("requests-per-second-target-default", it.requests_per_second_target_default, TARGET_MIN),
        ("activator-capacity", it.activator_capacity, 1.0),
    ] {
        reject_if(value < least, key, format!("is {value}, allowed is {least} or more"));
    }
    for (key, rate) in [
        ("max-scale-up-rate", it.max_scale_up_rate),
        ("max-scale-down-rate", it.max_scale_down_rate),
    ] {
        reject_if(rate <= 1.0, key, format!("is {rate}, allowed is more than 1"));
    }
    let share = it.panic_window_percentage;
    let is_outside = !(1.0..=100.0).contains(&share);
    reject_if(is_outside, "panic-window-percentage", format!("is {share}, allowed is 1 to 100"));
}

fn check_scales(it: &ClusterSettings, data: &Data<'_>, problems: &mut Problems) {
    let ClusterSettings { initial_scale, min_scale, max_scale, max_scale_limit, .. } = *it;
    let mut reject_if = |is_wrong: bool, key: &str, what: String| {
        if is_wrong {
            problems.add(data.line(key), format!("{key} {what}"));
        }
    };
    let least_initial = i32::from(!it.allow_zero_initial_scale);
    let what = format!(
        "is {initial_scale}, allowed is {least_initial} or more (allow-zero-initial-scale is {})",
        it.allow_zero_initial_scale
    );
    reject_if(initial_scale < least_initial, "initial-scale", what);
    reject_if(min_scale < 0, "min-scale", format!("is {min_scale}, allowed is 0 or more"));
    let what = format!("is {max_scale_limit}, allowed is 0 (none) or more");
    reject_if(max_scale_limit < 0, "max-scale-limit", what);
    let least_max = i32::from(max_scale_limit > 0);
    let what =
        format!("is {max_scale}, allowed is {least_max} to max-scale-limit ({max_scale_limit})");
    let is_beyond = max_scale_limit > 0 && max_scale > max_scale_limit;
    reject_if(max_scale < least_max || is_beyond, "max-scale", what);
    let what = format!("is {min_scale}, which is more than max-scale ({max_scale})");
    reject_if(max_scale > 0 && min_scale > max_scale, "min-scale", what);
}
