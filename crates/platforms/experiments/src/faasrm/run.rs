//! One run of all calls under one policy.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;
use windfall_control::ControlLoop;
use windfall_core::{CallRecord, Timestamp};
use windfall_embedded::{AgentSettings, EmbeddedPlatform};
use windfall_openwhisk::Ran;
use windfall_sandbox::Host;
use windfall_studies::reproduce::faasrm_kernel::Conditions;

use super::alone::sleep_until;
use super::{Plan, incumbent};
use crate::error::ExperimentError;
use crate::machine::{Between, Moment, load_average};
use crate::policy::control_of;
use crate::stand::Stand;

/// How often tick policies are asked.
const TICK: Duration = Duration::from_secs(2);
/// From the start of the platform to the beginning of the schedule.
const HEAD_START: Duration = Duration::from_millis(200);
/// More failed calls than this share make a run worthless.
const MOST_FAILED: f64 = 0.1;

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Played {
    pub(crate) policy: String,
    pub(crate) repetition: u32,
    /// The record of each call of the plan.
    pub(crate) calls: Vec<Option<CallRecord>>,
    pub(crate) conditions: Conditions,
}

pub(super) fn play(
    host: &Arc<Host>,
    plan: &Plan,
    policy: &str,
    repetition: u32,
) -> Result<Played, ExperimentError> {
    let (control, ticks) = control_of(&incumbent(policy), repetition.into())?;
    let mut stand = Stand::new(host, AgentSettings::new(plan.node), control)?;
    for builtin in &plan.functions {
        stand.deploy(builtin, 1);
    }
    stand.agent.status();
    let mut ticker = ticks.map(|ticks| Ticks::new(ticks, &stand));
    let before = Moment::now(host.spawner());
    let begin = Instant::now() + HEAD_START;
    let sent = send_all(&stand, plan, begin, ticker.as_mut());
    wait(&sent.handles, ticker.as_mut());
    stand.agent.status();
    let between = before.until(&Moment::now(host.spawner()));
    drop(ticker);
    let failed = failures(&stand, sent.handles, policy, repetition)?;
    let calls = in_order(&sent.due, stand.heard.take());
    let conditions = conditions(&between, &calls, failed);
    Ok(Played { policy: policy.to_owned(), repetition, calls, conditions })
}

struct Sent {
    handles: Vec<JoinHandle<Ran>>,
    /// The platform's time at which each call was due.
    due: Vec<Timestamp>,
}

fn send_all(stand: &Stand, plan: &Plan, begin: Instant, mut ticker: Option<&mut Ticks>) -> Sent {
    let mut sent = Sent { handles: Vec::new(), due: Vec::new() };
    for planned in &plan.calls {
        let due = begin + Duration::from_nanos(planned.at.as_nanos());
        while let Some(ticks) = ticker.as_deref_mut().filter(|ticks| ticks.next < due) {
            sleep_until(ticks.next);
            ticks.tick();
        }
        sleep_until(due);
        let call = &planned.call;
        sent.due.push(stand.time_at(due));
        sent.handles.push(stand.send(call.builtin.name, &call.parameters(), due));
    }
    sent
}

/// Until every call has ended; each is given up after its own time limits.
fn wait(handles: &[JoinHandle<Ran>], mut ticker: Option<&mut Ticks>) {
    while !handles.iter().all(JoinHandle::is_finished) {
        std::thread::sleep(Duration::from_millis(5));
        if let Some(ticks) = ticker.as_deref_mut().filter(|ticks| ticks.next <= Instant::now()) {
            ticks.tick();
        }
    }
}

/// How many calls ended without a result; an error if they are too many.
fn failures(
    stand: &Stand,
    handles: Vec<JoinHandle<Ran>>,
    policy: &str,
    repetition: u32,
) -> Result<u32, ExperimentError> {
    let calls = handles.len();
    let (mut failed, mut first) = (0, String::new());
    for handle in handles {
        let problem = match stand.runtime.block_on(handle) {
            Ok(ran) if ran.outcome.status_code() == 0 => continue,
            Ok(ran) => format!("{:?}", ran.outcome),
            Err(error) => error.to_string(),
        };
        failed += 1;
        if first.is_empty() {
            first = problem;
        }
    }
    if failed as f64 > MOST_FAILED * calls as f64 {
        let during = format!("{policy}, repetition {repetition}");
        return Err(ExperimentError::Calls { during, failed, calls, first });
    }
    Ok(failed as u32)
}

/// The records in the order of the plan.
fn in_order(due: &[Timestamp], records: Vec<CallRecord>) -> Vec<Option<CallRecord>> {
    let mut by_moment: BTreeMap<Timestamp, CallRecord> =
        records.into_iter().map(|record| (record.arrived_at, record)).collect();
    due.iter().map(|moment| by_moment.remove(moment)).collect()
}

fn conditions(between: &Between, calls: &[Option<CallRecord>], failed: u32) -> Conditions {
    let used: f64 = calls.iter().flatten().map(|call| call.cpu_used as f64 * 1e-12).sum();
    let share = |part: f64| part / (part + used).max(1e-9);
    Conditions {
        manager_cpu_share: share(between.manager),
        agent_cpu_share: share(between.agent),
        load_average: load_average(),
        cpu_pressure: between.cpu_pressure,
        steal: between.steal,
        took_s: between.seconds,
        failed,
    }
}

/// The tick side of a policy in wall time.
pub(crate) struct Ticks {
    control: ControlLoop,
    platform: EmbeddedPlatform,
    pub(crate) next: Instant,
}

impl Ticks {
    pub(crate) fn new(control: ControlLoop, stand: &Stand) -> Self {
        let platform = EmbeddedPlatform::new(Arc::clone(&stand.agent));
        Self { control, platform, next: Instant::now() + TICK }
    }

    pub(crate) fn tick(&mut self) {
        let now = self.platform.agent().clock().now();
        self.control.tick(now, &mut self.platform);
        self.next += TICK;
    }
}
