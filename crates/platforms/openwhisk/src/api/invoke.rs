//! Calls of actions: blocking, with the result alone, or accepted and run later.
//!
//! A blocking call of an action that runs does nothing with SQLite before its answer: its record is written to memory,
//! queued for the writer, and sent.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt;
use http::StatusCode;

use super::answer::{self, Answer, Refusal};
use super::asked::Asked;
use super::body;
use super::callers::{Caller, InFlight};
use super::goes_on::{GoesOn, Panicked};
use super::query::Query;
use super::record::{self, Annotations, Draft};
use super::{ApiState, Shared, millis};
use crate::action::Exec;
use crate::activation_id::ActivationId;
use crate::entities::Target;
use crate::key_values::KeyValues;
use crate::name::EntityName;
use crate::parameters;
use crate::runner::{Arrival, Call, Ran, Runner};
use crate::store::{Pending, Unfinished};

/// A call that is ready to run.
pub(super) struct Invocation {
    pub(super) id: ActivationId,
    pub(super) target: Target,
    pub(super) parameters: Bytes,
    pub(super) caller: Arc<Caller>,
    pub(super) arrived: Arrival,
    /// The sequence it is part of.
    pub(super) cause: Option<ActivationId>,
    /// Counts against the caller's limit until the call has ended; parts of a sequence do not count again.
    pub(super) in_flight: Option<InFlight>,
}

/// A call that has ended; its record is queued.
pub(super) struct Ended {
    pub(super) id: ActivationId,
    pub(super) status: u8,
    pub(super) json: Bytes,
    pub(super) result: Bytes,
    pub(super) duration: Duration,
}

/// What a blocking call came to.
pub(super) enum Waited {
    Ended(Ended),
    /// It goes on; its pending record is on disk.
    GoesOn(ActivationId),
}

pub(super) async fn invoke<R: Runner>(
    State(api): State<ApiState<R>>,
    asked: Asked,
    body: Body,
) -> Answer {
    let arrived = Arrival::now();
    let shared = &api.shared;
    let query = asked.query();
    let (is_blocking, is_result) = (query.flag("blocking")?, query.flag("result")?);
    let wait = shared.wait_of(&query)?;
    let target = shared.callable(&asked.caller, &asked.namespace, &asked.path)?;
    let body = body::read(body, shared.settings.largest_parameters).await?;
    let invocation = shared.prepare(&asked.caller, target, body, arrived)?;
    if !is_blocking {
        let id = invocation.id;
        shared.accept(vec![invocation], Vec::new()).await?;
        return Ok(answer::accepted(id));
    }
    match shared.run_and_wait(invocation, wait).await? {
        Waited::Ended(ended) => Ok(ended.into_answer(is_result)),
        Waited::GoesOn(id) => Ok(answer::accepted(id)),
    }
}

impl Ended {
    fn into_answer(self, is_result: bool) -> Response {
        let status = match self.status {
            0 => StatusCode::OK,
            1 | 2 => StatusCode::BAD_GATEWAY,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let body = if is_result { self.result } else { self.json };
        answer::of_activation(answer::json_bytes(status, body), self.id)
    }
}

impl<R: Runner> Shared<R> {
    /// How long a blocking call waits: `timeout`, at most the longest allowed.
    fn wait_of(&self, query: &Query<'_>) -> Result<Duration, Refusal> {
        let longest = self.settings.longest_blocking;
        let Some(asked) = query.number("timeout")? else { return Ok(longest) };
        let asked = Duration::from_millis(asked);
        if asked.is_zero() || asked > longest {
            let most = longest.as_millis();
            let message = format!("Timeout must be number of milliseconds up to {most}.");
            return Err(Refusal::bad_request(message));
        }
        Ok(asked)
    }

    /// An action that `caller` may call: its own, or one in a published package.
    pub(super) fn callable(
        &self,
        caller: &Caller,
        namespace: &EntityName,
        path: &str,
    ) -> Result<Target, Refusal> {
        let is_own = namespace == caller.namespace();
        let is_public = || {
            let package = path.split_once('/').map(|(package, _)| package);
            package.is_some_and(|name| {
                self.entities.package(namespace, name).is_some_and(|it| it.publish)
            })
        };
        if !is_own && !is_public() {
            return Err(Refusal::forbidden(&format!("{namespace}/{path}")));
        }
        self.entities.target(namespace, path).ok_or_else(Refusal::not_found)
    }

    /// Merges parameters and counts the call.
    pub(super) fn prepare(
        &self,
        caller: &Arc<Caller>,
        target: Target,
        body: Bytes,
        arrived: Arrival,
    ) -> Result<Invocation, Refusal> {
        let in_flight = Some(caller.admit()?);
        let parameters = target.merge(body)?;
        let id = self.ids.next(arrived.wall);
        let caller = Arc::clone(caller);
        Ok(Invocation { id, target, parameters, caller, arrived, cause: None, in_flight })
    }

