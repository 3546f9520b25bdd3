//! Mean and spread of a few numbers, such as one per seed.

use serde::{Deserialize, Serialize};

/// Numbers of several seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation (n - 1).
    pub sd: f64,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
}

impl Spread {
    /// Of these; at least one.
    pub fn of(numbers: &[f64]) -> Self {
        let count = f64::from(u32::try_from(numbers.len()).unwrap_or(u32::MAX));
        let mean = numbers.iter().sum::<f64>() / count.max(1.0);
        let square = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
        Self {
            mean,
            sd: (square / (count - 1.0).max(1.0)).sqrt(),
            low: numbers.iter().copied().fold(f64::INFINITY, f64::min),
            high: numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
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
