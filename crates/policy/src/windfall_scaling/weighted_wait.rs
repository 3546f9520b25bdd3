//! Weights waits by the run time of the call: 1 is a wait that counts in full.

/// Fraction of `wait` that counts against a call running for `run`, both in seconds, capped at 1 from a tenth of the run
/// time on. For a call of 10 s a wait of 0.5 s has weight 0.5; calls below 100 ms are weighted like one of 100 ms.
pub(super) fn weighted_wait(wait: f64, run: f64) -> f64 {
    (wait / (0.1 * run.max(0.1))).min(1.0)
}

/// Extra weight of a wait for the first instance of a rarely called function, so that busy functions do not dominate:
/// with a fairness of 0.3 it is 3.4 at one call per hour and 1.15 at a hundred.
pub(super) fn rarity(calls_per_second: f64, fairness: f64) -> f64 {
    let per_hour = (3600.0 * calls_per_second).max(1.0);
    (1.0 + 60.0 / per_hour).powf(fairness)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_numbers() {
        assert!((weighted_wait(0.5, 10.0) - 0.5).abs() < 1e-12);
        assert!(
            (weighted_wait(0.005, 0.001) - 0.5).abs() < 1e-12,
            "weighted like a call of 100 ms"
        );
        assert_eq!(weighted_wait(3.0, 1.0), 1.0);
        assert!((rarity(1.0 / 3600.0, 0.3) - 3.433).abs() < 1e-3);
        assert!((rarity(100.0 / 3600.0, 0.3) - 1.151).abs() < 1e-3);
        assert_eq!(rarity(0.5, 0.0), 1.0);
    }
}
