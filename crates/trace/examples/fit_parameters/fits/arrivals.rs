//! Rates, timers, bursts, run times and memory of the 500 functions of Azure 2019; the hours of a day.

use std::collections::BTreeMap;
use std::path::Path;

use super::Fit;
use super::statistics::{covariance, mean, median, quantile, quantiles, score_correlation};
use super::tables::{Table, value};

const SET: &str = "azure2019-joint-500fn-8h";
const PROBABILITIES: [f64; 9] = [0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0];
const HOURS: f64 = 8.0;
/// A trigger with fewer functions uses the values of all functions except timers.
const ENOUGH: usize = 10;
/// Minimum calls in 8 hours for estimating the spread of a function's counts.
const ENOUGH_CALLS: f64 = 100.0;

struct Function {
    trigger: String,
    counts: Vec<f64>,
    /// Period and calls at a time, if it is regular.
    period: Option<(usize, f64)>,
    median_ms: f64,
    spread: f64,
    tail: f64,
    memory_mib: f64,
    memory_spread: f64,
}

impl Function {
    fn per_hour(&self) -> f64 {
        self.counts.iter().sum::<f64>() / HOURS
    }

    /// Standard deviation of the log burst factor and its autocorrelation from minute to minute.
    ///
    /// Counts are Poisson around m F with F lognormal of mean 1:
    /// variance = m + m^2 (exp(s^2) - 1), covariance of neighbours = m^2 (exp(r s^2) - 1).
    fn burst(&self) -> Option<(f64, f64)> {
        let rate = mean(&self.counts);
        if self.counts.iter().sum::<f64>() < ENOUGH_CALLS {
            return None;
        }
        let excess = (covariance(&self.counts, &self.counts) - rate) / (rate * rate);
        let square = (1.0 + excess.max(0.0)).ln();
        let (early, late) = (&self.counts[..self.counts.len() - 1], &self.counts[1..]);
        let shared = covariance(early, late) / (rate * rate);
        let memory = (1.0 + shared.max(-0.9)).ln() / square.max(1e-9);
        Some((square.sqrt(), memory.clamp(0.0, 1.0)))
    }
}

/// Period and calls per firing of counts in which at least two of three gaps are equal: a timer near the edge of a
/// minute occasionally falls into the neighbouring one.
fn period_of(counts: &[f64]) -> Option<(usize, f64)> {
    let fires: Vec<usize> = (0..counts.len()).filter(|&minute| counts[minute] > 0.0).collect();
    let gaps: Vec<usize> = fires.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let period = most_frequent(gaps.iter().copied())?;
    let same = gaps.iter().filter(|&&gap| gap == period).count();
    let regular = gaps.len() >= 2 && 3 * same >= 2 * gaps.len();
    let calls = most_frequent(fires.iter().map(|&minute| counts[minute] as usize))?;
    regular.then_some((period, calls as f64))
}

fn most_frequent(values: impl Iterator<Item = usize>) -> Option<usize> {
    let mut counts = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_insert(0) += 1;
    }
    counts.into_iter().max_by_key(|&(_, count)| count).map(|(value, _)| value)
}

fn read(data: &Path) -> Result<Vec<Function>, String> {
    let invocations = Table::read(data, SET, "invocations.csv.gz")?;
    let durations = by_function(&Table::read(data, SET, "durations.csv.gz")?, |table| {
        let names = [25, 50, 75, 99].map(|p| format!("percentile_Average_{p}"));
        names.iter().map(|name| table.column(name)).collect()
    })?;
    let memory = by_function(&Table::read(data, SET, "memory.csv.gz")?, |table| {
        let names = ["pct25", "pct50", "pct75"].map(|p| format!("AverageAllocatedMb_{p}"));
        names.iter().map(|name| table.column(name)).collect()
    })?;
    let (key, trigger) = (key_columns(&invocations)?, invocations.column("Trigger")?);
    let first = trigger + 1;
    let functions = invocations.rows.iter().map(|row| {
        let key = key.map(|column| row[column].clone());
        let missing = || format!("{SET}: no row for {}", key[2]);
        let run = durations.get(&key).ok_or_else(missing)?;
        let memory = memory.get(&key).ok_or_else(missing)?;
        let counts: Vec<f64> = row[first..].iter().map(|cell| value(cell)).collect();
        // Below a millisecond the trace is rounded.
        let ln = |ms: f64| ms.max(1.0).ln();
        Ok(Function {
            trigger: row[trigger].clone(),
            period: period_of(&counts).filter(|_| row[trigger] == "timer"),
            counts,
            median_ms: run[1].max(1.0),
            spread: (ln(run[2]) - ln(run[0])) / 1.349,
            tail: ln(run[3]) - ln(run[2]),
            memory_mib: memory[1],
            memory_spread: (memory[2] / memory[0]).ln() / 1.349,
        })
    });
    functions.collect()
}

