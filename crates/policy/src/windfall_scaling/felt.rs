//! What a wait feels like, in felt waits: 1 is a wait that is felt whole.

/// How much of a wait is felt by a call that runs so long, both in seconds: a tenth of the run time is felt whole. A call
/// of 10 s feels half of a wait of 0.5 s; one below 100 ms feels as one of 100 ms does.
pub(super) fn felt(wait: f64, run: f64) -> f64 {
    (wait / (0.1 * run.max(0.1))).min(1.0)
}

/// How much more a wait for the first instance of a rarely called function counts, so that busy functions do not decide
/// alone: with a fairness of 0.3 one call per hour makes it 3.4, a hundred 1.15.
pub(super) fn rarity(calls_per_second: f64, fairness: f64) -> f64 {
    let per_hour = (3600.0 * calls_per_second).max(1.0);
    (1.0 + 60.0 / per_hour).powf(fairness)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_numbers() {
        assert!((felt(0.5, 10.0) - 0.5).abs() < 1e-12);
        assert!((felt(0.005, 0.001) - 0.5).abs() < 1e-12, "as a call of 100 ms does");
        assert_eq!(felt(3.0, 1.0), 1.0);
        assert!((rarity(1.0 / 3600.0, 0.3) - 3.433).abs() < 1e-3);
        assert!((rarity(100.0 / 3600.0, 0.3) - 1.151).abs() < 1e-3);
        assert_eq!(rarity(0.5, 0.0), 1.0);
    }
}
