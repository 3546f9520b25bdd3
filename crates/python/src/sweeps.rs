//! Comparisons and single runs, with policies of ours and of Python's side by side.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use windfall_core::{CallRecord, Seed, TelemetrySink};
use windfall_scenario::run::{NoJournal, Run, reserved};
use windfall_scenario::sweep::{OwnPolicies, Sweep, SweepError, Watcher};
use windfall_scenario::{Scenario, SweepResult};
use windfall_studies::honest_sizing::{HonestSizing, POLICIES};
use windfall_telemetry::Comparison;

use crate::faults::refused;
use crate::interrupt::interruptible;
use crate::python_policy::{Failures, assemble};

/// The policy that all others are paired with.
const BASELINE: &str = "fixed";

/// The honest benchmark of per-call sizing as the text of a scenario: functions and hours nothing was tuned on.
#[pyfunction]
#[pyo3(signature = (trace = None, minutes = None))]
pub(crate) fn honest_scenario(trace: Option<PathBuf>, minutes: Option<u32>) -> String {
    let benchmark = HonestSizing { trace, minutes, ..HonestSizing::default() };
    benchmark.scenario_file(&POLICIES.map(str::to_owned))
}

/// Stops when Ctrl-C was pressed or a policy failed.
pub(crate) struct Stopping(Arc<Failures>);

impl Stopping {
    pub(crate) fn new(failures: &Arc<Failures>) -> Self {
        Self(failures.clone())
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }
}

impl Watcher for Stopping {
    fn is_stopped(&self) -> bool {
        self.is_set()
    }
}

/// Python policies by name: what to call with a seed to get one.
pub(crate) type Factories = BTreeMap<String, Py<PyAny>>;

pub(crate) struct PythonPolicies {
    factories: Factories,
    failures: Arc<Failures>,
}

impl PythonPolicies {
    pub(crate) fn new(factories: Factories, failures: &Arc<Failures>) -> Self {
        Self { factories, failures: failures.clone() }
    }
}

impl OwnPolicies for PythonPolicies {
    fn assemble(&self, name: &str, seed: u64) -> Option<windfall_registry::Assembled> {
        let factory = self.factories.get(name)?;
        Some(assemble(name, factory, seed, &self.failures))
    }
}

/// What a caller changes about a scenario: policies by name, loads, seeds; nothing where the scenario decides.
type Changes = (Option<Vec<String>>, Option<Vec<f64>>, Option<Vec<u64>>);

fn scenario(
    text: &str,
    name: &str,
    (policies, loads, seeds): Changes,
    factories: &Factories,
) -> PyResult<Scenario> {
    let mut scenario = Scenario::parse(text, name).map_err(refused)?;
    scenario.policies = policies.unwrap_or(scenario.policies);
    scenario.loads = loads.unwrap_or(scenario.loads);
    scenario.seeds = seeds.unwrap_or(scenario.seeds);
    scenario.check().map_err(refused)?;
    // After the check, which knows the names of the registry alone.
    scenario.policies.extend(factories.keys().cloned());
    Ok(scenario)
}

fn failed(failures: &Failures, error: &SweepError) -> PyErr {
    let hint = error.hint().map_or_else(String::new, |hint| format!("; {hint}"));
    failures.take().unwrap_or_else(|| refused(format!("{error}{hint}")))
}

/// Plays a scenario with the policies it names and those of `own`: rows, aggregates with pairs, and a table, as JSON
/// and text.
#[pyfunction]
#[pyo3(signature = (text, name, changes, own, threads = None))]
pub(crate) fn run_sweep(
    py: Python<'_>,
    text: &str,
    name: &str,
    changes: Changes,
    own: Factories,
    threads: Option<usize>,
) -> PyResult<(String, String)> {
    let scenario = scenario(text, name, changes, &own)?;
    let threads = threads.unwrap_or_else(all_threads).clamp(1, 1024);
    let failures = Arc::new(Failures::default());
    let policies = PythonPolicies::new(own, &failures);
    let watcher = Stopping::new(&failures);
    let played = interruptible(py, "compare", &failures.stop, || {
        Sweep { scenario: &scenario, threads }.play_with(&watcher, &policies)
    })?;
    let SweepResult { rows, costs, .. } = played.map_err(|error| failed(&failures, &error))?;
    if let Some(error) = failures.take() {
        return Err(error);
    }
    let comparison = Comparison::with_functions(rows, &costs, BASELINE);
    Ok((comparison.to_json().to_string(), comparison.to_text()))
}

