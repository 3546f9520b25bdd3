//! Rewards: the authors' own and the four designs the course asks for (task 3).

use serde::{Deserialize, Serialize};

use super::table::Row;

/// What an illegal or undesired action pays where a design punishes it.
pub const PENALTY: f64 = -1.0;

/// What a step is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// 0.3 utilisation + 0.7 SLO preservation, with all penalties: the authors' code.
    Authors,
    /// Task 3.1: SLO preservation only.
    OverProvisioning,
    /// Task 3.2: utilisation only.
    TightPacking,
    /// Task 3.3: the mean of both.
    Balance,
    /// Task 3.4: the mean of both, and a penalty for illegal moves and for reversals.
    Penalties,
}

/// What happened besides the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conduct {
    /// The action was refused.
    pub illegal: bool,
    /// Containers went up and down in two consecutive legal steps, or down and up.
    pub reversal: bool,
    /// There is load and no container.
    pub abandoned: bool,
}

impl Design {
    /// The four designs of task 3, in its order.
    pub const TASKS: [Self; 4] =
        [Self::OverProvisioning, Self::TightPacking, Self::Balance, Self::Penalties];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Authors => "authors",
            Self::OverProvisioning => "over-provisioning",
            Self::TightPacking => "tight-packing",
            Self::Balance => "balance",
            Self::Penalties => "penalties",
        }
    }

    /// What a state is worth, 0 to 1.
    pub fn score(self, util: f64, slo: f64) -> f64 {
        match self {
            Self::Authors => 0.3 * util + 0.7 * slo,
            Self::OverProvisioning => slo,
            Self::TightPacking => util,
            Self::Balance | Self::Penalties => f64::midpoint(util, slo),
        }
    }

    /// What a step pays that led to `row`, -1 to 1.
    pub fn pay(self, row: Row, conduct: Conduct) -> f64 {
        let Conduct { illegal, reversal, abandoned } = conduct;
        let is_punished = match self {
            Self::Authors => illegal | reversal | abandoned,
            Self::Penalties => illegal | reversal,
            Self::OverProvisioning | Self::TightPacking | Self::Balance => false,
        };
        // Looked up, because nobody can predict it while an agent explores.
        [self.score(row.util, row.slo), PENALTY][usize::from(is_punished)]
    }

    /// The course's own check of a design on three fixed states; nothing where the course has none.
    ///
    /// With (utilisation, SLO preservation) a = (.5, .7), b = (.8, .7), c = (.5, .9): over-provisioning
    /// must rank a below c, tight packing a below b, balance a below both.
    pub fn ranks_as_the_course_asks(self) -> Option<bool> {
        let [a, b, c] =
            [(0.5, 0.7), (0.8, 0.7), (0.5, 0.9)].map(|(util, slo)| self.score(util, slo));
        match self {
            Self::OverProvisioning => Some(a < c),
            Self::TightPacking => Some(a < b),
            Self::Balance => Some(a < b && a < c),
            Self::Authors | Self::Penalties => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn designs_pass_the_course_check() {
        let checked = Design::TASKS.map(Design::ranks_as_the_course_asks);
        assert_eq!(checked, [Some(true), Some(true), Some(true), None]);
    }

    #[test]
    fn penalties_replace_the_score() {
        let row = Row { util: 0.5, slo: 0.9, latency: 1.0 };
        let fine = Conduct::default();
        let illegal = Conduct { illegal: true, ..fine };
        let reversal = Conduct { reversal: true, ..fine };
        assert_eq!(Design::Authors.pay(row, fine), 0.78);
        assert_eq!(Design::Authors.pay(row, Conduct { abandoned: true, ..fine }), -1.0);
        assert_eq!(Design::Penalties.pay(row, illegal), -1.0);
        assert_eq!(Design::Penalties.pay(row, reversal), -1.0);
        assert_eq!(Design::Balance.pay(row, illegal), 0.7);
    }
}
