//! From a call of an action to an instance and back: the runner behind OpenWhisk's API.
//!
//! ```text
//!   arrival ──wait──► placed ──start──► process exists ──init──► code loaded ──run──► answer
//!                     (agent)           (cold only)              (cold, prewarmed)
//! ```

mod deployment;
mod on_request;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use tokio::sync::oneshot;
use windfall_core::{Allocation, CallId, FunctionId, Mebibytes, Timestamp};
use windfall_openwhisk::{
    Action, Call, FullName, Granted, Outcome, Ran, Runner, StartKind as Start, Times,
};
use windfall_sandbox::Isolation;

use crate::agent::Agent;
use crate::agent::message::{Arrive, Finished, Go, Message, No, Verdict};
use crate::clock::{Clock, std_duration};
use crate::exchange::{self, Failed};
use crate::pool::{CallFinish, ReplyReason, StartKind};
use deployment::{Deployed, Deployments};
use on_request::Remembered;
pub use on_request::{OnRequest, RequestError};

/// The id of an action that cannot be called.
const NO_FUNCTION: FunctionId = FunctionId(u32::MAX);

/// How calls are carried out.
#[derive(Clone, Debug)]
pub struct GatewaySettings {
    /// How strictly instances are isolated.
    pub isolation: Isolation,
    /// Size of the writable folder of an instance.
    pub scratch: Mebibytes,
    /// The longest result, bytes.
    pub longest_result: usize,
    /// The address that functions receive for calling back: host and port of the API.
    pub api_host: String,
    /// How long an idle instance stays unless a policy decides.
    pub keep_alive: windfall_core::Duration,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            isolation: Isolation::default(),
            scratch: Mebibytes::new(64),
            longest_result: 1 << 20,
            api_host: String::new(),
            keep_alive: windfall_core::Duration::from_mins(10),
        }
    }
}

/// Runs actions on the agent's instances.
pub struct Gateway {
    inbox: Sender<Message>,
    clock: Clock,
    settings: GatewaySettings,
    deployments: Deployments,
    functions: RwLock<HashMap<FullName, Deployed>>,
    next_function: AtomicU32,
    next_call: AtomicU64,
    remembered: Mutex<Remembered>,
}

/// What a call came to so far.
#[derive(Default)]
struct Progress {
    times: Times,
    start_kind: Option<Start>,
    granted: Option<Granted>,
    logs: Vec<String>,
    fallback: Option<String>,
    memory_kills: u8,
    /// Whether the last attempt got as far as `/run`.
    has_run: bool,
}

impl Gateway {
    /// A gateway to the instances of `agent`.
    pub fn new(agent: &Agent, settings: GatewaySettings) -> Self {
        Self {
            inbox: agent.inbox(),
            clock: agent.clock(),
            settings,
            deployments: Deployments::default(),
            functions: RwLock::new(HashMap::new()),
            next_function: AtomicU32::new(0),
            next_call: AtomicU64::new(0),
            remembered: Mutex::new(Remembered::default()),
        }
    }

