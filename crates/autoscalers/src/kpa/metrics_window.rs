//! A window of one-second buckets and its average, with both of Knative's aggregations.
//!
//! ```text
//!  second   10   11   12   13   14   15          window of 4 s: a ring of 4 buckets
//!  sample    8    8    -    4    -    -
//!                └──────────┘ at 13: (8 + 0 + 4) / min(4 filled, 4) …
//! ```
//!
//! Linear, at second 13: first write 10, last write 13, so four buckets hold 8, 8, 0, 4 and the average is
//! 20 / 4 = 5. A gap that was closed by a later sample counts as zeros (second 12). A gap that is still open does
//! not: at second 15 the ring has dropped seconds 10 and 11, two buckets (0 and 4) are left, and the average is
//! 4 / 2 = 2. After a whole window without samples the window is reset.
//!
//! Weighted exponential: the newest bucket weighs s, the one before s (1 - s), and so on, with
//! s = max(0.2, 1 - 0.0001^(1/buckets)). With 4 buckets s = 0.9; the samples 8, 8, 0, 4 give
//! 4 * 0.9 + 0 * 0.09 + 8 * 0.009 + 8 * 0.0009 = 3.6792. Here an open gap does count as zeros.

use crate::go_numbers::power;

/// How buckets are aggregated; annotation `autoscaling.knative.dev/metric-aggregation-algorithm`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aggregation {
    /// `linear`: the mean, rounded to six decimals.
    #[default]
    Linear,
    /// `weighted-exponential`: recent seconds count more; not rounded.
    WeightedExponential,
}

/// Minimum weight of the newest bucket, `minExponent` upstream: very long windows would otherwise be nearly plain
/// means.
const LEAST_SMOOTHING: f64 = 0.2;
/// By how much the weights of a full window may fall short of 1: 1 - `weightPrecision` upstream, where constants are
/// exact.
const WEIGHT_SHORTFALL: f64 = 0.0001;

/// A ring of one-second buckets.
#[derive(Clone, Debug)]
pub struct MetricsWindow {
    aggregation: Aggregation,
    buckets: Vec<f64>,
    /// Negative if a young window was shortened.
    first_write: Option<i64>,
    last_write: Option<u64>,
    total: f64,
    smoothing: f64,
}

impl MetricsWindow {
    /// Creates an empty window of `seconds` (at least one) buckets.
    pub fn new(seconds: u32, aggregation: Aggregation) -> Self {
        let seconds = seconds.max(1) as usize;
        Self {
            aggregation,
            buckets: vec![0.0; seconds],
            first_write: None,
            last_write: None,
            total: 0.0,
            smoothing: smoothing(seconds),
        }
    }

    /// Its length in seconds.
    pub fn seconds(&self) -> u32 {
        self.buckets.len() as u32
    }

    /// Adds `value` to the bucket of `second`; several samples of one second are summed. A sample that is a whole window
    /// late is dropped.
    pub fn record(&mut self, second: u64, value: f64) {
        let length = self.buckets.len() as u64;
        if self.last_write != Some(second) {
            match self.last_write {
                Some(last) if second + length <= last => return,
                Some(last) if second <= last => self.begin_no_later_than(second),
                Some(last) if second - last < length => {
                    self.begin_no_later_than(second);
                    for passed in last + 1..=second {
                        let place = self.place(passed);
                        self.total -= self.buckets[place];
                        self.buckets[place] = 0.0;
                    }
                    self.last_write = Some(second);
                }
                _ => {
                    self.buckets.fill(0.0);
                    self.total = 0.0;
                    self.first_write = Some(second as i64);
                    self.last_write = Some(second);
                }
            }
        }
        let place = self.place(second);
        self.buckets[place] += value;
        self.total += value;
    }

    fn begin_no_later_than(&mut self, second: u64) {
        let second = second as i64;
        self.first_write = Some(self.first_write.map_or(second, |first| first.min(second)));
    }

    fn place(&self, second: u64) -> usize {
        (second % self.buckets.len() as u64) as usize
    }

    /// Whether more than a window has passed since the last sample.
    pub fn is_empty(&self, now: u64) -> bool {
        self.last_write.is_none_or(|last| now.saturating_sub(last) > self.buckets.len() as u64)
    }

    /// The average as of second `now`.
    pub fn average(&self, now: u64) -> f64 {
        match self.aggregation {
            Aggregation::Linear => self.mean(now),
            Aggregation::WeightedExponential => self.weighted(now),
        }
    }

