//! Requests that change something. Each becomes an order, so that the API, the audit log and the tape agree.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use windfall_core::{Allocation, FunctionId};
use windfall_registry::PolicySettings;

use super::ApiState;
use super::answers::{Body, Part, Refused};
use crate::governance::{Hold, Mode};
use crate::managed_platform::{Invocation, InvokeError};
use crate::orders::Command;

type Api = State<Arc<ApiState>>;
type Answer = Result<Json<Value>, Refused>;

/// Gives an order from a thread that may wait.
async fn give(state: &Arc<ApiState>, command: Command) -> Answer {
    let desk = state.desk.clone();
    let answer = tokio::task::spawn_blocking(move || desk.give(command, "api")).await;
    match answer {
        Ok(Ok(done)) => Ok(Json(json!({ "done": done }))),
        Ok(Err(problem)) => Err(Refused::new(StatusCode::CONFLICT, problem)),
        Err(_) => Err(Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "the order was lost")),
    }
}

fn id_of(state: &ApiState, name: &str) -> Result<FunctionId, Refused> {
    state.live().id_of(name).ok_or_else(|| Refused::no_function(name))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModeBody {
    mode: String,
}

pub(super) async fn mode(State(state): Api, Body(body): Body<ModeBody>) -> Answer {
    let mode: Mode =
        body.mode.parse().map_err(|error: String| Refused::new(StatusCode::BAD_REQUEST, error))?;
    give(&state, Command::Mode(mode)).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KillBody {
    on: bool,
}

pub(super) async fn kill(State(state): Api, Body(body): Body<KillBody>) -> Answer {
    give(&state, Command::Kill(body.on)).await
}

/// A size with its units in the names.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SizeBody {
    cores: f64,
    mib: f64,
}

impl SizeBody {
    fn allocation(self) -> Result<Allocation, Refused> {
        let wrong = |what: &str, value: f64, allowed: &str| {
            let error = format!("{what} is {value}, allowed is {allowed}");
            Refused::new(StatusCode::BAD_REQUEST, error)
        };
        if !(0.01..=1024.0).contains(&self.cores) {
            return Err(wrong("cores", self.cores, "0.01 to 1024"));
        }
        if !(1.0..=1_048_576.0).contains(&self.mib) {
            return Err(wrong("mib", self.mib, "1 to 1048576"));
        }
        Ok(Allocation::new((self.cores * 1e3).round() as u32, self.mib.ceil() as u32))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HoldBody {
    /// Pins the size if one is given, else pauses.
    #[serde(default)]
    pin: Option<SizeBody>,
}

pub(super) async fn hold(
    State(state): Api,
    Part(name): Part,
    Body(body): Body<HoldBody>,
) -> Answer {
    let function = id_of(&state, &name)?;
    let hold = match body.pin {
        Some(size) => Hold::Pinned { size: size.allocation()? },
        None => Hold::Paused,
    };
    give(&state, Command::Hold { function, hold: Some(hold) }).await
}

pub(super) async fn resume(State(state): Api, Part(name): Part) -> Answer {
    let function = id_of(&state, &name)?;
    give(&state, Command::Hold { function, hold: None }).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ObjectiveBody {
    target_ms: Option<f64>,
}

pub(super) async fn objective(
    State(state): Api,
    Part(name): Part,
    Body(body): Body<ObjectiveBody>,
) -> Answer {
    let function = id_of(&state, &name)?;
    give(&state, Command::Objective { function, target_ms: body.target_ms }).await
}

/// Pins the function to what is recommended for it.
pub(super) async fn apply(State(state): Api, Part(name): Part) -> Answer {
    let function = id_of(&state, &name)?;
    let advice = {
        let live = state.live();
        live.functions.get(function.index()).and_then(|known| known.recommendation(live.now))
    };
    let Some(advice) = advice else {
        let error = format!("there is no recommendation for {name}: its calls are too few, or fit");
        return Err(Refused::new(StatusCode::CONFLICT, error));
    };
    let size = SizeBody { cores: advice.cores, mib: advice.mib }.allocation()?;
    give(&state, Command::Hold { function, hold: Some(Hold::Pinned { size }) }).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InvokeBody {
    #[serde(default)]
    replay: Option<u64>,
    #[serde(default)]
    size: Option<SizeBody>,
    #[serde(default)]
    parameters: Option<Value>,
}

pub(super) async fn invoke(
    State(state): Api,
    Part(name): Part,
    Body(body): Body<InvokeBody>,
) -> Answer {
    let _ = id_of(&state, &name)?;
    let size = body.size.map(SizeBody::allocation).transpose()?;
    let Some(invoker) = state.invoker.clone() else {
        let error = "this platform runs no calls on request";
        return Err(Refused::new(StatusCode::NOT_IMPLEMENTED, error));
    };
    let invocation =
        Invocation { function: name, replay: body.replay, size, parameters: body.parameters };
    let ran = tokio::task::spawn_blocking(move || invoker.invoke(&invocation)).await;
    match ran {
        Ok(Ok(invoked)) => Ok(Json(serde_json::to_value(invoked).unwrap_or_default())),
        Ok(Err(error)) => {
            let status = match error {
                InvokeError::UnknownFunction(_) | InvokeError::UnknownCall(_) => {
                    StatusCode::NOT_FOUND
                }
                InvokeError::Platform(_) => StatusCode::CONFLICT,
            };
            Err(Refused::new(status, error.to_string()))
        }
        Err(_) => Err(Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "the call was lost")),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyBody {
    name: String,
    /// Settings of the policy as TOML.
    #[serde(default)]
    settings: String,
    #[serde(default)]
    force: bool,
}

pub(super) async fn policy(State(state): Api, Body(body): Body<PolicyBody>) -> Answer {
    let PolicyBody { name, settings, force } = body;
    let table: toml::Table = settings.parse().map_err(|problem| {
        Refused::new(StatusCode::BAD_REQUEST, format!("settings are not TOML: {problem}"))
    })?;
    let mut by_policy = PolicySettings::new();
    if !table.is_empty() {
        by_policy.insert(name.clone(), table);
    }
    let order = Command::Policy { name, settings: by_policy, force, origin: "user" };
    give(&state, order).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShadowBody {
    name: Option<String>,
}

pub(super) async fn shadow(State(state): Api, Body(body): Body<ShadowBody>) -> Answer {
    give(&state, Command::Shadow(body.name)).await
}

/// Puts the version before the one in charge back.
pub(super) async fn rollback(State(state): Api) -> Answer {
    give(&state, Command::RollBack).await
}
