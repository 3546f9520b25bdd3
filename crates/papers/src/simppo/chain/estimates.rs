//! What our split estimates by itself: laws from means, demand from the first stage's counts, and how far
//! both can be trusted, from the latency of callers end to end.

use windfall_core::FunctionView;

use super::stage_law::StageLaw;

/// How much of a sum is left after a tick: a memory of about a minute.
const MEMORY: f64 = 0.92;

/// A stage's law from what can be seen of it: CPU used, calls that ended, their mean run time. Before the first answer it
/// is taken for a second of work, which weighs as much as one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct StageEstimate {
    work: f64,
    run: f64,
    /// Run time that the work alone would have taken at the sizes of then.
    busy: f64,
    calls: f64,
}

impl StageEstimate {
    pub(super) fn new() -> Self {
        Self { work: 1.0, run: 1.0, busy: 1.0, calls: 1.0 }
    }

    pub(super) fn observe(&mut self, view: &FunctionView, window: f64) {
        let Some(run) = view.mean_run else { return };
        let calls = f64::from(view.completions);
        let work = view.cpu_used_cores * window;
        for (sum, new) in [
            (&mut self.work, work),
            (&mut self.busy, work / view.allocation.cpu.cores().min(1.0)),
            (&mut self.run, run.as_secs_f64() * calls),
            (&mut self.calls, calls),
        ] {
            *sum = MEMORY * *sum + new;
        }
    }

    /// The spread is assumed: means do not show it.
    pub(super) fn law(&self) -> StageLaw {
        StageLaw {
            work: self.work / self.calls,
            fixed: ((self.run - self.busy) / self.calls).max(0.0),
            spread: 0.3,
            parallelism: 1.0,
        }
    }
}

/// The rate at which the chain is called: a level that believes a count only once it is two deviations off.
///
/// At 2 calls per second a tick of 5 s counts 10 +- 3.2; 14 leave the level where it is, 20 set it to 4. What has been
/// called before may be called again: a part of the highest level of late stays staffed through a silence.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Demand {
    level: f64,
    before: f64,
    highest: f64,
}

/// How much of the highest level is left after a tick: half of it after ten minutes.
const FADING: f64 = 0.9942;
/// The part of it that stays staffed.
const KEPT: f64 = 0.25;

impl Demand {
    pub(super) fn observe(&mut self, rate: f64, window: f64) {
        let deviation = (self.level.max(0.2) / window).sqrt();
        let two = 0.5 * (rate + self.before);
        let has_jumped = rate > self.level + 2.0 * deviation
            || (two - self.level).abs() > 2.0 * deviation / 2f64.sqrt();
        let share = if has_jumped { 1.0 } else { 0.15 };
        let goal = if has_jumped { rate.max(two) } else { rate };
        self.level += share * (goal - self.level);
        self.before = rate;
        self.highest = (FADING * self.highest).max(self.level);
    }

    pub(super) fn rate(&self) -> f64 {
        self.level.max(KEPT * self.highest)
    }
}

/// Steers the share of calls above the objective to where it is to be, by making the objective that is planned
/// for larger or smaller.
///
/// ```text
///   a call in time: factor x (1 + gain x share)      one too late: factor x (1 - gain x (1 - share))
/// ```
///
/// With a share of 0.8 % one late call takes back what 124 in time have given, whatever the model's error. Two late calls
/// of a tick count and no more: a burst that nobody could see makes many, and is no error of the model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steering {
    factor: f64,
    seen: usize,
}

/// The share of calls that may be late: a little below the one of a 99th percentile.
const LATE: f64 = 0.008;
/// How fast.
const GAIN: f64 = 0.05;
/// How far down and up.
const LEAST_FACTOR: f64 = 0.7;
const LARGEST_FACTOR: f64 = 1.5;

impl Steering {
    pub(super) fn new() -> Self {
        Self { factor: 1.0, seen: 0 }
    }

    /// All latencies end to end so far; those that are new count.
    pub(super) fn observe(&mut self, latencies_ms: &[f32], objective_ms: f64) {
        let new = &latencies_ms[self.seen..];
        let late = new.iter().filter(|latency| f64::from(**latency) > objective_ms).count();
        let in_time = (new.len() - late) as i32;
        self.factor *= (1.0 + GAIN * LATE).powi(in_time);
        self.factor *= (1.0 - GAIN * (1.0 - LATE)).powi(late.min(2) as i32);
        self.factor = self.factor.clamp(LEAST_FACTOR, LARGEST_FACTOR);
        self.seen = latencies_ms.len();
    }

    pub(super) fn factor(&self) -> f64 {
        self.factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_core::{Allocation, Duration, FunctionId, Instances};

    fn seen() -> FunctionView {
        let size = Allocation::new(512, 128);
        FunctionView {
            function: FunctionId(0),
            reservation: size,
            allocation: size,
            kept: None,
            start_cpu: None,
            concurrency: 1,
            ready: Instances::new(2),
            busy: Instances::new(2),
            starting: Instances::new(0),
            in_flight: 2,
            queued: 0,
            mean_concurrency: 2.0,
            arrivals: 10,
            completions: 10,
            cold_starts: 0,
            mean_run: None,
            mean_wait: None,
            cpu_used_cores: 0.6,
            memory_peak_mib: 100.0,
            cold_start: Duration::from_millis(400),
            presence: Vec::new(),
        }
    }

    #[test]
    fn a_level_believes_a_count_that_is_two_deviations_off() {
        let mut demand = Demand::default();
        (0..60).for_each(|_| demand.observe(2.0, 5.0));
        assert!((demand.rate() - 2.0).abs() < 0.05);
        demand.observe(2.8, 5.0);
        assert!(demand.rate() < 2.2, "{}", demand.rate());
        demand.observe(6.0, 5.0);
        assert!((demand.rate() - 6.0).abs() < 1e-9);
        (0..20).for_each(|_| demand.observe(0.0, 5.0));
        assert!((1.2..1.5).contains(&demand.rate()), "{}", demand.rate());
    }

    #[test]
    fn late_calls_tighten_the_plan_and_calls_in_time_loosen_it() {
        let mut steering = Steering::new();
        steering.observe(&[100.0; 125], 1000.0);
        let loose = steering.factor();
        assert!(loose > 1.0);
        let mut all = vec![100.0; 125];
        all.push(2000.0);
        steering.observe(&all, 1000.0);
        assert!((steering.factor() - 1.0).abs() < 0.01, "{}", steering.factor());
        all.extend([2000.0; 500]);
        steering.observe(&all, 1000.0);
        assert!(steering.factor() > 0.89);
    }

    #[test]
    fn a_law_is_found_from_means() {
        let mut estimate = StageEstimate::new();
        assert_eq!(estimate.law().work, 1.0);
        let mut view = seen();
        // Ten calls of 0.3 core-seconds and 0.2 s of waiting on half a core in 5 s: 0.2 + 0.3 / 0.512 = 0.786 s each.
        view.mean_run = Some(Duration::from_millis(786));
        (0..200).for_each(|_| estimate.observe(&view, 5.0));
        let law = estimate.law();
        assert!((law.work - 0.3).abs() < 1e-3 && (law.fixed - 0.2).abs() < 1e-3, "{law:?}");
    }
}
