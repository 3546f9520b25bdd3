//! Sequences: each action gets the result of the one before. The first that fails ends the sequence with its error.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::callers::Caller;
use super::invoke::{Ended, Invocation};
use super::record::{Annotations, Draft};
use super::{Shared, millis};
use crate::activation_id::ActivationId;
use crate::name::FullName;
use crate::runner::{Arrival, Runner};

/// How far a sequence has come.
struct Progress {
    status: u8,
    result: Bytes,
    duration: Duration,
    /// The activations of its parts, which are its log.
    parts: Vec<String>,
}

impl<R: Runner> Shared<R> {
    pub(super) async fn perform_sequence(
        self: Arc<Self>,
        invocation: Invocation,
        components: &[FullName],
    ) -> Ended {
        let Invocation { id, target, parameters, caller, arrived, cause, in_flight } = invocation;
        let mut progress =
            Progress { status: 0, result: parameters, duration: Duration::ZERO, parts: Vec::new() };
        for component in components {
            match self.component(component, &progress.result, &caller, id) {
                Ok(part) => {
                    let ended = Arc::clone(&self).perform_part(part).await;
                    progress.parts.push(ended.id.to_string());
                    progress.duration += ended.duration;
                    progress.status = ended.status;
                    progress.result = ended.result;
                }
                Err(why) => {
                    progress.status = 1;
                    progress.result = serde_json::json!({ "error": why }).to_string().into();
                }
            }
            if progress.status != 0 {
                break;
            }
        }
        drop(in_flight);
        let mut annotations = Annotations::of_action(&target.action, target.binding.as_ref());
        annotations.plain("topmost", cause.is_none());
        if cause.is_some() {
            annotations.text("causedBy", "sequence");
        }
        let draft = Draft {
            id,
            namespace: caller.namespace(),
            name: &target.action.name,
            version: target.action.version,
            cause,
            start: millis(arrived.wall),
            duration: progress.duration,
            status: progress.status,
            result: &progress.result,
            logs: &progress.parts,
            annotations: &annotations,
        };
        self.finish(&draft).await
    }

    /// The next part, or why there is none.
    fn component(
        &self,
        name: &FullName,
        result: &Bytes,
        caller: &Arc<Caller>,
        cause: ActivationId,
    ) -> Result<Invocation, String> {
        let target = self
            .callable(caller, name.namespace(), name.path())
            .map_err(|_| "Sequence component does not exist.".to_owned())?;
        let parameters = target.merge(result.clone()).map_err(|why| why.to_string())?;
        let arrived = Arrival::now();
        Ok(Invocation {
            id: self.ids.next(arrived.wall),
            target,
            parameters,
            caller: Arc::clone(caller),
            arrived,
            cause: Some(cause),
            in_flight: None,
        })
    }

    /// [`Shared::perform`] with a type that can contain itself: a part may be a sequence.
    fn perform_part(
        self: Arc<Self>,
        part: Invocation,
    ) -> Pin<Box<dyn Future<Output = Ended> + Send>> {
        Box::pin(self.perform(part))
    }
}
