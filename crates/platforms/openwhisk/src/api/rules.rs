//! Rules: which action follows which trigger.

use std::sync::Arc;
use std::time::SystemTime;

use axum::body::Body;
use axum::extract::State;
use serde::Deserialize;
use serde_json::Value;

use super::answer::{self, Answer, Refusal};
use super::asked::Own;
use super::body;
use super::collection::{Put, kept};
use super::{ApiState, Shared, millis};
use crate::entity::{Entity, Rule};
use crate::key_values::KeyValues;
use crate::name::{EntityName, FullName};
use crate::runner::Runner;
use crate::version::Version;

/// The longest body of a rule: it holds two names.
const LONGEST: usize = 64 << 10;

#[derive(Debug, Default, Deserialize)]
struct WrittenRule {
    version: Option<Version>,
    publish: Option<bool>,
    annotations: Option<KeyValues>,
    trigger: Option<Value>,
    action: Option<Value>,
    status: Option<String>,
}

pub(super) async fn read<R: Runner>(State(api): State<ApiState<R>>, Own(asked): Own) -> Answer {
    let rule: Arc<Rule> = api.shared.one(&asked.namespace, &asked.path)?;
    answer::ok(&rule.view())
}

pub(super) async fn write<R: Runner>(
    State(api): State<ApiState<R>>,
    Own(asked): Own,
    body: Body,
) -> Answer {
    let shared = &api.shared;
    let put: Put<'_, WrittenRule, Rule> = shared.put(&asked, body, LONGEST).await?;
    let rule = put.written.over(put.old.as_deref(), put.name)?;
    if shared.entities.trigger(&rule.trigger).is_none() {
        return Err(missing("trigger", &rule.trigger));
    }
    if shared.entities.target(rule.action.namespace(), rule.action.path()).is_none() {
        return Err(missing("action", &rule.action));
    }
    shared.keep_rule(rule).await
}

fn missing(what: &str, name: &FullName) -> Refusal {
    Refusal::bad_request(format!("The {what} {name} of the rule does not exist."))
}

impl WrittenRule {
    fn over(self, old: Option<&Rule>, name: FullName) -> Result<Rule, Refusal> {
        let Self { version, publish, annotations, trigger, action, status } = self;
        let named =
            |written: Option<Value>, old: Option<&FullName>, what: &str| match (written, old) {
                (Some(written), _) => entity_name(&written, name.namespace()),
                (None, Some(old)) => Ok(old.clone()),
                (None, None) => Err(Refusal::bad_request(format!("The rule has no {what}."))),
            };
        let trigger = named(trigger, old.map(|old| &old.trigger), "trigger")?;
        let action = named(action, old.map(|old| &old.action), "action")?;
        let is_active = match status {
            Some(status) => is_active(&status)?,
            None => old.is_none_or(|old| old.is_active),
        };
        Ok(Rule {
            version: Version::of_written(version, old.map(|old| old.version)),
            publish: kept(publish, old.map(|old| &old.publish)),
            annotations: kept(annotations, old.map(|old| &old.annotations)),
            trigger,
            action,
            is_active,
            updated: millis(SystemTime::now()),
            name,
        })
    }
}

/// `"/ns/name"`, or `{"path": "ns", "name": "name"}` as rules are shown.
fn entity_name(written: &Value, own: &EntityName) -> Result<FullName, Refusal> {
    match (written.as_str(), written["path"].as_str(), written["name"].as_str()) {
        (Some(text), _, _) => Ok(FullName::parse(text, own)?),
        (None, Some(path), Some(name)) => Ok(FullName::parse(&format!("/{path}/{name}"), own)?),
        _ => Err(Refusal::bad_request("A rule names its trigger and its action as texts.")),
    }
}

fn is_active(status: &str) -> Result<bool, Refusal> {
    match status {
        "active" => Ok(true),
        "inactive" => Ok(false),
        _ => Err(Refusal::bad_request("The status of a rule is active or inactive.")),
    }
}

pub(super) async fn remove<R: Runner>(State(api): State<ApiState<R>>, Own(asked): Own) -> Answer {
    let _change = api.shared.changes.lock().await;
    let rule: Arc<Rule> = api.shared.one(&asked.namespace, &asked.path)?;
    api.shared.forget(&rule.name).await?;
    answer::ok(&rule.view())
}

/// `{"status": "active"}` or `inactive`.
pub(super) async fn set_status<R: Runner>(
    State(api): State<ApiState<R>>,
    Own(asked): Own,
    body: Body,
) -> Answer {
    #[derive(Deserialize)]
    struct WrittenStatus {
        status: String,
    }
    let written: WrittenStatus = body::read_json(body, LONGEST).await?;
    let is_active = is_active(&written.status)?;
    let _change = api.shared.changes.lock().await;
    let old: Arc<Rule> = api.shared.one(&asked.namespace, &asked.path)?;
    api.shared.keep_rule(Rule { is_active, ..Rule::clone(&old) }).await
}

impl<R: Runner> Shared<R> {
    async fn keep_rule(&self, rule: Rule) -> Answer {
        let rule = Arc::new(rule);
        self.keep(Entity::Rule(Arc::clone(&rule))).await?;
        answer::ok(&rule.view())
    }
}
