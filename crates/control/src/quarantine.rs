//! Time out for a policy that keeps failing. A panic counts as a failure like any other: it is caught here, so no policy
//! can end the program it runs in. That needs a build with `panic = "unwind"`.
//!
//! ```text
//!  asked ──3 failures in a row──► skips 16 decisions ──► one trial ──failure──► skips 32, 64, … 1024
//!    ▲                                                      │
//!    └──────────────────────── success ◄────────────────────┘
//! ```

use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `ask` returns, or one sentence if it panics.
///
/// Whoever was asked may be left half changed by a panic. That is why a policy's panic counts against it, and why the
/// caller must not rely on the answer of anything the policy holds.
pub fn catch<T>(ask: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(ask)).map_err(|panic| panicked(panic.as_ref()))
}

#[cold]
fn panicked(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", text.unwrap_or("without a message"))
}

/// Counts consecutive failures and keeps a failing policy from being asked for a while.
#[derive(Clone, Debug)]
pub struct Quarantine {
    after: u32,
    first_rest: u32,
    failures: u32,
    next_rest: u32,
    resting: u32,
    times: u64,
}

impl Default for Quarantine {
    fn default() -> Self {
        Self::new(3, 16)
    }
}

impl Quarantine {
    /// A quarantine is never longer than this many first ones.
    const LONGEST: u32 = 64;

    /// Quarantine `after` this many failures in a row, for `first_rest` decisions at first.
    pub fn new(after: u32, first_rest: u32) -> Self {
        let first_rest = first_rest.max(1);
        Self {
            after: after.max(1),
            first_rest,
            failures: 0,
            next_rest: first_rest,
            resting: 0,
            times: 0,
        }
    }

    /// Asks, unless the policy is quarantined; the error is one sentence for the journal. A panic is an error.
    pub fn guard<T, E: Display>(
        &mut self,
        ask: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, String> {
        self.admit()?;
        let answer = catch(ask).and_then(|answer| answer.map_err(|problem| problem.to_string()));
        self.note(answer.is_ok());
        answer
    }

    /// Whether the policy may be asked; if it is quarantined, one sentence for the journal. Whoever asks then must
    /// [`note`](Self::note) how it went.
    #[inline]
    pub fn admit(&mut self) -> Result<(), String> {
        if self.resting == 0 { Ok(()) } else { Err(self.rest()) }
    }

    #[cold]
    fn rest(&mut self) -> String {
        self.resting -= 1;
        format!("policy in quarantine, {} decisions to go", self.resting)
    }

    /// Notes whether the policy gave an answer that could be used.
    #[inline]
    pub fn note(&mut self, is_usable: bool) {
        if is_usable {
            self.failures = 0;
            self.next_rest = self.first_rest;
        } else {
            self.fail();
        }
    }

    /// Whether the policy is not asked now.
    pub fn is_resting(&self) -> bool {
        self.resting > 0
    }

    /// How often a rest was ordered.
    pub fn times(&self) -> u64 {
        self.times
    }

    #[cold]
    fn fail(&mut self) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= self.after {
            self.resting = self.next_rest;
            let longest = self.first_rest.saturating_mul(Self::LONGEST);
            self.next_rest = self.next_rest.saturating_mul(2).min(longest);
            self.times += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(quarantine: &mut Quarantine, works: bool) -> Option<bool> {
        let mut was_asked = false;
        let answer = quarantine.guard(|| {
            was_asked = true;
            if works { Ok(()) } else { Err("no") }
        });
        was_asked.then_some(answer.is_ok())
    }

    #[test]
    fn failures_in_a_row_bring_rest_and_one_success_forgives_all() {
        let mut quarantine = Quarantine::new(3, 2);
        assert_eq!(ask(&mut quarantine, false), Some(false));
        assert_eq!(ask(&mut quarantine, false), Some(false));
        assert_eq!(ask(&mut quarantine, true), Some(true));
        for _ in 0..3 {
            assert_eq!(ask(&mut quarantine, false), Some(false));
        }
        assert!(quarantine.is_resting());
        assert_eq!(ask(&mut quarantine, true), None);
        assert_eq!(ask(&mut quarantine, true), None);
        assert_eq!(ask(&mut quarantine, true), Some(true));
        assert_eq!(quarantine.times(), 1);
    }

    #[test]
    fn a_panic_is_a_failure_with_its_message() {
        let mut quarantine = Quarantine::new(2, 4);
        let index = [0; 3].len();
        let outside = |_: ()| -> Result<i32, String> { Ok([1, 2, 3][index]) };
        let error = quarantine.guard(|| outside(())).unwrap_err();
        assert!(error.starts_with("it panicked: index out of bounds"), "{error}");
        let answer: Result<(), String> =
            quarantine.guard(|| -> Result<(), String> { panic!("no") });
        assert_eq!(answer.unwrap_err(), "it panicked: no");
        assert!(quarantine.is_resting());
    }

    #[test]
    fn a_failed_trial_doubles_the_rest() {
        let mut quarantine = Quarantine::new(1, 2);
        let mut skipped = Vec::new();
        let mut rest = 0;
        while skipped.len() < 9 {
            match ask(&mut quarantine, false) {
                None => rest += 1,
                Some(_) => skipped.push(std::mem::take(&mut rest)),
            }
        }
        assert_eq!(skipped, [0, 2, 4, 8, 16, 32, 64, 128, 128]);
    }
}
