//! How much of a saving hangs on a few functions: seeds and functions are drawn again, with replacement.
//!
//! Seeds redraw the demand of the same functions, so agreement between seeds says nothing about the next
//! population of functions, and where one function holds half of all core-seconds an interval over seeds is
//! far too narrow. Here both are drawn: as many seeds as there are and as many functions as there are, each
//! function counted as often as it was drawn, on both sides of the ratio and in every seed.
//!
//! Worked: two functions, of which the first falls from 10 to 5 core-seconds and the second stays at 10.
//! The ratio is 15/20 = 0.75. Drawn again, one time in four the first comes twice (ratio 0.5), one time in
//! four the second (1.0), else each once (0.75): the interval runs from 0.5 to 1.0.

use serde::{Deserialize, Serialize};
use windfall_core::Seed;
use windfall_core::statistics::nearest_neighbour;

/// Populations that are drawn.
const DRAWS: u64 = 1000;
/// Every comparison draws the same numbers, whatever its own seeds are.
const STREAM: &str = "bootstrap over functions";

/// Core-seconds held over one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionCosts {
    /// By each function, in the order of their ids; a shorter list means 0 for the rest.
    pub of_functions: Vec<f64>,
    /// By none in particular, such as instances that start ahead of any call. It is not drawn again.
    pub of_none: f64,
}

/// Two policies on the same seed.
#[derive(Clone, Copy, Debug)]
pub struct CostPair<'a> {
    /// The policy in question.
    pub ours: &'a FunctionCosts,
    /// The one it is compared with.
    pub theirs: &'a FunctionCosts,
}

/// A ratio of core-seconds held with its 95 % interval over seeds and functions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionRatio {
    /// Ours over theirs, of the sums over seeds and functions.
    pub ratio: f64,
    /// The ratio that 2.5 % of the populations drawn stay below.
    pub low: f64,
    /// The ratio that 97.5 % stay below.
    pub high: f64,
    /// How many functions were drawn from.
    pub functions: usize,
}

impl FunctionRatio {
    /// The ratio over all `pairs`, one for each seed; nothing if they held nothing.
    pub fn of(pairs: &[CostPair<'_>]) -> Option<Self> {
        let called = called_functions(pairs);
        let all = Population { seeds: vec![1; pairs.len()], functions: vec![1; called.len()] };
        let ratio = all.ratio(pairs, &called)?;
        let stream = Seed::new(0).stream(STREAM);
        let mut ratios: Vec<f64> = (0..DRAWS)
            .filter_map(|draw| {
                Population::drawn(stream.member(draw), pairs.len(), called.len())
                    .ratio(pairs, &called)
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        let (low, high) = (nearest_neighbour(&ratios, 0.025)?, nearest_neighbour(&ratios, 0.975)?);
        Some(Self { ratio, low, high, functions: called.len() })
    }
}

/// Places of the functions that held anything on either side.
fn called_functions(pairs: &[CostPair<'_>]) -> Vec<usize> {
    let sides = || pairs.iter().flat_map(|pair| [pair.ours, pair.theirs]);
    let most = sides().map(|costs| costs.of_functions.len()).max().unwrap_or(0);
    let holds = |place: &usize| {
        sides().any(|costs| costs.of_functions.get(*place).is_some_and(|&held| held > 0.0))
    };
    (0..most).filter(holds).collect()
}

/// How often each seed and each function counts.
struct Population {
    seeds: Vec<u32>,
    functions: Vec<u32>,
}

impl Population {
    fn drawn(seed: Seed, seeds: usize, functions: usize) -> Self {
        Self {
            seeds: draw_again(seed.stream("seeds"), seeds),
            functions: draw_again(seed.stream("functions"), functions),
        }
    }

    fn ratio(&self, pairs: &[CostPair<'_>], called: &[usize]) -> Option<f64> {
        let (mut ours, mut theirs) = (0.0, 0.0);
        for (pair, &times) in pairs.iter().zip(&self.seeds) {
            ours += f64::from(times) * self.held(pair.ours, called);
            theirs += f64::from(times) * self.held(pair.theirs, called);
        }
        (theirs > 0.0).then(|| ours / theirs)
    }

    fn held(&self, costs: &FunctionCosts, called: &[usize]) -> f64 {
        let of = |place: usize| costs.of_functions.get(place).copied().unwrap_or(0.0);
        let functions = called.iter().zip(&self.functions);
        costs.of_none + functions.map(|(&place, &times)| f64::from(times) * of(place)).sum::<f64>()
    }
}

/// `count` draws from `count` things: how often each came.
fn draw_again(seed: Seed, count: usize) -> Vec<u32> {
    let mut times = vec![0; count];
    for draw in 0..count as u64 {
        // The high half of the product is uniform over the places, whatever their number.
        let place = (u128::from(seed.member(draw).get()) * count as u128) >> 64;
        times[place as usize] += 1;
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(of_functions: &[f64]) -> FunctionCosts {
        FunctionCosts { of_functions: of_functions.to_vec(), of_none: 0.0 }
    }

    #[test]
    fn two_functions_that_differ_give_the_interval_worked_out_by_hand() {
        let (ours, theirs) = (costs(&[5.0, 10.0]), costs(&[10.0, 10.0]));
        let ratio = FunctionRatio::of(&[CostPair { ours: &ours, theirs: &theirs }]).unwrap();
        assert_eq!(ratio, FunctionRatio { ratio: 0.75, low: 0.5, high: 1.0, functions: 2 });
    }

    #[test]
    fn functions_that_save_alike_leave_no_doubt_and_seeds_are_drawn_too() {
        let (ours, theirs) = (costs(&[1.0, 2.0, 30.0]), costs(&[2.0, 4.0, 60.0]));
        let alike = CostPair { ours: &ours, theirs: &theirs };
        let ratio = FunctionRatio::of(&[alike, alike]).unwrap();
        assert_eq!((ratio.low, ratio.ratio, ratio.high), (0.5, 0.5, 0.5));
        let equal = CostPair { ours: &theirs, theirs: &theirs };
        let ratio = FunctionRatio::of(&[alike, equal]).unwrap();
        assert_eq!((ratio.low, ratio.ratio, ratio.high), (0.5, 0.75, 1.0));
    }

    #[test]
    fn one_function_that_holds_most_makes_the_interval_wide() {
        let many = |first: f64| costs(&[vec![first], vec![1.0; 99]].concat());
        let (ours, theirs) = (many(10.0), many(100.0));
        let ratio = FunctionRatio::of(&[CostPair { ours: &ours, theirs: &theirs }]).unwrap();
        assert!((ratio.ratio - 109.0 / 199.0).abs() < 1e-12);
        // More than a third of the populations are without it, and about one in fifty has it four times.
        assert_eq!(ratio.high, 1.0);
        assert!(ratio.low > 0.2 && ratio.low < 0.4, "{ratio:?}");
    }

    #[test]
    fn what_no_function_held_is_not_drawn_again_and_nothing_has_no_ratio() {
        let with = |of_none| FunctionCosts { of_functions: vec![0.0, 0.0], of_none };
        let (ours, theirs) = (with(1.0), with(4.0));
        let ratio = FunctionRatio::of(&[CostPair { ours: &ours, theirs: &theirs }]).unwrap();
        assert_eq!((ratio.low, ratio.high, ratio.functions), (0.25, 0.25, 0));
        let nothing = costs(&[]);
        assert_eq!(FunctionRatio::of(&[CostPair { ours: &nothing, theirs: &nothing }]), None);
        assert_eq!(FunctionRatio::of(&[]), None);
    }
}
