//! What an answer of a runtime means. Bodies come from code of users: anything can be in them.

use bytes::Bytes;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::runner::Outcome;

/// What a body is, found in one pass without building it.
enum Shape {
    Object { has_error: bool },
    Array,
}

struct ShapeVisitor;

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON object or array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        let mut has_error = false;
        while let Some(key) = map.next_key::<KeyIsError>()? {
            has_error |= key.0;
            map.next_value::<IgnoredAny>()?;
        }
        Ok(Shape::Object { has_error })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Shape, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Shape::Array)
    }
}

/// A key, reduced to whether it is `error`, so that none is copied.
struct KeyIsError(bool);

impl<'de> serde::Deserialize<'de> for KeyIsError {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl Visitor<'_> for KeyVisitor {
            type Value = KeyIsError;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a key")
            }
            fn visit_str<E>(self, key: &str) -> Result<KeyIsError, E> {
                Ok(KeyIsError(key == "error"))
            }
        }
        from.deserialize_str(KeyVisitor)
    }
}

fn shape(body: &[u8]) -> Option<Shape> {
    // Values are skipped without looking into their strings, so that these are checked here.
    std::str::from_utf8(body).ok()?;
    let mut reader = serde_json::Deserializer::from_slice(body);
    let shape = reader.deserialize_any(ShapeVisitor).ok()?;
    reader.end().ok()?;
    Some(shape)
}

fn error_of(body: &[u8]) -> Option<Box<RawValue>> {
    #[derive(serde::Deserialize)]
    struct WithError {
        error: Box<RawValue>,
    }
    serde_json::from_slice::<WithError>(body).ok().map(|body| body.error)
}

pub(crate) fn outcome(status: u16, body: Bytes) -> Outcome {
    match (status, shape(&body)) {
        (200, Some(Shape::Object { has_error: true })) => {
            let error =
                error_of(&body).map_or_else(|| "null".to_owned(), |raw| raw.get().to_owned());
            Outcome::ApplicationError(format!("{{\"error\":{error}}}").into())
        }
        (200, Some(_)) => Outcome::Success(body),
        _ => failure("The action did not produce a valid JSON response", &body),
    }
}

pub(crate) fn failed_init(body: &[u8]) -> Outcome {
    failure("The action failed during initialization", body)
}

/// The error the runtime names, or `sentence` with what it sent instead.
fn failure(sentence: &str, body: &[u8]) -> Outcome {
    if let Some(error) = error_of(body)
        && let Ok(error) = serde_json::from_str::<Value>(error.get())
    {
        return Outcome::DeveloperError(error);
    }
    let shown: String = String::from_utf8_lossy(body).chars().take(2048).collect();
    let message =
        if shown.is_empty() { format!("{sentence}.") } else { format!("{sentence}: {shown}") };
    Outcome::DeveloperError(message.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(status: u16, body: &'static str) -> Outcome {
        Outcome::of_run(status, Bytes::from_static(body.as_bytes()))
    }

    #[test]
    fn each_answer_is_in_its_class() {
        assert_eq!(run(200, r#"{"a":[1]}"#), Outcome::Success(r#"{"a":[1]}"#.into()));
        assert_eq!(run(200, "[1]").status_code(), 0);
        assert_eq!(
            run(200, r#"{"a":1,"error":{"why":"x"}}"#),
            Outcome::ApplicationError(r#"{"error":{"why":"x"}}"#.into())
        );
        assert_eq!(run(502, r#"{"error":"boom"}"#), Outcome::DeveloperError("boom".into()));
        for (status, body) in [(200, ""), (200, "3"), (200, "{"), (200, "{}x"), (500, "{}")] {
            assert_eq!(run(status, body).status_code(), 2, "{status} {body}");
        }
    }
}
