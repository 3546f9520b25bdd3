//! What the faithful environment shows, for all numbers of containers and arrival rates: worked out once.
//!
//! A step of the table environment is a look-up and a few comparisons. With the closed form in its place it was nine
//! divisions, which took three quarters of its 40 ns.

use std::sync::LazyLock;

use super::table::{Row, faithful};
use super::{MOST_CONTAINERS, RATES};

/// The six numbers of the course's state.
pub(super) type State = [f32; 6];

/// One state of the server.
#[derive(Clone, Copy)]
pub(super) struct Shown {
    pub(super) row: Row,
    pub(super) state: State,
}

const CONTAINERS: usize = MOST_CONTAINERS as usize + 1;
const ALL_RATES: usize = *RATES.end() as usize + 1;

static SHOWN: LazyLock<[[Shown; ALL_RATES]; CONTAINERS]> = LazyLock::new(|| {
    std::array::from_fn(|containers| {
        std::array::from_fn(|rate| {
            let (containers, rate) = (containers as u32, rate as u32);
            let row = faithful(containers, rate);
            // The table knows 1024 shares per container and no others, whatever was drawn.
            Shown { row, state: state(row, 1024 * containers, 0, containers, rate) }
        })
    })
});

/// What the faithful mode shows; nothing for numbers that no episode has.
#[inline]
pub(super) fn shown(containers: u32, rate: u32) -> Option<&'static Shown> {
    SHOWN.get(containers as usize)?.get(rate as usize)
}

/// The state in the course's order and scale.
#[expect(clippy::cast_possible_truncation, reason = "observations are f32")]
pub(super) fn state(row: Row, shares: u32, others: u32, containers: u32, rate: u32) -> State {
    [
        row.util as f32,
        row.slo as f32,
        (f64::from(shares) / 20_480.0) as f32,
        (f64::from(others) / 92_160.0) as f32,
        (f64::from(containers) / 20.0) as f32,
        (f64::from(rate) / 10.0) as f32,
    ]
}

#[test]
fn what_is_looked_up_is_what_the_closed_form_says() {
    for containers in 0..=MOST_CONTAINERS {
        for rate in 0..=*RATES.end() {
            assert_eq!(shown(containers, rate).map(|it| it.row), Some(faithful(containers, rate)));
        }
    }
    assert!(shown(MOST_CONTAINERS + 1, 1).is_none() && shown(1, 9).is_none());
}