fn key_columns(table: &Table) -> Result<[usize; 3], String> {
    let column = |name| table.column(name);
    Ok([column("HashOwner")?, column("HashApp")?, column("HashFunction")?])
}

fn by_function(
    table: &Table,
    columns: impl Fn(&Table) -> Result<Vec<usize>, String>,
) -> Result<BTreeMap<[String; 3], Vec<f64>>, String> {
    let (key, columns) = (key_columns(table)?, columns(table)?);
    let rows = table.rows.iter().map(|row| {
        let values = columns.iter().map(|&column| value(&row[column])).collect();
        (key.map(|column| row[column].clone()), values)
    });
    Ok(rows.collect())
}

/// Computes all fits on the 500 functions.
pub(crate) fn fit(data: &Path) -> Result<Vec<Fit>, String> {
    let functions = read(data)?;
    let mut fits = Vec::new();
    for trigger in ["timer", "http", "queue", "orchestration", "event", "storage", "others"] {
        fits.extend(fit_trigger(&functions, trigger));
    }
    fits.extend(fit_timers(&functions));
    let every = |value: fn(&Function) -> f64| functions.iter().map(value).collect::<Vec<f64>>();
    let key = |name: &str| format!("azure_like.{name}");
    let spread = quantiles(&every(|f| f.spread), &PROBABILITIES);
    fits.push(Fit::new(key("duration_spread"), spread, "ln(p75/p25)/1.349 over functions"));
    let tail = quantiles(&every(|f| f.tail), &PROBABILITIES);
    fits.push(Fit::new(key("duration_tail"), tail, "ln(p99/p75) over functions"));
    let memory = every(|f| f.memory_mib);
    let (middle, high) = (median(&memory), quantile(&memory, 0.9));
    // The 90th percentile of a normal distribution lies 1.2816 standard deviations above the median.
    let sigma = (high / middle).ln() / 1.2816;
    for (median_key, sigma_key) in [
        ("azure_like.memory_median_mib", "azure_like.memory_sigma"),
        ("demand.assigned_memory.median_mib", "demand.assigned_memory.sigma"),
    ] {
        fits.push(Fit::new(median_key, vec![middle], "median of the functions' medians"));
        fits.push(Fit::new(sigma_key, vec![sigma], "ln(p90/p50)/1.2816 over functions"));
    }
    let within = median(&every(|f| f.memory_spread));
    fits.push(Fit::new(key("memory_spread"), vec![within], "median of ln(p75/p25)/1.349"));
    let median_ms = |f: &Function| f.median_ms;
    fits.push(within_triggers(
        &functions,
        "rate_duration_correlation",
        Function::per_hour,
        median_ms,
    ));
    fits.push(within_triggers(&functions, "median_tail_correlation", median_ms, |f| f.tail));
    let rates = every(Function::per_hour);
    let rest = rates.iter().sum::<f64>() - quantile(&rates, 1.0);
    fits.push(Fit::informing(vec![rest], "calls an hour of all but the busiest; calls_per_hour"));
    Ok(fits)
}

fn fit_trigger(functions: &[Function], trigger: &str) -> Vec<Fit> {
    let own: Vec<&Function> = functions.iter().filter(|f| f.trigger == trigger).collect();
    let (used, whose): (Vec<&Function>, _) = if own.len() < ENOUGH {
        (functions.iter().filter(|f| f.trigger != "timer").collect(), "all but timers")
    } else {
        (own.clone(), "its functions")
    };
    let kind = if trigger == "others" { "other" } else { trigger };
    let key = |name: &str| format!("azure_like.trigger.{kind}.{name}");
    let irregular = || used.iter().filter(|f| f.period.is_none());
    let rates: Vec<f64> = irregular().map(|f| f.per_hour().log10()).collect();
    let runs: Vec<f64> = used.iter().map(|f| f.median_ms.ln()).collect();
    let bursts: Vec<f64> =
        irregular().filter_map(|f| f.burst()).map(|(spread, _)| spread).collect();
    let note = |what: &str, count: usize| format!("{what} of {whose}, {count}");
    vec![
        Fit::new(key("weight"), vec![own.len() as f64], "functions"),
        Fit::new(
            key("log10_rate"),
            quantiles(&rates, &PROBABILITIES),
            note("rate, regular timers apart,", rates.len()),
        ),
        Fit::new(
            key("ln_median_ms"),
            quantiles(&runs, &PROBABILITIES),
            note("median run time", runs.len()),
        ),
        Fit::new(
            key("burst"),
            quantiles(&bursts, &PROBABILITIES),
            note("excess spread of minutes, from 100 calls on,", bursts.len()),
        ),
    ]
}

