//! Activation records: JSON written once, for the answer and for the store.

mod annotations;

use std::io::Write;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::callers::Caller;
use super::millis;
use crate::action::Action;
use crate::activation_id::ActivationId;
use crate::name::{EntityName, FullName};
use crate::runner::{Arrival, Outcome};
use crate::store::Record;
use crate::version::Version;
pub(super) use annotations::Annotations;

/// The error of a call that was accepted and never ended.
const LOST: &str = r#"{"error":"lost in a crash: the platform stopped before the call ended"}"#;

/// Everything a record is made of.
pub(super) struct Draft<'a> {
    pub(super) id: ActivationId,
    pub(super) namespace: &'a EntityName,
    /// What was called.
    pub(super) name: &'a FullName,
    pub(super) version: Version,
    pub(super) cause: Option<ActivationId>,
    /// Milliseconds since 1970.
    pub(super) start: u64,
    pub(super) duration: Duration,
    pub(super) status: u8,
    /// JSON.
    pub(super) result: &'a [u8],
    pub(super) logs: &'a [String],
    pub(super) annotations: &'a Annotations,
}

/// A record with the place of its result, so that `result=true` needs no copy.
pub(super) struct Written {
    pub(super) json: Bytes,
    pub(super) result: Range<usize>,
}

const fn status_text(status: u8) -> &'static str {
    match status {
        0 => "success",
        1 => "application error",
        2 => "action developer error",
        _ => "whisk internal error",
    }
}

impl Draft<'_> {
    pub(super) fn write(&self) -> Written {
        let mut out = Vec::with_capacity(768 + self.result.len());
        let end = self.start + self.duration.as_millis() as u64;
        // Names and versions have no character that JSON would escape.
        let _ = write!(
            out,
            r#"{{"namespace":"{}","name":"{}","version":"{}","subject":"{}","activationId":"{}","#,
            self.namespace,
            self.name.name(),
            self.version,
            self.namespace,
            self.id,
        );
        if let Some(cause) = self.cause {
            let _ = write!(out, r#""cause":"{cause}","#);
        }
        let _ = write!(
            out,
            r#""start":{},"end":{end},"duration":{},"statusCode":{},"response":{{"status":"{}","statusCode":{},"success":{},"size":{},"result":"#,
            self.start,
            self.duration.as_millis(),
            self.status,
            status_text(self.status),
            self.status,
            self.status == 0,
            self.result.len(),
        );
        let begin = out.len();
        out.extend_from_slice(self.result);
        let result = begin..out.len();
        out.extend_from_slice(br#"},"logs":"#);
        json_into(&mut out, &self.logs);
        out.extend_from_slice(br#","annotations":["#);
        out.extend_from_slice(self.annotations.as_bytes());
        out.extend_from_slice(br#"],"publish":false}"#);
        Written { json: out.into(), result }
    }

    /// For the store.
    pub(super) fn to_record(&self, written: &Written) -> Record {
        Record {
            id: self.id,
            namespace: self.namespace.clone(),
            path: self.name.path().into(),
            start: self.start,
            status: self.status,
            json: written.json.clone(),
        }
    }
}

fn json_into(out: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(&mut *out, value)
        .expect("texts and JSON values are always written to memory");
}

/// The record that an accepted call has if it never ends.
pub(super) fn lost(
    id: ActivationId,
    action: &Action,
    caller: &Caller,
    arrived: Arrival,
    cause: Option<ActivationId>,
) -> Record {
    let annotations = Annotations::of_action(action, None);
    let draft = Draft {
        id,
        namespace: caller.namespace(),
        name: &action.name,
        version: action.version,
        cause,
        start: millis(arrived.wall),
        duration: Duration::ZERO,
        status: 3,
        result: LOST.as_bytes(),
        logs: &[],
        annotations: &annotations,
    };
    draft.to_record(&draft.write())
}

/// The result in JSON.
pub(super) fn result_of(outcome: Outcome) -> Bytes {
    match outcome {
        Outcome::Success(result) | Outcome::ApplicationError(result) => result,
        Outcome::DeveloperError(error) => json!({ "error": error }).to_string().into(),
        Outcome::SystemError(error) => json!({ "error": Value::from(error) }).to_string().into(),
    }
}
