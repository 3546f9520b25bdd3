//! The candidate limits: a geometric ladder.
//!
//! ```text
//!  rung     0        1            2                k
//!  limit  least   least · r   least · r²     least · r^k
//! ```
//!
//! CPU: 400 rungs from 10 millicores, 3 % apart, reach 1330 cores. 0.25 cores are between rung 108 (0.2435)
//! and rung 109 (0.2508), and belong to the latter: the lowest limit that covers them.

/// Candidate limits in ascending order.
#[derive(Clone, Debug, PartialEq)]
pub struct Ladder {
    limits: Vec<f64>,
}

impl Ladder {
    /// Creates `count` limits (at least one) from `least` on, each `ratio` times the previous one.
    pub fn new(least: f64, ratio: f64, count: usize) -> Self {
        let rungs = 0..count.max(1) as i32;
        Self { limits: rungs.map(|rung| least * ratio.powi(rung)).collect() }
    }

    /// For CPU, in cores.
    pub fn cpu() -> Self {
        Self::new(0.01, 1.03, 400)
    }

    /// For memory, in MiB.
    pub fn memory() -> Self {
        Self::new(16.0, 1.03, 400)
    }

    /// All limits in ascending order.
    pub fn limits(&self) -> &[f64] {
        &self.limits
    }

    /// Lowest rung that covers `value`, or the last one if none does.
    pub fn rung(&self, value: f64) -> usize {
        self.limits.partition_point(|limit| *limit < value).min(self.limits.len() - 1)
    }

    /// Limit of a rung; the last limit for any rung beyond the end.
    pub fn limit(&self, rung: usize) -> f64 {
        self.limits[rung.min(self.limits.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_belongs_to_the_lowest_limit_that_covers_it() {
        let ladder = Ladder::cpu();
        assert_eq!(ladder.rung(0.25), 109);
        assert!((ladder.limit(109) - 0.2508).abs() < 1e-4);
        assert_eq!((ladder.rung(0.0), ladder.rung(0.01), ladder.rung(1e9)), (0, 0, 399));
        assert_eq!(ladder.rung(f64::NAN), 0);
    }
}
