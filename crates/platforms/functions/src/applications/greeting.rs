//! The smallest functions: they show that a platform works, and measure what it costs.

use serde_json::{Value, json};
use windfall_core::{Allocation, Duration};

use crate::builtin::{Builtin, Invocation};
use crate::failure::Failure;

/// Answers with its parameters.
pub(crate) const ECHO: Builtin = Builtin {
    name: "echo",
    published_as: None,
    summary: "Answers with its own parameters.",
    reservation: Allocation::new(100, 64),
    timeout: Duration::from_secs(60),
    input: None,
    threads: 0,
    uses_store: false,
    body: echo,
};

/// Greets.
pub(crate) const HELLO: Builtin = Builtin {
    name: "hello",
    published_as: None,
    summary: "Greets the one named by `name`.",
    reservation: Allocation::new(100, 64),
    timeout: Duration::from_secs(60),
    input: None,
    threads: 0,
    uses_store: false,
    body: hello,
};

fn echo(call: &Invocation) -> Result<Value, Failure> {
    Ok(call.parameters.clone())
}

fn hello(call: &Invocation) -> Result<Value, Failure> {
    let name = call.parameters.get("name").and_then(Value::as_str).unwrap_or("stranger");
    Ok(json!({ "greeting": format!("Hello, {name}!") }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hello_greets_by_name() {
        assert_eq!(HELLO.run(&json!({"name": "Ada"})), Ok(json!({"greeting": "Hello, Ada!"})));
        assert_eq!(HELLO.run(&json!({})), Ok(json!({"greeting": "Hello, stranger!"})));
    }

    #[test]
    fn echo_answers_with_its_parameters() {
        let parameters = json!({"a": [1, 2.5], "b": {"c": null}});
        assert_eq!(ECHO.run(&parameters), Ok(parameters));
    }
}
