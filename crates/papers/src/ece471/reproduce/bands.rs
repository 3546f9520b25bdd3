//! Curves of several seeds as one: mean and spread at each iteration.

use serde::{Deserialize, Serialize};
use windfall_rl::Spread;

use super::Point;

/// All seeds at one iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Band {
    /// Iterations done.
    pub iteration: u64,
    /// Mean return of the episodes played in training.
    pub reward: Option<Spread>,
    /// SLO preservation in training.
    pub slo: Spread,
    /// CPU utilisation in training.
    pub util: Spread,
    /// Return of the greedy policy, where it was evaluated.
    pub greedy: Option<Spread>,
}

/// One band per iteration.
pub fn bands(curves: &[Vec<Point>]) -> Vec<Band> {
    let length = curves.iter().map(Vec::len).min().unwrap_or(0);
    let band = |place: usize| {
        let over = |value: &dyn Fn(&Point) -> Option<f64>| {
            let numbers: Vec<f64> =
                curves.iter().filter_map(|curve| value(&curve[place])).collect();
            (!numbers.is_empty()).then(|| Spread::of(&numbers))
        };
        let always = |value: &dyn Fn(&Point) -> f64| {
            Spread::of(&curves.iter().map(|curve| value(&curve[place])).collect::<Vec<_>>())
        };
        Band {
            iteration: curves[0][place].iteration,
            reward: over(&|point| point.reward),
            slo: always(&|point| point.slo),
            util: always(&|point| point.util),
            greedy: over(&|point| point.greedy),
        }
    };
    (0..length).map(band).collect()
}

#[test]
fn a_band_is_mean_and_spread_over_seeds() {
    let point =
        |slo, greedy| Point { iteration: 1, steps: 9, reward: None, slo, util: 0.5, greedy };
    let curves = [vec![point(0.5, Some(1.0))], vec![point(1.0, Some(3.0))]];
    let band = bands(&curves)[0];
    assert_eq!((band.iteration, band.reward), (1, None));
    assert_eq!((band.slo.mean, band.slo.low, band.slo.high), (0.75, 0.5, 1.0));
    assert!((band.greedy.unwrap().sd - 2.0_f64.sqrt()).abs() < 1e-12);
}
