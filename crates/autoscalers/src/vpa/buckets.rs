//! Bucket layout of the histograms: buckets that grow by 5 %.
//!
//! ```text
//!  bucket   0        1         2            3                       n
//!  start    0     first   2.05·first   3.1525·first   first·(r^n - 1)/(r - 1),  r = 1.05
//! ```
//!
//! CPU starts with buckets of 10 millicores and ends above 1000 cores; memory starts with 10 MB and ends above 1 TB;
//! both have 176 buckets. A use of 7 millicores falls into bucket 0 and is reported as its end, 10 millicores.
//!
//! The starts are computed as Go computes powers, by repeated squaring with a scaled mantissa. It rounds differently
//! from the C library: memory bucket 4 starts at 43101249.99 instead of 43101250, which changes a recommendation by one
//! byte.

use std::sync::LazyLock;

use crate::go_numbers::power;

/// Growth from bucket to bucket.
const RATIO: f64 = 1.05;

/// The buckets of one resource.
#[derive(Debug)]
pub struct BucketLayout {
    first: f64,
    starts: Vec<f64>,
}

static CPU: LazyLock<BucketLayout> = LazyLock::new(|| BucketLayout::new(0.01, 1000.0));
static MEMORY: LazyLock<BucketLayout> = LazyLock::new(|| BucketLayout::new(1e7, 1e12));

impl BucketLayout {
    /// For CPU, in cores.
    pub fn cpu() -> &'static Self {
        &CPU
    }

    /// For memory, in bytes.
    pub fn memory() -> &'static Self {
        &MEMORY
    }

    fn new(first: f64, range: f64) -> Self {
        let count = place(range, first).ceil() as u32 + 1;
        let start = |bucket| first * (power(RATIO, bucket) - 1.0) / (RATIO - 1.0);
        let starts = (0..count).map(|bucket| if bucket == 0 { 0.0 } else { start(bucket) });
        Self { first, starts: starts.collect() }
    }

    /// Number of buckets.
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// Start of `bucket`; the start of the last one for any beyond it.
    pub fn start(&self, bucket: usize) -> f64 {
        self.starts[bucket.min(self.starts.len() - 1)]
    }

    /// The bucket of `value`.
    pub fn find(&self, value: f64) -> usize {
        if value < self.first {
            return 0;
        }
        (place(value, self.first) as usize).min(self.starts.len() - 1)
    }
}

/// Fractional position of a value; its integer part is the bucket.
fn place(value: f64, first: f64) -> f64 {
    (value * (RATIO - 1.0) / first + 1.0).ln() / RATIO.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_round_as_in_go_and_not_as_in_the_c_library() {
        assert_eq!(BucketLayout::memory().start(4) as i64, 43_101_249);
        assert_eq!(BucketLayout::cpu().count(), 176);
        assert_eq!(BucketLayout::memory().count(), 176);
    }

    #[test]
    fn rounding_puts_two_bucket_starts_into_the_bucket_below() {
        assert_eq!(BucketLayout::memory().find(20_500_000.0), 1);
        assert_eq!(BucketLayout::memory().find(31_525_000.0), 2);
        assert_eq!(BucketLayout::cpu().find(0.007), 0);
        assert_eq!(BucketLayout::cpu().find(1e9), 175);
    }
}
