//! Triggers. Firing one calls the action of every active rule; the trigger's own record lists those calls.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::answer::{self, Answer, Refusal};
use super::asked::Own;
use super::body;
use super::callers::Caller;
use super::collection::{Put, kept};
use super::invoke::Invocation;
use super::record::{Annotations, Draft};
use super::{ApiState, Shared, millis};
use crate::entity::{Entity, Rule, Trigger};
use crate::key_values::KeyValues;
use crate::name::FullName;
use crate::parameters;
use crate::runner::{Arrival, Runner};
use crate::version::Version;

#[derive(Debug, Default, Deserialize)]
struct WrittenTrigger {
    version: Option<Version>,
    publish: Option<bool>,
    parameters: Option<KeyValues>,
    annotations: Option<KeyValues>,
}

pub(super) async fn read<R: Runner>(State(api): State<ApiState<R>>, Own(asked): Own) -> Answer {
    let trigger: Arc<Trigger> = api.shared.one(&asked.namespace, &asked.path)?;
    answer::ok(&trigger.view(&api.shared.entities.rules_of(&trigger.name)))
}

pub(super) async fn write<R: Runner>(
    State(api): State<ApiState<R>>,
    Own(asked): Own,
    body: Body,
) -> Answer {
    let shared = &api.shared;
    let longest = 2 * shared.settings.largest_parameters;
    let put: Put<'_, WrittenTrigger, Trigger> = shared.put(&asked, body, longest).await?;
    let trigger = Arc::new(put.written.over(put.old.as_deref(), put.name));
    shared.keep(Entity::Trigger(Arc::clone(&trigger))).await?;
    answer::ok(&trigger.view(&shared.entities.rules_of(&trigger.name)))
}

impl WrittenTrigger {
    fn over(self, old: Option<&Trigger>, name: FullName) -> Trigger {
        let Self { version, publish, parameters, annotations } = self;
        Trigger {
            name,
            version: Version::of_written(version, old.map(|old| old.version)),
            publish: kept(publish, old.map(|old| &old.publish)),
            parameters: kept(parameters, old.map(|old| &old.parameters)),
            annotations: kept(annotations, old.map(|old| &old.annotations)),
            updated: millis(SystemTime::now()),
        }
    }
}

pub(super) async fn remove<R: Runner>(State(api): State<ApiState<R>>, Own(asked): Own) -> Answer {
    let _change = api.shared.changes.lock().await;
    let trigger: Arc<Trigger> = api.shared.one(&asked.namespace, &asked.path)?;
    api.shared.forget(&trigger.name).await?;
    answer::ok(&trigger.view(&[]))
}

pub(super) async fn fire<R: Runner>(
    State(api): State<ApiState<R>>,
    Own(asked): Own,
    body: Body,
) -> Answer {
    let shared = &api.shared;
    let trigger: Arc<Trigger> = shared.one(&asked.namespace, &asked.path)?;
    asked.caller.admit_fire()?;
    let payload = body::read(body, shared.settings.largest_parameters).await?;
    let payload = parameters::merge(&[], payload)?;
    let rules = shared.entities.rules_of(&trigger.name);
    if !rules.iter().any(|rule| rule.is_active) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    shared.fire(&asked.caller, &trigger, &rules, payload).await
}

impl<R: Runner> Shared<R> {
    async fn fire(
        self: &Arc<Self>,
        caller: &Arc<Caller>,
        trigger: &Trigger,
        rules: &[Arc<Rule>],
        payload: Bytes,
    ) -> Result<Response, Refusal> {
        let arrived = Arrival::now();
        let parameters = parameters::merge(&[&trigger.parameters], payload.clone())?;
        let mut calls = Vec::new();
        let mut log = Vec::new();
        for rule in rules {
            let (line, call) = self.follow(caller, rule, &parameters, arrived);
            log.push(line);
            calls.extend(call);
        }
        let mut annotations = Annotations::new();
        annotations.text("path", &trigger.name.joined());
        let draft = Draft {
            id: self.ids.next(arrived.wall),
            namespace: caller.namespace(),
            name: &trigger.name,
            version: trigger.version,
            cause: None,
            start: millis(arrived.wall),
            duration: Duration::ZERO,
            status: 0,
            result: &payload,
            logs: &log,
            annotations: &annotations,
        };
        let record = draft.to_record(&draft.write());
        let id = draft.id;
        self.accept(calls, vec![record]).await?;
        Ok(answer::accepted(id))
    }

    /// What a rule does when its trigger fires: a line for the trigger's record, and a call if there is one to make.
    fn follow(
        &self,
        caller: &Arc<Caller>,
        rule: &Rule,
        parameters: &Bytes,
        arrived: Arrival,
    ) -> (String, Option<Invocation>) {
        let (name, action) = (rule.name.joined(), rule.action.joined());
        let failed = |status: u8, error: String| {
            let line = json!({
                "statusCode": status, "success": false, "rule": name, "error": error, "action": action,
            });
            (line.to_string(), None)
        };
        if !rule.is_active {
            return failed(
                1,
                format!("Rule '{name}' is inactive, action '{action}' was not activated."),
            );
        }
        let call = self
            .callable(caller, rule.action.namespace(), rule.action.path())
            .and_then(|target| self.prepare(caller, target, parameters.clone(), arrived));
        match call {
            Err(refusal) => {
                failed(if refusal.is_ours() { 3 } else { 1 }, refusal.message().to_owned())
            }
            Ok(call) => {
                let line = json!({
                    "statusCode": 0, "success": true, "activationId": call.id, "rule": name, "action": action,
                });
                (line.to_string(), Some(call))
            }
        }
    }
}
