//! What the platform is and allows.

use std::collections::BTreeMap;

use axum::extract::State;
use http::HeaderMap;
use serde_json::{Value, json};

use super::ApiState;
use super::answer::{self, Answer};
use super::asked::Own;
use super::collection::Collection;
use crate::action::Action;
use crate::entities::Entities;
use crate::entity::{Package, Rule, Trigger};
use crate::name::EntityName;
use crate::runner::Runner;
use crate::settings::{ApiSettings, Throttle};

/// What stands for "no limit" in answers: the largest number that every client can read.
const UNLIMITED: u32 = i32::MAX as u32;

pub(super) async fn ping() -> &'static str {
    "pong"
}

/// One machine is one invoker.
pub(super) async fn invokers() -> axum::Json<Value> {
    axum::Json(json!({ "invoker0": "up" }))
}

pub(super) async fn describe<R: Runner>(State(api): State<ApiState<R>>) -> Answer {
    let settings = &api.shared.settings;
    let mut runtimes: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for kind in &settings.kinds {
        let runtime = json!({
            "kind": kind.name, "default": kind.is_default, "deprecated": false, "attached": true,
            "requireMain": false, "image": "",
        });
        runtimes.entry(kind.family()).or_default().push(runtime);
    }
    let Throttle { invocations_per_minute, concurrent_invocations, fires_per_minute } =
        settings.throttle;
    answer::ok(&json!({
        "description": "OpenWhisk API",
        "api_paths": ["/api/v1"],
        "api_version": "1.0.0",
        "build": concat!("windfall ", env!("CARGO_PKG_VERSION")),
        "support": {},
        "runtimes": runtimes,
        "limits": {
            "actions_per_minute": invocations_per_minute.unwrap_or(UNLIMITED),
            "concurrent_actions": concurrent_invocations.unwrap_or(UNLIMITED),
            "triggers_per_minute": fires_per_minute.unwrap_or(UNLIMITED),
            "sequence_length": settings.bounds.longest_sequence,
            "min_action_duration": settings.bounds.shortest_timeout.as_millis() as u64,
            "max_action_duration": settings.bounds.longest_timeout.as_millis() as u64,
            "min_action_memory": u64::from(settings.bounds.smallest_memory) << 20,
            "max_action_memory": u64::from(settings.bounds.largest_memory) << 20,
            "min_action_logs": 0,
            "max_action_logs": u64::from(settings.bounds.longest_log) << 20,
        },
    }))
}

pub(super) async fn namespaces<R: Runner>(
    State(api): State<ApiState<R>>,
    headers: HeaderMap,
) -> Answer {
    let caller = api.shared.callers.of(&headers)?;
    answer::ok(&json!([caller.namespace()]))
}

/// Everything in a namespace.
pub(super) async fn namespace<R: Runner>(
    State(api): State<ApiState<R>>,
    Own(asked): Own,
) -> Answer {
    let all = &api.shared.entities;
    let own = &asked.namespace;
    answer::ok(&json!({
        "actions": in_list::<Action>(all, own),
        "packages": in_list::<Package>(all, own),
        "triggers": in_list::<Trigger>(all, own),
        "rules": in_list::<Rule>(all, own),
    }))
}

fn in_list<C: Collection>(all: &Entities, own: &EntityName) -> Vec<Value> {
    all.list(own, |entity| C::pick(entity).map(|one| one.in_list()))
}

pub(super) async fn limits<R: Runner>(State(api): State<ApiState<R>>, Own(_): Own) -> Answer {
    answer::ok(&limits_of(&api.shared.settings))
}

fn limits_of(settings: &ApiSettings) -> Value {
    let ApiSettings { bounds, throttle, kinds, .. } = settings;
    let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
    json!({
        "invocationsPerMinute": throttle.invocations_per_minute.unwrap_or(UNLIMITED),
        "concurrentInvocations": throttle.concurrent_invocations.unwrap_or(UNLIMITED),
        "firesPerMinute": throttle.fires_per_minute.unwrap_or(UNLIMITED),
        "allowedKinds": kinds,
        "storeActivations": true,
        "minActionMemory": bounds.smallest_memory,
        "maxActionMemory": bounds.largest_memory,
        "minActionLogs": 0,
        "maxActionLogs": bounds.longest_log,
        "minActionTimeout": bounds.shortest_timeout.as_millis() as u64,
        "maxActionTimeout": bounds.longest_timeout.as_millis() as u64,
        "minActionConcurrency": 1,
        "maxActionConcurrency": bounds.most_concurrency,
        "maxActionInstances": bounds.most_instances,
        "maxParameterSize": settings.largest_parameters,
    })
}
