//! The parameters that are set by training, and how they are kept in a file.

use windfall_core::Seed;
use windfall_policy::WindfallSizingSettings;
use windfall_rl::checkpoint::{FORMAT, Header, Tensor};
use windfall_rl::env::Spec;
use windfall_rl::{Checkpoint, CheckpointError};

/// The kind of checkpoint that holds them.
pub const KIND: &str = "windfall-sizing";
/// The tensor with one number per parameter, in the order of [`PARAMETERS`]; its name is part of the file format.
const TENSOR: &str = "dials";

/// One number that training may change.
pub struct Parameter {
    /// Its key in a scenario.
    pub name: &'static str,
    /// The least it may be.
    pub low: f64,
    /// The most it may be.
    pub high: f64,
    /// Reads it.
    pub read: fn(&WindfallSizingSettings) -> f64,
    /// Sets it.
    pub write: fn(&mut WindfallSizingSettings, f64),
}

macro_rules! parameters {
    ($($name:literal, $low:literal, $high:literal, $($field:ident).+;)*) => {
        /// Every parameter.
        pub const PARAMETERS: &[Parameter] = &[$(Parameter {
            name: $name,
            low: $low,
            high: $high,
            read: |settings| settings.$($field).+,
            write: |settings, value| settings.$($field).+ = value,
        }),*];
    };
}

parameters! {
    "slack.beta", 0.001, 0.009, slack.beta;
    "slack.beta_queued", 0.001, 0.03, slack.beta_queued;
    "slack.beta_long", 0.001, 0.03, slack.beta_long;
    "slack.reserve", 0.05, 1.0, slack.reserve;
    "slack.reserve_seconds", 0.2, 60.0, slack.reserve_seconds;
    "slack.soonest_look_millis", 5.0, 40.0, slack.soonest_look_millis;
    "shortest_look_millis", 10.0, 50.0, shortest_look_millis;
    "longest_look_millis", 25.0, 100.0, longest_look_millis;
    "first_look_millis", 5.0, 60.0, first_look_millis;
    "noise_room", 1.0, 4.0, noise_room;
    "first_margin", 0.01, 0.3, first_margin;
}

/// Where a search from scratch begins: round numbers, in the middle of each range or near it.
pub fn scratch() -> WindfallSizingSettings {
    let mut settings = WindfallSizingSettings::default();
    let first = [0.008, 0.016, 0.01, 0.5, 5.0, 20.0, 40.0, 100.0, 40.0, 2.0, 0.05];
    for (parameter, value) in PARAMETERS.iter().zip(first) {
        (parameter.write)(&mut settings, value);
    }
    settings
}

fn spec() -> Spec {
    let features: Vec<(&str, f32, f32)> = PARAMETERS
        .iter()
        .map(|parameter| (parameter.name, parameter.low as f32, parameter.high as f32))
        .collect();
    Spec::new(KIND, &features, &[])
}

/// The parameters of `settings` as a file.
pub fn checkpoint(settings: &WindfallSizingSettings, seed: u64, tried: u64) -> Checkpoint {
    let mut checkpoint = Checkpoint::new(Header {
        format: FORMAT.to_owned(),
        algorithm: "dial-search".to_owned(),
        environment: spec(),
        network: None,
        seed: Seed::new(seed),
        iteration: tried,
        steps: 0,
        settings: serde_json::to_value(settings).unwrap_or_default(),
    });
    let values = PARAMETERS.iter().map(|parameter| (parameter.read)(settings)).collect();
    checkpoint.tensors.insert(TENSOR.to_owned(), Tensor::F64(values));
    checkpoint
}

/// The settings with the parameters of a file; a file with other parameters, or with a value out of range, is refused.
pub fn settings_from(checkpoint: &Checkpoint) -> Result<WindfallSizingSettings, CheckpointError> {
    checkpoint.header.check_environment(&spec())?;
    let Some(Tensor::F64(values)) = checkpoint.tensors.get(TENSOR) else {
        return Err(CheckpointError::Damaged { reason: format!("`{TENSOR}` is missing") });
    };
    let mismatch = |what: &str, found: String, expected: String| CheckpointError::Mismatch {
        what: what.to_owned(),
        found,
        expected,
    };
    if values.len() != PARAMETERS.len() {
        let expected = PARAMETERS.len().to_string();
        return Err(mismatch("number of parameters", values.len().to_string(), expected));
    }
    let mut settings = WindfallSizingSettings::default();
    for (parameter, &value) in PARAMETERS.iter().zip(values) {
        if !(value >= parameter.low && value <= parameter.high) {
            let expected = format!("{} to {}", parameter.low, parameter.high);
            return Err(mismatch(parameter.name, value.to_string(), expected));
        }
        (parameter.write)(&mut settings, value);
    }
    Ok(settings)
}
