//! How many standard deviations more a node keeps free, learned from the share of calls that were harmed.
//!
//! ```text
//!   a call was harmed        caution += step * (1 - allowed)
//!   a call was not           caution -= step * allowed                        always within its range
//! ```
//!
//! Where the caution is not at an end of its range, the share of harmed calls comes to what is allowed in the long run,
//! whatever the calls are like: with a step of 0.02 and 0.1 % allowed, one harmed call is made up for by 999 others.

/// Settings of caution: how far the margin follows harmed calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CautionSettings {
    /// Share of calls that may be harmed.
    pub allowed: f64,
    /// What one harmed call adds, standard deviations.
    pub step: f64,
    /// The least caution.
    pub least: f64,
    /// The most.
    pub most: f64,
}

/// Standard deviations that are kept free beside the usual ones.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Caution {
    settings: Option<CautionSettings>,
    now: f64,
}

impl Caution {
    pub(super) fn new(settings: Option<CautionSettings>) -> Self {
        Self { settings, now: 0.0 }
    }

    pub(super) fn now(&self) -> f64 {
        self.now
    }

    pub(super) fn note(&mut self, was_harmed: bool) {
        let Some(CautionSettings { allowed, step, least, most }) = self.settings else { return };
        let change = step * (f64::from(was_harmed) - allowed);
        self.now = (self.now + change).clamp(least, most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_harmed_calls_comes_to_what_is_allowed() {
        let settings = CautionSettings { allowed: 0.001, step: 0.02, least: -0.25, most: 2.0 };
        let mut caution = Caution::new(Some(settings));
        // The more is kept free, the fewer calls are harmed: one in a thousand at a caution of 1.
        let (mut harmed, calls) = (0, 200_000);
        let mut credit = 0.0;
        for _ in 0..calls {
            credit += 0.01 * (-caution.now() * 10f64.ln()).exp();
            let was_harmed = credit >= 1.0;
            credit -= f64::from(was_harmed);
            harmed += u32::from(was_harmed);
            caution.note(was_harmed);
        }
        assert!((caution.now() - 1.0).abs() < 0.1, "{caution:?}");
        assert!((180..=320).contains(&harmed), "{harmed} of {calls}");
    }

    #[test]
    fn without_settings_nothing_changes() {
        let mut caution = Caution::default();
        caution.note(true);
        assert_eq!(caution.now(), 0.0);
    }
}
