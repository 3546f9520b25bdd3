//! One run in numbers, in memory that does not grow with the number of calls.
//!
//! Everything obeys one cut: a call counts if it arrived at `measure_from` or later, with its latency and
//! with what it cost, so that both sides of a trade are about the same calls. The time series alone shows
//! the whole run.

pub mod functions;
pub mod series;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windfall_core::{
    Amendment, CallEnd, CallRecord, DecidedBy, Duration, IntervalRecord, TelemetrySink, TickRecord,
    Timestamp,
};

use self::functions::{Compared, CpuTotals, FunctionRow, FunctionTable};
use self::series::TimeSeries;
use crate::function_bootstrap::FunctionCosts;
use crate::journal::TickEntry;
use crate::quantiles::LogHistogram;
use crate::summary::{RunLabel, RunSummary};

/// A run this much longer than at the user's size breaks the promise.
pub const VIOLATION_FACTOR: f64 = 1.05;
/// Shorter calls are judged as if they took this long, in the bounded slowdown.
pub const SLOWDOWN_FLOOR: Duration = Duration::from_millis(100);
/// Rules beyond this number are counted together; a run has about a dozen.
const MOST_RULES: usize = 64;
/// Functions that a report lists.
const MOST_ROWS: usize = 200;
/// Millicore-nanoseconds in a core-second.
const CORE_SECOND: f64 = 1e12;
/// MiB-nanoseconds in a MiB-second.
const MIB_SECOND: f64 = 1e9;

/// Accumulates one run. Hand it to the run as a [`TelemetrySink`], then ask for its
/// [`summary`](Self::summary) and [`detail`](Self::detail).
#[derive(Clone, Debug)]
pub struct RunMetrics {
    measure_from: Timestamp,
    last: Timestamp,
    counts: Counts,
    cost: Cost,
    depth_sum: f64,
    depth_max: f64,
    /// Calls that took exactly as long as at the user's size: their ratios are 1 and lie in none of the
    /// three histograms that follow. Of most runs that is nearly all calls.
    undisturbed: u64,
    relative_run: LogHistogram,
    slowdown: LogHistogram,
    bounded_slowdown: LogHistogram,
    latency_seconds: LogHistogram,
    amendments: BTreeMap<Cow<'static, str>, u64>,
    functions: FunctionTable,
    series: TimeSeries,
}

/// Plain tallies of measured calls.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    warm_up: u64,
    ended: u64,
    completed: u64,
    /// Completed calls of which nobody knows how long they would have run at the user's size.
    without_baseline: u64,
    out_of_memory: u64,
    node_lost: u64,
    rejected: u64,
    violations: u64,
    harvested: u64,
    harvested_without_baseline: u64,
    harvested_violations: u64,
    accelerated: u64,
    cold: u64,
    oom_kills: u64,
    grant_changes: u64,
    instance_changes: u64,
    looks: u64,
    fallbacks: u64,
}

/// Integer sums, exact over any number of calls; a `u64` of millicore-nanoseconds would overflow after
/// five core-hours times a thousand cores.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    memory_granted: u128,
    memory_used: u128,
    instance_seconds: f64,
    idle_mib_seconds: f64,
    starting_core_seconds: f64,
}

/// What a report shows of one run beyond its summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunDetail {
    /// Which run.
    #[serde(flatten)]
    pub label: RunLabel,
    /// Points of the slowdown's distribution: value, share of calls at most that slow.
    pub slowdown_cdf: Vec<(f64, f64)>,
    /// The same of run times relative to the user's size.
    #[serde(default)]
    pub rfet_cdf: Vec<(f64, f64)>,
    /// The same of seconds from arrival to end.
    #[serde(default)]
    pub latency_cdf: Vec<(f64, f64)>,
    /// The cluster over time.
    pub series: TimeSeries,
    /// The functions that were granted most CPU.
    pub functions: Vec<FunctionRow>,
    /// How many functions were called but are not among them.
    #[serde(default)]
    pub functions_left_out: usize,
    /// How often each safeguard stepped in.
    pub amendments: BTreeMap<String, u64>,
}

