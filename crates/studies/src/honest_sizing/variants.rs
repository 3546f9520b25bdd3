//! How much of the saving hangs on what was assumed: the benchmark on other readings of the same trace.
//!
//! A saving is `1 - held by windfall / held by the best incumbent`, in core-seconds held: granted plus held
//! back, of the sums over seeds and functions. The best incumbent at a load is the one of [`HEURISTICS`] that
//! holds fewest core-seconds, without over-commit, among those that slow at most 1 % of their calls by more
//! than 5 %. Its p99 does not enter the choice; both p99s stand beside the saving. Bounds come from drawing
//! seeds and functions again, because four functions hold nine tenths of what is reserved.

use serde::Serialize;
use windfall_telemetry::comparison::ratio_over_functions;
use windfall_telemetry::{Comparison, FunctionCosts, RunSummary};
use windfall_trace::{Caps, Source};

use super::{HEURISTICS, HonestSizing};
use windfall_scenario::sweep::{Sweep, SweepError, SweepResult, Watcher};

/// A policy that slows more of its calls than this is no alternative, however little it holds.
const MOST_VIOLATIONS: f64 = 0.01;
/// Two p99s this close are equal: a bucket of the histograms they are read from is as wide.
const EQUAL: f64 = 1.001;

/// A way to read the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// As it is.
    Full,
    /// No function keeps more than 4 calls busy on average, nor 8 in any minute.
    Capped,
    /// Without functions whose calls are taken to sleep 95 % of their time.
    NoSleepers,
}

impl Reading {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 3] = [Self::Full, Self::Capped, Self::NoSleepers];

    /// Its name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Capped => "capped",
            Self::NoSleepers => "no-sleepers",
        }
    }

    /// `source` read this way. Generated functions are capped from the start.
    fn of(self, mut source: Source) -> Source {
        match (self, &mut source) {
            (Self::Full, _) | (Self::Capped, Source::AzureLike(_)) => {}
            (Self::Capped, Source::File { options, .. }) => options.caps = Some(Caps::default()),
            (Self::NoSleepers, Source::File { options, .. }) => options.without_sleepers = true,
            (Self::NoSleepers, Source::AzureLike(settings)) => settings.without_sleepers = true,
        }
        source
    }
}

/// What `windfall` saves at one load on one reading of the trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Variant {
    /// The reading: `full`, `capped` or `no-sleepers`.
    pub name: &'static str,
    /// The load.
    pub load: f64,
    /// Fewer core-seconds held than the best incumbent, in percent; negative if more.
    pub saving_percent: f64,
    /// Lower end of its 95 % interval over seeds and functions.
    pub saving_low: f64,
    /// Upper end of its 95 % interval.
    pub saving_high: f64,
    /// Functions that were drawn from.
    pub functions: usize,
    /// The best incumbent.
    pub best: String,
    /// Whether the p99 slowdown of `windfall` is no higher than the best incumbent's.
    pub is_p99_no_worse: bool,
    /// Means of `windfall`.
    pub windfall: Service,
    /// Means of the best incumbent.
    pub incumbent: Service,
}

/// What users and operators get from a policy: means over seeds, geometric for slowdowns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Service {
    /// p99 slowdown.
    pub slowdown_p99: f64,
    /// p99.9 slowdown.
    pub slowdown_p999: f64,
    /// p99 of the bounded slowdown.
    pub bounded_slowdown_p99: f64,
    /// Share of calls that ran more than 5 % longer than at the user's size.
    pub violation_share: f64,
    /// Core-seconds granted plus held back.
    pub core_seconds_held: f64,
    /// Of these, held back.
    pub core_seconds_held_back: f64,
    /// MiB-seconds granted.
    pub mib_seconds_granted: f64,
}

impl Service {
    /// What `policy` gives at `load`.
    pub(super) fn of(comparison: &Comparison, load: f64, policy: &str) -> Option<Self> {
        let row = comparison.at(load).find(|row| row.policy == policy)?;
        Some(Self {
            slowdown_p99: row.mean("slowdown_p99")?,
            slowdown_p999: row.mean("slowdown_p999")?,
            bounded_slowdown_p99: row.mean("bounded_slowdown_p99")?,
            violation_share: row.mean("violation_share")?,
            core_seconds_held: row.mean("core_seconds_held")?,
            core_seconds_held_back: row.mean("core_seconds_held_back")?,
            mib_seconds_granted: row.mean("mib_seconds_granted")?,
        })
    }
}

