//! The controller's own metrics, for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::controller::PassReport;

/// What is counted.
#[derive(Debug, Default)]
pub struct Instruments {
    passes: AtomicU64,
    reverts: AtomicU64,
    is_leader: AtomicU64,
    last: Mutex<PassReport>,
    sum: Mutex<f64>,
    writes: Mutex<BTreeMap<(&'static str, bool), u64>>,
    source_failures: Mutex<BTreeMap<&'static str, u64>>,
    admissions: Mutex<BTreeMap<&'static str, u64>>,
}

fn lock<T>(one: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    one.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Instruments {
    /// A pass has ended.
    pub fn passed(&self, report: &PassReport) {
        self.passes.fetch_add(1, Ordering::Relaxed);
        *lock(&self.sum) += report.seconds;
        *lock(&self.last) = *report;
    }

    /// A workload was given back.
    pub fn reverted(&self) {
        self.reverts.fetch_add(1, Ordering::Relaxed);
    }

    /// A request of an actuator, or for a status, ended.
    pub fn wrote(&self, actuator: &'static str, is_ok: bool) {
        *lock(&self.writes).entry((actuator, is_ok)).or_default() += 1;
    }

    /// A source gave nothing.
    pub fn source_failed(&self, source: &'static str) {
        *lock(&self.source_failures).entry(source).or_default() += 1;
    }

    /// A pod came by the webhook.
    pub fn admitted(&self, outcome: &'static str) {
        *lock(&self.admissions).entry(outcome).or_default() += 1;
    }

    /// Whether this controller acts.
    pub fn lead(&self, is_leader: bool) {
        self.is_leader.store(u64::from(is_leader), Ordering::Relaxed);
    }

    /// The last pass.
    pub fn last_pass(&self) -> PassReport {
        *lock(&self.last)
    }

    /// Everything in the text format of Prometheus.
    pub fn page(&self) -> String {
        let mut page = String::new();
        let last = self.last_pass();
        let mut one = |name: &str, kind: &str, help: &str, value: f64| {
            // Writing to a string cannot fail.
            let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        };
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
        one("windfall_leader", "gauge", "1 if this controller acts.", count(&self.is_leader));
        one("windfall_passes_total", "counter", "Passes over all policies.", count(&self.passes));
        one("windfall_pass_seconds_total", "counter", "Time spent in passes.", *lock(&self.sum));
        one("windfall_last_pass_seconds", "gauge", "Duration of the last pass.", last.seconds);
        one(
            "windfall_last_pass_deciding_seconds",
            "gauge",
            "Part of the last pass that waited for nobody.",
            last.deciding,
        );
        one(
            "windfall_last_pass_policies",
            "gauge",
            "Policies in the last pass.",
            last.policies as f64,
        );
        one(
            "windfall_last_pass_reads",
            "gauge",
            "Requests for measurements in the last pass.",
            last.reads as f64,
        );
        one("windfall_last_pass_writes", "gauge", "Writes in the last pass.", last.writes as f64);
        one(
            "windfall_last_pass_put_off",
            "gauge",
            "Requests that did not fit the budget of the last pass.",
            last.put_off as f64,
        );
        one(
            "windfall_reverts_total",
            "counter",
            "Workloads given back after harm.",
            count(&self.reverts),
        );
        self.tables(&mut page);
        page
    }

    /// The counters with labels.
    fn tables(&self, page: &mut String) {
        let mut table = |name: &str, help: &str, rows: Vec<(String, u64)>| {
            let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} counter");
            for (labels, value) in rows {
                let _ = writeln!(page, "{name}{{{labels}}} {value}");
            }
        };
        let rows = lock(&self.writes)
            .iter()
            .map(|((actuator, is_ok), value)| {
                (format!("actuator=\"{actuator}\",ok=\"{is_ok}\""), *value)
            })
            .collect();
        table("windfall_writes_total", "Requests that change something.", rows);
        let rows = lock(&self.source_failures)
            .iter()
            .map(|(source, value)| (format!("source=\"{source}\""), *value))
            .collect();
        table("windfall_source_failures_total", "Sources of measurements that gave nothing.", rows);
        let rows = lock(&self.admissions)
            .iter()
            .map(|(outcome, value)| (format!("outcome=\"{outcome}\""), *value))
            .collect();
        table("windfall_admissions_total", "Pods that came by the webhook.", rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::exposition;

    #[test]
    fn the_page_is_valid_and_has_what_was_counted() {
        let instruments = Instruments::default();
        instruments.lead(true);
        instruments.passed(&PassReport { policies: 3, seconds: 0.5, ..PassReport::default() });
        instruments.wrote("pod-resize", true);
        instruments.admitted("sized");
        let page = instruments.page();
        let values: BTreeMap<String, f64> =
            exposition::lines(&page).map(|line| (line.name.to_owned(), line.value)).collect();
        let samples = page.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(exposition::lines(&page).count(), samples);
        assert_eq!((values["windfall_leader"], values["windfall_last_pass_policies"]), (1.0, 3.0));
        assert_eq!(
            (values["windfall_writes_total"], values["windfall_admissions_total"]),
            (1.0, 1.0)
        );
    }
}
