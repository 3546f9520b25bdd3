//! Who may be managed: the mode of the whole, holds on single functions, and the kill switch.
//!
//! ```text
//!                      kill switch ──► own allocation, every function
//!   pinned by a user ──────────────► that size
//!   paused by a user ──────────────► own allocation
//!   observe, recommend ────────────► own allocation; decisions are recorded, recommendations are made
//!   canary ────────────────────────► a fixed share of functions is managed, the others keep their own
//!   auto ──────────────────────────► managed
//! ```
//!
//! It is enforced by two safeguards at the end of the chains ([`TickRule`], [`CallRule`]), so that a policy is asked and
//! recorded in every mode and can never act outside of it.

mod call_rule;
mod tick_rule;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::{PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use windfall_core::seed::mix;
use windfall_core::{Allocation, FunctionId};

pub use call_rule::CallRule;
pub use tick_rule::TickRule;

/// Names under which the rules of this module are recorded. They carry out an order of a user, so they are not counted
/// as trips of a safeguard.
pub const ORDER_RULES: [&str; 2] = ["manager-mode", "manager-hold"];

/// How much the manager may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case")]
pub enum Mode {
    /// Nothing: it looks and records.
    Observe,
    /// Nothing by itself: it looks, records, and proposes a size for each function.
    #[default]
    Recommend,
    /// Manages a share of the functions, always the same ones for the same share.
    Canary {
        /// Share of functions, 0 to 1.
        share: f64,
    },
    /// Manages every function.
    Auto,
}

impl Mode {
    /// The share of functions that a canary has if none is given.
    pub const CANARY_SHARE: f64 = 0.1;

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Recommend => "recommend",
            Self::Canary { .. } => "canary",
            Self::Auto => "auto",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Canary { share } => write!(f, "canary:{share}"),
            Self::Observe | Self::Recommend | Self::Auto => f.write_str(self.name()),
        }
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "mode is `{text}`, allowed is observe, recommend, canary, canary:SHARE (0 to 1) or auto"
            )
        };
        match text {
            "observe" => Ok(Self::Observe),
            "recommend" => Ok(Self::Recommend),
            "canary" => Ok(Self::Canary { share: Self::CANARY_SHARE }),
            "auto" => Ok(Self::Auto),
            _ => {
                let share = text.strip_prefix("canary:").and_then(|share| share.parse().ok());
                let share = share.filter(|share| (0.0..=1.0).contains(share)).ok_or_else(wrong)?;
                Ok(Self::Canary { share })
            }
        }
    }
}

/// An order about one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Hold {
    /// It keeps its own allocation.
    Paused,
    /// It has this size.
    Pinned {
        /// The size.
        size: Allocation,
    },
}

/// What holds for one function now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The policy decides, within its safeguards.
    Managed,
    /// It has what its user reserves, for this reason.
    Own(&'static str),
    /// It has the size that a user pinned.
    Pinned(Allocation),
}

/// Orders of users, shared by the loops and the API. A change is in force with the next decision.
#[derive(Debug, Default)]
pub struct Governance {
    orders: RwLock<Orders>,
}

#[derive(Clone, Debug, Default)]
struct Orders {
    mode: Mode,
    is_killed: bool,
    holds: BTreeMap<FunctionId, Hold>,
    /// Functions whose size was changed from here and not yet seen back at the user's own.
    touched: BTreeSet<FunctionId>,
    /// Those of them that may be too small after a restart; nobody manages them until they were seen whole.
    restoring: BTreeSet<FunctionId>,
    /// Functions whose latency at their own size is not known yet.
    unmeasured: BTreeSet<FunctionId>,
}

impl Governance {
    /// Begins in `mode` with nothing held.
    pub fn new(mode: Mode) -> Self {
        Self { orders: RwLock::new(Orders { mode, ..Orders::default() }) }
    }

