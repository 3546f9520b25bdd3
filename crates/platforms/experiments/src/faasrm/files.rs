//! What was measured, as files that other tools read.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;

use windfall_core::{FunctionId, TelemetrySink};
use windfall_telemetry::journal::{JournalKinds, JournalWriter, RunManifest};

use super::{Measured, Plan};
use crate::error::{ExperimentError, system};

/// Writes `alone.jsonl`, the journal that the models were fitted to, and `calls.csv`, every call of every run.
pub(super) fn write(
    folder: &Path,
    command: &str,
    plan: &Plan,
    measured: &Measured,
) -> Result<(), ExperimentError> {
    let doing = "writing the measured calls";
    fs::create_dir_all(folder).map_err(system(doing))?;
    let file = File::create(folder.join("alone.jsonl")).map_err(system(doing))?;
    let manifest = RunManifest {
        windfall: env!("CARGO_PKG_VERSION").to_owned(),
        command: command.to_owned(),
        policy: "fixed".to_owned(),
        ..RunManifest::default()
    };
    let mut journal = JournalWriter::new(file, &manifest, JournalKinds::ALL);
    journal.functions(FunctionId(0), &measured.profiles);
    measured.alone.records.iter().for_each(|record| journal.call(record));
    journal.finish().map_err(system(doing))?;
    fs::write(folder.join("calls.csv"), calls(plan, measured)).map_err(system(doing))
}

fn calls(plan: &Plan, measured: &Measured) -> String {
    let baselines = measured.baselines();
    let mut text = String::from(
        "policy,repetition,call,function,input,baseline_ms,run_ms,latency_ms,first_mcpu,lowest_mcpu,highest_mcpu,\
         first_mib,lowest_mib,memory_peak_mib,cpu_used_ms,memory_kills,looks,changes\n",
    );
    for run in &measured.runs {
        for (number, (planned, record)) in plan.calls.iter().zip(&run.calls).enumerate() {
            let Some(record) = record else { continue };
            let _ = writeln!(
                text,
                "{},{},{number},{},{},{:.2},{:.2},{:.2},{},{},{},{},{},{:.1},{:.2},{},{},{}",
                run.policy,
                run.repetition,
                planned.call.builtin.name,
                planned.call.input,
                baselines[number] * 1e3,
                record.run.as_secs_f64() * 1e3,
                record.ended_at.since(record.arrived_at).as_secs_f64() * 1e3,
                record.first_grant.cpu.get(),
                record.lowest_grant.cpu.get(),
                record.highest_grant.cpu.get(),
                record.first_grant.memory.get(),
                record.lowest_grant.memory.get(),
                record.seen.map_or(0.0, |seen| seen.memory_mib),
                record.cpu_used as f64 * 1e-9,
                record.oom_kills,
                record.looks,
                record.changes,
            );
        }
    }
    text
}