/// As many as the machine has cores.
pub(crate) fn all_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// One run: its summary as JSON, and every call as columns if they are kept.
#[pyfunction]
#[pyo3(signature = (text, name, changes, own, keep_calls = true))]
pub(crate) fn run_single<'py>(
    py: Python<'py>,
    text: &str,
    name: &str,
    changes: Changes,
    own: Factories,
    keep_calls: bool,
) -> PyResult<(String, Bound<'py, PyDict>)> {
    let scenario = scenario(text, name, changes, &own)?;
    let failures = Arc::new(Failures::default());
    let policies = PythonPolicies::new(own, &failures);
    let watcher = Stopping::new(&failures);
    let mut columns = Columns::default();
    let output = interruptible(py, "simulate", &failures.stop, || {
        let (load, seed) = (scenario.loads[0], scenario.seeds[0]);
        // A policy of Python's comes after the names of the registry, and is the one that is meant.
        let policy = scenario.policies.last().map_or(BASELINE, String::as_str);
        let run = Run { scenario: &scenario, policy, load, seed, keep_steps: false };
        let mut workload =
            (&watcher as &dyn Watcher).stoppable(scenario.trace.open(Seed::new(seed))?);
        let reserved = reserved(&mut workload);
        let mut nothing = NoJournal;
        let sink: &mut dyn TelemetrySink = if keep_calls { &mut columns } else { &mut nothing };
        let mut progress = |_| ();
        let output = match policies.assemble(policy, seed) {
            Some(own) => run.play_assembled(own, &reserved, &mut workload, (sink, &mut progress)),
            None => run.play(&reserved, &mut workload, sink, &mut progress),
        };
        output.map_err(SweepError::from)
    })?;
    let output = output.map_err(|error| failed(&failures, &error))?;
    if let Some(error) = failures.take() {
        return Err(error);
    }
    let summary = serde_json::to_string(&output.summary).map_err(refused)?;
    Ok((summary, columns.into_dict(py)?))
}

/// Calls as columns.
#[derive(Default)]
struct Columns {
    function: Vec<u32>,
    node: Vec<u32>,
    arrived_at: Vec<f64>,
    wait: Vec<f64>,
    run: Vec<f64>,
    baseline_run: Vec<f64>,
    cold_start: Vec<f64>,
    reserved_cores: Vec<f64>,
    reserved_mib: Vec<f64>,
    granted_cores: Vec<f64>,
    granted_mib: Vec<f64>,
    core_seconds_granted: Vec<f64>,
    core_seconds_used: Vec<f64>,
    oom_kills: Vec<u8>,
}

impl TelemetrySink for Columns {
    fn call(&mut self, call: &CallRecord) {
        self.function.push(call.function.0);
        self.node.push(call.node.0);
        self.arrived_at.push(call.arrived_at.as_secs_f64());
        self.wait.push(call.started_at.since(call.arrived_at).as_secs_f64());
        self.run.push(call.run.as_secs_f64());
        self.baseline_run.push(call.baseline.map_or(f64::NAN, |run| run.as_secs_f64()));
        self.cold_start.push(call.cold_start.as_secs_f64());
        self.reserved_cores.push(call.reservation.cpu.cores());
        self.reserved_mib.push(call.reservation.memory.mib());
        self.granted_cores.push(call.first_grant.cpu.cores());
        self.granted_mib.push(call.first_grant.memory.mib());
        self.core_seconds_granted.push(call.cpu_granted as f64 * 1e-12);
        self.core_seconds_used.push(call.cpu_used as f64 * 1e-12);
        self.oom_kills.push(call.oom_kills);
    }
}

impl Columns {
    fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let columns = PyDict::new(py);
        columns.set_item("function", PyArray1::from_vec(py, self.function))?;
        columns.set_item("node", PyArray1::from_vec(py, self.node))?;
        let seconds = [
            ("arrived_at", self.arrived_at),
            ("wait", self.wait),
            ("run", self.run),
            ("baseline_run", self.baseline_run),
            ("cold_start", self.cold_start),
            ("reserved_cores", self.reserved_cores),
            ("reserved_mib", self.reserved_mib),
            ("granted_cores", self.granted_cores),
            ("granted_mib", self.granted_mib),
            ("core_seconds_granted", self.core_seconds_granted),
            ("core_seconds_used", self.core_seconds_used),
        ];
        for (name, column) in seconds {
            columns.set_item(name, PyArray1::from_vec(py, column))?;
        }
        columns.set_item("oom_kills", PyArray1::from_vec(py, self.oom_kills))?;
        Ok(columns)
    }
}
