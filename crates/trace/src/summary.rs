//! Summary statistics of a trace, from one streaming pass.

use serde::{Deserialize, Serialize};
use windfall_core::{Duration, Trigger, Workload};

/// Number of bins of the arrivals over time.
const TIME_BINS: usize = 240;
/// Number of bins of the histogram of run times: a tenth of a decade each, from 0.1 ms.
const RUN_BINS: usize = 80;

/// Offered load of a trace, from which a cluster is sized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OfferedLoad {
    /// Calls.
    pub calls: u64,
    /// From zero to the workload's horizon.
    pub span: Duration,
    /// Reservation times run time at the user's size, core-nanoseconds.
    pub reserved_core_ns: f64,
    /// Reservation times run time at the user's size, MiB-nanoseconds.
    pub reserved_mib_ns: f64,
    /// Work, core-nanoseconds.
    pub used_core_ns: f64,
}

impl OfferedLoad {
    fn add(&mut self, reservation: windfall_core::Allocation, run: Duration, work: u64) {
        let nanos = run.as_nanos() as f64;
        self.calls += 1;
        self.reserved_core_ns += reservation.cpu.cores() * nanos;
        self.reserved_mib_ns += reservation.memory.mib() * nanos;
        self.used_core_ns += work as f64 * 1e-3;
    }
}

/// Computes the offered load in one pass, from the workload's current position to its end.
pub fn offered_load(workload: &mut dyn Workload) -> OfferedLoad {
    let mut load = OfferedLoad {
        span: workload.horizon().since(Default::default()),
        ..OfferedLoad::default()
    };
    let reservations: Vec<_> = workload.functions().iter().map(|f| f.reservation).collect();
    while let Some(arrival) = workload.next_arrival() {
        let reservation = reservations[arrival.function.index()];
        load.add(reservation, arrival.demand.run_time(reservation.cpu), arrival.demand.work);
    }
    load
}

/// One of the busiest functions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopFunction {
    /// Its name.
    pub name: String,
    /// What triggers it.
    pub trigger: Trigger,
    /// Calls.
    pub calls: u64,
    /// Share of all calls.
    pub share: f64,
    /// Mean run time at the user's size.
    pub mean_run_ms: f64,
}

/// Summary statistics of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceSummary {
    /// Calls, and what they reserve and use.
    pub load: OfferedLoad,
    /// Functions in the workload.
    pub functions: usize,
    /// Functions that are called at least once.
    pub functions_called: usize,
    /// Length of a time bin in seconds.
    pub bin_seconds: f64,
    /// Arrivals per time bin, at most 240 of them.
    pub arrivals: Vec<u64>,
    /// Run time at the user's size: percentile and milliseconds, to a tenth of a decade.
    pub run_quantiles_ms: Vec<(f64, f64)>,
    /// Histogram of run times: upper edge in milliseconds and calls.
    pub run_histogram: Vec<(f64, u64)>,
    /// Share of calls made by the busiest n functions: n and share, n doubling.
    pub popularity: Vec<(usize, f64)>,
    /// Functions and calls by trigger.
    pub triggers: Vec<(Trigger, u64, u64)>,
    /// The ten busiest functions.
    pub top: Vec<TopFunction>,
}

/// Summarises a workload in one pass, from its current position; `progress` is called after every 65,536 calls.
pub fn summarise(workload: &mut dyn Workload, progress: &mut dyn FnMut(u64)) -> TraceSummary {
    let profiles = workload.functions().to_vec();
    let span = workload.horizon().since(Default::default());
    let bin_ns = span.as_nanos().div_ceil(TIME_BINS as u64).max(1);
    let bins = span.as_nanos().div_ceil(bin_ns).max(1) as usize;
    let mut load = OfferedLoad { span, ..OfferedLoad::default() };
    let mut arrivals = vec![0u64; bins];
    let mut runs = vec![0u64; RUN_BINS];
    let mut by_function = vec![(0u64, 0.0f64); profiles.len()];
    while let Some(arrival) = workload.next_arrival() {
        let place = arrival.function.index();
        let reservation = profiles[place].reservation;
        let run = arrival.demand.run_time(reservation.cpu);
        load.add(reservation, run, arrival.demand.work);
        let bin = (arrival.at.as_nanos() / bin_ns) as usize;
        arrivals[bin.min(bins - 1)] += 1;
        runs[run_bin(run)] += 1;
        by_function[place].0 += 1;
        by_function[place].1 += run.as_millis_f64();
        if load.calls.is_multiple_of(65_536) {
            progress(load.calls);
        }
    }
    let mut order: Vec<usize> = (0..profiles.len()).collect();
    order.sort_by_key(|&place| std::cmp::Reverse(by_function[place].0));
    let all = load.calls.max(1) as f64;
    let top = order.iter().take(10).filter(|&&place| by_function[place].0 > 0).map(|&place| {
        let (calls, run_ms) = by_function[place];
        TopFunction {
            name: profiles[place].name.clone(),
            trigger: profiles[place].trigger,
            calls,
            share: calls as f64 / all,
            mean_run_ms: run_ms / calls as f64,
        }
    });
    let mut triggers = std::collections::BTreeMap::new();
    for (profile, &(calls, _)) in profiles.iter().zip(&by_function) {
        let entry = triggers.entry(profile.trigger).or_insert((0, 0));
        *entry = (entry.0 + 1, entry.1 + calls);
    }
    TraceSummary {
        load,
        functions: profiles.len(),
        functions_called: by_function.iter().filter(|(calls, _)| *calls > 0).count(),
        bin_seconds: bin_ns as f64 * 1e-9,
        arrivals,
        run_quantiles_ms: [0.01, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99]
            .map(|share| (share, quantile(&runs, share)))
            .to_vec(),
        run_histogram: runs.iter().enumerate().map(|(i, &n)| (upper_edge(i), n)).collect(),
        popularity: popularity(&order, &by_function),
        triggers: triggers.into_iter().map(|(kind, (f, calls))| (kind, f, calls)).collect(),
        top: top.collect(),
    }
}

