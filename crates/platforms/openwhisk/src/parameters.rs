//! Parameters of a call: what is bound to the action and its package, and the caller's on top.
//!
//! Most calls have nothing bound. Their body is checked in one pass and passed on as the bytes it came as.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::key_values::KeyValues;

/// A body that is no JSON object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The request content was malformed: {0}")]
pub(crate) struct BadParameters(String);

/// Merges `body` over the layers below it; the later layer wins, the body wins over all. Parameters that belong to
/// `/init` are left out.
pub(crate) fn merge(layers: &[&KeyValues], body: Bytes) -> Result<Bytes, BadParameters> {
    let body = if body.trim_ascii().is_empty() { Bytes::from_static(b"{}") } else { body };
    let bound = || layers.iter().flat_map(|layer| layer.iter()).filter(|entry| !entry.init);
    if bound().next().is_none() {
        is_object(&body)?;
        return Ok(body);
    }
    let entries = entries(&body)?;
    let mut merged = KeyValues::default();
    for entry in bound() {
        if !entries.iter().any(|(key, _)| *key == entry.key) {
            merged.set(&entry.key, entry.value.clone());
        }
    }
    let mut out = Vec::with_capacity(body.len() + 64);
    out.push(b'{');
    for entry in merged.iter() {
        field(&mut out, &entry.key, entry.value.to_string().as_bytes());
    }
    for (key, value) in &entries {
        field(&mut out, key, value.get().as_bytes());
    }
    out.push(b'}');
    Ok(out.into())
}

/// Merges a body over nothing, or over one bound parameter: for the fuzz target.
#[cfg(feature = "fuzzing")]
pub fn merge_parameters(has_bound: bool, body: &[u8]) -> Option<Bytes> {
    let mut bound = KeyValues::default();
    if has_bound {
        bound.set("bound", "value");
    }
    merge(&[&bound], Bytes::copy_from_slice(body)).ok()
}

fn field(out: &mut Vec<u8>, key: &str, value: &[u8]) {
    if out.len() > 1 {
        out.push(b',');
    }
    out.extend_from_slice(serde_json::Value::from(key).to_string().as_bytes());
    out.push(b':');
    out.extend_from_slice(value);
}

fn is_object(body: &[u8]) -> Result<(), BadParameters> {
    struct OnlyObject;
    impl<'de> Visitor<'de> for OnlyObject {
        type Value = ();
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(())
        }
    }
    let bad = |why: serde_json::Error| BadParameters(why.to_string());
    // `IgnoredAny` skips strings without looking at their bytes, so that they are checked here.
    std::str::from_utf8(body).map_err(|why| BadParameters(why.to_string()))?;
    let mut reader = serde_json::Deserializer::from_slice(body);
    reader.deserialize_map(OnlyObject).map_err(bad)?;
    reader.end().map_err(bad)
}

type Entry<'a> = (Cow<'a, str>, &'a RawValue);

/// Key and unparsed value of each entry; of a key that is written twice, the last.
fn entries(body: &[u8]) -> Result<Vec<Entry<'_>>, BadParameters> {
    struct Entries;
    impl<'de> Visitor<'de> for Entries {
        type Value = Vec<Entry<'de>>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut entries: Vec<Entry<'de>> = Vec::new();
            while let Some((key, value)) = map.next_entry::<Cow<'de, str>, &'de RawValue>()? {
                entries.push((key, value));
            }
            // Sorted by key, stable: of equal keys the last one stays.
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            entries.reverse();
            entries.dedup_by(|later, earlier| later.0 == earlier.0);
            Ok(entries)
        }
    }
    let bad = |why: serde_json::Error| BadParameters(why.to_string());
    let mut reader = serde_json::Deserializer::from_slice(body);
    let entries = reader.deserialize_map(Entries).map_err(bad)?;
    reader.end().map_err(bad)?;
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn bound(value: Value) -> KeyValues {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_body_with_nothing_below_is_the_same_bytes() {
        let body = Bytes::from_static(b"  {\"a\": [1, {\"b\": \"c\"}]} ");
        let merged = merge(&[&KeyValues::default()], body.clone()).unwrap();
        assert_eq!(merged.as_ptr(), body.as_ptr());
        assert_eq!(merge(&[], Bytes::from_static(b" \n")).unwrap(), "{}");
    }

    #[test]
    fn the_body_wins_over_the_action_and_the_action_over_its_package() {
        let package = bound(
            json!([{"key": "a", "value": 1}, {"key": "b", "value": 1}, {"key": "c", "value": 1}]),
        );
        let action = bound(
            json!([{"key": "b", "value": 2}, {"key": "c", "value": 2}, {"key": "e", "value": 2, "init": true}]),
        );
        let merged =
            merge(&[&package, &action], Bytes::from_static(br#"{"c":3,"d\n":"x","c":4}"#)).unwrap();
        let merged: Value = serde_json::from_slice(&merged).unwrap();
        assert_eq!(merged, json!({"a": 1, "b": 2, "c": 4, "d\n": "x"}));
    }

    #[test]
    fn only_objects_are_parameters() {
        let some = bound(json!([{"key": "a", "value": 1}]));
        for bad in ["3", "[]", "{", "{}}", "{\"a\"}", "null", "\"x\"", "{\"a\":tru}"] {
            assert!(merge(&[], Bytes::copy_from_slice(bad.as_bytes())).is_err(), "{bad:.20}");
            assert!(merge(&[&some], Bytes::copy_from_slice(bad.as_bytes())).is_err(), "{bad:.20}");
        }
        assert!(merge(&[], Bytes::from_static(b"{\"a\":\"\xff\"}")).is_err());
        // Values are skipped without recursion: depth costs no stack.
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(merge(&[&some], deep.into()).is_ok());
    }

    proptest::proptest! {
        #[test]
        fn merging_bytes_is_merging_maps(
            below in proptest::collection::btree_map("[a-d\"\\u{e4}]{1,2}", 0..9_u8, 0..4),
            above in proptest::collection::btree_map("[a-d\"\\u{e4}]{1,2}", ".{0,4}", 0..4),
        ) {
            let mut layer = KeyValues::default();
            below.iter().for_each(|(key, value)| layer.set(key, *value));
            let body = serde_json::to_vec(&above).unwrap();
            let merged: Value = serde_json::from_slice(&merge(&[&layer], body.into()).unwrap()).unwrap();
            let mut expected = json!(below);
            for (key, value) in &above {
                expected[key] = json!(value);
            }
            proptest::prop_assert_eq!(merged, expected);
        }
    }
}
