//! When functions are called: load by the minute, shaped like Azure's.
//!
//! Patterns come from the generator, which is fitted to Azure's functions of 2019, or from any trace. Each is
//! brought to a mean of 1, so that a function's own rate can be put on it. Training, validation and test share
//! nothing: a pattern belongs to one of them; training sees the first half of the time, validation the third
//! quarter, tests the last.

use std::sync::{Arc, LazyLock};

use windfall_core::{Duration, Seed, Workload};
use windfall_rl::Split;
use windfall_trace::{AzureLikeSettings, azure_like_minutes};

/// Factors by the minute with mean 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    factors: Vec<f32>,
}

/// More than this many times its mean no function is called; rarer bursts are cut.
const HIGHEST: f32 = 4.0;

impl Pattern {
    /// From calls per minute; nothing if there are too few to have a shape.
    pub fn from_counts(counts: &[u64]) -> Option<Self> {
        let mean = counts.iter().sum::<u64>() as f64 / counts.len().max(1) as f64;
        if mean < 5.0 {
            return None;
        }
        let factors = counts.iter().map(|&count| ((count as f64 / mean) as f32).min(HIGHEST));
        Some(Self { factors: factors.collect() })
    }

    /// A load that never changes.
    pub fn steady() -> Self {
        Self { factors: vec![1.0] }
    }

    /// The factor in minute `minute`; after the last minute comes the first.
    pub fn factor(&self, minute: usize) -> f64 {
        f64::from(self.factors[minute % self.factors.len()])
    }

    /// Minutes it has.
    pub fn minutes(&self) -> usize {
        self.factors.len()
    }
}

/// All patterns of one source.
#[derive(Clone, Debug)]
pub struct Patterns {
    all: Vec<Arc<Pattern>>,
}

impl Patterns {
    /// The generator's: two days of functions that no timer calls.
    pub fn generated() -> &'static Self {
        static GENERATED: LazyLock<Patterns> = LazyLock::new(|| {
            let settings = AzureLikeSettings {
                functions: 1200,
                duration: Duration::from_mins(2 * 1440),
                calls_per_hour: 3e6,
                start_hour: 0.0,
                ..AzureLikeSettings::default()
            };
            let rows = azure_like_minutes(&settings, Seed::new(2019)).unwrap_or_default();
            Patterns::from_rows(&rows)
        });
        &GENERATED
    }

    /// Those of a trace, counted call by call.
    pub fn of_trace(workload: &mut dyn Workload) -> Self {
        let minutes = workload.horizon().as_nanos() / 60_000_000_000 + 1;
        let mut rows = vec![vec![0u64; minutes as usize]; workload.functions().len()];
        while let Some(arrival) = workload.next_arrival() {
            let minute = (arrival.at.as_nanos() / 60_000_000_000) as usize;
            if let Some(count) = rows[arrival.function.index()].get_mut(minute) {
                *count += 1;
            }
        }
        Self::from_rows(&rows)
    }

    fn from_rows(rows: &[Vec<u64>]) -> Self {
        Self {
            all: rows.iter().filter_map(|row| Pattern::from_counts(row)).map(Arc::new).collect(),
        }
    }

    /// How many there are for `split`.
    pub fn count(&self, split: Split) -> usize {
        (self.all.len() + 2 - place_of(split)) / 3
    }

    /// The `index`-th of `split`, and a minute to begin at, both from whole numbers of any size. A source
    /// without a pattern for the split gives a steady load.
    pub fn pick(&self, split: Split, index: u64, minute: u64) -> (Arc<Pattern>, usize) {
        let count = self.count(split);
        if count == 0 {
            return (Arc::new(Pattern::steady()), 0);
        }
        let place = 3 * (index % count as u64) as usize + place_of(split);
        let pattern = Arc::clone(&self.all[place]);
        let quarter = pattern.minutes() / 4;
        let (first, length) = match split {
            Split::Training => (0, 2 * quarter),
            Split::Validation => (2 * quarter, quarter),
            Split::Test => (3 * quarter, quarter),
        };
        // An episode must end before its part does: 20 minutes are kept free.
        let room = length.saturating_sub(20).max(1) as u64;
        (pattern, first + (minute % room) as usize)
    }
}

fn place_of(split: Split) -> usize {
    match split {
        Split::Training => 0,
        Split::Validation => 1,
        Split::Test => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_validation_and_test_share_no_function_and_no_minute() {
        let patterns = Patterns::generated();
        let parts = [Split::Training, Split::Validation, Split::Test];
        let counts = parts.map(|split| patterns.count(split));
        assert!(counts.iter().all(|count| *count >= 20), "{counts:?}");
        let picked = parts.map(|split| patterns.pick(split, 3, 1_000_003));
        assert!(picked[0].0 != picked[1].0 && picked[1].0 != picked[2].0);
        let [a, b, c] = picked.map(|(_, from)| from);
        assert!(a + 20 <= 1440 && (1440..2140).contains(&b) && (2160..2860).contains(&c));
    }

    #[test]
    fn a_pattern_has_a_mean_of_one_unless_bursts_are_cut() {
        let pattern = Pattern::from_counts(&[10, 20, 30]).unwrap();
        assert_eq!([0, 1, 2, 3].map(|m| pattern.factor(m)), [0.5, 1.0, 1.5, 0.5]);
        assert_eq!(Pattern::from_counts(&[1, 2]), None);
        assert_eq!(Pattern::from_counts(&[0, 0, 0, 0, 0, 600]).unwrap().factor(5), 4.0);
    }
}
