//! The highest load at which an objective holds: steps up or down from a first guess until it lies between two loads,
//! then halves of that interval in ratios.
//!
//! From a guess of 1 with steps of 1.5: 1 holds, 1.5 does not, 1.22 does not, 1.11 holds, 1.16, .. until the two ends
//! differ by less than 3 %, and one load well below, which intervals need. Where that one breaks, the search goes on from
//! there. The load held is where the largest margin first crosses 1, margins and loads taken as straight lines in logarithms.
//!
//! Where a similar search has ended already, its result is the guess and steps begin small; where only more than some
//! load is of interest, that load is tried first and the search ends if it does not hold.

use super::objective::{Binding, Objective, Service};

/// Where to look for the highest load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// No lower load is tried.
    pub lowest: f64,
    /// No higher load is tried.
    pub highest: f64,
    /// Where to begin.
    pub guess: f64,
    /// The ratio of two loads at the first step from the guess; later steps grow by the same ratio.
    pub step: f64,
    /// The two ends differ by no more than this in the end, as a ratio.
    pub precision: f64,
}

impl Default for Search {
    fn default() -> Self {
        Self { lowest: 0.2, highest: 8.0, guess: 1.0, step: STEP, precision: 1.03 }
    }
}

/// The ratio of two loads at the first step from a guess that nothing is known about, and from one that is near.
const STEP: f64 = 1.5;
const NEAR_STEP: f64 = 1.1;
/// How far below what is held one more load is tried.
const WELL_BELOW: f64 = 1.3;

/// One load that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried<T> {
    /// The load.
    pub load: f64,
    /// What came of it.
    pub result: T,
}

impl Search {
    /// The same, begun where the load is expected.
    #[must_use]
    pub fn near(&self, guess: f64) -> Self {
        Self { guess, step: NEAR_STEP, ..*self }
    }

    /// Tries loads until the highest that `holds` is known; all that were tried, in order of load.
    pub fn tries<T, E>(
        &self,
        mut play: impl FnMut(f64) -> Result<T, E>,
        holds: impl Fn(&T) -> bool,
    ) -> Result<Vec<Tried<T>>, E> {
        let guess = self.guess.clamp(self.lowest, self.highest);
        let first = Tried { load: guess, result: play(guess)? };
        self.tries_after(first, play, holds)
    }

    /// The same if the guess holds; nothing if it does not.
    pub fn tries_above<T, E>(
        &self,
        mut play: impl FnMut(f64) -> Result<T, E>,
        holds: impl Fn(&T) -> bool,
    ) -> Result<Option<Vec<Tried<T>>>, E> {
        let guess = self.guess.clamp(self.lowest, self.highest);
        let first = Tried { load: guess, result: play(guess)? };
        if !holds(&first.result) {
            return Ok(None);
        }
        self.tries_after(first, play, holds).map(Some)
    }

    fn tries_after<T, E>(
        &self,
        first: Tried<T>,
        mut play: impl FnMut(f64) -> Result<T, E>,
        holds: impl Fn(&T) -> bool,
    ) -> Result<Vec<Tried<T>>, E> {
        let (mut low, mut high) = match holds(&first.result) {
            true => (Some(first.load), None),
            false => (None, Some(first.load)),
        };
        let mut tried = vec![first];
        loop {
            while let Some(load) = self.next(low, high, tried.len()) {
                let result = play(load)?;
                if holds(&result) {
                    low = Some(load);
                } else {
                    high = Some(load);
                }
                tried.push(Tried { load, result });
            }
            // One load well below what is held: a population of functions drawn again may hold less.
            let lowest = tried.iter().map(|tried| tried.load).fold(f64::INFINITY, f64::min);
            let below = low.map(|low| (low / WELL_BELOW).max(self.lowest));
            let Some(below) = below.filter(|&below| below * self.precision < lowest) else { break };
            let result = play(below)?;
            let is_held = holds(&result);
            tried.push(Tried { load: below, result });
            if is_held {
                break;
            }
            // All loads up to the one that is held are to hold, so the search goes on from here.
            (low, high) = (None, Some(below));
        }
        tried.sort_by(|a, b| a.load.total_cmp(&b.load));
        Ok(tried)
    }

