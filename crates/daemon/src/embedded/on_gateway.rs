//! Single calls on request, in real instances.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tokio::runtime::Handle;
use windfall_core::{Allocation, CallId};
use windfall_embedded::Gateway;
use windfall_embedded::gateway::{OnRequest, RequestError};
use windfall_openwhisk::{Outcome, StartKind};

use crate::managed_platform::{Invocation, InvokeError, Invoked, Invoker};

/// Runs calls through the gateway.
pub(super) struct OnGateway {
    gateway: Arc<Gateway>,
    runtime: Handle,
    is_closed: AtomicBool,
}

impl OnGateway {
    pub(super) fn new(gateway: Arc<Gateway>, runtime: Handle) -> Self {
        Self { gateway, runtime, is_closed: AtomicBool::new(false) }
    }

    /// The platform ends: nothing is run any more.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }
}

impl Invoker for OnGateway {
    fn invoke(&self, invocation: &Invocation) -> Result<Invoked, InvokeError> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(InvokeError::Platform("it is being ended".to_owned()));
        }
        let request = OnRequest {
            function: invocation.function.clone(),
            replay: invocation.replay.map(CallId),
            size: invocation.size,
            parameters: invocation.parameters.clone(),
        };
        let ran = self.runtime.block_on(self.gateway.on_request(&request));
        let ran = ran.map_err(|error| match error {
            RequestError::UnknownFunction(name) => InvokeError::UnknownFunction(name),
            RequestError::UnknownCall(number) => InvokeError::UnknownCall(number),
            other => InvokeError::Platform(other.to_string()),
        })?;
        let (end, answer) = match &ran.outcome {
            Outcome::Success(body) => ("completed", parsed(body)),
            Outcome::ApplicationError(body) => ("failed", parsed(body)),
            Outcome::DeveloperError(why) if ran.outcome == Outcome::out_of_memory() => {
                ("out-of-memory", why.clone())
            }
            Outcome::DeveloperError(why) => ("failed", why.clone()),
            Outcome::SystemError(why) => return Err(InvokeError::Platform(why.clone())),
        };
        let granted = ran.granted.map(|size| Allocation { cpu: size.cpu, memory: size.memory });
        let cold = if ran.start_kind == StartKind::Warm { 0.0 } else { 1.0 };
        let start = ran.times.start + ran.times.init.unwrap_or_default();
        Ok(Invoked {
            function: invocation.function.clone(),
            size: granted.or(invocation.size).unwrap_or(Allocation::ZERO),
            run_ms: ran.times.run.as_secs_f64() * 1e3,
            cold_start_ms: start.as_secs_f64() * 1e3 * cold,
            own_size_ms: None,
            end: end.to_owned(),
            answer: Some(answer),
            note: "a real call; it is not counted among the function's calls".to_owned(),
        })
    }
}

fn parsed(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or(Value::Null)
}
