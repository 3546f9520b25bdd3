//! How long only a small share of all calls run, followed call by call.
//!
//! ```text
//!   a call that runs longer:  limit x (1 + step (1 - share))        a shorter one:  limit x (1 - step share)
//! ```
//!
//! At rest both cancel out: with a share of 0.3 %, 3 longer calls in 1,000 raise the limit by 3 x 0.997 steps, the
//! other 997 lower it by 997 x 0.003. A limit that begins ten times too high is right after 15,000 calls.

/// Begins high: until calls have ended, none counts as long.
const FIRST_SECONDS: f64 = 60.0;
/// How far one call moves the limit, as a share of it.
const STEP: f64 = 0.05;

/// The limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct LongRun {
    seconds: f64,
}

impl Default for LongRun {
    fn default() -> Self {
        Self { seconds: FIRST_SECONDS }
    }
}

impl LongRun {
    /// Calls that have run longer than this are long.
    pub(super) fn seconds(&self) -> f64 {
        self.seconds
    }

    /// A call has run for `seconds`; about `share` of calls are to be above the limit.
    pub(super) fn learn(&mut self, seconds: f64, share: f64) {
        let is_longer = seconds > self.seconds;
        self.seconds *= 1.0 + STEP * (f64::from(is_longer) - share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_settles_where_few_calls_are_longer() {
        let mut long = LongRun::default();
        // Runs of 1 to 1000 ms, evenly: three in a thousand are longer than 997 ms.
        for n in 0..200_000u32 {
            long.learn(f64::from(1 + n * 7919 % 1000) * 1e-3, 0.003);
        }
        assert!((long.seconds() - 0.997).abs() < 0.15, "{}", long.seconds());
    }
}