    fn deployed_as(&self, name: &FullName) -> Option<Deployed> {
        self.functions.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// The id under which policies know an action.
    pub fn function_id(&self, name: &FullName) -> Option<FunctionId> {
        self.deployed_as(name).map(|deployed| deployed.function)
    }

    fn since(&self, from: Timestamp) -> Duration {
        std_duration(self.clock.now().since(from))
    }

    /// Runs `call`, at `size` where someone asked for one and at the size that the policy decides otherwise.
    async fn carry_out(
        &self,
        call: &Call,
        deployed: &Deployed,
        size: Option<Allocation>,
    ) -> (Outcome, Progress) {
        let mut progress = Progress::default();
        let function = match &deployed.callable {
            Ok(callable) => callable,
            Err(problem) => return (Outcome::SystemError(problem.clone()), progress),
        };
        let id = CallId(self.next_call.fetch_add(1, Ordering::Relaxed));
        if size.is_none() {
            self.remembered.lock().unwrap_or_else(PoisonError::into_inner).take_in(id, call);
        }
        let arrived_at = self.clock.at(call.arrived.monotonic);
        let (reply, mut verdict) = oneshot::channel();
        let input = function
            .spec
            .input
            .as_deref()
            .and_then(|parameter| windfall_functions::input_size(&call.parameters, parameter));
        let arrive = Arrive {
            call: id,
            function: deployed.function,
            input,
            size,
            arrived_at,
            asked_at: self.clock.now(),
            deadline: self.clock.at(call.deadline),
            reply,
        };
        if self.inbox.send(Message::Arrive(arrive)).is_err() {
            return (stopping(), progress);
        }
        loop {
            let go = match verdict.await {
                Ok(Verdict::Go(go)) => go,
                Ok(Verdict::No(no)) => {
                    if progress.start_kind.is_none() {
                        progress.times.wait = self.since(arrived_at);
                    }
                    return (outcome_of(no, progress.has_run), progress);
                }
                Err(_) => return (stopping(), progress),
            };
            match self.attempt(id, call, &go, &function.suffix, arrived_at, &mut progress).await {
                Ok(outcome) => return (outcome, progress),
                Err(next) => verdict = next,
            }
        }
    }

    /// One attempt of a call in the instance it was given. Without an answer: where the next verdict comes.
    async fn attempt(
        &self,
        id: CallId,
        call: &Call,
        go: &Go,
        suffix: &Bytes,
        arrived_at: Timestamp,
        progress: &mut Progress,
    ) -> Result<Outcome, oneshot::Receiver<Verdict>> {
        let (start_kind, placed) = match go.start {
            StartKind::Warm => (Start::Warm, self.clock.now()),
            StartKind::Prewarmed => (Start::Prewarmed, go.placed_at),
            StartKind::Cold => (Start::Cold, go.placed_at),
        };
        progress.start_kind = Some(start_kind);
        progress.granted = Some(Granted { cpu: go.granted.cpu, memory: go.granted.memory });
        progress.fallback.clone_from(&go.fallback);
        progress.memory_kills = go.memory_kills;
        progress.times.wait = std_duration(placed.since(arrived_at));
        progress.times.start = self.since(placed);
        progress.has_run = false;
        let mut run_began_at = None;
        let answer = self.exchange(call, go, suffix, progress, &mut run_began_at).await;
        progress.logs.extend(exchange::logs(&go.link, &go.spec).await);
        let is_init = !progress.has_run;
        let (finish, outcome) = match answer {
            Ok(outcome) => (CallFinish::Answered, outcome),
            Err(Failed::Broken) => return Err(self.report_broken(id, go, run_began_at)),
            Err(Failed::TimedOut) => {
                (CallFinish::Unusable, Outcome::timed_out(go.spec.timeout, is_init))
            }
            Err(Failed::TooLong { length, allowed }) => {
                (CallFinish::Unusable, Outcome::too_long(length, allowed))
            }
            Err(Failed::Refused(body)) if is_init => {
                (CallFinish::Unusable, Outcome::of_failed_init(&body))
            }
            Err(Failed::Refused(body)) => (CallFinish::Unusable, Outcome::of_run(500, body)),
        };
        self.report(id, go, finish, run_began_at, None);
        Ok(outcome)
    }

    /// `/init` where it is needed, then `/run`.
    async fn exchange(
        &self,
        call: &Call,
        go: &Go,
        suffix: &Bytes,
        progress: &mut Progress,
        run_began_at: &mut Option<Timestamp>,
    ) -> Result<Outcome, Failed> {
        if go.start != StartKind::Warm {
            let begun = Instant::now();
            exchange::initialise(&go.link, &go.spec).await?;
            progress.times.init = Some(begun.elapsed());
            let instance = go.instance;
            let _ = self.inbox.send(Message::Initialised { instance, is_fine: true });
        }
        let began = self.clock.now();
        *run_began_at = Some(began);
        progress.has_run = true;
        let ends = SystemTime::now() + go.spec.timeout;
        let deadline = ends.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let middle = format!(
            ",\"activation_id\":\"{}\",\"transaction_id\":\"{0}\",\"deadline\":\"{deadline}\"",
            call.activation
        );
        let body: [&[u8]; 4] = [b"{\"value\":", &call.parameters, middle.as_bytes(), suffix];
        let answer = exchange::run(&go.link, &go.spec, &body, self.settings.longest_result).await;
        progress.times.run = self.since(began);
        let answer = answer?;
        Ok(Outcome::of_run(answer.status, answer.body))
    }

    fn report(
        &self,
        call: CallId,
        go: &Go,
        finish: CallFinish,
        run_began_at: Option<Timestamp>,
        reply: Option<oneshot::Sender<Verdict>>,
    ) {
        let (instance, at) = (go.instance, self.clock.now());
        let finished = Finished { call, instance, finish, run_began_at, at, reply };
        // The agent outlives the gateway except at the very end, when nobody needs the report.
        let _ = self.inbox.send(Message::Finished(finished));
    }

    /// The connection broke: the agent finds out why and says what becomes of the call.
    fn report_broken(
        &self,
        call: CallId,
        go: &Go,
        run_began_at: Option<Timestamp>,
    ) -> oneshot::Receiver<Verdict> {
        let (reply, verdict) = oneshot::channel();
        self.report(call, go, CallFinish::Broken, run_began_at, Some(reply));
        verdict
    }
}

impl Runner for Gateway {
    fn deployed(&self, action: &Arc<Action>) {
        if action.code().is_none() {
            return;
        }
        let callable = self.deployments.callable(action, &self.settings);
        let mut functions = self.functions.write().unwrap_or_else(PoisonError::into_inner);
        // One that could not be called so far has no id yet.
        let known = functions.get(&action.name).map(|deployed| deployed.function);
        let known = known.filter(|function| *function != NO_FUNCTION);
        let mut function = known.unwrap_or(NO_FUNCTION);
        if let Ok(callable) = &callable {
            function = known
                .unwrap_or_else(|| FunctionId(self.next_function.fetch_add(1, Ordering::Relaxed)));
            let spec = Arc::clone(&callable.spec);
            // Sent while the lock is held, so that ids reach the agent in their order.
            let _ = self.inbox.send(Message::Deploy { function, spec });
        }
        let action = Arc::clone(action);
        functions.insert(action.name.clone(), Deployed { function, callable, action });
    }

