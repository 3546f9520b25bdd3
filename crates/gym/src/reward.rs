//! What a tick pays a function, term by term.
//!
//! ```text
//!   reward = alpha x SLO preservation + (1 - alpha) x utilisation           alpha = 0.7
//!          = -1  if it is called and has no instance       ("no-instances")
//!          = -1  if its number of instances turns back     ("reversal")
//! ```
//!
//! These are the published serverless reward and its overrides. Utilisation is that of CPU or the mean of CPU
//! and memory. What an override takes away is kept under its name, so that a report can distinguish a function that
//! is slow from one that flaps: at 90 % preserved and 50 % used a tick pays 0.78; if it is also a
//! reversal it pays -1, and the term is -1.78.

use serde::{Deserialize, Serialize};

/// Which terms count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RewardSettings {
    /// Weight of SLO preservation against utilisation.
    pub alpha: f64,
    /// Utilisation is the mean of CPU and memory instead of CPU alone.
    pub memory_counts: bool,
    /// Whether a called function without instances pays -1.
    pub no_instances: bool,
    /// Whether a reversal of the number of instances in consecutive ticks pays -1.
    pub reversal: bool,
}

impl Default for RewardSettings {
    fn default() -> Self {
        Self { alpha: 0.7, memory_counts: false, no_instances: true, reversal: true }
    }
}

/// What a reward is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Earned {
    /// SLO preservation, 0 to 1.
    pub preserved: f64,
    /// CPU used of what was held, 0 to 1.
    pub cpu_utilisation: f64,
    /// Memory used of what was held, 0 to 1.
    pub memory_utilisation: f64,
    /// Whether somebody called and no instance was there.
    pub is_without_instances: bool,
    /// Whether the number of instances turned back.
    pub is_reversal: bool,
}

/// A reward with its terms; they add up to the total.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Paid {
    /// For keeping the objective.
    pub slo: f64,
    /// For using what is held.
    pub utilisation: f64,
    /// For having no instance.
    pub no_instances: f64,
    /// For flapping.
    pub reversal: f64,
}

impl Paid {
    /// The reward.
    pub fn total(&self) -> f64 {
        self.slo + self.utilisation + self.no_instances + self.reversal
    }
}

impl RewardSettings {
    /// What `earned` is worth.
    pub fn pay(&self, earned: &Earned) -> Paid {
        let used = if self.memory_counts {
            0.5 * (earned.cpu_utilisation + earned.memory_utilisation)
        } else {
            earned.cpu_utilisation
        };
        let mut paid = Paid {
            slo: self.alpha * earned.preserved,
            utilisation: (1.0 - self.alpha) * used,
            ..Paid::default()
        };
        let down = -1.0 - paid.total();
        if self.no_instances && earned.is_without_instances {
            paid.no_instances = down;
        } else if self.reversal && earned.is_reversal {
            paid.reversal = down;
        }
        paid
    }
}

#[test]
fn terms_by_hand() {
    let earned = Earned { preserved: 0.9, cpu_utilisation: 0.5, ..Earned::default() };
    let paid = RewardSettings::default().pay(&earned);
    assert!((paid.total() - 0.78).abs() < 1e-12);
    let paid = RewardSettings::default().pay(&Earned { is_reversal: true, ..earned });
    assert_eq!(paid.total(), -1.0);
    assert!((paid.reversal + 1.78).abs() < 1e-12);
    let calm = RewardSettings { reversal: false, memory_counts: true, ..RewardSettings::default() };
    let paid = calm.pay(&Earned { is_reversal: true, memory_utilisation: 1.0, ..earned });
    assert!((paid.total() - (0.63 + 0.3 * 0.75)).abs() < 1e-12);
}
