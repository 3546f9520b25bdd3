//! The annotations of a record, written as text: a call has eight of them, and building JSON values first would be most of
//! the work of its record.

use std::fmt::Display;
use std::io::Write;
use std::time::Duration;

use serde_json::Value;

use crate::action::Action;
use crate::name::FullName;
use crate::runner::Ran;

/// A JSON array that grows.
pub(in crate::api) struct Annotations(Vec<u8>);

impl Annotations {
    pub(in crate::api) fn new() -> Self {
        Self(Vec::with_capacity(512))
    }

    /// What all records of an action say about it.
    pub(in crate::api) fn of_action(action: &Action, binding: Option<&FullName>) -> Self {
        let mut all = Self::new();
        all.text("path", &action.name.joined());
        all.text("kind", action.kind());
        let limits = &action.limits;
        let instances =
            limits.instances.map(|most| format!(r#","instances":{most}"#)).unwrap_or_default();
        all.plain(
            "limits",
            format_args!(
                r#"{{"timeout":{},"memory":{},"logs":{},"concurrency":{}{instances}}}"#,
                limits.timeout.as_millis(),
                limits.memory.get(),
                limits.logs_mib,
                limits.concurrency,
            ),
        );
        if let Some(binding) = binding {
            all.text("binding", &binding.joined());
        }
        all
    }

    /// How a call ran. OpenWhisk's own annotations are whole milliseconds; `windfall` has the same to the microsecond,
    /// and what was granted.
    pub(in crate::api) fn add_run(&mut self, ran: &Ran) {
        let times = ran.times;
        self.plain("waitTime", (times.wait + times.start).as_millis());
        if let Some(init) = times.init {
            self.plain("initTime", init.as_millis());
        }
        self.plain("timeout", ran.outcome.is_timeout());
        let in_ms = |time: Duration| time.as_micros() as f64 / 1000.0;
        let init = times.init.map_or_else(|| "null".to_owned(), |init| in_ms(init).to_string());
        let granted = ran.granted.map(|granted| {
            format!(r#","cpu_millis":{},"memory_mib":{}"#, granted.cpu.get(), granted.memory.get())
        });
        self.plain(
            "windfall",
            format_args!(
                r#"{{"start_kind":"{}","wait_ms":{},"start_ms":{},"init_ms":{init},"run_ms":{}{}}}"#,
                ran.start_kind.as_str(),
                in_ms(times.wait),
                in_ms(times.start),
                in_ms(times.run),
                granted.unwrap_or_default(),
            ),
        );
        for extra in ran.annotations.iter() {
            // The key comes from a runner and may hold anything.
            let key = Value::from(extra.key.as_str()).to_string();
            self.entry(&key, &extra.value);
        }
    }

    /// A text.
    pub(in crate::api) fn text(&mut self, key: &str, value: &str) {
        self.plain(key, Value::from(value));
    }

    /// Anything that displays as JSON.
    pub(in crate::api) fn plain(&mut self, key: &str, value: impl Display) {
        self.entry(&format_args!("\"{key}\""), &value);
    }

    fn entry(&mut self, key: &dyn Display, value: &dyn Display) {
        let comma = if self.0.is_empty() { "" } else { "," };
        // Writing to memory cannot fail.
        let _ = write!(self.0, r#"{comma}{{"key":{key},"value":{value}}}"#);
    }

    /// The array without its brackets.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_values::KeyValues;
    use crate::runner::{Outcome, StartKind, Times};
    use serde_json::json;

    #[test]
    fn what_is_written_is_json() {
        let mut annotations = KeyValues::default();
        annotations.set("a \"key\"", json!({"b": [1]}));
        let ran = Ran {
            outcome: Outcome::timed_out(Duration::from_secs(1), false),
            times: Times {
                wait: Duration::from_micros(1_500),
                start: Duration::ZERO,
                init: Some(Duration::from_millis(2)),
                run: Duration::from_micros(7),
            },
            start_kind: StartKind::Prewarmed,
            logs: Vec::new(),
            granted: None,
            annotations,
        };
        let mut all = Annotations::new();
        all.text("path", "guest/\"x\"");
        all.add_run(&ran);
        let text = [b"[", all.as_bytes(), b"]"].concat();
        let list: KeyValues = serde_json::from_slice(&text).unwrap();
        assert_eq!(list.value("path"), Some(&json!("guest/\"x\"")));
        assert_eq!(list.value("waitTime"), Some(&json!(1)));
        assert_eq!(list.value("timeout"), Some(&json!(true)));
        assert_eq!(list.value("windfall").unwrap()["wait_ms"], 1.5);
        assert_eq!(list.value("windfall").unwrap()["run_ms"], 0.007);
        assert_eq!(list.value("a \"key\""), Some(&json!({"b": [1]})));
    }
}
