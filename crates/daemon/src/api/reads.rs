//! Requests that read.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use windfall_core::FunctionId;
use windfall_registry::REGISTRY;

use super::ApiState;
use super::answers::{Part, Refused};
use super::views::{detail, money, row};
use crate::health::State as HealthState;
use crate::live::{FunctionLive, TapeEntry, TapeKind};

type Api = State<Arc<ApiState>>;
type Answer = Result<Json<Value>, Refused>;

fn asked<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, Refused> {
    query.map(|Query(query)| query).map_err(|problem| {
        Refused::new(StatusCode::BAD_REQUEST, format!("the query: {}", problem.body_text()))
    })
}

/// The state of everything in one object.
pub(super) fn status_of(state: &ApiState) -> Value {
    let live = state.live();
    let now = state.clock.now();
    let totals = &live.totals;
    let health = live.health.report(now, state.settings.tick);
    let nodes = &live.nodes;
    json!({
        "platform": state.kind.word(),
        "platform_explained": state.kind.explained(),
        "version": env!("CARGO_PKG_VERSION"),
        "mode": state.governance.mode().to_string(),
        "killed": state.governance.is_killed(),
        "policy": live.policy,
        "shadow": live.shadow,
        "now": now.as_secs_f64(),
        "seen_now": live.now.as_secs_f64(),
        "began_unix_ms": state.clock.began_unix_ms(),
        "tick_seconds": state.settings.tick.as_secs_f64(),
        "health": health.state,
        "functions": live.functions.len(),
        "nodes": nodes.len(),
        "capacity_cores": nodes.iter().map(|node| node.capacity_cores).sum::<f64>(),
        "totals": totals,
        "objective_met_share": totals.met_share(),
        "core_seconds_saved": totals.core_seconds_saved(),
        "p50_ms": live.latency.quantile(0.5).map(|seconds| seconds * 1e3),
        "p99_ms": live.latency.quantile(0.99).map(|seconds| seconds * 1e3),
        "price_per_core_hour": state.settings.price_per_core_hour,
        "currency": state.settings.currency,
        "money_reserved": money(state, totals.core_seconds_reserved),
        "money_held": money(state, totals.core_seconds_held),
        "money_saved": money(state, totals.core_seconds_saved()),
        "database": state.database.as_ref().map(|file| file.display().to_string()),
        "point": live.history.back(),
        "tape_last": live.tape.last(),
    })
}

pub(super) async fn status(State(state): Api) -> Json<Value> {
    Json(status_of(&state))
}