impl RunMetrics {
    /// An empty account of a run whose calls count from `measure_from` on.
    pub fn new(measure_from: Timestamp) -> Self {
        Self {
            measure_from,
            last: measure_from,
            counts: Counts::default(),
            cost: Cost::default(),
            depth_sum: 0.0,
            depth_max: 0.0,
            undisturbed: 0,
            relative_run: LogHistogram::new(),
            slowdown: LogHistogram::new(),
            bounded_slowdown: LogHistogram::new(),
            latency_seconds: LogHistogram::new(),
            amendments: BTreeMap::new(),
            functions: FunctionTable::default(),
            series: TimeSeries::default(),
        }
    }

    /// The distribution of slowdowns.
    pub fn slowdown(&self) -> LogHistogram {
        self.with_undisturbed(&self.slowdown)
    }

    /// The distribution of run times relative to the user's size.
    pub fn relative_run(&self) -> LogHistogram {
        self.with_undisturbed(&self.relative_run)
    }

    fn with_undisturbed(&self, others: &LogHistogram) -> LogHistogram {
        let mut all = others.clone();
        all.record_many(1.0, self.undisturbed);
        all
    }

    /// The distribution of latencies, seconds.
    pub fn latency_seconds(&self) -> &LogHistogram {
        &self.latency_seconds
    }

    /// The cluster over time.
    pub fn series(&self) -> &TimeSeries {
        &self.series
    }

    /// All functions, those that were granted most CPU first. `names` are in the order of their ids.
    pub fn functions(&self, names: &[String]) -> Vec<FunctionRow> {
        self.functions.rows(names)
    }

    /// Core-seconds held by each function, and by none.
    pub fn function_costs(&self) -> FunctionCosts {
        FunctionCosts {
            of_functions: self.functions.core_seconds_held(),
            of_none: self.cost.starting_core_seconds,
        }
    }

    /// How often each safeguard stepped in.
    pub fn amendments(&self) -> BTreeMap<String, u64> {
        self.amendments.iter().map(|(rule, count)| (rule.to_string(), *count)).collect()
    }

    /// What a report shows beyond the summary, the 200 largest functions included.
    pub fn detail(&self, label: &RunLabel, names: &[String]) -> RunDetail {
        let mut functions = self.functions(names);
        let functions_left_out = functions.len().saturating_sub(MOST_ROWS);
        functions.truncate(MOST_ROWS);
        RunDetail {
            label: label.clone(),
            slowdown_cdf: self.slowdown().cdf(160),
            rfet_cdf: self.relative_run().cdf(160),
            latency_cdf: self.latency_seconds.cdf(160),
            series: self.series.clone(),
            functions,
            functions_left_out,
            amendments: self.amendments(),
        }
    }