    fn read<T>(&self, with: impl FnOnce(&Orders) -> T) -> T {
        with(&self.orders.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, with: impl FnOnce(&mut Orders) -> T) -> T {
        with(&mut self.orders.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// The mode in force; the kill switch stands above it.
    pub fn mode(&self) -> Mode {
        self.read(|orders| orders.mode)
    }

    /// Sets the mode.
    pub fn set_mode(&self, mode: Mode) {
        self.write(|orders| orders.mode = mode);
    }

    /// Whether the kill switch is on.
    pub fn is_killed(&self) -> bool {
        self.read(|orders| orders.is_killed)
    }

    /// Turns the kill switch on (every function has its own allocation) or off.
    pub fn set_killed(&self, is_killed: bool) {
        self.write(|orders| orders.is_killed = is_killed);
    }

    /// The order about `function`, if there is one.
    pub fn hold(&self, function: FunctionId) -> Option<Hold> {
        self.read(|orders| orders.holds.get(&function).copied())
    }

    /// Every order about a function.
    pub fn holds(&self) -> BTreeMap<FunctionId, Hold> {
        self.read(|orders| orders.holds.clone())
    }

    /// Gives an order about `function`, or takes it back.
    pub fn set_hold(&self, function: FunctionId, hold: Option<Hold>) {
        self.write(|orders| match hold {
            Some(hold) => orders.holds.insert(function, hold),
            None => orders.holds.remove(&function),
        });
    }

    /// What holds for `function`.
    pub fn standing(&self, function: FunctionId) -> Standing {
        self.read(|orders| orders.standing(function))
    }

    /// Lets calls of `function` have their own size until their latency at it is known, or ends that.
    pub fn set_unmeasured(&self, function: FunctionId, is_unmeasured: bool) {
        self.write(|orders| match is_unmeasured {
            true => orders.unmeasured.insert(function),
            false => orders.unmeasured.remove(&function),
        });
    }

    /// What holds for a call of `function`: as for the function, and its own size while there is nothing to judge another
    /// one by.
    pub fn standing_of_call(&self, function: FunctionId) -> Standing {
        self.read(|orders| match orders.standing(function) {
            Standing::Managed if orders.unmeasured.contains(&function) => {
                Standing::Own("its latency at its own size is being measured")
            }
            standing => standing,
        })
    }

    /// Notes that the size of `function` was changed from here, in this run or in an earlier one.
    pub fn touch(&self, function: FunctionId) {
        self.write(|orders| orders.touched.insert(function));
    }

    /// Gives `function` its own size back before anything else is decided about it.
    pub fn restore(&self, function: FunctionId) {
        self.write(|orders| {
            orders.touched.insert(function);
            orders.restoring.insert(function);
        });
    }

    /// Notes that `function` was seen at its own size again.
    pub fn untouch(&self, function: FunctionId) {
        self.write(|orders| {
            orders.touched.remove(&function);
            orders.restoring.remove(&function);
        });
    }

    /// Functions that were changed from here and must get their own size back.
    pub fn to_restore(&self) -> usize {
        self.read(|orders| {
            let is_owed = |id: &&FunctionId| matches!(orders.standing(**id), Standing::Own(_));
            orders.touched.iter().filter(is_owed).count()
        })
    }

    /// Functions whose size was changed from here and not seen back.
    pub fn touched(&self) -> BTreeSet<FunctionId> {
        self.read(|orders| orders.touched.clone())
    }
}

impl Orders {
    fn standing(&self, function: FunctionId) -> Standing {
        if self.is_killed {
            return Standing::Own("the kill switch is on");
        }
        if self.restoring.contains(&function) {
            return Standing::Own("its size was in doubt after a restart");
        }
        match (self.holds.get(&function), self.mode) {
            (Some(Hold::Pinned { size }), _) => Standing::Pinned(*size),
            (Some(Hold::Paused), _) => Standing::Own("the function is paused"),
            (None, Mode::Observe) => Standing::Own("the mode is observe"),
            (None, Mode::Recommend) => Standing::Own("the mode is recommend"),
            (None, Mode::Canary { share }) if !is_canary(function, share) => {
                Standing::Own("the function is not in the canary")
            }
            (None, Mode::Canary { .. } | Mode::Auto) => Standing::Managed,
        }
    }
}

/// Whether `function` belongs to the share that a canary manages. A larger share contains every smaller one.
pub fn is_canary(function: FunctionId, share: f64) -> bool {
    let place = mix(u64::from(function.0) + 1) as f64 / u64::MAX as f64;
    place < share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_as_they_are_written() {
        for text in ["observe", "recommend", "canary:0.25", "auto"] {
            assert_eq!(text.parse::<Mode>().unwrap().to_string(), text);
        }
        let refused = "canary:2".parse::<Mode>().unwrap_err();
        assert!(refused.contains("`canary:2`") && refused.contains("canary:SHARE"), "{refused}");
    }

    #[test]
    fn the_kill_switch_stands_above_pins_and_pins_above_modes() {
        let (governance, function) = (Governance::new(Mode::Auto), FunctionId(3));
        assert_eq!(governance.standing(function), Standing::Managed);
        let size = Allocation::new(250, 128);
        governance.set_hold(function, Some(Hold::Pinned { size }));
        governance.set_mode(Mode::Observe);
        assert_eq!(governance.standing(function), Standing::Pinned(size));
        governance.set_killed(true);
        assert_eq!(governance.standing(function), Standing::Own("the kill switch is on"));
    }

    #[test]
    fn a_canary_is_a_fixed_share_and_grows_without_losing_members() {
        let members = |share: f64| {
            (0..2000).map(FunctionId).filter(|id| is_canary(*id, share)).collect::<BTreeSet<_>>()
        };
        let (few, more) = (members(0.1), members(0.3));
        assert!((150..250).contains(&few.len()), "{}", few.len());
        assert!(few.is_subset(&more) && members(0.0).is_empty() && members(1.0).len() == 2000);
    }
}