fn fit_timers(functions: &[Function]) -> Vec<Fit> {
    let timers: Vec<&Function> = functions.iter().filter(|f| f.trigger == "timer").collect();
    let mut periods = BTreeMap::new();
    let mut repeats = Vec::new();
    let mut aligned = Vec::new();
    for (function, (period, calls)) in timers.iter().filter_map(|f| Some((f, f.period?))) {
        *periods.entry(period).or_insert(0.0) += 1.0;
        if calls > 1.0 {
            repeats.push(calls);
        }
        // Minutes are counted from 1: the first column, called 480, begins at 07:59.
        let first = function.counts.iter().position(|&count| count > 0.0).unwrap_or(0);
        if period > 1 {
            aligned.push(if (479 + first) % period == 0 { 1.0 } else { 0.0 });
        }
    }
    let regular: f64 = periods.values().sum();
    // A period that occurs once is as likely a coincidence of rare calls as a schedule.
    periods.retain(|_, count| *count > 1.0);
    let kept: f64 = periods.values().sum();
    let mut values: Vec<f64> = periods.keys().map(|&period| period as f64).collect();
    let mut weights: Vec<f64> = periods.values().copied().collect();
    values.push(0.0);
    weights.push(timers.len() as f64 - kept);
    repeats.sort_unstable_by(f64::total_cmp);
    let key = |name: &str| format!("azure_like.{name}");
    let bursts: Vec<(f64, f64)> = functions
        .iter()
        .filter(|f| f.period.is_none())
        .filter_map(Function::burst)
        .filter(|(spread, _)| *spread > 0.3)
        .collect();
    let memories: Vec<f64> = bursts.iter().map(|(_, memory)| *memory).collect();
    vec![
        Fit::new(key("timer_periods"), values, "minutes; 0 stands for no period"),
        Fit::new(key("timer_weights"), weights, format!("timers; {regular} are regular")),
        Fit::new(
            key("timer_aligned_share"),
            vec![mean(&aligned)],
            "fire on multiples of the period",
        ),
        Fit::new(
            key("timer_repeat_share"),
            vec![repeats.len() as f64 / regular],
            "regular timers with several calls at a time",
        ),
        Fit::new(key("timer_repeats"), repeats, "their calls at a time"),
        Fit::new(
            key("burst_memory"),
            vec![median(&memories)],
            format!("median over {} functions with a spread above 0.3", memories.len()),
        ),
        Fit::informing(
            quantiles(&memories, &[0.25, 0.5, 0.75]),
            "quartiles of the memory of bursts",
        ),
    ]
}

/// Correlation of the normal scores of two quantities within triggers, weighted by their functions.
fn within_triggers(
    functions: &[Function],
    key: &str,
    first: fn(&Function) -> f64,
    second: fn(&Function) -> f64,
) -> Fit {
    let (mut sum, mut count, mut parts) = (0.0, 0.0, String::new());
    for trigger in ["timer", "http", "queue"] {
        let own = || functions.iter().filter(|f| f.trigger == trigger);
        let (a, b): (Vec<f64>, Vec<f64>) = own().map(|f| (first(f), second(f))).unzip();
        let here = score_correlation(&a, &b);
        parts += &format!(" {trigger} {here:.2}");
        sum += here * a.len() as f64;
        count += a.len() as f64;
    }
    Fit::new(format!("azure_like.{key}"), vec![sum / count], format!("of normal scores:{parts}"))
}

/// Factors of the hours of a day, mean 1: the mean of daily profiles with at least one call per hour that are not
/// schedules, each scaled to its own mean.
pub(crate) fn fit_hours(data: &Path) -> Result<Vec<Fit>, String> {
    let table = Table::read(data, "azure2019-minute-profiles", "invocations_14day_sum.csv.gz")?;
    let first = table.column("1")?;
    let mut sums = [0.0; 24];
    let mut used = 0.0;
    for row in &table.rows {
        let minutes: Vec<f64> = row[first..].iter().map(|cell| value(cell)).collect();
        let total: f64 = minutes.iter().sum();
        if total < 14.0 * 24.0 || is_schedule(&minutes) {
            continue;
        }
        used += 1.0;
        for (sum, hour) in sums.iter_mut().zip(minutes.chunks(60)) {
            *sum += 24.0 * hour.iter().sum::<f64>() / total;
        }
    }
    let hours: Vec<f64> = sums.iter().map(|sum| sum / used).collect();
    let note = format!("mean of {used} two-week profiles");
    Ok(vec![Fit::new("azure_like.hourly", hours, note)])
}

/// A timer makes the same calls on every day: nearly all its counts are multiples of 14.
fn is_schedule(minutes: &[f64]) -> bool {
    let (mut busy, mut even) = (0.0, 0.0);
    for &count in minutes.iter().filter(|count| **count > 0.0) {
        busy += 1.0;
        even += if count % 14.0 == 0.0 { 1.0 } else { 0.0 };
    }
    even >= 0.8 * busy
}
