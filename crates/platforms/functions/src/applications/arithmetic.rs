//! Integer arithmetic in a loop: as little memory as there can be, and all the CPU there is.
//!
//! Each of `million_steps` million steps is one of Knuth's MMIX generator, `x -> a x + c` modulo 2^64. Several steps
//! are one step with other numbers, so tests know the answer; the program must not, so every step is hidden from the
//! compiler.

use std::hint::black_box;

use serde_json::{Value, json};
use windfall_core::{Allocation, Duration};

use crate::applications::splitting::split;
use crate::builtin::{Builtin, Invocation};
use crate::failure::Failure;
use crate::input::Input;

pub(crate) const ARITHMETIC: Builtin = Builtin {
    name: "arithmetic",
    published_as: Some("alu"),
    summary: "Integer arithmetic in a loop, on several threads.",
    reservation: Allocation::new(1000, 128),
    timeout: Duration::from_secs(60),
    input: Some(Input {
        parameter: "million_steps",
        unit: "million steps",
        default: 100,
        most: 100_000,
    }),
    threads: 16,
    uses_store: false,
    body: run,
};

const A: u64 = 6_364_136_223_846_793_005;
const C: u64 = 1_442_695_040_888_963_407;
const STEPS: usize = 1_000_000;

fn run(call: &Invocation) -> Result<Value, Failure> {
    // Every million starts from its own number, so that the answer does not depend on who does it.
    let parts = split(call.size as usize, call.threads, |millions| {
        millions.fold(0_u64, |sum, million| sum ^ steps(million as u64, STEPS))
    });
    let digest = parts.into_iter().fold(0, |digest, part| digest ^ part);
    Ok(json!({ "steps": u64::from(call.size) * STEPS as u64, "digest": format!("{digest:016x}") }))
}

/// So many steps from `start`.
pub(super) fn steps(start: u64, count: usize) -> u64 {
    let mut x = start;
    for _ in 0..count {
        x = black_box(x.wrapping_mul(A).wrapping_add(C));
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count` steps at once: `x -> a x + c` composed with itself by squaring.
    fn jump(start: u64, mut count: u64) -> u64 {
        let (mut a, mut c) = (1_u64, 0_u64);
        let (mut square_a, mut square_c) = (A, C);
        while count > 0 {
            if count % 2 == 1 {
                a = a.wrapping_mul(square_a);
                c = c.wrapping_mul(square_a).wrapping_add(square_c);
            }
            square_c = square_c.wrapping_mul(square_a).wrapping_add(square_c);
            square_a = square_a.wrapping_mul(square_a);
            count /= 2;
        }
        start.wrapping_mul(a).wrapping_add(c)
    }

    #[test]
    fn the_answer_is_that_of_the_closed_form() {
        assert_eq!(steps(5, 1234), jump(5, 1234));
        let digest = (0..3).fold(0, |digest, million| digest ^ jump(million, 1_000_000));
        let answer = ARITHMETIC.run(&json!({"million_steps": 3, "threads": 2})).unwrap();
        assert_eq!(answer["digest"], format!("{digest:016x}"));
    }
}
