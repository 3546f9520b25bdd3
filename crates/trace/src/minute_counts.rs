//! Counts per minute from a table, with optional caps.

use rand::RngExt;
use serde::{Deserialize, Serialize};
use windfall_core::{Duration, Seed};

use crate::binned::{BinCount, Counts, Function};

/// Limits that keep one function from dominating a run. Calls above them are thinned at random.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Caps {
    /// Busy-seconds per second of one function over the whole trace: rate times mean run time.
    pub busy: f64,
    /// The same inside any one minute.
    pub busy_in_a_minute: f64,
    /// Calls per second of one function over the whole trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_per_second: Option<f64>,
}

impl Default for Caps {
    fn default() -> Self {
        Self { busy: 4.0, busy_in_a_minute: 8.0, calls_per_second: None }
    }
}

/// A non-zero cell of a table.
#[derive(Clone, Copy, Debug)]
struct Cell {
    function: u32,
    calls: u32,
}

/// Counts per minute, stored by minute.
pub(crate) struct MinuteCounts {
    /// Cells of minute `m` are `cells[starts[m]..starts[m + 1]]`.
    starts: Vec<usize>,
    cells: Vec<Cell>,
    /// Calls per minute before functions were filtered out.
    totals: Vec<u64>,
    /// Mean calls per minute of each function.
    rates: Vec<f64>,
    caps: Option<Caps>,
    /// Per function; empty without caps.
    limits: Vec<CallLimit>,
}

impl MinuteCounts {
    /// Counts of the functions in `rows` (minute and calls, in order of minutes) over `minutes` minutes.
    pub(crate) fn new(
        minutes: u32,
        rows: &[&[(u32, u32)]],
        totals: Vec<u64>,
        caps: Option<Caps>,
    ) -> Self {
        let mut starts = vec![0; minutes as usize + 1];
        for &(minute, _) in rows.iter().copied().flatten() {
            starts[minute as usize + 1] += 1;
        }
        for minute in 0..minutes as usize {
            starts[minute + 1] += starts[minute];
        }
        let mut cells = vec![Cell { function: 0, calls: 0 }; starts[minutes as usize]];
        let mut next = starts.clone();
        let mut rates = Vec::with_capacity(rows.len());
        for (function, row) in rows.iter().enumerate() {
            for &(minute, calls) in *row {
                cells[next[minute as usize]] = Cell { function: function as u32, calls };
                next[minute as usize] += 1;
            }
            let calls: f64 = row.iter().map(|&(_, calls)| f64::from(calls)).sum();
            rates.push(calls / f64::from(minutes.max(1)));
        }
        Self { starts, cells, totals, rates, caps, limits: Vec::new() }
    }
}

impl Counts for MinuteCounts {
    fn bin(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn bins(&self) -> u32 {
        self.totals.len() as u32
    }

    fn fill(&mut self, index: u32, draws: &mut [Function], counts: &mut Vec<BinCount>) -> u64 {
        let index = index as usize;
        for cell in &self.cells[self.starts[index]..self.starts[index + 1]] {
            let mut calls = u64::from(cell.calls);
            if let Some(limit) = self.limits.get(cell.function as usize) {
                let wanted = (calls as f64 * limit.share).min(limit.most_in_a_minute);
                // Rounded at random, so that a rare function is thinned and not silenced.
                if wanted < calls as f64 {
                    let rng = &mut draws[cell.function as usize].arrivals;
                    calls = (wanted + rng.random::<f64>()) as u64;
                }
            }
            if calls > 0 {
                counts.push(BinCount { function: cell.function, calls });
            }
        }
        self.totals[index]
    }

    fn restart(&mut self, _seed: Seed, draws: &[Function]) {
        self.limits = limits_of(self.caps, &self.rates, draws);
    }
}

/// Which calls of a function stay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallLimit {
    /// Share of them.
    pub(crate) share: f64,
    /// At most so many.
    pub(crate) most_in_a_minute: f64,
}

impl CallLimit {
    /// All of them.
    pub(crate) const NONE: Self = Self { share: 1.0, most_in_a_minute: f64::INFINITY };
}

/// The limit of each function; nothing without caps.
pub(crate) fn limits_of(caps: Option<Caps>, rates: &[f64], draws: &[Function]) -> Vec<CallLimit> {
    let Some(caps) = caps else { return Vec::new() };
    let limits = rates.iter().zip(draws).map(|(&rate, function)| {
        let run = function.model.mean_run_seconds();
        let share = 60.0 * caps.busy / (rate * run).max(f64::MIN_POSITIVE);
        let most = caps.calls_per_second.unwrap_or(f64::INFINITY);
        let share = share.min(60.0 * most / rate.max(f64::MIN_POSITIVE));
        CallLimit { share: share.min(1.0), most_in_a_minute: 60.0 * caps.busy_in_a_minute / run }
    });
    limits.collect()
}
