//! Running normalisation: mean and variance of what has been seen, for observations and for rewards.

use serde::{Deserialize, Serialize};
use windfall_core::statistics::{mean, population_deviation};

use crate::net::kernels::dispatch;

/// Normalised numbers are cut to this range, so that a feature's first surprise does not swamp a network.
const BOUND: f32 = 10.0;

/// Mean and variance of each of several numbers, merged batch by batch (Chan et al.).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    pub(crate) count: f64,
    pub(crate) mean: Vec<f64>,
    /// Sum of squared distances from the mean.
    pub(crate) spread: Vec<f64>,
}

impl Moments {
    /// Of nothing yet.
    pub fn new(width: usize) -> Self {
        Self { count: 0.0, mean: vec![0.0; width], spread: vec![0.0; width] }
    }

    /// Takes in rows, in order.
    pub fn observe(&mut self, rows: &[f32]) {
        for row in rows.chunks_exact(self.mean.len()) {
            self.count += 1.0;
            for ((mean, spread), x) in self.mean.iter_mut().zip(&mut self.spread).zip(row) {
                let before = f64::from(*x) - *mean;
                *mean += before / self.count;
                *spread += before * (f64::from(*x) - *mean);
            }
        }
    }

    /// Standard deviation of number `index`; one if it has never changed.
    pub fn deviation(&self, index: usize) -> f64 {
        let variance = self.spread[index] / self.count.max(1.0);
        if variance > 1e-12 { variance.sqrt() } else { 1.0 }
    }

    /// The factors that normalise: `(x - shift) * scale`, cut to plus or minus ten.
    pub fn scaling(&self) -> Scaling {
        #[expect(clippy::cast_possible_truncation, reason = "rows are f32")]
        Scaling {
            shift: self.mean.iter().map(|mean| *mean as f32).collect(),
            scale: (0..self.mean.len()).map(|i| (1.0 / self.deviation(i)) as f32).collect(),
        }
    }
}

/// Frozen normalisation of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    shift: Vec<f32>,
    scale: Vec<f32>,
}

impl Scaling {
    /// One that changes nothing but cuts what is beyond ten.
    pub fn identity(width: usize) -> Self {
        Self { shift: vec![0.0; width], scale: vec![1.0; width] }
    }

    /// Lets a number be normalised as its twin is: of each pair, the first as the second.
    pub(crate) fn with_twins(mut self, twins: &[(usize, usize)]) -> Self {
        for &(one, other) in twins {
            self.shift[one] = self.shift[other];
            self.scale[one] = self.scale[other];
        }
        self
    }

    /// The same for `times` rows as one long row.
    pub(crate) fn repeated(&self, times: usize) -> Self {
        Self { shift: self.shift.repeat(times), scale: self.scale.repeat(times) }
    }

    /// Normalises the first numbers of a row. Allocates nothing.
    #[inline]
    pub(crate) fn apply_to_start(&self, row: &[f32], out: &mut [f32]) {
        dispatch(
            #[inline(always)]
            || {
                let factors = self.shift.iter().zip(&self.scale);
                for ((x, out), (shift, scale)) in row.iter().zip(out).zip(factors) {
                    *out = ((x - shift) * scale).clamp(-BOUND, BOUND);
                }
            },
        );
    }

    /// Normalises rows from one matrix into another. Allocates nothing.
    #[inline]
    pub fn apply(&self, rows: &[f32], out: &mut [f32]) {
        let width = self.shift.len();
        for (row, out) in rows.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            for (((x, out), shift), scale) in row.iter().zip(out).zip(&self.shift).zip(&self.scale)
            {
                *out = ((x - shift) * scale).clamp(-BOUND, BOUND);
            }
        }
    }
}

/// Brings all numbers to mean 0 and deviation 1; none stay none.
pub(crate) fn standardise(numbers: &mut [f32]) {
    let values = numbers.iter().map(|x| f64::from(*x));
    let (Some(mean), Some(deviation)) = (mean(values.clone()), population_deviation(values)) else {
        return;
    };
    let scale = 1.0 / (deviation + 1e-8);
    #[expect(clippy::cast_possible_truncation, reason = "rows are f32")]
    numbers.iter_mut().for_each(|x| *x = ((f64::from(*x) - mean) * scale) as f32);
}

/// Scales rewards by the spread of the discounted return they add up to, one running return per
/// environment. The mean is left alone: shifting rewards would change what is worth doing.
#[derive(Clone, Debug, PartialEq)]
pub struct RewardScaling {
    pub(crate) returns: Vec<f64>,
    pub(crate) moments: Moments,
    discount: f64,
}

impl RewardScaling {
    /// For this many environments.
    pub fn new(environments: usize, discount: f32) -> Self {
        let discount = f64::from(discount);
        Self { returns: vec![0.0; environments], moments: Moments::new(1), discount }
    }

    /// Takes in one step of one environment.
    pub fn observe(&mut self, environment: usize, reward: f32, is_over: bool) {
        let total = &mut self.returns[environment];
        *total = *total * self.discount + f64::from(reward);
        #[expect(clippy::cast_possible_truncation, reason = "rewards are f32")]
        self.moments.observe(&[*total as f32]);
        if is_over {
            *total = 0.0;
        }
    }

    /// What to multiply rewards with.
    #[expect(clippy::cast_possible_truncation, reason = "rewards are f32")]
    pub fn factor(&self) -> f32 {
        (1.0 / self.moments.deviation(0)) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_all_rows_seen() {
        let mut moments = Moments::new(2);
        moments.observe(&[1.0, 5.0, 3.0, 5.0]);
        moments.observe(&[5.0, 5.0]);
        assert_eq!(moments.mean, [3.0, 5.0]);
        assert!((moments.deviation(0) - (8.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        // A feature that never changes is shifted, not blown up.
        assert_eq!(moments.deviation(1), 1.0);
        let mut out = [0.0; 2];
        moments.scaling().apply(&[3.0, 5.5], &mut out);
        assert_eq!(out, [0.0, 0.5]);
        moments.scaling().apply(&[1e9, 5.0], &mut out);
        assert_eq!(out[0], BOUND);
    }

    #[test]
    fn rewards_are_scaled_by_the_spread_of_returns() {
        let mut scaling = RewardScaling::new(1, 1.0);
        assert_eq!(scaling.factor(), 1.0);
        scaling.observe(0, 2.0, false);
        scaling.observe(0, 2.0, true);
        // Returns 2 and 4: deviation 1.
        assert_eq!(scaling.factor(), 1.0);
        scaling.observe(0, 6.0, false);
        // Returns 2, 4 and 6.
        assert!((f64::from(scaling.factor()) - 1.0 / (8.0_f64 / 3.0).sqrt()).abs() < 1e-6);
    }
}