    /// Notes calls on disk, with `records` that belong to them, and runs them behind the answer.
    pub(super) async fn accept(
        self: &Arc<Self>,
        invocations: Vec<Invocation>,
        records: Vec<crate::store::Record>,
    ) -> Result<(), Refusal> {
        let pending = invocations.iter().map(Invocation::pending).collect();
        for record in records {
            self.store.finish(record).await;
        }
        self.store.accept(pending).await?;
        for invocation in invocations {
            tokio::spawn(Arc::clone(self).perform(invocation));
        }
        Ok(())
    }

    /// Begins calls again that an earlier process had accepted and not ended. One whose action or caller is gone stays
    /// pending, and is lost with the next start.
    pub(super) fn resume(self: &Arc<Self>, unfinished: Vec<Unfinished>) {
        for Unfinished { id, namespace, path, parameters } in unfinished {
            let target = self.entities.target(&namespace, &path);
            let (Some(target), Some(caller)) = (target, self.callers.owner(&namespace)) else {
                continue;
            };
            let invocation = Invocation {
                id,
                target,
                parameters,
                caller: Arc::clone(caller),
                arrived: Arrival::now(),
                cause: None,
                // It was admitted when it came.
                in_flight: None,
            };
            tokio::spawn(Arc::clone(self).perform(invocation));
        }
    }

    /// Runs a call and waits for it. It goes on when the client goes away.
    pub(super) async fn run_and_wait(
        self: &Arc<Self>,
        invocation: Invocation,
        wait: Duration,
    ) -> Result<Waited, Refusal> {
        let id = invocation.id;
        let arrived = invocation.arrived;
        let action = Arc::clone(&invocation.target.action);
        let (caller, parameters) = (Arc::clone(&invocation.caller), invocation.parameters.clone());
        let call = GoesOn::new(Arc::clone(self).perform(invocation));
        // One that is still running when the time is over becomes a task with that.
        match tokio::time::timeout(wait, call).await {
            Ok(Ok(ended)) => Ok(Waited::Ended(ended)),
            Ok(Err(Panicked)) => {
                let message = "The platform failed: a call panicked.";
                Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, message))
            }
            Err(_) => {
                let record = record::lost(id, &action, &caller, arrived, None);
                self.store.accept(vec![Pending { record, parameters }]).await?;
                Ok(Waited::GoesOn(id))
            }
        }
    }

    /// Runs a call to its end and queues its record.
    pub(super) async fn perform(self: Arc<Self>, invocation: Invocation) -> Ended {
        match &invocation.target.action.exec {
            Exec::Code(_) => self.perform_code(invocation).await,
            Exec::Sequence(components) => {
                let components = components.clone();
                self.perform_sequence(invocation, &components).await
            }
        }
    }

    async fn perform_code(&self, invocation: Invocation) -> Ended {
        let Invocation { id, target, parameters, caller, arrived, cause, in_flight } = invocation;
        let call = Call {
            activation: id,
            action: Arc::clone(&target.action),
            parameters,
            arrived,
            deadline: arrived.monotonic + self.settings.longest_wait,
            caller: Arc::clone(&caller.identity),
        };
        // A panic in a runner must not take the record with it.
        let run = AssertUnwindSafe(self.runner.run(call)).catch_unwind().await;
        let ran = run.unwrap_or_else(|_| {
            Ran::not_started("The runner of the action panicked.", arrived.monotonic.elapsed())
        });
        drop(in_flight);
        let mut annotations = Annotations::of_action(&target.action, target.binding.as_ref());
        annotations.add_run(&ran);
        if cause.is_some() {
            annotations.text("causedBy", "sequence");
        }
        let times = ran.times;
        let draft = Draft {
            id,
            namespace: caller.namespace(),
            name: &target.action.name,
            version: target.action.version,
            cause,
            start: millis(arrived.wall + times.wait + times.start),
            duration: times.init.unwrap_or_default() + times.run,
            status: ran.outcome.status_code(),
            result: &record::result_of(ran.outcome),
            logs: &ran.logs,
            annotations: &annotations,
        };
        self.finish(&draft).await
    }

    /// Writes and queues a record.
    pub(super) async fn finish(&self, draft: &Draft<'_>) -> Ended {
        let written = draft.write();
        self.store.finish(draft.to_record(&written)).await;
        Ended {
            id: draft.id,
            status: draft.status,
            result: written.json.slice(written.result),
            json: written.json,
            duration: draft.duration,
        }
    }
}

impl Invocation {
    /// What the store keeps of it until it ends.
    fn pending(&self) -> Pending {
        let record =
            record::lost(self.id, &self.target.action, &self.caller, self.arrived, self.cause);
        Pending { record, parameters: self.parameters.clone() }
    }
}

impl Target {
    /// Everything that is bound, with `body` on top.
    pub(super) fn merge(&self, body: Bytes) -> Result<Bytes, parameters::BadParameters> {
        let none = KeyValues::default();
        let package = self.package_parameters.as_ref().unwrap_or(&none);
        parameters::merge(&[package, &self.action.parameters], body)
    }
}