    fn mean(&self, now: u64) -> f64 {
        let (Some(first), Some(last)) = (self.first_write, self.last_write) else { return 0.0 };
        let length = self.buckets.len() as u64;
        let silent = now.saturating_sub(last);
        if silent >= length {
            return 0.0;
        }
        let mut total = self.total;
        for passed in last + 1..=now {
            total -= self.buckets[self.place(passed)];
        }
        // Both ends are included, hence + 1.
        let filled = ((last as i64 - first) as f64 + 1.0).min((length - silent) as f64);
        (total / filled * 1e6).round() / 1e6
    }

    fn weighted(&self, now: u64) -> f64 {
        let Some(last) = self.last_write.filter(|_| !self.is_empty(now)) else { return 0.0 };
        let length = self.buckets.len() as u64;
        let silent = now.saturating_sub(last);
        let keep = 1.0 - self.smoothing;
        // Seconds without samples are zeros; only their weights have to be skipped.
        let mut weight = self.smoothing;
        if silent > 0 {
            weight *= power(keep, silent.min(u64::from(u32::MAX)) as u32);
        }
        let mut sum = 0.0;
        for age in 0..length.saturating_sub(silent) {
            sum += self.buckets[self.place(last + length - age)] * weight;
            weight *= keep;
        }
        sum
    }

    /// Changes the length at second `now`, keeping the newest samples that fit.
    pub fn resize(&mut self, seconds: u32, now: u64) {
        let (old, new) = (self.buckets.len() as u64, u64::from(seconds.max(1)));
        if old == new {
            return;
        }
        let mut buckets = vec![0.0; new as usize];
        let mut total = 0.0;
        match self.last_write.filter(|_| !self.is_empty(now)) {
            Some(last) => {
                for second in (last.saturating_sub(old.min(new) - 1)..=last).rev() {
                    let kept = self.buckets[self.place(second)];
                    buckets[(second % new) as usize] = kept;
                    total += kept;
                }
                self.first_write = Some(last as i64 - (old as i64 - 1));
            }
            None => self.first_write = None,
        }
        self.buckets = buckets;
        self.total = total;
        self.smoothing = smoothing(new as usize);
    }
}

fn smoothing(buckets: usize) -> f64 {
    (1.0 - WEIGHT_SHORTFALL.powf(1.0 / buckets as f64)).max(LEAST_SMOOTHING)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(aggregation: Aggregation) -> MetricsWindow {
        let mut window = MetricsWindow::new(4, aggregation);
        for (second, value) in [(10, 8.0), (11, 8.0), (13, 4.0)] {
            window.record(second, value);
        }
        window
    }

    #[test]
    fn the_worked_numbers_of_the_linear_average() {
        let window = filled(Aggregation::Linear);
        assert_eq!(window.average(13), 5.0);
        assert_eq!(window.average(15), 2.0);
        assert_eq!(window.average(17), 0.0);
        assert!(!window.is_empty(17));
        assert!(window.is_empty(18));
    }

    #[test]
    fn the_worked_number_of_the_weighted_average() {
        let window = filled(Aggregation::WeightedExponential);
        assert!((window.average(13) - 3.6792).abs() < 1e-12);
        // Two seconds without samples multiply every weight by 0.1 each and drop the two oldest buckets.
        assert!((window.average(15) - 0.9 * 0.01 * 4.0).abs() < 1e-12);
    }

    #[test]
    fn long_windows_keep_a_fifth_for_the_newest_bucket() {
        assert_eq!(smoothing(60), LEAST_SMOOTHING);
        assert!((smoothing(4) - 0.9).abs() < 1e-12);
    }

    #[test]
    fn samples_of_one_second_add_up() {
        let mut window = MetricsWindow::new(4, Aggregation::Linear);
        window.record(7, 1.5);
        window.record(7, 2.0);
        assert_eq!(window.average(7), 3.5);
    }

    #[test]
    fn a_late_sample_counts_unless_it_is_a_window_late() {
        let mut window = filled(Aggregation::Linear);
        window.record(12, 8.0);
        assert_eq!(window.average(13), 7.0);
        window.record(9, 100.0);
        assert_eq!(window.average(13), 7.0);
    }

    #[test]
    fn after_a_window_without_samples_the_average_is_reset() {
        let mut window = filled(Aggregation::Linear);
        window.record(17, 6.0);
        assert_eq!(window.average(17), 6.0);
    }

    #[test]
    fn resizing_keeps_the_newest_samples() {
        let mut window = filled(Aggregation::Linear);
        window.resize(2, 13);
        assert_eq!(window.average(13), 2.0);
        assert_eq!(window.seconds(), 2);
        window.resize(8, 14);
        // The first write is set back to the start of the old ring.
        assert_eq!(window.average(13), 2.0);
        window.resize(3, 100);
        assert_eq!(window.average(100), 0.0);
    }
}
