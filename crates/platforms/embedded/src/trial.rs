//! For tests of the platform: agent and gateway without the API, and a way to let a control in another thread decide.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windfall_core::{
    Allocation, CallClose, CallControl, CallId, CallPlan, CallView, GrantChange, Look, NodeId,
    Resized, RunningCall, Start,
};
use windfall_openwhisk::{
    Action, ActionLimits, ActivationIds, Arrival, Call, Code, EntityName, Exec, FullName, Identity,
    Key, KeyValues, Ran, Runner, Version,
};

use crate::agent::{Agent, AgentSettings, Machine};
use crate::gateway::{Gateway, GatewaySettings};

/// Agent and gateway. Panics where a test would.
pub struct Rig {
    /// What runs the calls.
    pub runtime: tokio::runtime::Runtime,
    /// The agent; taken out to end it.
    pub agent: Option<Agent>,
    /// The gateway.
    pub gateway: Arc<Gateway>,
    ids: ActivationIds,
}

impl Rig {
    /// A platform on `machine` under `control`.
    pub fn new(
        settings: AgentSettings,
        machine: Arc<dyn Machine>,
        control: Box<dyn CallControl>,
    ) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a test");
        let agent = Agent::start(settings, machine, control, Vec::new(), runtime.handle().clone())
            .expect("a test");
        let gateway = Arc::new(Gateway::new(&agent, GatewaySettings::default()));
        let ids = ActivationIds::new().expect("a test");
        Self { runtime, agent: Some(agent), gateway, ids }
    }

    /// Deploys the function `hello`, or what stands for it, under `name`.
    pub fn deploy(&self, name: &str, reservation: Allocation, timeout: Duration) {
        self.gateway.deployed(&action(name, reservation, timeout, 1));
    }

    fn call_of(&self, name: &str, parameters: &Value) -> Call {
        let arrived = Arrival::now();
        Call {
            activation: self.ids.next(arrived.wall),
            action: action(name, Allocation::new(1000, 256), Duration::from_secs(10), 1),
            parameters: parameters.to_string().into(),
            arrived,
            deadline: Instant::now() + Duration::from_secs(30),
            caller: Arc::new(Identity {
                namespace: EntityName::new("guest").expect("a test"),
                key: Key::generate().expect("a test"),
            }),
        }
    }

    /// One call to its end.
    pub fn call(&self, name: &str, parameters: Value) -> Ran {
        self.runtime.block_on(self.gateway.run(self.call_of(name, &parameters)))
    }

    /// Many calls at the same time; how they ended.
    pub fn call_all(&self, calls: impl Iterator<Item = (&'static str, Value)>) -> Vec<Ran> {
        let tasks: Vec<_> = calls
            .map(|(name, parameters)| {
                let (gateway, call) = (Arc::clone(&self.gateway), self.call_of(name, &parameters));
                self.runtime.spawn(async move { gateway.run(call).await })
            })
            .collect();
        tasks.into_iter().map(|task| self.runtime.block_on(task).expect("a test")).collect()
    }

    /// The agent, before it was taken out.
    pub fn agent(&self) -> &Agent {
        self.agent.as_ref().expect("a test")
    }
}

/// An action that runs a built-in function: the part of its name before a dash.
pub fn action(
    name: &str,
    reservation: Allocation,
    timeout: Duration,
    concurrency: u32,
) -> Arc<Action> {
    let own = EntityName::new("guest").expect("a test");
    let mut annotations = KeyValues::default();
    annotations.set("cpu", json!(reservation.cpu.cores()));
    let code = Code { kind: kind_of(name), text: String::new(), binary: false, main: None };
    Arc::new(Action {
        name: FullName::parse(name, &own).expect("a test"),
        version: Version::FIRST,
        publish: false,
        exec: Exec::Code(code),
        parameters: KeyValues::default(),
        annotations,
        limits: ActionLimits {
            timeout,
            memory: reservation.memory,
            logs_mib: 1,
            concurrency,
            instances: None,
        },
        updated: 0,
    })
}

/// `bloat-2` runs the built-in function `bloat`; a name that is none runs `hello`.
fn kind_of(name: &str) -> String {
    let stem = name.trim_start_matches('/').rsplit('/').next().unwrap_or(name);
    let stem = stem.rsplit_once('-').filter(|(_, number)| number.parse::<u32>().is_ok());
    let stem = stem.map_or(name, |(stem, _)| stem);
    let found = windfall_functions::Builtin::named(stem);
    found.map_or_else(|| "builtin:hello".to_owned(), |builtin| builtin.kind())
}

/// Something to ask a control.
pub type Question = Box<dyn FnOnce(&mut dyn CallControl) + Send>;

/// Passes every question to a control that stays in another thread.
pub struct Elsewhere {
    questions: Sender<Question>,
}

impl Elsewhere {
    /// A control to give away, and the questions that it passes on.
    pub fn new() -> (Self, Receiver<Question>) {
        let (questions, asked) = channel();
        (Self { questions }, asked)
    }

    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut dyn CallControl) -> T + Send + 'static,
    ) -> T {
        let (reply, answer) = sync_channel(1);
        let question = move |control: &mut dyn CallControl| {
            let _ = reply.send(question(control));
        };
        self.questions.send(Box::new(question)).expect("someone answers");
        answer.recv().expect("the control answers")
    }
}

impl CallControl for Elsewhere {
    fn size(&mut self, call: &CallView) -> CallPlan {
        let call = call.clone();
        self.ask(move |control| control.size(&call))
    }

    fn start(&mut self, call: &CallView, plan: &CallPlan, node: NodeId, room: Allocation) -> Start {
        let (call, plan) = (call.clone(), plan.clone());
        self.ask(move |control| control.start(&call, &plan, node, room))
    }

    fn look(&mut self, running: &RunningCall, changes: &mut Vec<GrantChange>) -> Look {
        let running = running.clone();
        let (look, mut more) = self.ask(move |control| {
            let mut changes = Vec::new();
            (control.look(&running, &mut changes), changes)
        });
        changes.append(&mut more);
        look
    }

    fn resized(&mut self, change: &Resized, changes: &mut Vec<GrantChange>) {
        let change = change.clone();
        changes.append(&mut self.ask(move |control| {
            let mut changes = Vec::new();
            control.resized(&change, &mut changes);
            changes
        }));
    }

    fn close(&mut self, end: CallClose<'_>, changes: &mut Vec<GrantChange>) {
        let (outcome, call, node): (_, CallId, NodeId) = match end {
            CallClose::Measured(outcome) => (Some(outcome.clone()), outcome.id, outcome.node),
            CallClose::Lost { call, node } => (None, call, node),
        };
        changes.append(&mut self.ask(move |control| {
            let mut changes = Vec::new();
            let end = match &outcome {
                Some(outcome) => CallClose::Measured(outcome),
                None => CallClose::Lost { call, node },
            };
            control.close(end, &mut changes);
            changes
        }));
    }
}