pub(super) async fn cluster(State(state): Api) -> Json<Value> {
    let live = state.live();
    Json(json!({
        "now": live.now.as_secs_f64(),
        "price_per_core_hour": state.settings.price_per_core_hour,
        "currency": state.settings.currency,
        "nodes": live.nodes,
        "history": live.history,
        "trips_by_rule": live.totals.trips_by_rule,
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FunctionsQuery {
    #[serde(default)]
    search: String,
    #[serde(default)]
    sort: Option<String>,
    #[serde(default)]
    limit: Option<usize>,
    #[serde(default)]
    offset: Option<usize>,
}

/// Orders of the list, by the name in the query; the largest or worst first.
const SORTS: [&str; 6] = ["calls", "name", "slo", "saved", "p99", "trips"];

pub(super) async fn functions(
    State(state): Api,
    query: Result<Query<FunctionsQuery>, QueryRejection>,
) -> Answer {
    let query = asked(query)?;
    let sort = query.sort.as_deref().unwrap_or("calls");
    if !SORTS.contains(&sort) {
        let error = format!("sort is `{sort}`, allowed is {}", SORTS.join(", "));
        return Err(Refused::new(StatusCode::BAD_REQUEST, error));
    }
    let live = state.live();
    let search = query.search.to_lowercase();
    let found = (0u32..).map(FunctionId).zip(&live.functions);
    let mut found: Vec<(FunctionId, &FunctionLive)> = found
        .filter(|(_, function)| {
            search.is_empty() || function.profile.name.to_lowercase().contains(&search)
        })
        .collect();
    let now = live.now;
    let key = |function: &FunctionLive| match sort {
        "saved" => function.core_seconds[1] - function.core_seconds[0],
        "p99" => -function.latency_ms(0.99).unwrap_or(-1.0),
        "slo" => f64::from(function.slo_state(now) as u8),
        "trips" => -(function.trips as f64),
        _ => -(function.calls as f64),
    };
    if sort == "name" {
        found.sort_by(|(_, a), (_, b)| a.profile.name.cmp(&b.profile.name));
    } else {
        found.sort_by_cached_key(|(id, function)| (OrderedKey(key(function)), *id));
    }
    let count = found.len();
    let page = found.into_iter().skip(query.offset.unwrap_or(0)).take(query.limit.unwrap_or(500));
    let rows: Vec<Value> = page.map(|(id, function)| row(&state, &live, id, function)).collect();
    Ok(Json(json!({ "count": count, "now": live.now.as_secs_f64(), "functions": rows })))
}

/// A number that can be sorted.
#[derive(PartialEq)]
struct OrderedKey(f64);

impl Eq for OrderedKey {}

impl PartialOrd for OrderedKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OrderedKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

pub(super) async fn function(State(state): Api, Part(name): Part) -> Answer {
    let live = state.live();
    let id = live.id_of(&name).ok_or_else(|| Refused::no_function(&name))?;
    Ok(Json(detail(&state, &live, id, &live.functions[id.index()])))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DecisionsQuery {
    #[serde(default)]
    function: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    trips: Option<bool>,
    /// Only entries with a larger number.
    #[serde(default)]
    after: Option<u64>,
    /// Only entries up to this time, seconds since the start.
    #[serde(default)]
    until: Option<f64>,
    #[serde(default)]
    limit: Option<usize>,
}

/// Entries in one answer at most.
const MOST_ENTRIES: usize = 1000;

pub(super) async fn decisions(
    State(state): Api,
    query: Result<Query<DecisionsQuery>, QueryRejection>,
) -> Answer {
    let query = asked(query)?;
    let live = state.live();
    let function = match &query.function {
        Some(name) => Some(live.id_of(name).ok_or_else(|| Refused::no_function(name))?.0),
        None => None,
    };
    let kind = query.kind.as_deref().map(kind_of).transpose()?;
    let limit = query.limit.unwrap_or(100).min(MOST_ENTRIES);
    let matches = |entry: &&TapeEntry| {
        function.is_none_or(|function| entry.function == Some(function))
            && kind.is_none_or(|kind| entry.kind == kind)
            && (!query.trips.unwrap_or(false) || entry.trip)
            && query.after.is_none_or(|after| entry.id > after)
            && query.until.is_none_or(|until| entry.at <= until)
    };
    let name = |id: u32| live.functions.get(id as usize).map(|one| one.profile.name.as_str());
    let shown = |entry: &TapeEntry| {
        let mut value = serde_json::to_value(entry).unwrap_or_default();
        value["name"] = entry.function.and_then(name).into();
        value
    };
    let entries: Vec<Value> =
        live.tape.entries().rev().filter(matches).take(limit).map(shown).collect();
    Ok(Json(json!({ "last": live.tape.last(), "now": live.now.as_secs_f64(), "entries": entries })))
}

fn kind_of(word: &str) -> Result<TapeKind, Refused> {
    match word {
        "call" => Ok(TapeKind::Call),
        "tick" => Ok(TapeKind::Tick),
        "order" => Ok(TapeKind::Order),
        "policy" => Ok(TapeKind::Policy),
        "manager" => Ok(TapeKind::Supervisor),
        _ => {
            let error = format!("kind is `{word}`, allowed is call, tick, order, policy, manager");
            Err(Refused::new(StatusCode::BAD_REQUEST, error))
        }
    }
}

/// One decision with an explanation in sentences.
pub(super) async fn decision(State(state): Api, Part(id): Part) -> Answer {
    let live = state.live();
    let entry = id.parse().ok().and_then(|id: u64| live.tape.entry(id)).ok_or_else(|| {
        let error = format!("decision `{id}` is not kept in memory; `windfall db export` has more");
        Refused::new(StatusCode::NOT_FOUND, error)
    })?;
    let name = entry.function.and_then(|id| live.functions.get(id as usize));
    let name = name.map(|function| function.profile.name.as_str());
    let mut story = Vec::new();
    for (what, text) in [("Seen", &entry.seen), ("Decided", &entry.decided)] {
        if !text.is_empty() {
            story.push(format!("{what}: {text}."));
        }
    }
    for amendment in &entry.amended {
        story.push(format!(
            "The rule {} changed {}: {}.",
            amendment.rule, amendment.resource, amendment.reason
        ));
    }
    for (what, text) in [("Done", &entry.done), ("Outcome", &entry.outcome)] {
        if !text.is_empty() {
            story.push(format!("{what}: {text}."));
        }
    }
    let mut value = serde_json::to_value(entry).unwrap_or_default();
    value["name"] = name.into();
    value["explanation"] = story.join(" ").into();
    Ok(Json(value))
}

pub(super) async fn recommendations(State(state): Api) -> Json<Value> {
    let live = state.live();
    let mut rows: Vec<(f64, Value)> = (0u32..)
        .map(FunctionId)
        .zip(&live.functions)
        .filter_map(|(id, function)| {
            let advice = function.recommendation(live.now)?;
            let own = function.profile.reservation;
            let saved = advice.saved_core_seconds_per_hour;
            let value = json!({
                "name": function.profile.name,
                "reserved_cores": own.cpu.cores(),
                "reserved_mib": own.memory.mib(),
                "recommendation": advice,
                "saved_money_per_hour": money(&state, saved),
                "standing": super::views::standing(&state, id),
                "slo": function.slo_state(live.now),
                "calls": function.calls,
            });
            Some((saved, value))
        })
        .collect();
    rows.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let rows: Vec<Value> = rows.into_iter().map(|(_, value)| value).collect();
    Json(json!({ "now": live.now.as_secs_f64(), "recommendations": rows }))
}

pub(super) async fn policies() -> Json<Value> {
    let policies = REGISTRY.iter().map(|entry| {
        json!({
            "name": entry.name,
            "summary": entry.summary,
            "needs_future": entry.foresight,
            "sizes_calls": entry.sizes_calls,
        })
    });
    Json(json!({ "policies": policies.collect::<Vec<_>>() }))
}

pub(super) async fn learning(State(state): Api) -> Json<Value> {
    let live = state.live();
    let mut value = serde_json::to_value(&live.learning).unwrap_or_default();
    value["now"] = live.now.as_secs_f64().into();
    Json(value)
}

pub(super) async fn health(State(state): Api) -> Response {
    let report = state.live().health.report(state.clock.now(), state.settings.tick);
    let status = match report.state {
        HealthState::Ok | HealthState::Degraded => StatusCode::OK,
        HealthState::Failing => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, Json(report)).into_response()
}
