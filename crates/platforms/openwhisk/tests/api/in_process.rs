//! A runner without processes: what an action does is written in its code, behind `behave:`.
//!
//! | code contains | a call |
//! |---|---|
//! | `behave: echo` | returns its parameters |
//! | `behave: greet` | returns `{"greeting": "hello <name>"}` and writes a log line |
//! | `behave: error` | returns `{"error": ...}` |
//! | `behave: throw` | fails like an action with an exception |
//! | `behave: sleep` | waits `ms` milliseconds, within its timeout |
//! | `behave: panic` | panics inside the runner |

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use windfall_core::{Mebibytes, MilliCpu};
use windfall_openwhisk::{
    Action, Call, FullName, Granted, KeyValues, Outcome, Ran, Runner, StartKind, Times,
};

/// Knows what is deployed, and which versions have run: the first call of each is cold.
#[derive(Debug, Default)]
pub(crate) struct InProcess {
    pub(crate) deployed: Mutex<BTreeMap<FullName, String>>,
    warm: Mutex<BTreeMap<FullName, String>>,
}

impl Runner for InProcess {
    fn deployed(&self, action: &Arc<Action>) {
        self.deployed.lock().unwrap().insert(action.name.clone(), action.version.to_string());
    }

    fn removed(&self, name: &FullName) {
        self.deployed.lock().unwrap().remove(name);
    }

    async fn run(&self, call: Call) -> Ran {
        let wait = call.arrived.monotonic.elapsed();
        let version = call.action.version.to_string();
        let is_warm = {
            let mut warm = self.warm.lock().unwrap();
            let is_warm = warm.get(&call.action.name).is_some_and(|known| *known == version);
            if !is_warm {
                warm.insert(call.action.name.clone(), version);
            }
            is_warm
        };
        let began = std::time::Instant::now();
        let (outcome, logs) = behave(&call).await;
        let cold = Duration::from_millis(2);
        Ran {
            outcome,
            times: Times {
                wait,
                start: if is_warm { Duration::ZERO } else { cold },
                init: (!is_warm).then_some(cold),
                run: began.elapsed(),
            },
            start_kind: if is_warm { StartKind::Warm } else { StartKind::Cold },
            logs,
            granted: Some(Granted { cpu: MilliCpu::new(500), memory: Mebibytes::new(256) }),
            annotations: KeyValues::default(),
        }
    }
}

async fn behave(call: &Call) -> (Outcome, Vec<String>) {
    let code = call.action.code().map_or("", |code| code.text.as_str());
    let behaviour = code.split_once("behave: ").map_or("echo", |(_, rest)| rest);
    let behaviour =
        behaviour.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
    if behaviour == "echo" {
        return (Outcome::of_run(200, call.parameters.clone()), Vec::new());
    }
    let parameters: Value = serde_json::from_slice(&call.parameters).unwrap();
    let answer =
        |status: u16, value: Value| Outcome::of_run(status, Bytes::from(value.to_string()));
    match behaviour {
        "greet" => {
            let name = parameters["name"].as_str().unwrap_or("stranger");
            let log = format!("2026-01-02T03:04:05.000000000Z stdout: greeted {name}");
            (answer(200, json!({ "greeting": format!("hello {name}") })), vec![log])
        }
        "error" => (answer(200, json!({ "error": "on purpose" })), Vec::new()),
        "throw" => (answer(502, json!({ "error": "an exception" })), Vec::new()),
        "web" => {
            let body = parameters["name"].as_str().unwrap_or("nobody").to_owned();
            (
                answer(
                    200,
                    json!({ "statusCode": 201, "headers": { "x-by": "web" }, "body": body }),
                ),
                Vec::new(),
            )
        }
        "sleep" => {
            let asked = Duration::from_millis(parameters["ms"].as_u64().unwrap_or(10));
            let timeout = call.action.limits.timeout;
            tokio::time::sleep(asked.min(timeout)).await;
            let outcome = if asked > timeout {
                Outcome::timed_out(timeout, false)
            } else {
                answer(200, json!({ "slept": asked.as_millis() as u64 }))
            };
            (outcome, Vec::new())
        }
        "panic" => panic!("an action that takes its runner with it"),
        other => (Outcome::SystemError(format!("no behaviour `{other}`")), Vec::new()),
    }
}
