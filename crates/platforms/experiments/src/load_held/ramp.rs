//! One ramp of one policy on a fresh platform.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use windfall_core::{CallEnd, CallRecord, Timestamp};
use windfall_embedded::AgentSettings;
use windfall_sandbox::Host;
use windfall_studies::capacity::contestants::Contestant;
use windfall_studies::capacity::kernel::{Ramp, RampCall, margin, services};

use super::schedule::{DueCall, due_calls, end_of};
use super::{Measured, Settings, World};
use crate::error::ExperimentError;
use crate::faasrm::{Ticks, sleep_until};
use crate::machine::{Moment, load_average};
use crate::stand::Stand;

/// From the start of the platform to the beginning of the ramp.
const HEAD_START: Duration = Duration::from_millis(200);

/// A margin above this ends a ramp. A step has some fifty calls, of which two or three may be slow, so what a single one
/// shows is judged together with the same step of other repetitions.
const BY_FAR: f64 = 4.0;

/// Which ramp.
pub(super) struct Run<'a> {
    pub(super) contestant: &'a Contestant,
    pub(super) over_commit: f64,
    pub(super) repetition: u32,
}

pub(super) fn play(
    host: &Arc<Host>,
    world: &World,
    settings: &Settings,
    measured: &Measured,
    run: &Run<'_>,
) -> Result<Ramp, ExperimentError> {
    let (control, ticks) = crate::policy::control_of(run.contestant, run.repetition.into())?;
    let mut agent = AgentSettings::over_committed(world.plan.node, run.over_commit);
    agent.pool.order = run.contestant.order;
    agent.pool.waits_for_warm = run.contestant.waits_for_warm;
    let mut stand = Stand::new(host, agent, control)?;
    for builtin in &world.plan.functions {
        stand.deploy(builtin, 1);
    }
    stand.agent.status();
    let mut ticker = ticks.map(|ticks| Ticks::new(ticks, &stand));
    let due = due_calls(world, measured, run.repetition);
    let before = Moment::now(host.spawner());
    let mut climb = Climb::new(&stand, world, settings, measured, &due);
    let steps = climb.climb(ticker.as_mut());
    let calls = climb.calls();
    let between = before.until(&Moment::now(host.spawner()));
    let used = climb.used;
    drop(ticker);
    let share = |part: f64| part / (part + used).max(1e-9);
    Ok(Ramp {
        policy: run.contestant.label.clone(),
        over_commit: run.over_commit,
        repetition: run.repetition,
        steps,
        calls: calls.into_iter().filter(|call| call.step < steps).collect(),
        manager_cpu_share: share(between.manager),
        agent_cpu_share: share(between.agent),
        load_average: load_average(),
        steal: between.steal,
        others_cpu_share: (between.busy - between.manager - used).max(0.0)
            / between.all_cpu.max(1e-9),
    })
}

/// A ramp on its way up.
struct Climb<'a> {
    stand: &'a Stand,
    settings: &'a Settings,
    world: &'a World,
    baselines: Vec<f64>,
    due: &'a [DueCall],
    begin: Instant,
    sent: usize,
    /// By the platform's time at which it was due.
    ended: BTreeMap<Timestamp, CallRecord>,
    /// Core-seconds that functions used.
    used: f64,
}

impl<'a> Climb<'a> {
    fn new(
        stand: &'a Stand,
        world: &'a World,
        settings: &'a Settings,
        measured: &Measured,
        due: &'a [DueCall],
    ) -> Self {
        Self {
            stand,
            settings,
            world,
            baselines: measured.baselines(),
            due,
            begin: Instant::now() + HEAD_START,
            sent: 0,
            ended: BTreeMap::new(),
            used: 0.0,
        }
    }

    fn at(&self, call: &DueCall) -> Instant {
        self.begin + Duration::from_nanos(call.at.as_nanos())
    }

    /// Raises the load until a step has broken the objective by far; how many steps were finished. A step is judged when
    /// the next one is over: its calls have had time to end by then.
    fn climb(&mut self, mut ticker: Option<&mut Ticks>) -> u32 {
        let setup = &self.settings.setup;
        for step in 0..setup.steps {
            let end = end_of(setup, step);
            while let Some(call) = self.due.get(self.sent).filter(|call| call.at < end) {
                let (due, kind) = (self.at(call), call.kind);
                while let Some(ticks) = ticker.as_deref_mut().filter(|ticks| ticks.next < due) {
                    sleep_until(ticks.next);
                    ticks.tick();
                }
                sleep_until(due);
                let call = &self.world.plan.calls[kind].call;
                // The record says how it ended.
                drop(self.stand.send(call.builtin.name, &call.parameters(), due));
                self.sent += 1;
            }
            sleep_until(self.begin + Duration::from_nanos(end.as_nanos()));
            if step > 0 && self.is_broken_by_far(step - 1) {
                return step + 1;
            }
        }
        setup.steps
    }

    fn is_broken_by_far(&mut self, step: u32) -> bool {
        let kinds = self.world.kinds(&self.baselines);
        let calls = self.calls();
        let found = services(&self.settings.objective, &kinds, &calls, step as usize + 1);
        found.last().is_some_and(|one| margin(&self.settings.objective, one) > BY_FAR)
    }

    /// Everything that was due in a step. Calls that have not ended are taken to end now, which is too early and in
    /// their favour.
    fn calls(&mut self) -> Vec<RampCall> {
        self.stand.agent.status();
        for record in self.stand.heard.take() {
            self.used += record.cpu_used as f64 * 1e-12;
            self.ended.insert(record.arrived_at, record);
        }
        let now = Instant::now();
        let sent = self.due[..self.sent].iter();
        sent.filter_map(|call| {
            let step = call.step?;
            let due = self.at(call);
            let record = self.ended.get(&self.stand.time_at(due));
            let kind = call.kind as u32;
            Some(match record {
                Some(record) => RampCall {
                    kind,
                    step,
                    latency: record.ended_at.since(record.arrived_at).as_secs_f64(),
                    run: record.run.as_secs_f64(),
                    kills: record.oom_kills,
                    is_answered: record.end == CallEnd::Completed,
                },
                None => RampCall {
                    kind,
                    step,
                    latency: now.saturating_duration_since(due).as_secs_f64(),
                    run: 0.0,
                    kills: 0,
                    is_answered: true,
                },
            })
        })
        .collect()
    }
}
