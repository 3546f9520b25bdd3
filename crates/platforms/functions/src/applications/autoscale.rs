//! The test service of Knative's autoscaling samples: memory, primes and sleep at the same time, after Schuler et al.
//! (CCGrid 2021). The call ends when the slowest of the three is done.

use std::hint::black_box;
use std::thread;

use serde_json::{Value, json};
use windfall_core::{Allocation, Duration};

use crate::builtin::{Builtin, Invocation};
use crate::failure::Failure;

pub(crate) const AUTOSCALE: Builtin = Builtin {
    name: "autoscale",
    published_as: None,
    summary: "Allocates `bloat` MB, finds primes up to `prime`, sleeps `sleep` ms, together.",
    reservation: Allocation::new(1000, 256),
    timeout: Duration::from_secs(60),
    input: None,
    threads: 0,
    uses_store: false,
    body: run,
};

fn run(call: &Invocation) -> Result<Value, Failure> {
    let bloat = parameter(call, "bloat", 4_096)?;
    let prime = parameter(call, "prime", 500_000_000)?;
    let sleep = parameter(call, "sleep", 600_000)?;
    let mut answer = json!({});
    thread::scope(|scope| {
        let sleeping = sleep.map(|millis| {
            thread::Builder::new()
                .spawn_scoped(scope, move || {
                    thread::sleep(std::time::Duration::from_millis(millis));
                })
                .map_err(|why| Failure::new(format!("no thread to sleep on: {why}")))
        });
        let bloating = bloat.map(|megabytes| {
            thread::Builder::new()
                .spawn_scoped(scope, move || allocate(megabytes as usize))
                .map_err(|why| Failure::new(format!("no thread to allocate on: {why}")))
        });
        if let Some(limit) = prime {
            answer["largest_prime"] = json!(largest_prime(limit as usize));
        }
        if let Some(bloating) = bloating {
            let bytes = bloating?.join().map_err(|_| Failure::new("the allocation failed"))?;
            answer["bytes"] = json!(bytes);
        }
        if let Some(sleeping) = sleeping {
            sleeping?.join().map_err(|_| Failure::new("the sleep failed"))?;
            answer["slept_ms"] = json!(sleep);
        }
        Ok(())
    })?;
    Ok(answer)
}

/// Parameters of a query are text, those of a call numbers: both are understood.
fn parameter(call: &Invocation, name: &str, most: u64) -> Result<Option<u64>, Failure> {
    let Some(given) = call.parameters.get(name) else { return Ok(None) };
    let number = given.as_u64().or_else(|| given.as_str().and_then(|text| text.parse().ok()));
    match number.filter(|number| *number <= most) {
        Some(0) => Ok(None),
        Some(number) => Ok(Some(number)),
        None => Err(Failure::new(format!("{name} is {given}, allowed is 0 to {most}"))),
    }
}

fn allocate(megabytes: usize) -> usize {
    // Written to, so that the memory is really there.
    let block = black_box(vec![1_u8; megabytes << 20]);
    block.iter().step_by(4096).map(|byte| usize::from(*byte)).sum::<usize>() * 4096
}

/// The sieve of Eratosthenes; nothing below 2.
fn largest_prime(limit: usize) -> Option<usize> {
    let mut is_composite = vec![false; limit + 1];
    for factor in 2..=limit.isqrt() {
        if !is_composite[factor] {
            is_composite[factor * factor..].iter_mut().step_by(factor).for_each(|it| *it = true);
        }
    }
    (2..=limit).rev().find(|number| !is_composite[*number])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_are_found() {
        let known = [(1, None), (2, Some(2)), (10, Some(7)), (10_000, Some(9973)), (100, Some(97))];
        for (limit, prime) in known {
            assert_eq!(largest_prime(limit), prime, "{limit}");
        }
    }

    #[test]
    fn all_three_happen_in_one_call() {
        let answer = AUTOSCALE.run(&json!({"bloat": 3, "prime": "1000", "sleep": 1})).unwrap();
        assert_eq!(answer, json!({"bytes": 3 << 20, "largest_prime": 997, "slept_ms": 1}));
        assert_eq!(AUTOSCALE.run(&json!({})), Ok(json!({})));
        let message = AUTOSCALE.run(&json!({"bloat": -1})).unwrap_err().to_string();
        assert_eq!(message, "bloat is -1, allowed is 0 to 4096");
    }
}
