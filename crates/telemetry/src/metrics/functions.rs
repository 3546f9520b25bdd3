//! The same run, function by function. One kilobyte each, so that ten thousand functions take ten
//! megabytes; quantiles are within 3.2 %.

use serde::{Deserialize, Serialize};
use windfall_core::{CallRecord, FunctionId};

/// Functions beyond this number share the last row.
const MOST_FUNCTIONS: usize = 65_536;
/// Sixteen parts to an octave, from a slowdown of 1/2 to 32 768.
const PARTS_BITS: u32 = 4;
const OCTAVES: usize = 16;
const BUCKETS: usize = OCTAVES << PARTS_BITS;
const SHIFT: u32 = 52 - PARTS_BITS;
const FIRST: i64 = (1023 - 1) << PARTS_BITS;

/// One function over a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionRow {
    /// Its name, or its number where names are unknown.
    pub name: String,
    /// Calls that ended.
    pub calls: u64,
    /// p99 slowdown, within 3.2 %.
    pub slowdown_p99: f64,
    /// Calls that ran more than 5 % longer than at the user's size.
    pub violations: u64,
    /// Core-seconds granted.
    pub core_seconds_granted: f64,
    /// Core-seconds that nodes held back for its calls.
    #[serde(default)]
    pub core_seconds_held_back: f64,
    /// Core-seconds used.
    pub core_seconds_used: f64,
}

/// A sum of `u64` that cannot overflow: a carry of four bytes holds four billion of them.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    low: u64,
    carries: u32,
}

impl Sum {
    #[inline]
    fn add(&mut self, amount: u64) {
        let (low, is_over) = self.low.overflowing_add(amount);
        self.low = low;
        self.carries += u32::from(is_over);
    }

    fn total(self) -> u128 {
        (u128::from(self.carries) << 64) + u128::from(self.low)
    }
}

/// What is counted of one function besides its slowdowns: all that a call touches lies together.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    calls: u64,
    compared: u64,
    violations: u64,
    slowest: f64,
    cpu_granted: Sum,
    cpu_held_back: Sum,
    cpu_used: Sum,
    /// Where its slowdowns begin in the list of all, plus one; 0 before the first.
    slowdowns: u32,
}

/// A completed call beside the same call at the user's size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compared {
    /// Time from arrival to end over the run time at the user's size.
    pub(crate) slowdown: f64,
    /// Whether it ran more than 5 % longer.
    pub(crate) violated: bool,
}

/// The 99th percentile of `counts`, which hold `completed` slowdowns of which `slowest` is the greatest.
fn p99(counts: &[u32], completed: u64, slowest: f64) -> f64 {
    let rank = (completed as f64 * 0.99).ceil() as u64;
    let mut seen = 0;
    for (index, &count) in counts.iter().enumerate() {
        seen += u64::from(count);
        // The last bucket has no upper end.
        if seen >= rank && index + 1 < BUCKETS {
            let bits = ((FIRST as u64 + index as u64) << SHIFT) + (1 << (SHIFT - 1));
            return f64::from_bits(bits).min(slowest);
        }
    }
    slowest
}

/// Millicore-nanoseconds over a run.
pub(crate) struct CpuTotals {
    pub(crate) granted: u128,
    pub(crate) held_back: u128,
    pub(crate) used: u128,
}

/// Accounts of all functions, by their place in the workload.
#[derive(Clone, Debug, Default)]
pub(crate) struct FunctionTable {
    accounts: Vec<Account>,
    /// Slowdowns of all functions that completed a call, one after the other.
    slowdowns: Vec<u32>,
    /// Whether a function beyond the last row was counted in it.
    is_last_shared: bool,
}

impl FunctionTable {
    #[inline]
    fn place(&mut self, function: FunctionId) -> usize {
        let index = function.index();
        if index < self.accounts.len() { index } else { self.make_place(index) }
    }

    #[cold]
    fn make_place(&mut self, index: usize) -> usize {
        self.is_last_shared |= index >= MOST_FUNCTIONS;
        let index = index.min(MOST_FUNCTIONS - 1);
        if index >= self.accounts.len() {
            self.accounts.resize_with(index + 1, Account::default);
        }
        index
    }

    /// Counts a call that ended, and how it compares with the user's size if it was answered and that is known.
    #[inline]
    pub(crate) fn count(&mut self, call: &CallRecord, compared: Option<Compared>) {
        let place = self.place(call.function);
        let account = &mut self.accounts[place];
        account.calls += 1;
        account.cpu_granted.add(call.cpu_granted);
        account.cpu_held_back.add(call.cpu_held_back);
        account.cpu_used.add(call.cpu_used);
        let Some(Compared { slowdown, violated }) = compared else { return };
        account.compared += 1;
        account.violations += u64::from(violated);
        account.slowest = if slowdown > account.slowest { slowdown } else { account.slowest };
        if account.slowdowns == 0 {
            // At most 2^16 functions of 2^8 counters each.
            account.slowdowns = self.slowdowns.len() as u32 + 1;
            self.slowdowns.resize(self.slowdowns.len() + BUCKETS, 0);
        }
        let index = ((slowdown.to_bits() as i64) >> SHIFT) - FIRST;
        let bucket = index.clamp(0, BUCKETS as i64 - 1) as usize;
        let count = &mut self.slowdowns[account.slowdowns as usize - 1 + bucket];
        *count = count.saturating_add(1);
    }

