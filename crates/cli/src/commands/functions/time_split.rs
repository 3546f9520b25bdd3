//! Where the time of a call went, as its record says.

use serde_json::{Value, json};

/// The parts of a call in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TimeSplit {
    /// `cold`, `prewarmed` or `warm`.
    pub(super) start_kind: String,
    pub(super) wait: f64,
    pub(super) start: f64,
    /// Nothing if the function was initialised already.
    pub(super) init: Option<f64>,
    pub(super) run: f64,
}

impl TimeSplit {
    /// Windfall's own annotation has microseconds and all four parts; of another platform's record we take OpenWhisk's.
    pub(super) fn read(record: &Value) -> Self {
        let ours = annotation(record, "windfall");
        if ours.is_object() {
            let part = |key: &str| ours[key].as_f64();
            return Self {
                start_kind: ours["start_kind"].as_str().unwrap_or("unknown").to_owned(),
                wait: part("wait_ms").unwrap_or_default(),
                start: part("start_ms").unwrap_or_default(),
                init: part("init_ms"),
                run: part("run_ms").unwrap_or_default(),
            };
        }
        let init = annotation(record, "initTime").as_f64();
        let duration = record["duration"].as_f64().unwrap_or_default();
        Self {
            start_kind: if init.is_some() { "cold" } else { "warm" }.to_owned(),
            wait: annotation(record, "waitTime").as_f64().unwrap_or_default(),
            start: 0.0,
            init,
            run: duration - init.unwrap_or_default(),
        }
    }

    /// One line: `cold: waiting 0.1 + start 5.2 + init 1.3 + run 5.6 ms`.
    pub(super) fn line(&self) -> String {
        let mut parts = vec![format!("waiting {:.1}", self.wait)];
        if self.start > 0.0 {
            parts.push(format!("start {:.1}", self.start));
        }
        if let Some(init) = self.init {
            parts.push(format!("init {init:.1}"));
        }
        parts.push(format!("run {:.1}", self.run));
        format!("{}: {} ms", self.start_kind, parts.join(" + "))
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "start_kind": self.start_kind, "wait_ms": self.wait, "start_ms": self.start,
            "init_ms": self.init, "run_ms": self.run,
        })
    }
}

/// The value of an annotation, or null.
pub(super) fn annotation<'a>(record: &'a Value, key: &str) -> &'a Value {
    let list = record["annotations"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().find(|entry| entry["key"] == key).map_or(&Value::Null, |entry| &entry["value"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_records_are_read() {
        let ours = json!({"annotations": [{"key": "windfall", "value": {
            "start_kind": "cold", "wait_ms": 0.1, "start_ms": 5.2, "init_ms": 1.3, "run_ms": 5.6}}]});
        assert_eq!(
            TimeSplit::read(&ours).line(),
            "cold: waiting 0.1 + start 5.2 + init 1.3 + run 5.6 ms"
        );
        let theirs = json!({"duration": 12, "annotations": [{"key": "waitTime", "value": 3}]});
        assert_eq!(TimeSplit::read(&theirs).line(), "warm: waiting 3.0 + run 12.0 ms");
    }
}
