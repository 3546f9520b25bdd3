//! Quantiles of very many numbers in bounded memory.
//!
//! A bucket is an octave (the exponent of the number) cut into 1024 equal parts (the first ten bits of
//! its mantissa), so its index is a shift of the number's own bits: no logarithm, no search. The widest
//! bucket, relative to its numbers, is the first of an octave: `[1, 1 + 1/1024)`. Its middle is at most
//! 1/2048, that is 0.049 %, away from anything in it, and two numbers that share a bucket differ by less
//! than a thousandth. So equal quantiles of two runs mean a difference below 0.1 %: 1.002 and 1.0038
//! lie in two buckets, where one of 1/256 held both.
//!
//! Fifty octaves, from 2^-20 (9.5e-7) to 2^30 (1.07e9), take 51 200 counters or 410 kB, of which a run
//! touches the few hundred near its own numbers. Numbers outside are counted at the edges; count, sum,
//! least and greatest are always exact.

use serde::{Deserialize, Serialize};

const MANTISSA_BITS: u32 = 52;
const PARTS_BITS: u32 = 10;
const SHIFT: u32 = MANTISSA_BITS - PARTS_BITS;
const LOWEST_EXPONENT: i32 = -20;
const OCTAVES: usize = 50;
const BUCKETS: usize = OCTAVES << PARTS_BITS;
/// The bits of 2^-20, cut to a bucket: exponents are stored with a bias of 1023.
const FIRST: i64 = ((1023 + LOWEST_EXPONENT) as i64) << PARTS_BITS;

/// Counts of numbers by size, within 0.05 % from 1e-6 to 1e9.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Sparse", try_from = "Sparse")]
pub struct LogHistogram {
    /// Empty until the first number comes, so that unused histograms cost nothing.
    buckets: Vec<u64>,
    below: u64,
    above: u64,
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
}

impl Default for LogHistogram {
    fn default() -> Self {
        Self {
            buckets: Vec::new(),
            below: 0,
            above: 0,
            count: 0,
            sum: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }
}

impl LogHistogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts `value`; NaN is not a number and is left out.
    #[inline]
    pub fn record(&mut self, value: f64) {
        // Negative numbers have the sign bit set and NaN the greatest exponent, so one comparison, that
        // of the index with the number of buckets, finds everything unusual; an empty list as well.
        let index = ((value.to_bits() >> SHIFT) as usize).wrapping_sub(FIRST as usize);
        match self.buckets.get_mut(index) {
            Some(bucket) => *bucket += 1,
            None if value.is_nan() => return,
            None => self.record_unusual(value),
        }
        self.count += 1;
        self.sum += value;
        if value < self.min || value > self.max {
            self.widen(value);
        }
    }

    /// Counts `value` so many `times`.
    pub fn record_many(&mut self, value: f64, times: u64) {
        let Some(more) = times.checked_sub(1).filter(|_| !value.is_nan()) else { return };
        self.record(value);
        let index = ((value.to_bits() as i64) >> SHIFT) - FIRST;
        let place = match usize::try_from(index) {
            Err(_) => &mut self.below,
            Ok(index) => self.buckets.get_mut(index).unwrap_or(&mut self.above),
        };
        *place += more;
        self.count += more;
        self.sum += value * more as f64;
    }

    /// Apart, because it hardly ever happens: a record is broken a dozen times in a million numbers.
    #[cold]
    fn widen(&mut self, value: f64) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// The first number, and numbers outside of the buckets.
    #[cold]
    fn record_unusual(&mut self, value: f64) {
        if self.buckets.is_empty() {
            self.buckets = vec![0; BUCKETS];
        }
        let index = ((value.to_bits() as i64) >> SHIFT) - FIRST;
        if index < 0 {
            self.below += 1;
        } else if let Some(bucket) = self.buckets.get_mut(index as usize) {
            *bucket += 1;
        } else {
            self.above += 1;
        }
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.buckets.is_empty() {
            self.buckets = vec![0; BUCKETS];
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.below += other.below;
        self.above += other.above;
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many numbers were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// Their mean, if there are any.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// The least of them.
    pub fn min(&self) -> Option<f64> {
        (self.count > 0).then_some(self.min)
    }

    /// The greatest of them.
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max)
    }

