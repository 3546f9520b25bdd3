//! A histogram whose samples lose half of their weight per half-life.
//!
//! ```text
//!  weight of a sample at t:  w · 2^((t - reference) / half-life)
//!
//!  old samples are unchanged; new ones weigh more. When t is 100 half-lives past the reference, the
//!  reference moves to t (rounded to whole half-lives) and all weights are divided by that power of two.
//! ```
//!
//! Half-life one day, reference day 0: a sample of weight 1 on day 0 counts 1, on day 1 it counts 2, so the
//! older one has 1/3 of the total. The 50th percentile is the *end* of the bucket where the sum of weights
//! reaches half of the total.

use super::buckets::BucketLayout;
use super::checkpoint::HistogramCheckpoint;

/// Weights below this count as zero.
const EPSILON: f64 = 0.0001;
/// Half-lives until the reference moves.
const MAX_DECAY_EXPONENT: i64 = 100;
/// Seconds from the year 1, the origin for rounding, to 1970.
const YEAR_ONE_UNIX: i64 = -62_135_596_800;
/// Largest integer weight in a checkpoint.
pub(super) const MAX_CHECKPOINT_WEIGHT: f64 = 10_000.0;

/// A decaying histogram. Times are Unix seconds.
#[derive(Clone, Debug)]
pub struct DecayingHistogram {
    layout: &'static BucketLayout,
    half_life_seconds: i64,
    weights: Vec<f64>,
    total: f64,
    lo: usize,
    hi: usize,
    reference: Option<i64>,
}

impl DecayingHistogram {
    /// Creates an empty histogram.
    pub fn new(layout: &'static BucketLayout, half_life_seconds: i64) -> Self {
        Self {
            layout,
            half_life_seconds: half_life_seconds.max(1),
            weights: vec![0.0; layout.count()],
            total: 0.0,
            lo: layout.count() - 1,
            hi: 0,
            reference: None,
        }
    }

    /// Time at which a sample has its own weight; `None` if none was added.
    pub fn reference(&self) -> Option<i64> {
        self.reference
    }

    /// Sum of all weights.
    pub fn total_weight(&self) -> f64 {
        self.total
    }

    /// Whether it contains no weight.
    pub fn is_empty(&self) -> bool {
        self.weights[self.lo] < EPSILON
    }

    /// Adds a sample of `weight` at time `at`.
    pub fn add(&mut self, value: f64, weight: f64, at: i64) {
        let weight = weight * self.factor(at);
        let bucket = self.layout.find(value);
        self.weights[bucket] += weight;
        self.total += weight;
        if self.weights[bucket] >= EPSILON {
            self.lo = self.lo.min(bucket);
            self.hi = self.hi.max(bucket);
        }
    }

    /// Removes a sample.
    pub fn subtract(&mut self, value: f64, weight: f64, at: i64) {
        let weight = weight * self.factor(at);
        let less = |from: f64| if from - weight < EPSILON { 0.0 } else { from - weight };
        let bucket = self.layout.find(value);
        self.total = less(self.total);
        self.weights[bucket] = less(self.weights[bucket]);
        self.trim();
    }

    /// End of the bucket that contains `percentile`; 0 if empty.
    pub fn percentile(&self, percentile: f64) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let threshold = percentile * self.total;
        let mut sum = 0.0;
        let mut bucket = self.lo;
        while bucket < self.hi {
            sum += self.weights[bucket];
            if sum >= threshold {
                break;
            }
            bucket += 1;
        }
        self.layout.start(bucket + 1)
    }

    /// Merges `other`. The histogram with the older reference is moved to the newer one, `other` permanently.
    pub fn merge(&mut self, other: &mut Self) {
        if self.reference < other.reference {
            self.shift(other.reference.unwrap_or(YEAR_ONE_UNIX));
        } else if other.reference < self.reference {
            other.shift(self.reference.unwrap_or(YEAR_ONE_UNIX));
        }
        for bucket in other.lo..=other.hi {
            self.weights[bucket] += other.weights[bucket];
        }
        self.total += other.total;
        self.lo = self.lo.min(other.lo);
        self.hi = self.hi.max(other.hi);
    }

    /// Returns the checkpoint: integer weights relative to the largest, without zeros.
    pub fn save(&self) -> HistogramCheckpoint {
        let range = self.lo..=self.hi;
        let largest = range.clone().map(|bucket| self.weights[bucket]).fold(0.0, f64::max);
        let ratio = MAX_CHECKPOINT_WEIGHT / largest;
        let saved =
            range.map(|bucket| (bucket, (self.weights[bucket] * ratio + 0.5).floor() as u32));
        HistogramCheckpoint {
            reference: self.reference,
            total_weight: self.total,
            bucket_weights: saved.filter(|(_, weight)| *weight > 0).collect(),
        }
    }

    /// Restores an empty histogram from a checkpoint; buckets that do not exist are dropped.
    pub fn load(&mut self, saved: &HistogramCheckpoint) {
        self.reference = saved.reference;
        let sum: f64 = saved.bucket_weights.values().map(|weight| f64::from(*weight)).sum();
        if sum == 0.0 {
            return;
        }
        let ratio = saved.total_weight / sum;
        let fits = |bucket: &usize| *bucket < self.layout.count();
        for (bucket, weight) in saved.bucket_weights.iter().filter(|(bucket, _)| fits(bucket)) {
            self.lo = self.lo.min(*bucket);
            self.hi = self.hi.max(*bucket);
            self.weights[*bucket] += f64::from(*weight) * ratio;
        }
        self.total += saved.total_weight;
        self.trim();
    }

    /// Factor on the weight of a sample at `at`.
    fn factor(&mut self, at: i64) -> f64 {
        let span = self.half_life_seconds.saturating_mul(MAX_DECAY_EXPONENT);
        let reference = match self.reference {
            Some(reference) if at <= reference.saturating_add(span) => reference,
            _ => self.shift(at),
        };
        (nanos(at - reference) / nanos(self.half_life_seconds)).exp2()
    }

    /// Moves the reference to `to`, rounded to whole half-lives since the year 1.
    fn shift(&mut self, to: i64) -> i64 {
        let half_life = self.half_life_seconds;
        let past = (to - YEAR_ONE_UNIX).rem_euclid(half_life);
        // Halves are rounded up.
        let up = if past + past < half_life { 0 } else { half_life };
        let new = to - past + up;
        let old = self.reference.unwrap_or(YEAR_ONE_UNIX);
        let exponent = (nanos(old - new) / nanos(half_life) + 0.5).floor();
        let scale = exponent.exp2();
        // An empty range scales nothing, not even the negligible weights outside it.
        for weight in self.weights.get_mut(self.lo..=self.hi).unwrap_or_default() {
            *weight *= scale;
        }
        self.total *= scale;
        self.trim();
        self.reference = Some(new);
        new
    }

    /// Narrows the range to buckets with weight. Buckets outside keep their negligible weight.
    fn trim(&mut self) {
        let last = self.weights.len() - 1;
        while self.weights[self.lo] < EPSILON && self.lo < last {
            self.lo += 1;
        }
        while self.weights[self.hi] < EPSILON && self.hi > 0 {
            self.hi -= 1;
        }
    }
}

