//! Gateway, agent and processes of one run, without the HTTP front.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use windfall_core::{
    Allocation, CallControl, CallRecord, FunctionProfile, TelemetrySink, Timestamp,
};
use windfall_embedded::{Agent, AgentSettings, Gateway, GatewaySettings};
use windfall_functions::Builtin;
use windfall_openwhisk::{
    Action, ActionLimits, ActivationIds, Arrival, Call, Code, EntityName, Exec, FullName, Identity,
    Key, KeyValues, Ran, Runner, Version,
};
use windfall_sandbox::Host;

use crate::error::{ExperimentError, system};

/// The namespace of all calls.
const NAMESPACE: &str = "guest";
/// No call waits longer for a place.
const PATIENCE: Duration = Duration::from_secs(300);

/// What the agent reported, shared with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard(Arc<Mutex<Report>>);

/// What was reported so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) calls: Vec<CallRecord>,
    pub(crate) functions: Vec<FunctionProfile>,
}

impl Heard {
    /// Everything since the last time it was taken.
    pub(crate) fn take(&self) -> Vec<CallRecord> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).calls)
    }

    pub(crate) fn functions(&self) -> Vec<FunctionProfile> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).functions.clone()
    }
}

impl TelemetrySink for Heard {
    fn functions(&mut self, _first: windfall_core::FunctionId, functions: &[FunctionProfile]) {
        let mut report = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        report.functions.extend_from_slice(functions);
    }

    fn call(&mut self, call: &CallRecord) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).calls.push(call.clone());
    }
}

/// A platform for one run.
pub(crate) struct Stand {
    // Before the runtime, which the agent needs until its end.
    pub(crate) agent: Arc<Agent>,
    gateway: Arc<Gateway>,
    pub(crate) runtime: Runtime,
    pub(crate) heard: Heard,
    ids: ActivationIds,
    caller: Arc<Identity>,
    actions: BTreeMap<&'static str, Arc<Action>>,
}

impl Stand {
    /// An empty platform under `control`.
    pub(crate) fn new(
        host: &Arc<Host>,
        settings: AgentSettings,
        control: Box<dyn CallControl>,
    ) -> Result<Self, ExperimentError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(system("starting the runtime"))?;
        let heard = Heard::default();
        let sinks: Vec<Box<dyn TelemetrySink>> = vec![Box::new(heard.clone())];
        let machine = Arc::clone(host) as _;
        let agent = Agent::start(settings, machine, control, sinks, runtime.handle().clone())
            .map_err(system("starting the agent"))?;
        let gateway = Arc::new(Gateway::new(&agent, GatewaySettings::default()));
        let caller = Identity {
            namespace: EntityName::new(NAMESPACE).expect("a constant that is a name"),
            key: Key::generate().map_err(|why| drawing("drawing a key", &why))?,
        };
        let ids = ActivationIds::new().map_err(|why| drawing("drawing identifiers", &why))?;
        let (agent, caller) = (Arc::new(agent), Arc::new(caller));
        Ok(Self { agent, gateway, runtime, heard, ids, caller, actions: BTreeMap::new() })
    }

    /// Deploys a built-in function, `concurrency` calls to an instance.
    pub(crate) fn deploy(&mut self, builtin: &'static Builtin, concurrency: u32) {
        self.deploy_as(builtin.name, builtin, concurrency, builtin.reservation);
    }

    /// The same under another name and with another size.
    pub(crate) fn deploy_as(
        &mut self,
        name: &'static str,
        builtin: &Builtin,
        concurrency: u32,
        reservation: Allocation,
    ) {
        let action = Arc::new(action_of(name, builtin, concurrency, reservation));
        self.gateway.deployed(&action);
        self.actions.insert(name, action);
    }

    /// A call of a deployed function that is due at `due`: its latency counts from there.
    fn call_of(&self, name: &str, parameters: &Value, due: Instant) -> Option<Call> {
        let arrived = Arrival { wall: SystemTime::now(), monotonic: due };
        Some(Call {
            activation: self.ids.next(arrived.wall),
            action: Arc::clone(self.actions.get(name)?),
            parameters: parameters.to_string().into(),
            arrived,
            deadline: due + PATIENCE,
            caller: Arc::clone(&self.caller),
        })
    }

    /// One call to its end.
    pub(crate) fn call(&self, name: &str, parameters: &Value) -> Ran {
        let now = Instant::now();
        match self.call_of(name, parameters, now) {
            Some(call) => self.runtime.block_on(self.gateway.run(call)),
            None => Ran::not_started("the function is not deployed", Duration::ZERO),
        }
    }

    /// Sends a call that is due at `due` and does not wait for it.
    pub(crate) fn send(
        &self,
        name: &str,
        parameters: &Value,
        due: Instant,
    ) -> tokio::task::JoinHandle<Ran> {
        let call = self.call_of(name, parameters, due);
        let gateway = Arc::clone(&self.gateway);
        self.runtime.spawn(async move {
            match call {
                Some(call) => gateway.run(call).await,
                None => Ran::not_started("the function is not deployed", Duration::ZERO),
            }
        })
    }

    /// The platform's time at `moment`.
    pub(crate) fn time_at(&self, moment: Instant) -> Timestamp {
        self.agent.clock().at(moment)
    }
}

fn drawing(doing: &'static str, why: &dyn std::error::Error) -> ExperimentError {
    system(doing)(std::io::Error::other(why.to_string()))
}

fn action_of(name: &str, builtin: &Builtin, concurrency: u32, reservation: Allocation) -> Action {
    let own = EntityName::new(NAMESPACE).expect("a constant that is a name");
    let mut annotations = KeyValues::default();
    annotations.set("cpu", json!(reservation.cpu.cores()));
    if let Some(input) = builtin.input {
        annotations.set("input", json!(input.parameter));
    }
    let text = builtin.name.to_owned();
    Action {
        name: FullName::parse(name, &own).expect("names of functions are names of actions"),
        version: Version::FIRST,
        publish: false,
        exec: Exec::Code(Code { kind: builtin.kind(), text, binary: false, main: None }),
        parameters: KeyValues::default(),
        annotations,
        limits: ActionLimits {
            timeout: Duration::from_nanos(builtin.timeout.as_nanos()),
            memory: reservation.memory,
            logs_mib: 1,
            concurrency,
            instances: None,
        },
        updated: 0,
    }
}