    /// The number of rank `ceil(q * count)` (nearest rank), within 0.05 %; `q` outside 0 to 1 is cut.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        if self.count == 0 || q.is_nan() {
            return None;
        }
        let rank = ((q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).clamp(1, self.count);
        if rank == self.count {
            return Some(self.max);
        }
        if rank == 1 || rank <= self.below {
            return Some(self.min);
        }
        let mut seen = self.below;
        for (index, &bucket) in self.buckets.iter().enumerate() {
            seen += bucket;
            if seen >= rank {
                return Some(middle(index).clamp(self.min, self.max));
            }
        }
        Some(self.max)
    }

    /// Points `(value, share of numbers that are at most value)` of the distribution, at most
    /// `max_points` of them.
    ///
    /// Half of the points are spread evenly over the shares and half over the logarithm of what lies
    /// above, because a tail drawn with evenly spread points would be a single corner.
    pub fn cdf(&self, max_points: usize) -> Vec<(f64, f64)> {
        if self.count == 0 || max_points == 0 {
            return Vec::new();
        }
        let mut shares = wanted_shares(max_points, self.count);
        shares.dedup();
        let mut wanted = shares.into_iter().peekable();
        let mut points: Vec<(f64, f64)> = Vec::with_capacity(max_points);
        let mut seen = 0;
        let buckets = self.buckets.iter().enumerate().map(|(at, &n)| (middle(at), n));
        let all = std::iter::once((self.min, self.below))
            .chain(buckets)
            .chain(std::iter::once((self.max, self.above)));
        for (value, count) in all {
            seen += count;
            let share = seen as f64 / self.count as f64;
            let mut reached = false;
            while wanted.peek().is_some_and(|&want| share >= want) {
                wanted.next();
                reached = true;
            }
            if reached && count > 0 {
                points.push((value.clamp(self.min, self.max), share));
            }
        }
        if let Some(last) = points.last_mut() {
            *last = (self.max, 1.0);
        }
        points
    }
}

/// Rising shares at which a picture of the distribution needs a point; the last is 1.
fn wanted_shares(max_points: usize, count: u64) -> Vec<f64> {
    let half = (max_points / 2).max(1);
    let body = (1..=half).map(|k| k as f64 / half as f64 * 0.9);
    let rest = max_points.saturating_sub(half).max(1);
    // From 1 - 0.1 down to 1 - 1/count, evenly in the logarithm.
    let smallest = (1.0 / count as f64).min(0.1);
    let tail = (1..=rest).map(|k| {
        let reach = k as f64 / rest as f64;
        1.0 - 0.1 * (smallest / 0.1).powf(reach)
    });
    let mut shares: Vec<f64> = body.chain(tail).collect();
    if let Some(last) = shares.last_mut() {
        *last = 1.0;
    }
    shares
}

/// The middle of a bucket.
fn middle(index: usize) -> f64 {
    let bits = ((FIRST as u64) + index as u64) << SHIFT;
    let half_a_bucket = 1_u64 << (SHIFT - 1);
    f64::from_bits(bits + half_a_bucket)
}

/// What a histogram looks like in files: only the counters that count.
#[derive(Clone, Serialize, Deserialize)]
struct Sparse {
    buckets: Vec<(u32, u64)>,
    below: u64,
    above: u64,
    sum: f64,
    min: Option<f64>,
    max: Option<f64>,
}

impl From<LogHistogram> for Sparse {
    fn from(full: LogHistogram) -> Self {
        let counted = full.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        Self {
            buckets: counted.map(|(index, &count)| (index as u32, count)).collect(),
            below: full.below,
            above: full.above,
            sum: full.sum,
            min: full.min(),
            max: full.max(),
        }
    }
}

impl TryFrom<Sparse> for LogHistogram {
    type Error = String;

    fn try_from(sparse: Sparse) -> Result<Self, String> {
        let mut full = Self::default();
        let mut count = sparse.below.saturating_add(sparse.above);
        if !sparse.buckets.is_empty() || count > 0 {
            full.buckets = vec![0; BUCKETS];
        }
        for (index, added) in sparse.buckets {
            let bucket = full.buckets.get_mut(index as usize).ok_or_else(|| {
                format!("bucket {index} does not exist, allowed is 0 to {}", BUCKETS - 1)
            })?;
            *bucket = bucket.saturating_add(added);
            count = count.saturating_add(added);
        }
        full.below = sparse.below;
        full.above = sparse.above;
        full.count = count;
        full.sum = sparse.sum;
        full.min = sparse.min.unwrap_or(f64::INFINITY);
        full.max = sparse.max.unwrap_or(f64::NEG_INFINITY);
        if full.count > 0 && (sparse.min.is_none() || full.min > full.max) {
            return Err("a histogram with numbers in it needs min and max, min first".to_owned());
        }
        Ok(full)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[f64]) -> LogHistogram {
        let mut histogram = LogHistogram::new();
        values.iter().for_each(|&value| histogram.record(value));
        histogram
    }

