//! Single calls on request: an earlier one again, or a new one, at any size. They pass the API by, so they have no
//! activation record, and they are not counted among the function's calls.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use serde_json::{Map, Value};
use windfall_core::{Allocation, CallId};
use windfall_openwhisk::{Action, ActivationIds, Arrival, Call, EntityName, Identity, Key, Ran};

use super::{Gateway, ran_of};

/// Calls that can be run again, and the bytes of their parameters, at most.
const MOST_CALLS: usize = 8192;
const MOST_BYTES: usize = 16 << 20;

/// A call that someone asks for.
#[derive(Clone, Debug, Default)]
pub struct OnRequest {
    /// The function: `hello`, `package/hello` or `/namespace/hello`.
    pub function: String,
    /// The earlier call whose parameters are used again.
    pub replay: Option<CallId>,
    /// The size to run at; the user's own if nothing is given.
    pub size: Option<Allocation>,
    /// Parameters on top of those that the action is bound to; not used for a replay.
    pub parameters: Option<Value>,
}

/// Why a call on request did not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Fatal: no such function.
    #[error("there is no function `{0}`")]
    UnknownFunction(String),
    /// Fatal: the earlier call is forgotten, or was one of another function.
    #[error("call {0} is not remembered")]
    UnknownCall(u64),
    /// Fatal: parameters that are no object.
    #[error("parameters are not a JSON object")]
    Parameters,
    /// Fatal: the system has no random numbers.
    #[error("no random numbers for an activation id: {0}")]
    NoId(String),
}

/// The last calls with what they were given.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    calls: VecDeque<(CallId, Arc<Action>, Bytes)>,
    bytes: usize,
}

impl Remembered {
    pub(super) fn take_in(&mut self, id: CallId, call: &Call) {
        self.bytes += call.parameters.len();
        self.calls.push_back((id, Arc::clone(&call.action), call.parameters.clone()));
        while self.calls.len() > MOST_CALLS || self.bytes > MOST_BYTES {
            let Some((_, _, oldest)) = self.calls.pop_front() else { break };
            self.bytes -= oldest.len();
        }
    }

    fn find(&self, id: CallId, action: &Action) -> Option<Bytes> {
        // Calls are numbered before they are remembered, so neighbours may have changed places.
        let found = self.calls.iter().rev().find(|(known, _, _)| *known == id);
        found.filter(|(_, of, _)| of.name == action.name).map(|(_, _, given)| given.clone())
    }
}

impl Gateway {
    /// Runs one call on request and waits for its end.
    pub async fn on_request(&self, request: &OnRequest) -> Result<Ran, RequestError> {
        let unknown = || RequestError::UnknownFunction(request.function.clone());
        let deployed = {
            let functions = self.functions.read().unwrap_or_else(PoisonError::into_inner);
            let named = functions.iter().find(|(name, _)| {
                let full = name.joined();
                name.path() == request.function || full == request.function
            });
            named.map(|(_, deployed)| deployed.clone()).ok_or_else(unknown)?
        };
        let action = Arc::clone(&deployed.action);
        let parameters = match request.replay {
            Some(id) => (self.remembered.lock().unwrap_or_else(PoisonError::into_inner))
                .find(id, &action)
                .ok_or(RequestError::UnknownCall(id.0))?,
            None => merged(&action, request.parameters.as_ref())?,
        };
        let no_id = |error: &dyn std::fmt::Display| RequestError::NoId(error.to_string());
        let arrived = Arrival::now();
        let ids = ActivationIds::new().map_err(|error| no_id(&error))?;
        let namespace: EntityName = action.name.namespace().clone();
        let key = Key::generate().map_err(|error| no_id(&error))?;
        let size = request.size.or_else(|| {
            deployed.callable.as_ref().ok().map(|callable| callable.spec.settings.reservation)
        });
        let call = Call {
            activation: ids.next(arrived.wall),
            parameters,
            arrived,
            deadline: Instant::now() + action.limits.timeout,
            action,
            // A key that opens nothing: what runs on request cannot call the API in the user's name.
            caller: Arc::new(Identity { namespace, key }),
        };
        let (outcome, progress) = self.carry_out(&call, &deployed, size).await;
        Ok(ran_of(outcome, progress))
    }
}

/// What an action is bound to, with `given` on top.
fn merged(action: &Action, given: Option<&Value>) -> Result<Bytes, RequestError> {
    let bound = action.parameters.iter().filter(|parameter| !parameter.init);
    let mut all: Map<String, Value> =
        bound.map(|parameter| (parameter.key.clone(), parameter.value.clone())).collect();
    match given {
        None | Some(Value::Null) => {}
        Some(Value::Object(given)) => all.extend(given.clone()),
        Some(_) => return Err(RequestError::Parameters),
    }
    Ok(Value::Object(all).to_string().into())
}
