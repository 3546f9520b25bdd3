//! Suites that every platform, policy and safeguard must pass. Each takes a maker, because most checks
//! compare two fresh copies, and panics with a sentence that says what was broken.

mod audited;
mod call_platform_suite;
mod call_suites;
mod checked_calls;
mod episodic_suite;
mod platform_suite;
mod restless_calls;
mod samples;
mod scripted_platform;
mod tick_suites;

pub use audited::Audited;
pub use call_platform_suite::call_platform_suite;
pub use call_suites::{call_policy_suite, call_safeguard_suite};
pub use checked_calls::{CallTally, CheckedCalls};
pub use episodic_suite::episodic_suite;
pub use platform_suite::platform_suite;
pub use restless_calls::RestlessCalls;
pub use samples::{calls, observations, outcome_of, running_calls};
pub use scripted_platform::{Fault, ScriptedPlatform};
pub use tick_suites::{policy_suite, safeguard_suite};

/// Names travel into journals and metric labels.
fn check_name(name: &str) {
    let is_label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    assert!(!name.is_empty(), "a name is missing");
    assert!(name.chars().all(is_label), "{name:?} is not lower-case letters, digits and dashes");
}
