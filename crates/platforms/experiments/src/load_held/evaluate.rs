//! What ramps come to, and what the simulator makes of the same calls.

use std::collections::BTreeSet;

use windfall_core::{CallEnd, CallRecord, Duration, FunctionId, FunctionProfile, Timestamp};
use windfall_studies::calibration::{FunctionModel, ReplayCall, ReplayUnder, calibrate, replay};
use windfall_studies::capacity::CapacityRow;
use windfall_studies::capacity::contestants::{Contestant, Role};
use windfall_studies::capacity::kernel::{
    CallKind, KERNEL, KernelCapacity, Ramp, RampCall, SIMULATED,
};
use windfall_telemetry::journal::NamedFunction;

use super::schedule::due_calls;
use super::{MOST_OTHERS, Measured, Settings, World};
use crate::error::ExperimentError;

/// Time between two calls of the simulated baseline, longer than any call takes.
const APART: Duration = Duration::from_mins(5);

pub(super) fn evaluate(
    settings: &Settings,
    world: &World,
    mut measured: Measured,
) -> Result<KernelCapacity, ExperimentError> {
    let disturbed: BTreeSet<u32> = (measured.ramps.iter())
        .filter(|ramp| ramp.others_cpu_share > MOST_OTHERS)
        .map(|ramp| ramp.repetition)
        .collect();
    measured.ramps.retain(|ramp| !disturbed.contains(&ramp.repetition));
    let loads = measured.setup.loads();
    let kinds = world.kinds(&measured.baselines());
    let role = |label: &str| {
        let found = settings.contestants.iter().find(|one| one.label == label);
        found.map_or(Role::Aside, |one| one.role)
    };
    let rows = measured
        .ramps
        .iter()
        .map(|ramp| ramp.row(KERNEL, role(&ramp.policy), &settings.objective, &loads, &kinds));
    let mut rows: Vec<CapacityRow> = rows.collect();
    let simulator = Simulator::new(world, &measured)?;
    let ahead =
        if settings.repetitions == 0 { unmeasured(settings, &measured) } else { Vec::new() };
    for ramp in measured.ramps.iter().chain(&ahead) {
        let Some(contestant) = settings.contestants.iter().find(|one| one.label == ramp.policy)
        else {
            continue;
        };
        let simulated = simulator.ramp(contestant, ramp)?;
        let objective = &settings.objective;
        rows.push(simulated.row(SIMULATED, contestant.role, objective, &loads, &simulator.kinds));
    }
    let packing = packing(world, &measured);
    let ramps = measured.ramps.into_iter().map(|ramp| Ramp { calls: Vec::new(), ..ramp });
    let objective = &settings.objective;
    Ok(KernelCapacity::new(measured.setup, objective, rows, ramps.collect(), packing))
}

/// Ramps that were asked for and not made, for a prediction ahead of a measurement.
fn unmeasured(settings: &Settings, measured: &Measured) -> Vec<Ramp> {
    let is_known = |label: &str, over_commit: f64| {
        let mut ramps = measured.ramps.iter();
        ramps.any(|ramp| ramp.policy == label && ramp.over_commit == over_commit)
    };
    let missing = settings.runs().into_iter().filter(|(one, at)| !is_known(&one.label, *at));
    let repetitions = 1..=measured.last_repetition();
    let ramps = missing.flat_map(|(contestant, over_commit)| {
        repetitions.clone().map(move |repetition| Ramp {
            policy: contestant.label.clone(),
            over_commit,
            repetition,
            ..Ramp::default()
        })
    });
    ramps.collect()
}

/// The load at which what calls use is all there is: what is reserved over what is used, alone.
fn packing(world: &World, measured: &Measured) -> f64 {
    let used = |kind: usize| {
        let call = &world.plan.calls[kind].call;
        let is_it = |record: &&CallRecord| {
            record.function == world.function(kind)
                && record.input.is_none_or(|input| input == call.input as f32)
        };
        let all: Vec<f64> =
            measured.alone.iter().filter(is_it).map(|one| one.cpu_used as f64 * 1e-12).collect();
        windfall_core::statistics::median(&all).unwrap_or(0.0)
    };
    measured.reserved_per_call / world.mean(used).max(1e-9)
}

