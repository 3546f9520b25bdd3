//! What every runtime promises, and what only some can.

use serde_json::{Value, json};
use windfall_functions::{END_OF_ACTIVATION, Runtime};

use super::instance::{Instance, program};

/// The code of a function that answers with its parameters, in each runtime.
fn echo(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Builtin => "echo",
        Runtime::Python => "def main(parameters):\n    return parameters",
        Runtime::Node => "const main = (parameters) => parameters;",
    }
}

/// The code of a function that fails.
fn failing(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Builtin => "fault",
        Runtime::Python => "def main(parameters):\n    raise ValueError('asked to')",
        Runtime::Node => "async function main() { throw new Error('asked to'); }",
    }
}

fn error(answer: &Value) -> &str {
    answer["error"].as_str().unwrap()
}

#[test]
fn an_instance_is_initialised_once_and_then_runs() {
    for runtime in Runtime::ALL {
        let Some(program) = program(runtime) else { continue };
        let instance = Instance::start(&program);
        let mut client = instance.connect();
        assert_eq!(client.run(json!({})).0, 403, "{runtime:?}");
        assert_eq!(client.init(echo(runtime)), (200, json!({"ok": true})), "{runtime:?}");
        assert_eq!(client.init(echo(runtime)).0, 403, "{runtime:?}");
        let parameters =
            json!({"text": "\u{e9}\"\\\n", "list": [1, 2.5, null], "deep": {"a": true}});
        assert_eq!(client.run(parameters.clone()), (200, parameters), "{runtime:?}");
        assert_eq!(client.run(json!({})), (200, json!({})), "{runtime:?}");
    }
}

#[test]
fn failures_are_502_and_the_instance_goes_on() {
    for runtime in Runtime::ALL {
        let Some(program) = program(runtime) else { continue };
        let instance = Instance::start(&program);
        let mut client = instance.connect();
        let (status, answer) = client.init("this is )( no code");
        assert_eq!(status, 502, "{runtime:?}");
        assert!(!error(&answer).is_empty());
        assert_eq!(client.init(failing(runtime)).0, 200, "{runtime:?}");
        for _ in 0..2 {
            let (status, answer) = client.run(json!({}));
            assert_eq!(status, 502, "{runtime:?}");
            assert!(error(&answer).contains("asked to"), "{runtime:?}: {answer}");
        }
    }
}

#[test]
fn every_run_ends_with_a_line_on_both_outputs() {
    for runtime in Runtime::ALL {
        let Some(program) = program(runtime) else { continue };
        let instance = Instance::start(&program);
        let mut client = instance.connect();
        client.init(echo(runtime));
        client.run(json!({}));
        client.run(json!({}));
        let (output, errors) = instance.end();
        assert_eq!(output, format!("{END_OF_ACTIVATION}\n{END_OF_ACTIVATION}\n"), "{runtime:?}");
        assert_eq!(errors, output, "{runtime:?}");
    }
}

#[test]
fn calls_on_two_connections_overlap() {
    let sleeping = |runtime| match runtime {
        Runtime::Builtin => "autoscale",
        Runtime::Python => {
            "import time\ndef main(parameters):\n    time.sleep(parameters.get('sleep', 0) / 1000)\n    return {}"
        }
        Runtime::Node => {
            "const main = ({ sleep = 0 }) => new Promise((done) => setTimeout(() => done({}), sleep));"
        }
    };
    for runtime in Runtime::ALL {
        let Some(program) = program(runtime) else { continue };
        let instance = Instance::start(&program);
        let (mut first, mut second) = (instance.connect(), instance.connect());
        first.init(sleeping(runtime));
        // The first call lasts a minute: the second could not be answered if it had to wait for it.
        first.send("/run", &json!({"value": {"sleep": 60_000}}));
        assert_eq!(second.run(json!({})), (200, json!({})), "{runtime:?}");
    }
}

#[test]
fn bodies_of_a_megabyte_pass() {
    for runtime in Runtime::ALL {
        let Some(program) = program(runtime) else { continue };
        let instance = Instance::start(&program);
        let mut client = instance.connect();
        client.init(echo(runtime));
        let parameters = json!({"text": "x".repeat(1 << 20)});
        assert_eq!(client.run(parameters.clone()), (200, parameters), "{runtime:?}");
    }
}

#[test]
fn other_paths_and_nonsense_are_refused() {
    for runtime in Runtime::ALL {
        let Some(program) = program(runtime) else { continue };
        let instance = Instance::start(&program);
        let mut client = instance.connect();
        assert_eq!(client.post("/other", &json!({})).0, 404, "{runtime:?}");
        client.init(echo(runtime));
        assert_eq!(client.post("/run", &json!([1])).0, 400, "{runtime:?}");
    }
}

#[test]
fn interpreters_get_the_context_as_environment() {
    let code = |runtime| match runtime {
        Runtime::Python => {
            "import os\ndef main(parameters):\n    return {name: os.environ.get(name) for name in ('OWN', '__OW_ACTIVATION_ID')}"
        }
        _ => {
            "const main = () => ({ OWN: process.env.OWN, __OW_ACTIVATION_ID: process.env.__OW_ACTIVATION_ID });"
        }
    };
    for runtime in [Runtime::Python, Runtime::Node] {
        let Some(program) = program(runtime) else { continue };
        let instance = Instance::start(&program);
        let mut client = instance.connect();
        let init = json!({"value": {"code": code(runtime), "env": {"OWN": "value"}}});
        assert_eq!(client.post("/init", &init).0, 200);
        let answer = json!({"OWN": "value", "__OW_ACTIVATION_ID": "0123"});
        assert_eq!(client.run(json!({})), (200, answer), "{runtime:?}");
    }
}

#[test]
fn a_missing_package_is_named_with_the_way_to_get_it() {
    let Some(program) = program(Runtime::Python) else { return };
    let instance = Instance::start(&program);
    let mut client = instance.connect();
    let (status, answer) =
        client.init("import no_such_package_anywhere\ndef main(parameters): return {}");
    assert_eq!(status, 502);
    assert!(error(&answer).ends_with(
        "the Python module no_such_package_anywhere is not installed: pip install no_such_package_anywhere"
    ));
}

#[test]
fn a_built_in_panic_is_a_failure_of_the_call_alone() {
    let Some(program) = program(Runtime::Builtin) else { return };
    let instance = Instance::start(&program);
    let mut client = instance.connect();
    client.init("fault");
    assert_eq!(client.run(json!({"how": "panic"})).0, 502);
    assert_eq!(client.run(json!({"how": "error"})).0, 502);
    assert!(instance.end().1.contains("this function was asked to panic"));
}
