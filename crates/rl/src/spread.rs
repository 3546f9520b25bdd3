//! Mean and spread of a few numbers, such as one per seed.

use serde::{Deserialize, Serialize};
use windfall_core::statistics::{Interval, mean, sample_deviation};

/// Numbers of several seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation (n - 1); 0 of one.
    pub sd: f64,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
}

impl Spread {
    /// Of these; at least one.
    pub fn of(numbers: &[f64]) -> Self {
        let Interval { low, high } = Interval::covering(numbers);
        Self {
            mean: mean(numbers).unwrap_or(0.0),
            sd: sample_deviation(numbers).unwrap_or(0.0),
            low,
            high,
        }
    }
}

#[test]
fn spread_by_hand() {
    let found = Spread::of(&[1.0, 3.0]);
    assert_eq!((found.mean, found.low, found.high), (2.0, 1.0, 3.0));
    assert!((found.sd - 2f64.sqrt()).abs() < 1e-12);
    assert_eq!(Spread::of(&[5.0]).sd, 0.0);
}