/// Seconds as nanoseconds, as upstream: a saturating 64-bit integer, then a float.
pub(super) fn nanos(seconds: i64) -> f64 {
    seconds.saturating_mul(1_000_000_000) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    #[test]
    fn a_sample_loses_half_its_weight_per_half_life() {
        let mut histogram = DecayingHistogram::new(BucketLayout::cpu(), DAY);
        histogram.add(0.1, 1.0, 0);
        histogram.add(1.0, 1.0, DAY);
        assert_eq!(histogram.total_weight(), 3.0);
        // A third is in the bucket of 0.1 cores, whose end is 0.1103.
        assert!((histogram.percentile(0.33) - 0.1103).abs() < 1e-4);
        assert!(histogram.percentile(0.34) > 1.0);
    }

    #[test]
    fn the_reference_moves_after_a_hundred_half_lives() {
        let mut histogram = DecayingHistogram::new(BucketLayout::cpu(), DAY);
        histogram.add(0.1, 1.0, 0);
        assert_eq!(histogram.reference(), Some(0));
        histogram.add(1.0, 1.0, 100 * DAY);
        assert_eq!(histogram.reference(), Some(0));
        histogram.add(1.0, 1.0, 101 * DAY);
        assert_eq!(histogram.reference(), Some(101 * DAY));
        assert!((histogram.total_weight() - 1.5).abs() < 1e-12);
    }

    #[test]
    fn half_of_a_half_life_is_rounded_up() {
        let mut histogram = DecayingHistogram::new(BucketLayout::cpu(), DAY);
        histogram.add(0.1, 1.0, DAY / 2);
        assert_eq!(histogram.reference(), Some(DAY));
        assert!((histogram.total_weight() - 0.5_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_negligible_weight_outside_the_range_is_not_scaled() {
        let mut histogram = DecayingHistogram::new(BucketLayout::cpu(), DAY);
        histogram.add(0.001, 0.000_09, 0);
        assert!(histogram.is_empty());
        histogram.add(0.001, 0.000_09, 101 * DAY);
        // The earlier 0.00009, unscaled, and the new 0.00009 add up to a bucket with weight.
        assert!(!histogram.is_empty());
    }

    #[test]
    fn a_removed_sample_has_no_effect() {
        let mut histogram = DecayingHistogram::new(BucketLayout::memory(), DAY);
        histogram.add(5e8, 1.0, 10);
        histogram.add(1e9, 1.0, 10);
        histogram.subtract(1e9, 1.0, 10);
        assert!((histogram.percentile(1.0) - 5e8).abs() < 5e8 * 0.05);
        histogram.subtract(5e8, 1.0, 10);
        assert!(histogram.is_empty());
        assert_eq!(histogram.percentile(0.9), 0.0);
    }

    #[test]
    fn a_saved_histogram_is_restored_approximately() {
        let mut histogram = DecayingHistogram::new(BucketLayout::cpu(), DAY);
        for (value, weight) in [(0.1, 0.4), (0.5, 1.0), (2.0, 0.1)] {
            histogram.add(value, weight, 0);
        }
        let saved = histogram.save();
        let weights: Vec<u32> = saved.bucket_weights.values().copied().collect();
        assert_eq!(weights, [4000, 10_000, 1000]);
        let mut back = DecayingHistogram::new(BucketLayout::cpu(), DAY);
        back.load(&saved);
        assert_eq!(back.percentile(0.5), histogram.percentile(0.5));
        assert_eq!(back.total_weight(), histogram.total_weight());
    }

    #[test]
    fn merging_moves_both_to_the_newer_reference() {
        let mut old = DecayingHistogram::new(BucketLayout::cpu(), DAY);
        let mut new = old.clone();
        old.add(0.1, 1.0, 0);
        new.add(0.1, 1.0, 2 * DAY);
        let mut merged = DecayingHistogram::new(BucketLayout::cpu(), DAY);
        merged.merge(&mut new);
        merged.merge(&mut old);
        assert_eq!(merged.total_weight(), 1.25);
        assert_eq!(old.reference(), Some(2 * DAY));
    }
}