    /// The run as one row. Shares and quantiles of a run without calls are 0; `calls` says so.
    pub fn summary(&self, label: &RunLabel) -> RunSummary {
        let Counts { completed, without_baseline, harvested, violations, .. } = self.counts;
        let harvested_compared = harvested - self.counts.harvested_without_baseline;
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let at = |histogram: &LogHistogram, q| histogram.quantile(q).unwrap_or(0.0);
        let CpuTotals { granted, held_back, used } = self.functions.cpu_totals();
        let core_seconds_granted = granted as f64 / CORE_SECOND + self.cost.starting_core_seconds;
        let core_seconds_held_back = held_back as f64 / CORE_SECOND;
        let (relative_run, slowdown) = (self.relative_run(), self.slowdown());
        let bounded_slowdown = self.with_undisturbed(&self.bounded_slowdown);
        let hours = self.last.since(self.measure_from).as_secs_f64() / 3600.0;
        let changes = self.counts.grant_changes + self.counts.instance_changes;
        RunSummary {
            policy: label.policy.clone(),
            load: label.load,
            seed: label.seed,
            calls: self.counts.ended,
            rfet_mean: relative_run.mean().unwrap_or(0.0),
            slowdown_p50: at(&slowdown, 0.5),
            slowdown_p95: at(&slowdown, 0.95),
            slowdown_p99: at(&slowdown, 0.99),
            slowdown_p999: at(&slowdown, 0.999),
            bounded_slowdown_p99: at(&bounded_slowdown, 0.99),
            bounded_slowdown_p999: at(&bounded_slowdown, 0.999),
            violation_share: share(violations, completed - without_baseline),
            harvested_violation_share: share(self.counts.harvested_violations, harvested_compared),
            cold_share: share(self.counts.cold, completed),
            oom_kills: self.counts.oom_kills,
            core_seconds_held: core_seconds_granted + core_seconds_held_back,
            core_seconds_granted,
            core_seconds_held_back,
            core_seconds_used: used as f64 / CORE_SECOND,
            mib_seconds_granted: self.cost.memory_granted as f64 / MIB_SECOND,
            mib_seconds_used: self.cost.memory_used as f64 / MIB_SECOND,
            instance_seconds: self.cost.instance_seconds,
            changes_per_hour: if hours > 0.0 { changes as f64 / hours } else { 0.0 },
            completed,
            failed: self.counts.out_of_memory + self.counts.node_lost,
            rejected: self.counts.rejected,
            warm_up_calls: self.counts.warm_up,
            measured_hours: hours,
            rfet_p50: at(&relative_run, 0.5),
            rfet_p95: at(&relative_run, 0.95),
            rfet_p99: at(&relative_run, 0.99),
            slowdown_mean: slowdown.mean().unwrap_or(0.0),
            slowdown_max: slowdown.max().unwrap_or(0.0),
            latency_p50_seconds: at(&self.latency_seconds, 0.5),
            latency_p95_seconds: at(&self.latency_seconds, 0.95),
            latency_p99_seconds: at(&self.latency_seconds, 0.99),
            violation_depth_mean: self.depth_sum / violations.max(1) as f64,
            violation_depth_max: self.depth_max,
            harvested_share: share(harvested, completed),
            accelerated_share: share(self.counts.accelerated, completed),
            idle_mib_seconds: self.cost.idle_mib_seconds,
            looks: self.counts.looks,
            fallbacks: self.counts.fallbacks,
            amendments: self.amendments.values().sum(),
            calls_without_baseline: without_baseline,
        }
    }

    fn count_amendments(&mut self, amendments: &[Amendment]) {
        for amendment in amendments {
            if let Some(count) = self.amendments.get_mut(&amendment.rule) {
                *count += 1;
            } else if self.amendments.len() < MOST_RULES {
                self.amendments.insert(amendment.rule.clone(), 1);
            } else {
                *self.amendments.entry(Cow::Borrowed("other rules")).or_insert(0) += 1;
            }
        }
    }

    /// Counts a tick that was read back from a journal.
    pub fn tick_entry(&mut self, tick: &TickEntry) {
        self.count_tick(tick.observation.now, &tick.decided_by, &tick.plan.amendments);
    }

    fn count_tick(&mut self, now: Timestamp, decided_by: &DecidedBy, amendments: &[Amendment]) {
        if now < self.measure_from {
            return;
        }
        self.last = self.last.max(now);
        self.counts.fallbacks += u64::from(*decided_by != DecidedBy::Policy);
        self.count_amendments(amendments);
    }

    /// Latency, shares and depth of a call that was answered; how it compares with the user's size, where that is
    /// known.
    #[inline]
    fn count_completed(&mut self, call: &CallRecord) -> Option<Compared> {
        let latency = call.ended_at.since(call.arrived_at);
        let harvested = call.is_harvested();
        self.counts.completed += 1;
        self.counts.accelerated += u64::from(call.is_accelerated());
        self.counts.harvested += u64::from(harvested);
        self.latency_seconds.record(latency.as_nanos_f64() * 1e-9);
        let is_undisturbed = call.baseline == Some(latency) && latency == call.run;
        if is_undisturbed && !latency.is_zero() {
            self.undisturbed += 1;
            Some(Compared { slowdown: 1.0, violated: false })
        } else {
            self.counts.cold += u64::from(!call.cold_start.is_zero());
            self.count_disturbed(call, harvested)
        }
    }

