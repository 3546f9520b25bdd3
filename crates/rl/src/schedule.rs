//! Numbers that change over the course of training.

use serde::{Deserialize, Serialize};

/// A setting as a function of the share of training that is done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Schedule {
    /// Always the same.
    Constant {
        /// The value.
        value: f32,
    },
    /// On a straight line, then constant.
    Linear {
        /// At the beginning.
        from: f32,
        /// At `until` and after.
        to: f32,
        /// The share of training at which `to` is reached, above 0 and at most 1.
        until: f32,
    },
}

impl Schedule {
    /// Always `value`.
    pub const fn constant(value: f32) -> Self {
        Self::Constant { value }
    }

    /// From one value to another over all of training.
    pub const fn linear(from: f32, to: f32) -> Self {
        Self::Linear { from, to, until: 1.0 }
    }

    /// The value when `done` of `total` iterations are behind us.
    #[expect(clippy::cast_precision_loss, reason = "a share needs few digits")]
    pub fn at(self, done: u64, total: u64) -> f32 {
        match self {
            Self::Constant { value } => value,
            Self::Linear { from, to, until } => {
                let share = (done as f64 / total.max(1) as f64) as f32 / until;
                from + (to - from) * share.min(1.0)
            }
        }
    }
}

#[test]
fn a_line_is_walked_once_and_then_left() {
    let line = Schedule::Linear { from: 1.0, to: 0.5, until: 0.5 };
    assert_eq!([0, 25, 50, 75].map(|done| line.at(done, 100)), [1.0, 0.75, 0.5, 0.5]);
    assert_eq!(Schedule::constant(3.0).at(7, 9), 3.0);
}
