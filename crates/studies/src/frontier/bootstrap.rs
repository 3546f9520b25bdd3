//! How much of a ratio hangs on a few functions: they are drawn again, with replacement.
//!
//! Seeds redraw times and durations but not functions, so agreement between seeds says nothing about the
//! next population of functions. Memory per function comes from the numbers at ticks.

use windfall_core::Seed;
use windfall_core::statistics::{Interval, redraw};

use super::FrontierPoint;
use super::envelope::{Envelope, Trade};

/// Populations that are drawn.
const DRAWS: usize = 400;

/// 2.5 and 97.5 % of the ratio of memory at equal slow share, on the first seed of `policy` at `price`.
pub fn interval(points: &[FrontierPoint], policy: &str, price: f64) -> Option<Interval> {
    let ours = points.iter().find(|point| point.policy == policy && point.parameter == price)?;
    let rivals: Vec<&FrontierPoint> =
        points.iter().filter(|other| other.is_incumbent && other.seed == ours.seed).collect();
    let count = ours.functions.len();
    if count < 2 || rivals.iter().any(|rival| rival.functions.len() != count) {
        return None;
    }
    let mut rng = Seed::new(ours.seed).stream("bootstrap").generator();
    let ratios = (0..DRAWS)
        .filter_map(|_| {
            let times = redraw(count, &mut rng);
            let own = trade(ours, &times);
            let envelope = Envelope::of(rivals.iter().map(|rival| trade(rival, &times)), 1e-9);
            Some(own.paid / envelope.paid_at(own.bad)?)
        })
        .collect();
    Interval::middle_95(ratios)
}

/// A point with each function counted so many times.
fn trade(point: &FrontierPoint, times: &[u32]) -> Trade {
    let (mut calls, mut slow, mut paid) = (0.0, 0.0, 0.0);
    for (function, &times) in point.functions.iter().zip(times) {
        let times = f64::from(times);
        calls += times * function.calls as f64;
        slow += times * function.slow as f64;
        paid += times * function.mib_seconds;
    }
    Trade { paid, bad: (slow / f64::max(calls, 1.0)).max(0.5 / f64::max(calls, 1.0)) }
}
