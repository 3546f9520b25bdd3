//! Each call alone on the machine: baselines at the user's size, and other sizes for the models.

use std::sync::Arc;
use std::time::Instant;

use windfall_control::CallLoop;
use windfall_core::{
    Allocation, CallDecision, CallPolicy, CallRecord, CallSafeguardChain, CallView,
    FunctionProfile, MilliCpu, PolicyError,
};
use windfall_embedded::AgentSettings;
use windfall_sandbox::Host;

use super::Plan;
use crate::affinity::keep_instances_on;
use crate::error::ExperimentError;
use crate::stand::Stand;

/// With which CPU calls run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// What their users reserve; every call.
    Users,
    /// As many cores as their users reserve, without a quota; every call.
    Cores,
    /// Half a core; some of the calls.
    Half,
    /// The whole node; some of the calls.
    Node,
}

/// At other sizes than the user's every so many-th call is measured.
const EVERY: usize = 4;
/// Share of the default input of the call that warms an instance up.
const WARM_UP: u32 = 10;

/// What calls alone have shown.
pub(crate) struct Alone {
    /// Run times at the user's size, seconds, for each call of the plan.
    pub(crate) at_users: Vec<Vec<f64>>,
    /// The same on as many cores as the user reserves. A quota lets a call of several threads use the whole machine
    /// until its period's budget is gone, so a short call is faster under it than its reservation guarantees.
    pub(crate) on_cores: Vec<Vec<f64>>,
    /// Everything at all sizes.
    pub(crate) records: Vec<CallRecord>,
    pub(crate) profiles: Vec<FunctionProfile>,
    /// At other sizes than the user's every so many-th call is measured.
    every: usize,
}

impl Alone {
    pub(super) fn new(calls: usize) -> Self {
        let (records, profiles) = (Vec::new(), Vec::new());
        let none = vec![Vec::new(); calls];
        Self { at_users: none.clone(), on_cores: none, records, profiles, every: EVERY }
    }

    /// What earlier runs have measured.
    pub(super) fn resumed(at_users: Vec<Vec<f64>>, records: Vec<CallRecord>) -> Self {
        Self { at_users, records, ..Self::new(0) }
    }

    /// Every call at every size.
    pub(crate) fn of_every_call(calls: usize) -> Self {
        Self { every: 1, ..Self::new(calls) }
    }

    /// One pass over the calls, one after another.
    pub(crate) fn play(
        &mut self,
        host: &Arc<Host>,
        plan: &Plan,
        size: Size,
    ) -> Result<(), ExperimentError> {
        let control = CallLoop::new(
            Box::new(Constant { size, node: plan.node.cpu }),
            CallSafeguardChain::default(),
        );
        let mut stand = Stand::new(host, AgentSettings::new(plan.node), Box::new(control))?;
        warm_up(&mut stand, plan);
        let (mut failed, mut first, mut made) = (0, String::new(), 0);
        for (number, planned) in plan.calls.iter().enumerate() {
            let is_of_all = matches!(size, Size::Users | Size::Cores);
            if !is_of_all && number % self.every != 0 {
                continue;
            }
            if size == Size::Cores {
                let cores = planned.call.builtin.reservation.cpu.cores().ceil();
                keep_instances_on(host.spawner(), cores as usize)?;
            }
            made += 1;
            let ran = stand.call(planned.call.builtin.name, &planned.call.parameters());
            // What is answered here was reported before it.
            stand.agent.status();
            let record = stand.heard.take().pop();
            match record.filter(|_| ran.outcome.status_code() == 0) {
                Some(record) => {
                    self.note(number, record, size);
                }
                None => {
                    failed += 1;
                    if first.is_empty() {
                        first = format!("{} {:?}", planned.call.builtin.name, ran.outcome);
                    }
                }
            }
        }
        if self.profiles.is_empty() {
            self.profiles = stand.heard.functions();
        }
        let during = format!("the calls alone ({size:?})");
        // A call without a baseline has no RFET, so not one may fail at the user's size.
        if failed > 0 {
            return Err(ExperimentError::Calls { during, failed, calls: made, first });
        }
        Ok(())
    }

    /// What call `number` of the plan took.
    fn note(&mut self, number: usize, record: CallRecord, size: Size) {
        let run = record.run.as_secs_f64();
        match size {
            Size::Users => self.at_users[number].push(run),
            Size::Cores => self.on_cores[number].push(run),
            Size::Half | Size::Node => {}
        }
        // On fewer cores than its limit says, a call says nothing about that limit.
        if size != Size::Cores {
            self.records.push(record);
        }
    }
}

/// Deploys the functions and calls each once: the first call of some builds what the others use.
fn warm_up(stand: &mut Stand, plan: &Plan) {
    for builtin in &plan.functions {
        stand.deploy(builtin, 1);
    }
    for builtin in &plan.functions {
        let small = builtin.input.map(|input| (input.default / WARM_UP).max(1));
        let parameter = builtin.input.map_or("input", |input| input.parameter);
        stand.call(builtin.name, &serde_json::json!({ parameter: small }));
    }
    stand.agent.status();
    stand.heard.take();
}

/// The same CPU for every call, and the user's memory.
struct Constant {
    size: Size,
    node: MilliCpu,
}

impl CallPolicy for Constant {
    fn name(&self) -> &str {
        "constant"
    }

    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        let cpu = match self.size {
            Size::Users => call.reservation.cpu,
            Size::Half => MilliCpu::new(500),
            Size::Node | Size::Cores => self.node,
        };
        let size = Allocation { cpu, memory: call.reservation.memory };
        Ok(CallDecision::exactly(size, "measured alone"))
    }

    fn leaves_calls_alone(&self) -> bool {
        self.size == Size::Users
    }

    fn learns(&self) -> bool {
        false
    }
}

/// Waits until `moment`; threads wake up within about a tenth of a millisecond.
pub(crate) fn sleep_until(moment: Instant) {
    let now = Instant::now();
    if moment > now {
        std::thread::sleep(moment - now);
    }
}