/// The best incumbent at `load`, by the rule above.
pub(super) fn best_incumbent(
    comparison: &Comparison,
    load: f64,
) -> Option<(&'static str, Service)> {
    HEURISTICS
        .into_iter()
        .filter_map(|name| Some((name, Service::of(comparison, load, name)?)))
        .filter(|(_, service)| service.violation_share <= MOST_VIOLATIONS)
        .min_by(|a, b| a.1.core_seconds_held.total_cmp(&b.1.core_seconds_held))
}

impl HonestSizing {
    /// The savings on every reading; `full` are the rows of the benchmark itself, which are not played again.
    pub(super) fn play_variants(
        &self,
        full: (&[RunSummary], &[FunctionCosts]),
        watcher: &dyn Watcher,
    ) -> Result<Vec<Variant>, SweepError> {
        let mut variants = savings(Reading::Full, full.0, full.1);
        for reading in [Reading::Capped, Reading::NoSleepers] {
            let policies = std::iter::once("windfall").chain(HEURISTICS).map(str::to_owned);
            let mut scenario = self.scenario(policies.collect());
            let source = reading.of(scenario.trace.clone());
            if source == scenario.trace {
                variants.extend(savings(reading, full.0, full.1));
                continue;
            }
            scenario.trace = source;
            let played = Sweep { scenario: &scenario, threads: self.threads }.play(watcher)?;
            let SweepResult { rows, costs, .. } = played;
            variants.extend(savings(reading, &rows, &costs));
        }
        Ok(variants)
    }
}

/// What `windfall` saves at every load of `rows`.
fn savings(reading: Reading, rows: &[RunSummary], costs: &[FunctionCosts]) -> Vec<Variant> {
    let comparison = Comparison::new(rows.to_vec(), "windfall");
    let at = |load: f64| {
        let windfall = Service::of(&comparison, load, "windfall")?;
        let (best, incumbent) = best_incumbent(&comparison, load)?;
        let held = ratio_over_functions(rows, costs, ["windfall", best], load)?;
        let saving = |ratio: f64| 100.0 * (1.0 - ratio);
        Some(Variant {
            name: reading.name(),
            load,
            saving_percent: saving(held.ratio),
            saving_low: saving(held.high),
            saving_high: saving(held.low),
            functions: held.functions,
            best: best.to_owned(),
            is_p99_no_worse: windfall.slowdown_p99 <= EQUAL * incumbent.slowdown_p99,
            windfall,
            incumbent,
        })
    };
    comparison.loads().into_iter().filter_map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(policy: &str, held: f64, violation_share: f64) -> RunSummary {
        RunSummary {
            policy: policy.to_owned(),
            load: 0.8,
            seed: 1,
            calls: 10,
            completed: 10,
            slowdown_p99: 2.0,
            slowdown_p999: 3.0,
            bounded_slowdown_p99: 1.5,
            core_seconds_held: held,
            violation_share,
            ..RunSummary::default()
        }
    }

    #[test]
    fn the_saving_is_against_the_incumbent_that_holds_least_and_keeps_its_promises() {
        let rows = [
            row("windfall", 15.0, 0.0),
            row("histogram", 20.0, 0.001),
            row("libra", 25.0, 0.0),
            row("shabari", 5.0, 0.2),
        ];
        let costs = [[5.0, 10.0], [10.0, 10.0], [15.0, 10.0], [2.0, 3.0]]
            .map(|held| FunctionCosts { of_functions: held.to_vec(), of_none: 0.0 });
        let variants = savings(Reading::Full, &rows, &costs);
        let [one] = variants.as_slice() else { panic!("{variants:?}") };
        assert_eq!((one.best.as_str(), one.name, one.functions), ("histogram", "full", 2));
        assert_eq!((one.saving_percent, one.saving_low, one.saving_high), (25.0, 0.0, 50.0));
        assert!(one.is_p99_no_worse);
    }
}
