//! Which calls arrive when.

use windfall_core::{Duration, Seed};
use windfall_functions::{ExperimentCall, ExperimentInputs, experiment_calls};
use windfall_rl::random::Draw;
use windfall_studies::capacity::kernel::RampSetup;

use super::{Measured, World};

/// Inputs of a function, over the middle one. Three kinds make baselines cheap to measure.
const INPUTS: [f64; 3] = [0.5, 1.0, 2.0];
/// Seconds at the first load before the first step: instances start, and policies see some seven calls of every function.
const WARM_UP_SECONDS: f64 = 8.0;

/// A function with an input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) call: ExperimentCall,
    /// How often it is drawn.
    pub(super) weight: f64,
}

/// The ten applications of FaaSRM's experiment, as often as published, with three inputs each; where two of them round to
/// the same input, the function has two and one of them counts twice.
///
/// Those that use a store wait for it `store_millis` before their work and after it.
pub(super) fn kinds(scale: f64, store_millis: f64) -> Vec<Kind> {
    let of_inputs = |factor: f64| {
        let inputs = ExperimentInputs { scale: scale * factor, spread: 1.0 };
        experiment_calls(Seed::new(1), inputs)
    };
    let mut kinds: Vec<Kind> = Vec::new();
    for call in INPUTS.into_iter().flat_map(of_inputs) {
        let same = |kind: &&mut Kind| {
            kind.call.builtin.name == call.builtin.name && kind.call.input == call.input
        };
        match kinds.iter_mut().find(same) {
            Some(kind) => kind.weight += 1.0,
            None => {
                let call = ExperimentCall { store_millis, ..call };
                kinds.push(Kind { call, weight: 1.0 });
            }
        }
    }
    kinds.sort_by_key(|kind| (kind.call.builtin.name, kind.call.input));
    kinds
}

/// One call of a ramp.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DueCall {
    /// From the beginning of the ramp.
    pub(super) at: Duration,
    pub(super) kind: usize,
    /// Nothing while the platform warms up.
    pub(super) step: Option<u32>,
}

/// The calls of a repetition in order of time, the same for every policy and in simulation.
pub(super) fn due_calls(world: &World, measured: &Measured, repetition: u32) -> Vec<DueCall> {
    let setup = &measured.setup;
    let stream = Seed::new(setup.seed).stream("load held").member(repetition.into());
    let mut draw = Draw::new(stream);
    let cores = world.plan.node.cpu.cores();
    let all: f64 = world.weights.iter().sum();
    let (mut calls, mut now, mut end) = (Vec::new(), 0.0, WARM_UP_SECONDS);
    let warm_up = (None, setup.first_load);
    let steps = (0..).zip(setup.loads()).map(|(step, load)| (Some(step), load));
    for (step, load) in std::iter::once(warm_up).chain(steps) {
        let rate = load * cores / measured.reserved_per_call.max(1e-6);
        loop {
            // Never two at the same moment, because the moment says which call a record is about.
            now += (-(1.0 - draw.unit()).ln() / rate).max(2e-6);
            if now >= end {
                break;
            }
            let mut left = draw.unit() * all;
            let drawn = world.weights.iter().position(|weight| {
                left -= weight;
                left < 0.0
            });
            let kind = drawn.unwrap_or(world.weights.len() - 1);
            calls.push(DueCall { at: Duration::from_secs_f64(now), kind, step });
        }
        (now, end) = (end, end + setup.step_seconds);
    }
    calls
}

/// When a step is over, from the beginning of the ramp.
pub(super) fn end_of(setup: &RampSetup, step: u32) -> Duration {
    Duration::from_secs_f64(WARM_UP_SECONDS + f64::from(step + 1) * setup.step_seconds)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn world() -> (World, Measured) {
        let setup = super::super::usual_setup();
        let measured = Measured { reserved_per_call: 0.04, setup, ..Measured::default() };
        (World::new(&measured.setup), measured)
    }

    #[test]
    fn ten_functions_have_up_to_three_inputs_each_and_are_drawn_as_often_as_published() {
        let all = kinds(0.1, 0.0);
        let names: BTreeSet<&str> = all.iter().map(|kind| kind.call.builtin.name).collect();
        assert_eq!(names.len(), 10);
        let inputs_of = |name| all.iter().filter(|kind| kind.call.builtin.name == name).count();
        assert!(names.into_iter().all(|name| (2..=3).contains(&inputs_of(name))));
        let weight: f64 = all.iter().map(|kind| kind.weight).sum();
        assert!((weight - 3.0 * 268.0).abs() < 1e-9);
    }

    #[test]
    fn a_step_has_the_calls_of_its_load_and_no_two_come_together() {
        let (world, measured) = world();
        let calls = due_calls(&world, &measured, 1);
        assert_eq!(calls, due_calls(&world, &measured, 1));
        assert_ne!(calls.len(), due_calls(&world, &measured, 2).len());
        assert!(calls.windows(2).all(|pair| pair[0].at < pair[1].at));
        // So many cores at 0.04 core-seconds a call.
        let setup = &measured.setup;
        let expected = setup.first_load * world.plan.node.cpu.cores() / 0.04 * setup.step_seconds;
        let first = calls.iter().filter(|call| call.step == Some(0)).count() as f64;
        assert!((first / expected - 1.0).abs() < 0.35, "{first} of {expected}");
        let last = calls.iter().filter(|call| call.step == Some(8)).count() as f64;
        assert!(last > 3.0 * first);
        let ends = end_of(&measured.setup, 8);
        assert!(calls.last().is_some_and(|call| call.at < ends));
    }
}