    fn count_disturbed(&mut self, call: &CallRecord, harvested: bool) -> Option<Compared> {
        let (Some(relative), Some(slowdown), Some(bounded)) =
            (call.relative_run(), call.slowdown(), call.bounded_slowdown(SLOWDOWN_FLOOR))
        else {
            self.counts.without_baseline += 1;
            self.counts.harvested_without_baseline += u64::from(harvested);
            return None;
        };
        let violated = relative > VIOLATION_FACTOR;
        self.counts.violations += u64::from(violated);
        self.counts.harvested_violations += u64::from(violated && harvested);
        if violated {
            self.depth_sum += relative - 1.0;
            self.depth_max = self.depth_max.max(relative - 1.0);
        }
        self.relative_run.record(relative);
        self.slowdown.record(slowdown);
        self.bounded_slowdown.record(bounded);
        Some(Compared { slowdown, violated })
    }
}

impl TelemetrySink for RunMetrics {
    fn tick(&mut self, tick: &TickRecord) {
        self.count_tick(tick.observation.now, &tick.decided_by, tick.plan.amendments());
    }

    #[inline]
    fn call(&mut self, call: &CallRecord) {
        if call.arrived_at < self.measure_from {
            self.counts.warm_up += 1;
            return;
        }
        self.last = self.last.max(call.ended_at);
        self.counts.ended += 1;
        self.counts.oom_kills += u64::from(call.oom_kills);
        self.counts.grant_changes += u64::from(call.changes);
        self.counts.looks += u64::from(call.looks);
        self.counts.fallbacks += u64::from(!matches!(call.decided_by, DecidedBy::Policy));
        self.cost.memory_granted += u128::from(call.memory_granted);
        self.cost.memory_used += u128::from(call.memory_used);
        if !call.amendments.is_empty() {
            self.count_amendments(&call.amendments);
        }
        let compared = match call.end {
            CallEnd::Completed => self.count_completed(call),
            CallEnd::OutOfMemory => {
                self.counts.out_of_memory += 1;
                None
            }
            CallEnd::NodeLost => {
                self.counts.node_lost += 1;
                None
            }
            CallEnd::Rejected => {
                self.counts.rejected += 1;
                None
            }
        };
        self.functions.count(call, compared);
    }

