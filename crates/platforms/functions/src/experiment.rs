//! The calls of FaaSRM's OpenWhisk experiment: ten applications, 60 seconds, 268 calls.
//!
//! How many calls of which application fall into which second is published with the authors' code (repository
//! Freyr-WWW22, Apache-2.0; the rows derive from the Azure Functions trace of 2019, CC-BY, Shahrad et al., ATC 2020).
//! Where inside its second a call arrives and how large its input is was not published and is drawn from the seed.

use rand::Rng;
use serde_json::Value;
use windfall_core::{Duration, Seed};

use crate::builtin::{Builtin, STORE_MILLIS, builtins};

/// Calls per second; one digit each, `A` is ten.
const CALLS: [(&str, &str); 10] = [
    ("alu", "101010101010101010101010101010101010101010101010101010101010"),
    ("dh", "101010101010101010101010101010101010101010101010101010101010"),
    ("dv", "000000100000000000000410010000022100320022100410032000100000"),
    ("eg", "101010101010101010101010101010101010101010101010101010101010"),
    ("gd", "000001400000500000500000000000000000000000000000000050000000"),
    ("ip", "010010101010101010101010101010101100101010110010101010101010"),
    ("ir", "00000000000000000000001420000400000000000000000000100A000000"),
    ("knn", "100100100100100100100100100100100100100100100100100100100100"),
    ("ms", "030000110100100002000011010100003020000201101111000211220000"),
    ("vp", "100100100100100100100100100100100100100100100100100100100100"),
];

/// What the publication leaves open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExperimentInputs {
    /// Middle of the inputs over the default input of each function; 1 unless a machine is slower or faster.
    pub scale: f64,
    /// Inputs lie between the middle divided by this and the middle times this, evenly in the logarithm; 1 makes
    /// all calls of a function alike.
    pub spread: f64,
}

impl Default for ExperimentInputs {
    fn default() -> Self {
        Self { scale: 1.0, spread: 2.0 }
    }
}

/// One call of the experiment.
#[derive(Clone, Copy, Debug)]
pub struct ExperimentCall {
    /// When it arrives, from the beginning.
    pub at: Duration,
    /// What it runs.
    pub builtin: &'static Builtin,
    /// Its input size.
    pub input: u32,
    /// How long its store takes to answer, milliseconds, if it uses one.
    pub store_millis: f64,
}

impl ExperimentCall {
    /// The parameters of the call.
    pub fn parameters(&self) -> Value {
        let mut parameters = serde_json::Map::new();
        if let Some(input) = self.builtin.input {
            parameters.insert(input.parameter.to_owned(), self.input.into());
        }
        if self.builtin.uses_store && self.store_millis > 0.0 {
            parameters.insert(STORE_MILLIS.to_owned(), self.store_millis.into());
        }
        Value::Object(parameters)
    }
}

/// The 268 calls in order of arrival; equal seeds give equal calls.
pub fn experiment_calls(seed: Seed, inputs: ExperimentInputs) -> Vec<ExperimentCall> {
    let mut calls = Vec::new();
    for (name, counts) in CALLS {
        let Some(builtin) = builtins().iter().find(|builtin| builtin.published_as == Some(name))
        else {
            continue;
        };
        // A stream per application: another input of one does not move the calls of the others.
        let mut generator = seed.stream("faasrm-experiment").stream(name).generator();
        let mut uniform = || generator.next_u32() as f64 / (f64::from(u32::MAX) + 1.0);
        for (second, count) in counts.chars().enumerate() {
            for _ in 0..count.to_digit(11).unwrap_or(0) {
                let at = Duration::from_secs_f64(second as f64 + uniform());
                let factor = inputs.scale * inputs.spread.powf(2.0 * uniform() - 1.0);
                let input = scaled_input(builtin, factor);
                calls.push(ExperimentCall { at, builtin, input, store_millis: 0.0 });
            }
        }
    }
    calls.sort_by_key(|call| call.at);
    calls
}

fn scaled_input(builtin: &Builtin, factor: f64) -> u32 {
    builtin.input.map_or(0, |input| {
        let scaled = f64::from(input.default) * factor;
        // The cast saturates; NaN becomes 0 and is raised to 1.
        (scaled.round() as u32).clamp(1, input.most)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_calls_as_published() {
        let calls = experiment_calls(Seed::new(1), ExperimentInputs::default());
        assert_eq!(calls.len(), 268);
        let published = [
            ("alu", 30),
            ("dh", 30),
            ("dv", 33),
            ("eg", 30),
            ("gd", 20),
            ("ip", 29),
            ("ir", 22),
            ("knn", 20),
            ("ms", 34),
            ("vp", 20),
        ];
        for (name, count) in published {
            let own = calls.iter().filter(|call| call.builtin.published_as == Some(name)).count();
            assert_eq!(own, count, "{name}");
        }
        assert!(CALLS.iter().all(|(_, counts)| counts.len() == 60));
        assert!(calls.is_sorted_by_key(|call| call.at));
        // Ten calls of the recognition arrive in the 54th second.
        let burst = calls.iter().filter(|call| {
            call.builtin.published_as == Some("ir") && (53.0..54.0).contains(&call.at.as_secs_f64())
        });
        assert_eq!(burst.count(), 10);
    }

    #[test]
    fn the_seed_draws_times_and_inputs() {
        let key = |seed, inputs| -> Vec<(Duration, u32)> {
            experiment_calls(Seed::new(seed), inputs)
                .iter()
                .map(|call| (call.at, call.input))
                .collect()
        };
        let varied = ExperimentInputs::default();
        assert_eq!(key(3, varied), key(3, varied));
        assert_ne!(key(3, varied), key(4, varied));
        let alike = ExperimentInputs { spread: 1.0, ..varied };
        for call in experiment_calls(Seed::new(3), alike) {
            assert_eq!(Some(call.input), call.builtin.input.map(|input| input.default));
        }
        for call in experiment_calls(Seed::new(3), varied) {
            let default = f64::from(call.builtin.input.unwrap().default);
            assert!((default / 2.0 - 1.0..=default * 2.0 + 1.0).contains(&f64::from(call.input)));
        }
    }
}
