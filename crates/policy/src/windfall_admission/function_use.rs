//! How much of its reservation a function uses, and how unevenly.
//!
//! A finished call has a mean and a peak. Between the two nothing was seen, so it is taken to have worked at its
//! peak or not at all: the integral of `u^2` is then mean x peak x run time. A call of 2 s with a mean of 1 core and a
//! peak of 2 adds 2 core-seconds to the first sum and 4 to the second.

use windfall_core::{CallOutcome, CpuDemand, Duration, QuantileWindow};

use crate::LineFit;

/// A line through the inputs explains enough from this share of the variance on.
const USEFUL_FIT: f64 = 0.3;
/// Calls with an input before the line is used.
const ENOUGH_INPUTS: u32 = 20;
/// Second moment of what the prior uses of its reservation: a little more than its square, so that nothing is certain.
const PRIOR_SECOND: f64 = 1.04;
/// Calls before memory is sized, peaks that count, and the headroom above the highest.
const ENOUGH_PEAKS: usize = 20;
const MEMORY_WINDOW: usize = 512;
const MEMORY_HEADROOM: f64 = 1.25;
/// What an unknown function is taken to run, seconds.
const UNKNOWN_RUN: f64 = 1.0;

/// Sums over the finished calls of one function, all in shares of the reservation.
#[derive(Clone, Debug, Default)]
pub(super) struct FunctionUse {
    calls: f64,
    seconds: f64,
    first: f64,
    second: f64,
    by_input: Option<LineFit>,
    /// Memory peaks of the last calls, once memory is to be sized.
    memory: Option<QuantileWindow>,
    /// Whether a call was killed below its reservation.
    was_killed: bool,
}

impl FunctionUse {
    /// Mean run time of the finished calls.
    pub(super) fn mean_run(&self) -> Option<Duration> {
        (self.calls > 0.0).then(|| Duration::from_secs_f64(self.seconds / self.calls))
    }

    /// The level at which its calls work, as a share of the reservation.
    pub(super) fn burst(&self) -> Option<f64> {
        (self.first > 0.0).then(|| self.second / self.first)
    }

    /// What a call is expected to use of `reserved` cores.
    pub(super) fn expected(
        &self,
        reserved: f64,
        input: Option<f32>,
        prior_calls: f64,
    ) -> CpuDemand {
        let run = if self.calls > 0.0 { self.seconds / self.calls } else { UNKNOWN_RUN };
        let prior = prior_calls * run;
        let total = (self.seconds + prior).max(1e-9);
        let mean = (self.first + prior) / total;
        let second = (self.second + PRIOR_SECOND * prior) / total;
        let variance = (second - mean * mean).max(0.0);
        let mean = self.by_input(input).unwrap_or(mean);
        CpuDemand { mean_cores: reserved * mean, variance: reserved * reserved * variance }
    }

    /// Mean use by the input, where a line explains it.
    fn by_input(&self, input: Option<f32>) -> Option<f64> {
        let fit = self.by_input.as_ref().filter(|fit| fit.points() >= ENOUGH_INPUTS)?;
        let x = f64::from(input?.max(1e-6)).ln();
        if fit.r2() < USEFUL_FIT {
            return None;
        }
        fit.at(x).map(|mean| mean.clamp(0.0, 1.0))
    }

    /// Memory for a call, MiB: the highest of the last peaks and a quarter more, once enough calls were seen and none
    /// was killed.
    pub(super) fn memory_mib(&self) -> Option<f64> {
        let peaks = self.memory.as_ref().filter(|peaks| peaks.len() >= ENOUGH_PEAKS)?;
        let highest = peaks.quantile(1.0).filter(|_| !self.was_killed)?;
        Some(highest * MEMORY_HEADROOM)
    }

    /// Takes the memory of a finished call in.
    pub(super) fn learn_memory(&mut self, outcome: &CallOutcome) {
        let peaks = self.memory.get_or_insert_with(|| QuantileWindow::new(MEMORY_WINDOW));
        peaks.push(outcome.memory_peak_mib);
        self.was_killed |=
            outcome.was_killed && outcome.last_grant.memory < outcome.reservation.memory;
    }

    /// Takes a finished call in.
    pub(super) fn learn(&mut self, outcome: &CallOutcome) {
        let reserved = outcome.reservation.cpu.cores().max(1e-3);
        let seconds = outcome.run().as_secs_f64();
        let mean = (outcome.cpu_mean_cores / reserved).clamp(0.0, 1.0);
        let peak = (outcome.cpu_peak_cores / reserved).clamp(mean, 1.0);
        self.calls += 1.0;
        self.seconds += seconds;
        self.first += mean * seconds;
        self.second += mean * peak * seconds;
        if let Some(input) = outcome.input {
            let fit = self.by_input.get_or_insert_with(|| LineFit::new(0.998));
            fit.push(f64::from(input.max(1e-6)).ln(), mean);
        }
    }
}