    fn interval(&mut self, interval: &IntervalRecord) {
        self.series.push(interval);
        if interval.from < self.measure_from {
            return;
        }
        self.last = self.last.max(interval.until);
        let seconds = interval.until.since(interval.from).as_secs_f64();
        self.cost.instance_seconds += interval.instances * seconds;
        self.cost.idle_mib_seconds += interval.idle_mib * seconds;
        self.cost.starting_core_seconds += interval.starting_cores * seconds;
        self.counts.instance_changes += interval.instance_changes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{call, label};
    use windfall_core::Allocation;

    fn metrics_of(calls: &[CallRecord]) -> RunMetrics {
        let mut metrics = RunMetrics::new(Timestamp::ZERO);
        calls.iter().for_each(|one| metrics.call(one));
        metrics
    }

    #[test]
    fn a_hand_made_run_gives_the_numbers_worked_out_by_hand() {
        // Baseline 1 s; runs of 1.0, 1.04, 1.2 and 2.0 s; the last two harvested, one waited 1 s.
        let mut calls = vec![call(0, 1.0), call(1, 1.04), call(2, 1.2), call(3, 2.0)];
        for one in &mut calls[2..] {
            one.lowest_grant = Allocation::new(500, 512);
        }
        calls[0].ended_at = calls[0].arrived_at + Duration::from_secs(2);
        calls[3].cold_start = Duration::from_millis(1);
        calls[3].oom_kills = 1;
        let summary = metrics_of(&calls).summary(&label("fixed", 1));
        assert_eq!(summary.calls, 4);
        assert_eq!(summary.violation_share, 0.5);
        assert_eq!(summary.harvested_violation_share, 1.0);
        assert_eq!(summary.cold_share, 0.25);
        assert_eq!(summary.oom_kills, 1);
        assert!((summary.rfet_mean - 1.31).abs() < 1e-12);
        assert!((summary.violation_depth_mean - 0.6).abs() < 1e-12);
        assert!((summary.violation_depth_max - 1.0).abs() < 1e-12);
        assert!((summary.slowdown_p99 - 2.0).abs() < 1e-12);
        assert!((summary.core_seconds_granted - 4.0 * 1.0).abs() < 1e-9);
        assert_eq!(summary.slowdown_p999, summary.slowdown_max);
    }

    #[test]
    fn what_is_held_back_for_a_call_is_held_beside_what_it_was_granted() {
        // One core for a second each; half a core-second more was kept for the second call.
        let mut calls = [call(0, 1.0), call(1, 1.0)];
        calls[1].cpu_held_back = 500_000_000_000;
        let metrics = metrics_of(&calls);
        let summary = metrics.summary(&label("windfall", 1));
        assert_eq!(summary.core_seconds_granted, 2.0);
        assert_eq!(summary.core_seconds_held_back, 0.5);
        assert_eq!(summary.core_seconds_held, 2.5);
        let costs = metrics.function_costs();
        assert_eq!((costs.of_functions.iter().sum::<f64>(), costs.of_none), (2.5, 0.0));
    }

    #[test]
    fn calls_before_the_cut_count_nowhere_but_in_the_warm_up() {
        let mut metrics = RunMetrics::new(Timestamp::from_secs(1000));
        metrics.call(&call(1, 3.0));
        let summary = metrics.summary(&label("fixed", 1));
        assert_eq!((summary.calls, summary.warm_up_calls), (0, 1));
        assert_eq!(summary.core_seconds_granted, 0.0);
    }

    #[test]
    fn calls_that_got_no_answer_have_no_latency() {
        let mut lost = call(0, 9.0);
        lost.end = CallEnd::NodeLost;
        let mut turned_away = call(1, 9.0);
        turned_away.end = CallEnd::Rejected;
        let summary = metrics_of(&[lost, turned_away, call(2, 1.0)]).summary(&label("fixed", 1));
        assert_eq!((summary.calls, summary.completed), (3, 1));
        assert_eq!((summary.failed, summary.rejected), (1, 1));
        assert_eq!(summary.slowdown_max, 1.0);
    }

    #[test]
    fn calls_without_a_baseline_are_counted_and_compared_with_nothing() {
        let mut unknown = [call(0, 9.0), call(1, 9.0)];
        for call in &mut unknown {
            call.baseline = None;
            call.lowest_grant = Allocation::new(500, 512);
        }
        let [one, other] = unknown;
        let summary = metrics_of(&[one.clone(), other, call(2, 2.0)]).summary(&label("fixed", 1));
        assert_eq!((summary.completed, summary.calls_without_baseline), (3, 2));
        assert_eq!((summary.violation_share, summary.slowdown_max), (1.0, 2.0));
        assert!(summary.latency_p99_seconds > 8.0, "latency needs no baseline");
        // Where nothing is known, a metric has no value rather than a good one.
        let blind = metrics_of(&[one]).summary(&label("fixed", 1));
        let of = |key: &str| crate::metric_table::metric(key).unwrap().of(&blind);
        assert_eq!(
            (of("violation_share"), of("slowdown_p99"), of("rfet_mean")),
            (None, None, None)
        );
        assert_eq!((of("harvested_violation_share"), of("cold_share")), (None, Some(0.0)));
    }

    #[test]
    fn the_number_of_rules_is_bounded() {
        let mut odd = call(0, 1.0);
        for rule in 0..200 {
            odd.amendments.push(crate::sample::amendment(&format!("rule {rule}")));
        }
        let metrics = metrics_of(&[odd]);
        assert_eq!(metrics.amendments().len(), MOST_RULES + 1);
        assert_eq!(metrics.amendments()["other rules"], 136);
    }

    #[test]
    fn changes_are_counted_per_hour_of_measured_time() {
        let mut busy = call(0, 1.0);
        busy.changes = 6;
        let mut metrics = metrics_of(&[busy]);
        metrics.interval(&IntervalRecord {
            until: Timestamp::from_secs(1800),
            instances: 2.0,
            ..IntervalRecord::default()
        });
        let summary = metrics.summary(&label("fixed", 1));
        assert_eq!(summary.changes_per_hour, 12.0);
        assert_eq!(summary.instance_seconds, 3600.0);
    }
}
