//! What came of a replay, and its summary in the paper's terms.

use serde::{Deserialize, Serialize};

use windfall_core::statistics::{lower_neighbour, mean, nearest_rank};

use super::function_model::Levels;

/// A call that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndedCall {
    /// How long it ran.
    pub seconds: u32,
    /// How long it would have run at its user's size.
    pub baseline: u32,
    /// What it had.
    pub size: Levels,
    /// What its user reserves.
    pub user: Levels,
    /// Whether a safeguard left no choice for it.
    pub is_safeguarded: bool,
}

impl EndedCall {
    /// Relative function execution time.
    pub fn rfet(&self) -> f64 {
        f64::from(self.seconds) / f64::from(self.baseline)
    }

    /// Whether it had less than its user reserves, in either resource.
    pub fn is_harvested(&self) -> bool {
        self.size.cpu < self.user.cpu || self.size.memory < self.user.memory
    }

    /// Whether it ran faster than at its user's size. More than the user's size alone does not count: a
    /// function that is ideally sized may get eight cores for nothing.
    pub fn is_accelerated(&self) -> bool {
        self.seconds < self.baseline
    }
}

/// Cores in use, second by second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Busy {
    seconds: u64,
    sum: i64,
    most: i64,
}

impl Busy {
    /// A second has passed with so many in use at its end.
    pub(super) fn pass(&mut self, cores: i64) {
        self.seconds += 1;
        self.sum += cores;
    }

    /// A call has started; this is when the most are in use.
    pub(super) fn peak(&mut self, cores: i64) {
        self.most = self.most.max(cores);
    }
}

/// All calls of a replay.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// In the order of their ends.
    pub calls: Vec<EndedCall>,
    /// Calls that found no server with room.
    pub without_room: u64,
    pub(super) busy: Busy,
}

/// One row of the paper's table, and more.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Calls that have ended.
    pub calls: u64,
    /// Mean RFET.
    pub rfet_mean: f64,
    /// 98 % of calls have at most this RFET.
    pub rfet_p98: f64,
    /// The highest RFET.
    pub rfet_max: f64,
    /// 98 % of calls run at most this many seconds.
    pub p98_s: f64,
    /// 99 % do.
    pub p99_s: f64,
    /// Share of calls that had less than their user reserves.
    pub harvested_share: f64,
    /// Share of calls that ran faster than at their user's size.
    pub accelerated_share: f64,
    /// Share of calls for which a safeguard left no choice.
    pub safeguarded_share: f64,
    /// How much longer the worst of the harvested calls ran, as a share of its baseline.
    pub worst_harvested_degradation: f64,
    /// Core-seconds granted.
    pub core_seconds: f64,
    /// Cores in use, on average and at most.
    pub busy_cores_mean: f64,
    /// At most.
    pub busy_cores_max: f64,
    /// Calls that found no server with room.
    pub without_room: u64,
}

impl Replay {
    /// The replay as one row.
    pub fn summary(&self) -> Summary {
        let count = self.calls.len().max(1) as f64;
        let share = |which: fn(&EndedCall) -> bool| {
            self.calls.iter().filter(|call| which(call)).count() as f64 / count
        };
        let rfets = self.sorted(EndedCall::rfet);
        let seconds = self.sorted(|call| f64::from(call.seconds));
        let harvested = self.calls.iter().filter(|call| call.is_harvested());
        let core_seconds = self.calls.iter().map(|call| f64::from(call.size.cpu * call.seconds));
        Summary {
            calls: self.calls.len() as u64,
            rfet_mean: mean(&rfets).unwrap_or(0.0),
            rfet_p98: quantile(&rfets, 0.98),
            rfet_max: quantile(&rfets, 1.0),
            p98_s: quantile(&seconds, 0.98),
            p99_s: quantile(&seconds, 0.99),
            harvested_share: share(EndedCall::is_harvested),
            accelerated_share: share(EndedCall::is_accelerated),
            safeguarded_share: share(|call| call.is_safeguarded),
            worst_harvested_degradation: harvested
                .map(|call| call.rfet() - 1.0)
                .fold(0.0, f64::max),
            core_seconds: core_seconds.sum(),
            busy_cores_mean: self.busy.sum as f64 / self.busy.seconds.max(1) as f64,
            busy_cores_max: self.busy.most as f64,
            without_room: self.without_room,
        }
    }

    /// Points of a distribution: value, and the share of calls at most that large.
    pub fn cdf(&self, value: impl Fn(&EndedCall) -> f64, points: usize) -> Vec<(f64, f64)> {
        let sorted = self.sorted(value);
        // Half of the points lie in the last twentieth: that is where the paper looks.
        let share = |point: usize| {
            let t = point as f64 / points as f64;
            if t < 0.5 { t * 1.9 } else { 0.95 + (t - 0.5) * 0.1 }
        };
        let at = |point: usize| {
            let share = share(point);
            lower_neighbour(&sorted, share).map(|value| (value, share))
        };
        (0..=points).filter_map(at).collect()
    }

    fn sorted(&self, value: impl Fn(&EndedCall) -> f64) -> Vec<f64> {
        let mut values: Vec<f64> = self.calls.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values
    }
}

/// The nearest rank, 0 without calls.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    nearest_rank(sorted, share).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(seconds: u32, cpu: u32) -> EndedCall {
        let size = Levels { cpu, memory: 2 };
        EndedCall { seconds, baseline: 10, size, user: Levels::both(2), is_safeguarded: false }
    }

    #[test]
    fn a_summary_worked_by_hand() {
        let calls = vec![call(10, 2), call(15, 1), call(5, 4), call(10, 8)];
        let summary = Replay { calls, ..Replay::default() }.summary();
        assert_eq!((summary.rfet_mean, summary.rfet_max), (1.0, 1.5));
        assert_eq!(
            (summary.p98_s, summary.harvested_share, summary.accelerated_share),
            (15.0, 0.25, 0.25)
        );
        assert_eq!(summary.worst_harvested_degradation, 0.5);
        assert_eq!(summary.core_seconds, 20.0 + 15.0 + 20.0 + 80.0);
    }

    #[test]
    fn quantiles_are_values_that_occurred() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!((quantile(&values, 0.98), quantile(&values, 1.0)), (98.0, 100.0));
        assert_eq!(quantile(&[], 0.5), 0.0);
    }
}
