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
    /// Core-seconds used.
    pub core_seconds_used: f64,
}

#[derive(Clone, Debug, Default)]
struct Account {
    calls: u64,
    completed: u64,
    violations: u64,
    cpu_granted: u128,
    cpu_used: u128,
    slowdowns: Vec<u32>,
    slowest: f64,
}

impl Account {
    fn p99(&self) -> f64 {
        let rank = (self.completed as f64 * 0.99).ceil() as u64;
        let mut seen = 0;
        for (index, &count) in self.slowdowns.iter().enumerate() {
            seen += u64::from(count);
            // The last bucket has no upper end.
            if seen >= rank && index + 1 < BUCKETS {
                let bits = ((FIRST as u64 + index as u64) << SHIFT) + (1 << (SHIFT - 1));
                return f64::from_bits(bits).min(self.slowest);
            }
        }
        self.slowest
    }
}

/// Accounts of all functions, by their place in the workload.
#[derive(Clone, Debug, Default)]
pub(crate) struct FunctionTable {
    accounts: Vec<Account>,
}

impl FunctionTable {
    fn account(&mut self, function: FunctionId) -> &mut Account {
        let index = function.index().min(MOST_FUNCTIONS - 1);
        if index >= self.accounts.len() {
            self.accounts.resize_with(index + 1, Account::default);
        }
        &mut self.accounts[index]
    }

    pub(crate) fn count_cost(&mut self, call: &CallRecord) {
        let account = self.account(call.function);
        account.calls += 1;
        account.cpu_granted += u128::from(call.cpu_granted);
        account.cpu_used += u128::from(call.cpu_used);
    }

    pub(crate) fn count_completed(
        &mut self,
        function: FunctionId,
        slowdown: f64,
        is_violation: bool,
    ) {
        let account = self.account(function);
        account.completed += 1;
        account.violations += u64::from(is_violation);
        account.slowest = account.slowest.max(slowdown);
        if account.slowdowns.is_empty() {
            account.slowdowns = vec![0; BUCKETS];
        }
        let index = ((slowdown.to_bits() as i64) >> SHIFT) - FIRST;
        let bucket = &mut account.slowdowns[index.clamp(0, BUCKETS as i64 - 1) as usize];
        *bucket = bucket.saturating_add(1);
    }

    pub(crate) fn rows(&self, names: &[String]) -> Vec<FunctionRow> {
        let called = self.accounts.iter().enumerate().filter(|(_, account)| account.calls > 0);
        let mut rows: Vec<FunctionRow> = called
            .map(|(index, account)| FunctionRow {
                name: match names.get(index) {
                    Some(name) => name.clone(),
                    None => format!("function {index}"),
                },
                calls: account.calls,
                slowdown_p99: account.p99(),
                violations: account.violations,
                core_seconds_granted: account.cpu_granted as f64 / 1e12,
                core_seconds_used: account.cpu_used as f64 / 1e12,
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
            table.count_cost(&call(0, 1.0));
            table.count_completed(FunctionId(1), slowdown, slowdown > 1.05);
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
        table.count_cost(&odd);
        assert_eq!(table.accounts.len(), MOST_FUNCTIONS);
    }

    #[test]
    fn rows_carry_names_where_there_are_any() {
        let table = table(&[1.0]);
        assert_eq!(table.rows(&["other".to_owned(), "resize".to_owned()])[0].name, "resize");
        assert_eq!(table.rows(&[])[0].name, "function 1");
    }
}
