//! Goes wrong on request, so that it can be seen what a platform does about it.

use std::hint::black_box;
use std::{process, thread};

use serde_json::Value;
use windfall_core::{Allocation, Duration};

use crate::builtin::{Builtin, Invocation};
use crate::failure::Failure;

pub(crate) const FAULT: Builtin = Builtin {
    name: "fault",
    published_as: None,
    summary: "Goes wrong as `how` says: error, panic, exit, hang, spin or memory.",
    reservation: Allocation::new(100, 64),
    timeout: Duration::from_secs(5),
    input: None,
    threads: 0,
    uses_store: false,
    body: run,
};

fn run(call: &Invocation) -> Result<Value, Failure> {
    match call.parameters.get("how").and_then(Value::as_str).unwrap_or("error") {
        "error" => Err(Failure::new("this function was asked to fail")),
        "panic" => panic!("this function was asked to panic"),
        "exit" => process::exit(3),
        "hang" => loop {
            thread::sleep(std::time::Duration::from_secs(1));
        },
        "spin" => loop {
            black_box(0);
        },
        "memory" => take_all_memory(),
        other => Err(Failure::new(format!(
            "how is `{other}`, allowed is error, panic, exit, hang, spin, memory"
        ))),
    }
}

/// Until the kernel or the limit of the instance ends it.
fn take_all_memory() -> ! {
    let mut taken = Vec::new();
    loop {
        taken.push(black_box(vec![1_u8; 4 << 20]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_unknown_way_to_fail_is_an_error_that_lists_the_known_ones() {
        let message = FAULT.run(&json!({"how": "slowly"})).unwrap_err().to_string();
        assert_eq!(message, "how is `slowly`, allowed is error, panic, exit, hang, spin, memory");
    }
}
