//! Correction for functions with few calls, learned over all functions.
//!
//! The 99th percentile of ten calls is their maximum, and the eleventh call exceeds it one time in eleven. The
//! excess is similar for all functions, so it is pooled: for each age (number of calls seen), the shortfalls
//! `ln need - ln quantile` of the next call are collected over all functions, and their 99th percentile is
//! added to the log quantile of a function of that age.
//!
//! ```text
//!   functions with 12 calls: the 13th needed 0.7, 0.9, .. 1.2 times the quantile (99 % at most 1.2)
//!   the quantile of a new function's 12 calls is 1.0 core      ->  1.2 cores
//! ```

use windfall_core::QuantileWindow;

/// Age from which on a function gets no correction.
const MATURE_AGE: u32 = 63;
/// Minimum number of calls at one age before the correction is used.
const LEAST: usize = 50;

/// Shortfalls by age, over all functions.
#[derive(Clone, Debug)]
pub(super) struct Experience {
    by_age: Vec<QuantileWindow>,
    quantile: f64,
}

impl Experience {
    pub(super) fn new(quantile: f64) -> Self {
        // Ages 0, 1, 2-3, 4-7, 8-15, 16-31, 32-63: a shortfall changes with the logarithm of the age.
        Self { by_age: (0..7).map(|_| QuantileWindow::new(512)).collect(), quantile }
    }

    fn place(age: u32) -> Option<usize> {
        (age < MATURE_AGE).then(|| (u32::BITS - age.leading_zeros()) as usize)
    }

    /// Factor on the quantile of a function with `age` calls; never below 1.
    pub(super) fn factor(&self, age: u32) -> f64 {
        let pool = Self::place(age).map(|place| &self.by_age[place]);
        let shortfall =
            pool.filter(|pool| pool.len() >= LEAST).and_then(|pool| pool.quantile(self.quantile));
        shortfall.map_or(1.0, |shortfall| shortfall.exp().clamp(1.0, 2.0))
    }

    /// Records that a function with `age` calls had this `quantile` and its next call needed `need`.
    pub(super) fn learn(&mut self, age: u32, quantile: f64, need: f64) {
        if let Some(place) = Self::place(age) {
            self.by_age[place].push((need / quantile).ln());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_number() {
        let mut pool = Experience::new(0.99);
        for n in 0..100 {
            pool.learn(12, 1.0, if n % 10 == 0 { 1.2 } else { 0.8 });
        }
        assert!((pool.factor(12) - 1.2).abs() < 1e-6);
        assert_eq!(pool.factor(40), 1.0, "no calls at that age");
        assert_eq!(pool.factor(1000), 1.0, "above the mature age");
    }

    #[test]
    fn ages_map_to_logarithmic_groups() {
        let places: Vec<_> = [0, 1, 3, 4, 15, 16, 62].map(Experience::place).to_vec();
        assert_eq!(places, [Some(0), Some(1), Some(2), Some(3), Some(4), Some(5), Some(6)]);
        assert_eq!(Experience::place(63), None);
    }
}
