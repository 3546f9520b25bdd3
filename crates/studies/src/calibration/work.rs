//! How the work of a function grows with its input: as a power of it, or in steps.
//!
//! A function that makes one thumbnail more once its picture is wide enough works eight times as much at 530 pixels as at
//! 510, and no power law says so. Steps are the isotonic regression of the logarithms of the work: means over stretches of
//! inputs, as few as leave them in order. They are taken where they predict calls that were not used for the fit with half
//! of the power law's squared error.

use super::{ObservedCall, WorkStep};

/// Share of the power law's squared error below which steps are taken.
const CLEARLY_BETTER: f64 = 0.5;

/// Work against input.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WorkFit {
    pub(super) scale: f64,
    pub(super) exponent: f64,
    pub(super) steps: Vec<WorkStep>,
}

impl WorkFit {
    pub(super) fn of(calls: &[ObservedCall]) -> Self {
        let mut points: Vec<(f64, f64)> =
            calls.iter().map(|call| (call.input.ln(), call.work.ln())).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
        let (scale, exponent) = power_law(&points);
        let has_steps = held_out(&points, |known| {
            let steps = isotonic(known);
            move |x| at(&steps, x)
        }) < CLEARLY_BETTER
            * held_out(&points, |known| {
                let (scale, exponent) = power_law(known);
                move |x| scale.ln() + exponent * x
            });
        let steps = if has_steps { isotonic(&points) } else { Vec::new() };
        let step = |(from, work): (f64, f64)| WorkStep { from_input: from.exp(), work: work.exp() };
        Self { scale, exponent, steps: steps.into_iter().map(step).collect() }
    }
}

/// Mean squared error of the points at even places when those at odd ones are known, and the other way round.
fn held_out<P: Fn(f64) -> f64>(points: &[(f64, f64)], fit: impl Fn(&[(f64, f64)]) -> P) -> f64 {
    let half = |parity: usize| -> Vec<(f64, f64)> {
        points.iter().skip(parity).step_by(2).copied().collect()
    };
    let (even, odd) = (half(0), half(1));
    let mut sum = 0.0;
    for (known, unknown) in [(&even, &odd), (&odd, &even)] {
        let predict = fit(known);
        sum += unknown.iter().map(|(x, y)| (predict(*x) - y).powi(2)).sum::<f64>();
    }
    sum / points.len().max(1) as f64
}

/// `work = scale · input^exponent` by least squares of the logarithms; the mean where inputs are all alike.
fn power_law(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len().max(1) as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let joint: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let exponent = if spread > 1e-6 { (joint / spread).clamp(0.0, 4.0) } else { 0.0 };
    ((mean_y - exponent * mean_x).exp(), exponent)
}

/// Stretches of inputs, each with the mean of its points; pools neighbours that are out of order.
fn isotonic(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    struct Pool {
        from: f64,
        sum: f64,
        count: f64,
    }
    let mut pools: Vec<Pool> = Vec::new();
    for &(x, y) in points {
        let mut last = Pool { from: x, sum: y, count: 1.0 };
        while let Some(before) = pools
            .pop_if(|one| one.from == last.from || one.sum / one.count >= last.sum / last.count)
        {
            last = Pool {
                from: before.from,
                sum: before.sum + last.sum,
                count: before.count + last.count,
            };
        }
        pools.push(last);
    }
    pools.into_iter().map(|pool| (pool.from, pool.sum / pool.count)).collect()
}

fn at(steps: &[(f64, f64)], x: f64) -> f64 {
    let place = steps.partition_point(|(from, _)| *from <= x).max(1);
    steps.get(place - 1).map_or(0.0, |(_, work)| *work)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(input: f64, work: f64) -> ObservedCall {
        ObservedCall { input, cores: 1.0, run: work, work, memory: None }
    }

    #[test]
    fn a_staircase_is_fitted_by_steps_and_a_power_law_by_a_power_law() {
        let noise = |place: usize| 1.0 + 0.02 * ((place * 7 % 5) as f64 - 2.0);
        let stairs: Vec<ObservedCall> = (0..60)
            .map(|place| {
                let input = 400.0 + 20.0 * place as f64;
                let work = if input < 512.0 {
                    0.009
                } else if input < 1024.0 {
                    0.05
                } else {
                    0.24
                };
                call(input, work * noise(place))
            })
            .collect();
        let fit = WorkFit::of(&stairs);
        let known: Vec<(f64, f64)> =
            fit.steps.iter().map(|step| (step.from_input.ln(), step.work.ln())).collect();
        for (input, work) in [(410.0, 0.009), (800.0, 0.05), (1300.0, 0.24), (9000.0, 0.24)] {
            let found = at(&known, f64::ln(input)).exp();
            assert!((found / work - 1.0).abs() < 0.05, "{input}: {found}");
        }
        let power: Vec<ObservedCall> = (1..60)
            .map(|place| {
                call(f64::from(place), 0.001 * f64::from(place).powf(1.5) * noise(place as usize))
            })
            .collect();
        let fit = WorkFit::of(&power);
        assert!(fit.steps.is_empty() && (fit.exponent - 1.5).abs() < 0.02, "{fit:?}");
    }

    #[test]
    fn neighbours_out_of_order_are_pooled() {
        let pooled = isotonic(&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (4.0, 4.0)]);
        assert_eq!(pooled, [(1.0, 1.0), (2.0, 2.5), (4.0, 4.0)]);
        assert_eq!(at(&pooled, 0.5), 1.0);
        assert_eq!(at(&pooled, 3.5), 2.5);
    }
}