    fn exact(values: &[f64], q: f64) -> f64 {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let rank = ((q * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len());
        sorted[rank - 1]
    }

    #[test]
    fn an_empty_histogram_has_no_quantiles() {
        let empty = LogHistogram::new();
        assert_eq!(empty.quantile(0.5), None);
        assert_eq!(empty.mean(), None);
        assert!(empty.cdf(10).is_empty());
    }

    #[test]
    fn extremes_are_exact_and_odd_numbers_do_no_harm() {
        let histogram = of(&[-3.0, 0.0, 1e-300, 5.0, f64::NAN, 1e300]);
        assert_eq!(histogram.count(), 5);
        assert_eq!((histogram.min(), histogram.max()), (Some(-3.0), Some(1e300)));
        assert_eq!(histogram.quantile(1.0), Some(1e300));
        assert_eq!(histogram.quantile(0.0), Some(-3.0));
    }

    #[test]
    fn memory_stays_under_half_a_megabyte() {
        assert!(BUCKETS * size_of::<u64>() <= 500_000);
    }

    #[test]
    fn a_foreign_bucket_is_refused_by_name() {
        let text = r#"{"buckets":[[99999,1]],"below":0,"above":0,"sum":1.0,"min":1.0,"max":1.0}"#;
        let error = serde_json::from_str::<LogHistogram>(text).unwrap_err().to_string();
        assert!(error.contains("bucket 99999 does not exist"), "{error}");
    }

    proptest! {
        #[test]
        fn many_are_as_many_as_one_by_one(value in prop_oneof![-9.0..9.0, Just(1e300)], times in 0u64..9) {
            let mut many = of(&[2.0]);
            many.record_many(value, times);
            let one_by_one = of(&[&[2.0][..], &vec![value; times as usize]].concat());
            prop_assert!((many.sum() - one_by_one.sum()).abs() <= 1e-12 * one_by_one.sum().abs());
            prop_assert_eq!(LogHistogram { sum: 0.0, ..many }, LogHistogram { sum: 0.0, ..one_by_one });
        }

        #[test]
        fn quantiles_are_within_a_twentieth_of_a_percent(
            logs in prop::collection::vec(-13.8_f64..20.7, 1..400),
            q in 0.0_f64..=1.0,
        ) {
            let values: Vec<f64> = logs.iter().map(|x| x.exp()).collect();
            let (got, want) = (of(&values).quantile(q).unwrap(), exact(&values, q));
            prop_assert!((got / want - 1.0).abs() <= 0.0005, "{got} for {want}");
        }

        #[test]
        fn equal_quantiles_are_of_numbers_within_a_thousandth(
            log in -13.8_f64..20.7,
            apart in 0.001_f64..0.01,
        ) {
            let (small, large) = (log.exp(), log.exp() * (1.0 + apart));
            let median = |value: f64| of(&[1e-6, value, value, 1e9]).quantile(0.5).unwrap();
            prop_assert!(median(small) < median(large), "{small} and {large}");
        }

        #[test]
        fn merging_is_the_same_as_counting_together(
            left in prop::collection::vec(0.001_f64..1e6, 0..50),
            right in prop::collection::vec(0.001_f64..1e6, 0..50),
        ) {
            let mut merged = of(&left);
            merged.merge(&of(&right));
            let together = of(&[left, right].concat());
            prop_assert_eq!(merged.count(), together.count());
            prop_assert_eq!(merged.quantile(0.9), together.quantile(0.9));
            prop_assert_eq!(merged.max(), together.max());
        }

        #[test]
        fn the_distribution_rises_to_one_in_few_points(
            values in prop::collection::vec(0.001_f64..1e6, 1..600),
            most in 1_usize..100,
        ) {
            let points = of(&values).cdf(most);
            prop_assert!(!points.is_empty() && points.len() <= most.max(2));
            prop_assert!(points.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 <= w[1].1));
            prop_assert_eq!(points.last().unwrap().1, 1.0);
        }

        #[test]
        fn a_histogram_survives_a_file(values in prop::collection::vec(0.001_f64..1e6, 0..60)) {
            let before = of(&values);
            let text = serde_json::to_string(&before).unwrap();
            let after: LogHistogram = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(before.quantile(0.5), after.quantile(0.5));
            prop_assert_eq!(before.count(), after.count());
        }
    }
}
