//! The list of built-in functions, and what one call of them may use.

use serde_json::Value;
use windfall_core::{Allocation, Duration};

use crate::applications;
use crate::failure::Failure;
use crate::input::Input;

/// A function that is part of this program.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// Its name, e.g. `merge-sort`.
    pub name: &'static str,
    /// Its short name in FaaSRM's OpenWhisk experiment, if it stands for an application of that.
    pub published_as: Option<&'static str>,
    /// One sentence.
    pub summary: &'static str,
    /// The size its user reserves unless an action says otherwise.
    pub reservation: Allocation,
    /// The time limit of one call unless an action says otherwise.
    pub timeout: Duration,
    /// The parameter that is its visible input size; nothing if its calls are all alike.
    pub input: Option<Input>,
    /// Threads that a call uses unless its parameter `threads` says otherwise; 0 if it has no such parameter.
    pub threads: u32,
    /// Whether a call reads its data from a store and writes its result there, and waits for both where parameter
    /// `store_ms` says how long the store takes to answer.
    pub uses_store: bool,
    pub(crate) body: fn(&Invocation) -> Result<Value, Failure>,
}

/// One call of a built-in function.
#[derive(Debug)]
pub struct Invocation<'a> {
    /// The parameters, a JSON object.
    pub(crate) parameters: &'a Value,
    /// Size of its input; 0 for a function without one.
    pub(crate) size: u32,
    /// Number of threads to use, at least 1.
    pub(crate) threads: usize,
}

/// No call uses more threads.
const MOST_THREADS: u64 = 64;
/// The parameter that says how long a store takes to answer, milliseconds.
pub(crate) const STORE_MILLIS: &str = "store_ms";
/// No store takes longer.
const MOST_STORE_MILLIS: f64 = 10_000.0;

impl Builtin {
    /// The function called `name`.
    pub fn named(name: &str) -> Option<&'static Self> {
        builtins().iter().find(|builtin| builtin.name == name)
    }

    /// The kind of an action that runs this function, e.g. `builtin:merge-sort`.
    pub fn kind(&self) -> String {
        format!("builtin:{}", self.name)
    }

    /// Runs the function in this process, on the calling thread and those that it starts.
    pub fn run(&self, parameters: &Value) -> Result<Value, Failure> {
        if !parameters.is_object() {
            return Err(Failure::new("parameters are not a JSON object"));
        }
        let size = self.input.map_or(Ok(0), |input| input.read(parameters))?;
        let threads = self.threads_of(parameters)?;
        let store = self.store_answer(parameters)?;
        std::thread::sleep(store);
        let result = (self.body)(&Invocation { parameters, size, threads })?;
        std::thread::sleep(store);
        Ok(result)
    }

    /// How long its store takes to answer.
    fn store_answer(&self, parameters: &Value) -> Result<std::time::Duration, Failure> {
        let given = parameters.get(STORE_MILLIS).filter(|_| self.uses_store);
        let Some(given) = given else { return Ok(std::time::Duration::ZERO) };
        let millis = given.as_f64().filter(|millis| (0.0..=MOST_STORE_MILLIS).contains(millis));
        let seconds = millis.map(|millis| std::time::Duration::from_secs_f64(millis * 1e-3));
        seconds.ok_or_else(|| {
            let most = MOST_STORE_MILLIS;
            Failure::new(format!("{STORE_MILLIS} is {given}, allowed is 0 to {most}"))
        })
    }

    fn threads_of(&self, parameters: &Value) -> Result<usize, Failure> {
        let given = parameters.get("threads").filter(|_| self.threads > 0);
        let Some(given) = given else { return Ok(self.threads.max(1) as usize) };
        let number = given.as_u64().filter(|number| (1..=MOST_THREADS).contains(number));
        number.map(|number| number as usize).ok_or_else(|| {
            Failure::new(format!("threads is {given}, allowed is 1 to {MOST_THREADS}"))
        })
    }
}

/// All built-in functions, in order of their names.
pub fn builtins() -> &'static [Builtin] {
    applications::ALL
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_waits_for_its_store_before_and_after_its_work() {
        let encode = Builtin::named("video-encode").expect("it is one");
        let began = std::time::Instant::now();
        let waiting = encode.run(&json!({"frames": 1, "store_ms": 20})).expect("it is small");
        assert!(began.elapsed() >= std::time::Duration::from_millis(40));
        assert_eq!(Ok(waiting), encode.run(&json!({"frames": 1})), "the answer is the same");
        let wrong = encode.run(&json!({"frames": 1, "store_ms": -1})).expect_err("no time");
        assert_eq!(wrong.to_string(), "store_ms is -1, allowed is 0 to 10000");
        let without = Builtin::named("merge-sort").expect("it is one");
        assert!(without.run(&json!({"thousand_numbers": 1, "store_ms": -1})).is_ok());
    }
}
