//! Parameters and annotations: lists of `{"key": ..., "value": ...}`, in the order they were written.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One parameter or annotation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyValue {
    /// Its name.
    pub key: String,
    /// Any JSON.
    #[serde(default)]
    pub value: Value,
    /// Whether a parameter goes into the environment at `/init` and not into every call.
    #[serde(default, skip_serializing_if = "is_false")]
    pub init: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(value: &bool) -> bool {
    !value
}

/// A list in which each key stands once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<KeyValue>", into = "Vec<KeyValue>")]
pub struct KeyValues(Vec<KeyValue>);

impl KeyValues {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &KeyValue> {
        self.0.iter()
    }

    /// The value of a key.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Whether a key stands for "yes": `true`, or any text, number or object, but not `false`, `null` or absent.
    pub fn is_set(&self, key: &str) -> bool {
        self.value(key).is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)))
    }

    /// Sets a key, in its place if it is there, else at the end.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<Value>) {
        self.put(KeyValue { key: key.into(), value: value.into(), init: false });
    }

    fn put(&mut self, entry: KeyValue) {
        match self.0.iter_mut().find(|old| old.key == entry.key) {
            Some(old) => *old = entry,
            None => self.0.push(entry),
        }
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: &str) {
        self.0.retain(|entry| entry.key != key);
    }

    /// These, and on top of them `over`, which wins where both have a key.
    #[must_use]
    pub fn merged(&self, over: &Self) -> Self {
        let mut all = self.clone();
        over.0.iter().for_each(|entry| all.put(entry.clone()));
        all
    }
}

/// The last one wins where a key is written twice.
impl From<Vec<KeyValue>> for KeyValues {
    fn from(entries: Vec<KeyValue>) -> Self {
        let mut all = Self::default();
        entries.into_iter().for_each(|entry| all.put(entry));
        all
    }
}

impl From<KeyValues> for Vec<KeyValue> {
    fn from(entries: KeyValues) -> Self {
        entries.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_upper_list_wins() {
        let lower: KeyValues =
            serde_json::from_value(json!([{"key": "a", "value": 1}, {"key": "b", "value": 2}]))
                .unwrap();
        let upper: KeyValues =
            serde_json::from_value(json!([{"key": "b", "value": 3}, {"key": "b", "value": 4}]))
                .unwrap();
        let merged = lower.merged(&upper);
        assert_eq!(
            serde_json::to_value(&merged).unwrap(),
            json!([{"key": "a", "value": 1}, {"key": "b", "value": 4}])
        );
        assert!(merged.is_set("a") && !merged.is_set("c"));
    }
}