/// The same calls in virtual time.
struct Simulator<'a> {
    world: &'a World,
    measured: &'a Measured,
    models: Vec<(FunctionProfile, FunctionModel)>,
    kinds: Vec<CallKind>,
}

impl<'a> Simulator<'a> {
    fn new(world: &'a World, measured: &'a Measured) -> Result<Self, ExperimentError> {
        let functions = NamedFunction::list(FunctionId(0), &measured.profiles);
        let calibration = calibrate(&functions, &measured.alone, world.plan.node.cpu.cores());
        let model = |profile: &FunctionProfile| match calibration.model(&profile.name) {
            Some(model) => Ok((profile.clone(), model.clone())),
            None => Err(ExperimentError::Calls {
                during: "the calls alone".to_owned(),
                failed: 1,
                calls: measured.profiles.len(),
                first: format!("{} has too few calls for a model", profile.name),
            }),
        };
        let models: Vec<_> = measured.profiles.iter().map(model).collect::<Result<_, _>>()?;
        let mut simulator = Self { world, measured, models, kinds: Vec::new() };
        let apart = (0..world.plan.calls.len()).map(|kind| {
            let at = Duration::from_nanos(APART.as_nanos() * (kind as u64 + 1));
            simulator.replayed(at, kind)
        });
        let apart: Vec<ReplayCall> = apart.collect();
        let alone = simulator.replay(&apart, &ReplayUnder::policy("fixed", 1))?;
        // On as many cores as are reserved, like the measured ones.
        let baseline = |record: &Option<CallRecord>| {
            let known = record.as_ref().and_then(|record| record.baseline);
            known.map_or(f64::NAN, Duration::as_secs_f64)
        };
        let baselines: Vec<f64> = alone.iter().map(baseline).collect();
        simulator.kinds = world.kinds(&baselines);
        Ok(simulator)
    }

    fn replayed(&self, at: Duration, kind: usize) -> ReplayCall {
        let call = &self.world.plan.calls[kind].call;
        ReplayCall {
            at: Timestamp::ZERO + at,
            function: self.world.function(kind),
            input: call.builtin.input.map(|_| call.input as f32),
        }
    }

    fn replay(
        &self,
        calls: &[ReplayCall],
        under: &ReplayUnder<'_>,
    ) -> Result<Vec<Option<CallRecord>>, ExperimentError> {
        Ok(replay(&self.models, calls, self.world.plan.node, under)?)
    }

    /// The ramp of `contestant` with the calls of a measured one.
    fn ramp(&self, contestant: &Contestant, like: &Ramp) -> Result<Ramp, ExperimentError> {
        let due = due_calls(self.world, self.measured, like.repetition);
        let calls: Vec<ReplayCall> =
            due.iter().map(|call| self.replayed(call.at, call.kind)).collect();
        let under = ReplayUnder {
            settings: contestant.settings.as_ref(),
            call_safeguards: &contestant.call_safeguards,
            over_commit: like.over_commit,
            order: contestant.order,
            waits_for_warm: contestant.waits_for_warm,
            follows_rounds: true,
            ..ReplayUnder::policy(&contestant.policy, like.repetition.into())
        };
        let records = self.replay(&calls, &under)?;
        let calls = due.iter().zip(records).filter_map(|(call, record)| {
            let (step, record) = (call.step?, record?);
            Some(RampCall {
                kind: call.kind as u32,
                step,
                latency: record.ended_at.since(record.arrived_at).as_secs_f64(),
                run: record.run.as_secs_f64(),
                kills: record.oom_kills,
                is_answered: record.end == CallEnd::Completed,
            })
        });
        Ok(Ramp {
            policy: like.policy.clone(),
            over_commit: like.over_commit,
            repetition: like.repetition,
            steps: self.measured.setup.steps,
            calls: calls.collect(),
            ..Ramp::default()
        })
    }
}
