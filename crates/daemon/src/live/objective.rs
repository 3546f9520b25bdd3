//! The latency objective of one function and how much of its error budget is left.

use serde::Serialize;

/// How many runs at the user's own size the objective is learned from.
pub(super) const LEARNED_FROM: usize = 20;

/// 99 of 100 calls within a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Objective {
    /// From arrival to end, milliseconds; nothing while it is being learned.
    pub target_ms: Option<f64>,
    /// Share of calls that must meet it.
    pub share: f64,
    /// Whether a user has set it.
    pub is_set: bool,
}

impl Default for Objective {
    fn default() -> Self {
        Self { target_ms: None, share: 0.99, is_set: false }
    }
}

impl Objective {
    /// The target of a function whose user has set none: one and a half times the p99 of its run time at its own size,
    /// and its usual cold start. A function that takes 200 ms at its own size and starts in 300 ms has 600 ms.
    pub(super) fn learned(own_run_p99_ms: f64, cold_start_ms: f64) -> f64 {
        1.5 * own_run_p99_ms + cold_start_ms
    }

    /// The share of the error budget that is left after `violations` among `calls`: 1 untouched, 0 used up, negative
    /// overdrawn. With 1000 calls and a share of 0.99, ten may be late; after four, 0.6 is left.
    pub fn budget_left(&self, calls: u64, violations: u64) -> f64 {
        let allowed = (1.0 - self.share) * calls as f64;
        if violations == 0 {
            return 1.0;
        }
        (1.0 - violations as f64 / allowed.max(1.0)).max(-9.99)
    }
}

/// How a function stands against its objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SloState {
    /// More late calls than allowed in the last hour.
    Violated,
    /// More than half of what is allowed.
    AtRisk,
    /// Not enough calls to know its target.
    Learning,
    /// Not called in the last hour.
    Idle,
    /// As it should be.
    Met,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_what_is_allowed_less_what_was_late() {
        let objective = Objective::default();
        assert!((objective.budget_left(1000, 4) - 0.6).abs() < 1e-9);
        assert_eq!(objective.budget_left(1000, 0), 1.0);
        assert!(objective.budget_left(1000, 20) < 0.0);
    }

    #[test]
    fn one_late_call_of_a_rare_function_does_not_overdraw_its_budget() {
        assert_eq!(Objective::default().budget_left(3, 1), 0.0);
    }
}
