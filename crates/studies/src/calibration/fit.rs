//! The fit of one function.

use windfall_core::statistics::{interpolated, median};
use windfall_telemetry::journal::NamedFunction;

use super::work::WorkFit;
use super::{FunctionModel, ObservedCall, PredictionError, busy_seconds};

/// Steps between the parallelisms that are tried, cores.
const STEP: f64 = 0.02;
/// How much explaining run time by waiting counts as an error: where a fast function that waits and a slow one that does
/// not look alike, the latter is taken.
const WAITING_COSTS: f64 = 0.02;

/// Fits a function to its calls, of which there is at least one.
pub(super) fn fit(
    function: &NamedFunction,
    calls: &[ObservedCall],
    node_cores: f64,
) -> FunctionModel {
    let WorkFit { scale: work_scale, exponent: work_exponent, steps: work_steps } =
        WorkFit::of(calls);
    let best = best_parallelism(calls, node_cores);
    let (memory_base, memory_per_input) = memory_line(calls);
    let seen = calls.iter().filter_map(|call| call.memory);
    let inputs: Vec<f64> = calls.iter().map(|call| call.input).collect();
    FunctionModel {
        name: function.name.clone(),
        reservation: function.reservation,
        calls: calls.len(),
        median_input: median(&inputs).unwrap_or(1.0),
        work_scale,
        work_exponent,
        work_steps,
        parallelism: best.parallelism,
        fixed_seconds: best.fixed,
        fixed_per_work: best.per_work,
        memory_base,
        memory_per_input,
        memory_least: seen.reduce(f64::min).unwrap_or_else(|| function.reservation.memory.mib()),
        error: PredictionError::default(),
    }
}

/// Relative errors of the calls at even places when those at odd ones fit, and the other way round.
pub(super) fn held_out_errors(
    function: &NamedFunction,
    calls: &[ObservedCall],
    node_cores: f64,
) -> Vec<f64> {
    let half = |parity: usize| -> Vec<ObservedCall> {
        calls.iter().skip(parity).step_by(2).copied().collect()
    };
    let (even, odd) = (half(0), half(1));
    let mut errors = Vec::new();
    for (known, unknown) in [(&even, &odd), (&odd, &even)] {
        let model = fit(function, known, node_cores);
        errors.extend(
            unknown.iter().map(|call| (model.run(call.input, call.cores) / call.run - 1.0).abs()),
        );
    }
    errors
}

pub(super) fn summary(errors: &[f64]) -> PredictionError {
    let mut sorted = errors.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share| interpolated(&sorted, share).unwrap_or(0.0);
    PredictionError { calls: sorted.len(), median: at(0.5), p95: at(0.95) }
}

#[derive(Clone, Copy, Debug)]
struct Fitted {
    parallelism: f64,
    fixed: f64,
    per_work: f64,
    cost: f64,
}

fn best_parallelism(calls: &[ObservedCall], node_cores: f64) -> Fitted {
    let tries = ((node_cores - 0.1) / STEP).round().max(0.0) as u32;
    let all = (0..=tries).map(|step| waiting_at(calls, 0.1 + f64::from(step) * STEP));
    all.reduce(|best, one| if one.cost < best.cost { one } else { best }).unwrap_or(Fitted {
        parallelism: 1.0,
        fixed: 0.0,
        per_work: 0.0,
        cost: 0.0,
    })
}

/// The waiting that explains the run times best if the function can use `parallelism`: of all, of none, of the constant
/// part and of the part per work the best one without anything below zero.
fn waiting_at(calls: &[ObservedCall], parallelism: f64) -> Fitted {
    let mut sums = [0.0; 5];
    for call in calls {
        let rest = call.run - busy_seconds(call.work, call.cores, parallelism);
        // Weighted by the run time, so that relative errors count.
        let (one, work, rest) = (1.0 / call.run, call.work / call.run, rest / call.run);
        let more = [one * one, one * work, work * work, one * rest, work * rest];
        sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
    let [aa, ab, bb, ay, by] = sums;
    let determinant = aa * bb - ab * ab;
    let both = (determinant.abs() > 1e-9 * aa * bb)
        .then(|| ((ay * bb - by * ab) / determinant, (by * aa - ay * ab) / determinant));
    let candidates = [both, Some((ay / aa, 0.0)), Some((0.0, by / bb)), Some((0.0, 0.0))];
    let mut best = Fitted { parallelism, fixed: 0.0, per_work: 0.0, cost: f64::INFINITY };
    for (fixed, per_work) in candidates.into_iter().flatten() {
        if fixed < 0.0 || per_work < 0.0 || !fixed.is_finite() || !per_work.is_finite() {
            continue;
        }
        let cost = calls.iter().map(|call| cost(call, parallelism, fixed, per_work)).sum();
        if cost < best.cost {
            best = Fitted { parallelism, fixed, per_work, cost };
        }
    }
    best
}

fn cost(call: &ObservedCall, parallelism: f64, fixed: f64, per_work: f64) -> f64 {
    let waiting = fixed + per_work * call.work;
    let run = waiting + busy_seconds(call.work, call.cores, parallelism);
    let error = run / call.run - 1.0;
    error * error + WAITING_COSTS * WAITING_COSTS * (waiting / call.run).powi(2)
}

/// `memory = base + slope · input` by least squares; constant where memory does not grow.
fn memory_line(calls: &[ObservedCall]) -> (f64, f64) {
    let points: Vec<(f64, f64)> =
        calls.iter().filter_map(|call| Some((call.input, call.memory?))).collect();
    if points.is_empty() {
        return (0.0, 0.0);
    }
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let joint: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let slope = if spread > 1e-9 { (joint / spread).max(0.0) } else { 0.0 };
    (mean_y - slope * mean_x, slope)
}
