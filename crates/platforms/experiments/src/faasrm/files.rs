//! What was measured, as files that other tools read, and one that a later run adds to.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;

use serde::{Deserialize, Serialize};
use windfall_core::{CallRecord, FunctionId, FunctionProfile, TelemetrySink};
use windfall_studies::reproduce::Request;
use windfall_telemetry::journal::{JournalKinds, JournalWriter, RunManifest};

use super::alone::Alone;
use super::run::Played;
use super::{Measured, Plan, Settings};
use crate::error::{ExperimentError, system};
use crate::kept::{Kept, keep, kept};

/// Everything that was measured, with the settings that decide what can be added to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptRuns {
    setup: String,
    profiles: Vec<FunctionProfile>,
    at_users: Vec<Vec<f64>>,
    alone: Vec<CallRecord>,
    runs: Vec<Played>,
    /// CPU time of the manager over all of it, run by run; rows write it elsewhere.
    manager_cpu_shares: Vec<f64>,
}

impl Kept for KeptRuns {
    const NAME: &'static str = "measured.json";
}

/// What has to be the same in every repetition.
fn setup(settings: &Settings) -> String {
    let Settings { calls, speed, inputs, seed, policies, .. } = settings;
    format!(
        "calls {calls:?}, speed {speed}, scale {}, seed {seed}, policies {}",
        inputs.scale,
        policies.join(",")
    )
}

/// What earlier runs measured with the same settings; nothing if there was none.
pub(super) fn read(
    folder: &Path,
    settings: &Settings,
) -> Result<Option<Measured>, ExperimentError> {
    let Some(found) = kept::<KeptRuns>(folder)? else { return Ok(None) };
    let asked = setup(settings);
    if found.setup != asked {
        let file = folder.join(KeptRuns::NAME);
        return Err(ExperimentError::OtherSetup { file, found: found.setup, asked });
    }
    let mut runs = found.runs;
    for (run, share) in runs.iter_mut().zip(found.manager_cpu_shares) {
        run.conditions.manager_cpu_share = share;
    }
    let alone = Alone::resumed(found.at_users, found.alone);
    Ok(Some(Measured { profiles: found.profiles, alone, runs }))
}

/// Writes `alone.jsonl`, the journal that the models were fitted to, `calls.csv`, every call of every run, and
/// `measured.json`, which a later run reads.
pub(super) fn write(
    request: &Request<'_>,
    settings: &Settings,
    plan: &Plan,
    measured: &Measured,
) -> Result<(), ExperimentError> {
    let Request { folder, command, .. } = *request;
    let doing = "writing the measured calls";
    fs::create_dir_all(folder).map_err(system(doing))?;
    keep(
        folder,
        &KeptRuns {
            setup: setup(settings),
            profiles: measured.profiles.clone(),
            at_users: measured.alone.at_users.clone(),
            alone: measured.alone.records.clone(),
            runs: measured.runs.clone(),
            manager_cpu_shares: (measured.runs.iter())
                .map(|run| run.conditions.manager_cpu_share)
                .collect(),
        },
    )?;
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