fn run_bin(run: Duration) -> usize {
    // Ten bins per decade, the first ends at 0.1 ms.
    let place = (run.as_millis_f64().max(1e-9).log10() + 1.0) * 10.0;
    (place.ceil().max(0.0) as usize).min(RUN_BINS - 1)
}

fn upper_edge(bin: usize) -> f64 {
    10f64.powf(bin as f64 / 10.0 - 1.0)
}

fn quantile(runs: &[u64], share: f64) -> f64 {
    let wanted = share * runs.iter().sum::<u64>() as f64;
    let mut seen = 0;
    for (bin, &count) in runs.iter().enumerate() {
        seen += count;
        if seen as f64 >= wanted && seen > 0 {
            return upper_edge(bin);
        }
    }
    0.0
}

fn popularity(order: &[usize], by_function: &[(u64, f64)]) -> Vec<(usize, f64)> {
    let all = by_function.iter().map(|(calls, _)| calls).sum::<u64>().max(1) as f64;
    let mut curve = Vec::new();
    let (mut sum, mut next) = (0, 1);
    for (rank, &place) in order.iter().enumerate() {
        sum += by_function[place].0;
        if rank + 1 == next || rank + 1 == order.len() {
            curve.push((rank + 1, sum as f64 / all));
            next *= 2;
        }
    }
    curve
}

impl TraceSummary {
    /// Formats the summary for the terminal, at most 79 columns wide.
    pub fn text(&self) -> String {
        let hours = self.load.span.as_secs_f64() / 3600.0;
        let mut text = format!(
            "calls      {} in {hours:.1} h, {} of {} functions called\n",
            self.load.calls, self.functions_called, self.functions
        );
        text += &format!("arrivals   {}\n", sparkline(&self.arrivals, 66));
        text += "run time  ";
        for (share, ms) in &self.run_quantiles_ms {
            text += &format!(" p{:.0} {}", share * 100.0, short_ms(*ms));
        }
        text += "\npopularity";
        for (rank, share) in self.popularity.iter().take(6) {
            text += &format!(" top {rank} {:.0} %", share * 100.0);
        }
        let seconds = self.load.span.as_secs_f64().max(1e-9) * 1e9;
        text += &format!(
            "\ncores      {:.1} reserved, {:.1} used on average\nmemory     {:.0} MiB reserved on average\n",
            self.load.reserved_core_ns / seconds,
            self.load.used_core_ns / seconds,
            self.load.reserved_mib_ns / seconds,
        );
        for (trigger, functions, calls) in &self.triggers {
            let share = *calls as f64 / self.load.calls.max(1) as f64;
            let bar = "█".repeat((share * 30.0).round() as usize);
            let name = format!("{trigger:?}").to_lowercase();
            text += &format!("{name:<14}{functions:>6} functions {:>5.1} % {bar}\n", share * 100.0);
        }
        text
    }
}

fn short_ms(ms: f64) -> String {
    if ms >= 1000.0 { format!("{:.1}s", ms / 1000.0) } else { format!("{ms:.0}ms") }
}

/// At most `width` bars, each the sum of the same number of neighbouring bins.
fn sparkline(values: &[u64], width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let group = values.len().div_ceil(width).max(1);
    let sums: Vec<u64> = values.chunks(group).map(|chunk| chunk.iter().sum()).collect();
    let most = sums.iter().copied().max().unwrap_or(0).max(1);
    sums.iter().map(|&sum| BARS[(sum as f64 / most as f64 * 7.0).round() as usize]).collect()
}