    /// The next load after so many, given the highest that holds and the lowest that does not.
    fn next(&self, low: Option<f64>, high: Option<f64>, tried: usize) -> Option<f64> {
        let step = self.step.powi(tried as i32).min(STEP);
        match (low, high) {
            (Some(low), Some(high)) => (high / low > self.precision).then(|| (low * high).sqrt()),
            (Some(low), None) => (low < self.highest).then(|| (low * step).min(self.highest)),
            (None, Some(high)) => (high > self.lowest).then(|| (high / step).max(self.lowest)),
            (None, None) => None,
        }
    }
}

/// A load with how near it is to breaking the objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// The load.
    pub load: f64,
    /// What was measured over what is allowed; at most 1 holds.
    pub margin: f64,
}

/// Where the margin first crosses 1, of loads in rising order: nothing if none holds, the highest load if all do.
///
/// Margins of 0.5 at 1.0 and 2 at 1.21 cross at 1.1.
pub fn crossing(margins: impl IntoIterator<Item = Margin>) -> Option<f64> {
    let mut last: Option<Margin> = None;
    for Margin { load, margin } in margins {
        if margin > 1.0 {
            let before = last?;
            let (low, high) = (before.margin.max(1e-3).ln(), margin.min(1e3).ln());
            let share = (-low / (high - low).max(1e-12)).clamp(0.0, 1.0);
            return Some(before.load * (load / before.load).powf(share));
        }
        last = Some(Margin { load, margin });
    }
    last.map(|last| last.load)
}

/// One load with what was measured there.
pub type Measured = Tried<Vec<super::measure::FunctionService>>;

/// The load held over `measured`, each function counted as often as `times` says.
pub fn load_held(
    objective: &Objective,
    measured: &[Measured],
    kills_of_fixed: &[super::measure::FunctionService],
    times: Option<&[u32]>,
) -> f64 {
    let kills = Service::of(kills_of_fixed, times).kills();
    let margins = measured.iter().map(|tried| {
        let Binding { margin, .. } = objective.binding(&Service::of(&tried.result, times), kills);
        Margin { load: tried.load, margin }
    });
    crossing(margins).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_margin_crosses_between_two_loads() {
        let margins = [(1.0, 0.5), (1.21, 2.0)].map(|(load, margin)| Margin { load, margin });
        assert!((crossing(margins).unwrap() - 1.1).abs() < 1e-9);
        assert_eq!(crossing([Margin { load: 1.0, margin: 3.0 }]), None);
        assert_eq!(crossing([Margin { load: 1.0, margin: 0.0 }]), Some(1.0));
    }

    #[test]
    fn what_breaks_well_below_is_where_the_search_goes_on() {
        // Holds up to 0.5 and again from 0.8 to 1; 0.77 is well below 1, so the second range is found first.
        let holds = |load: &f64| *load <= 0.5 || (0.8..=1.0).contains(load);
        let tried = Search::default().tries(Ok::<f64, ()>, holds).unwrap();
        let first_broken =
            tried.iter().position(|tried| !holds(&tried.result)).expect("one breaks");
        let held = tried[..first_broken].last().expect("one below holds").load;
        assert!(held <= 0.5 && held * 1.03 >= 0.5, "{held}");
    }

    proptest! {
        #[test]
        fn the_highest_load_that_holds_is_found(limit in 0.1f64..12.0) {
            let search = Search::default();
            let mut count = 0;
            let tried = search
                .tries(|load| { count += 1; Ok::<_, ()>(load <= limit) }, |holds| *holds)
                .unwrap();
            let best = tried.iter().rev().find(|tried| tried.result).map(|tried| tried.load);
            match best {
                None => prop_assert!(limit < search.lowest),
                Some(best) => {
                    prop_assert!(best <= limit);
                    prop_assert!(best * search.precision >= limit || best == search.highest);
                }
            }
            prop_assert!(count <= 14, "{count} runs");
            prop_assert!(tried.windows(2).all(|pair| pair[0].load < pair[1].load));
        }

        #[test]
        fn a_search_that_begins_near_finds_the_same_in_fewer_runs(limit in 0.3f64..7.0) {
            let mut count = 0;
            let near = Search::default().near(limit * 1.05);
            let tried = near
                .tries(|load| { count += 1; Ok::<_, ()>(load <= limit) }, |holds| *holds)
                .unwrap();
            let best = tried.iter().rev().find(|tried| tried.result).expect("some load holds").load;
            prop_assert!(best <= limit && best * near.precision >= limit);
            prop_assert!(count <= 6, "{count} runs");
            let above = near.tries_above(|load| Ok::<_, ()>(load <= limit), |holds| *holds);
            prop_assert!(above.unwrap().is_none(), "the guess does not hold");
        }
    }
}