    /// Millicore-nanoseconds of all of them.
    pub(crate) fn cpu_totals(&self) -> CpuTotals {
        let total = |of: fn(&Account) -> Sum| self.accounts.iter().map(|one| of(one).total()).sum();
        CpuTotals {
            granted: total(|account| account.cpu_granted),
            held_back: total(|account| account.cpu_held_back),
            used: total(|account| account.cpu_used),
        }
    }

    /// Core-seconds granted to each of them and held back for it, in the order of their ids.
    pub(crate) fn core_seconds_held(&self) -> Vec<f64> {
        let held = |one: &Account| one.cpu_granted.total() + one.cpu_held_back.total();
        self.accounts.iter().map(|one| held(one) as f64 / 1e12).collect()
    }

    fn p99_of(&self, account: &Account) -> f64 {
        let Some(from) = (account.slowdowns as usize).checked_sub(1) else { return 0.0 };
        p99(&self.slowdowns[from..from + BUCKETS], account.compared, account.slowest)
    }

    pub(crate) fn rows(&self, names: &[String]) -> Vec<FunctionRow> {
        let called = self.accounts.iter().enumerate().filter(|(_, account)| account.calls > 0);
        let mut rows: Vec<FunctionRow> = called
            .map(|(index, account)| FunctionRow {
                name: match names.get(index) {
                    _ if self.is_last_shared && index == MOST_FUNCTIONS - 1 => {
                        format!("functions {index} and up, together")
                    }
                    Some(name) => name.clone(),
                    None => format!("function {index}"),
                },
                calls: account.calls,
                slowdown_p99: self.p99_of(account),
                violations: account.violations,
                core_seconds_granted: account.cpu_granted.total() as f64 / 1e12,
                core_seconds_held_back: account.cpu_held_back.total() as f64 / 1e12,
                core_seconds_used: account.cpu_used.total() as f64 / 1e12,
            })
            .collect();
        // Stable: equal functions stay in the order of their ids.
        rows.sort_by(|a, b| b.core_seconds_granted.total_cmp(&a.core_seconds_granted));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::call;

    fn table(slowdowns: &[f64]) -> FunctionTable {
        let mut table = FunctionTable::default();
        for &slowdown in slowdowns {
            table.count(&call(0, 1.0), Some(Compared { slowdown, violated: slowdown > 1.05 }));
        }
        table
    }

    #[test]
    fn p99_is_within_three_percent_and_never_above_the_slowest() {
        let slowdowns: Vec<f64> = (1..=1000).map(|k| f64::from(k) / 10.0).collect();
        let row = &table(&slowdowns).rows(&[])[0];
        assert!((row.slowdown_p99 / 99.0 - 1.0).abs() < 0.032, "{}", row.slowdown_p99);
        assert_eq!(table(&[1e9]).rows(&[])[0].slowdown_p99, 1e9);
        assert_eq!(table(&[1.0]).rows(&[])[0].slowdown_p99, 1.0);
        assert_eq!(table(&[0.001]).rows(&[])[0].slowdown_p99, 0.001);
    }

    #[test]
    fn an_absurd_number_of_functions_takes_no_absurd_memory() {
        let mut odd = call(0, 1.0);
        odd.function = FunctionId(u32::MAX);
        let mut table = FunctionTable::default();
        table.count(&odd, None);
        assert_eq!(table.accounts.len(), MOST_FUNCTIONS);
        assert_eq!(table.rows(&[])[0].name, "functions 65535 and up, together");
    }

    #[test]
    fn sums_do_not_overflow() {
        let mut greedy = call(0, 1.0);
        greedy.cpu_granted = u64::MAX;
        let mut table = FunctionTable::default();
        (0..3).for_each(|_| table.count(&greedy, None));
        let row = &table.rows(&[])[0];
        assert_eq!(row.core_seconds_granted, 3.0 * u64::MAX as f64 / 1e12);
        assert_eq!((row.calls, row.slowdown_p99), (3, 0.0));
    }

    #[test]
    fn rows_carry_names_where_there_are_any() {
        let table = table(&[1.0]);
        assert_eq!(table.rows(&["other".to_owned(), "resize".to_owned()])[0].name, "resize");
        assert_eq!(table.rows(&[])[0].name, "function 1");
    }
}
