//! A call of a stated law: it waits, then works, and needs so much memory. Stands for functions of which no more is known.
//!
//! The work is the loop of `arithmetic`, counted in thousands of steps (some microseconds each). What a call needs of
//! memory is kept for the next one, as heaps of warm processes are.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration as StdDuration;

use serde_json::{Value, json};
use windfall_core::{Allocation, Duration};

use super::arithmetic::steps;
use crate::builtin::{Builtin, Invocation};
use crate::failure::Failure;

pub(crate) const SERVICE: Builtin = Builtin {
    name: "service",
    published_as: None,
    summary: "Waits `wait_us`, then works `thousand_steps`, with `memory_kib` of memory.",
    reservation: Allocation::new(1000, 128),
    timeout: Duration::from_secs(60),
    input: None,
    threads: 0,
    uses_store: false,
    body: run,
};

/// What the largest call so far has taken.
static TAKEN: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn run(call: &Invocation) -> Result<Value, Failure> {
    let wait = parameter(call, "wait_us", 600_000_000)?;
    let thousands = parameter(call, "thousand_steps", 100_000_000)?;
    let memory = parameter(call, "memory_kib", 4 << 20)? as usize * 1024;
    thread::sleep(StdDuration::from_micros(wait));
    {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.len() < memory {
            // Written to, so that the memory is really there.
            taken.resize(memory, 1);
        }
    }
    let digest = (0..thousands).fold(0, |digest, thousand| digest ^ steps(thousand, 1000));
    Ok(json!({ "digest": format!("{digest:016x}") }))
}

fn parameter(call: &Invocation, name: &str, most: u64) -> Result<u64, Failure> {
    let Some(given) = call.parameters.get(name) else { return Ok(0) };
    given
        .as_u64()
        .filter(|number| *number <= most)
        .ok_or_else(|| Failure::new(format!("{name} is {given}, allowed is 0 to {most}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_waits_works_and_keeps_its_memory() {
        let begun = std::time::Instant::now();
        let parameters = json!({"wait_us": 3000, "thousand_steps": 2, "memory_kib": 64});
        let answer = SERVICE.run(&parameters).unwrap();
        assert!(begun.elapsed() >= StdDuration::from_millis(3));
        assert_eq!(answer["digest"], format!("{:016x}", steps(0, 1000) ^ steps(1, 1000)));
        assert!(TAKEN.lock().unwrap().len() >= 64 << 10);
        let message = SERVICE.run(&json!({"wait_us": -1})).unwrap_err().to_string();
        assert_eq!(message, "wait_us is -1, allowed is 0 to 600000000");
    }
}