    fn removed(&self, name: &FullName) {
        if let Some(function) = self.function_id(name) {
            let _ = self.inbox.send(Message::Remove { function });
        }
    }

    async fn run(&self, call: Call) -> Ran {
        let Some(deployed) = self.deployed_as(&call.action.name) else {
            let waited = call.arrived.monotonic.elapsed();
            return Ran::not_started("the action is not deployed", waited);
        };
        let (outcome, progress) = self.carry_out(&call, &deployed, None).await;
        ran_of(outcome, progress)
    }
}

fn ran_of(outcome: Outcome, progress: Progress) -> Ran {
    let mut ran = Ran::not_started("", Duration::ZERO);
    (ran.outcome, ran.times, ran.logs) = (outcome, progress.times, progress.logs);
    ran.start_kind = progress.start_kind.unwrap_or(Start::Cold);
    ran.granted = progress.granted;
    if let Some(problem) = progress.fallback {
        ran.annotations.set("fallback", problem);
    }
    if progress.memory_kills > 0 {
        ran.annotations.set("memoryKills", progress.memory_kills);
    }
    ran
}

fn stopping() -> Outcome {
    Outcome::SystemError("the platform is being ended".to_owned())
}

fn outcome_of(no: No, has_run: bool) -> Outcome {
    let reason = match no {
        No::Pool(reason) => reason,
        No::Stopping => return stopping(),
        No::WaitedTooLong => {
            return Outcome::SystemError(
                "no instance was free in time; try again later".to_owned(),
            );
        }
    };
    match reason {
        ReplyReason::OutOfMemory => Outcome::out_of_memory(),
        ReplyReason::Crashed(_) => Outcome::exited(!has_run),
        ReplyReason::QueueFull { most } => Outcome::SystemError(format!(
            "{most} calls of this action wait already; try again later"
        )),
        ReplyReason::TooLarge { needs, limit } => Outcome::SystemError(format!(
            "the action needs {needs}, this machine has {limit}; lower its limits"
        )),
        ReplyReason::LaunchFailed(problem) => {
            Outcome::SystemError(format!("no instance could be started: {problem}"))
        }
        ReplyReason::Removed => Outcome::SystemError("the action was removed".to_owned()),
    }
}
