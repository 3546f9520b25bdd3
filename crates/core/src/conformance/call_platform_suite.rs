//! What every platform that runs calls must do.

use super::checked_calls::{CallTally, CheckedCalls};
use super::restless_calls::RestlessCalls;
use crate::call_control::CallControl;
use crate::seed::Seed;
use crate::units::Allocation;

/// Controls of different temper that a platform is played under.
const ROUNDS: u64 = 3;

/// Every start is closed exactly once, measured or lost; every change is answered exactly once, unless a later one
/// replaces it or the call ends first; no look comes earlier than asked; nothing comes after the close; what is in
/// force on a node stays within `node_limit`.
///
/// `play` builds the platform around the control it is given and runs it until every call has ended. It is called
/// several times, with controls that change what calls hold more and more often. Returns what passed in all rounds, so
/// that a caller can check that its faults happened.
pub fn call_platform_suite(
    node_limit: Allocation,
    play: &mut dyn FnMut(&mut dyn CallControl),
) -> CallTally {
    let mut all = CallTally::default();
    for round in 0..ROUNDS {
        let restless = RestlessCalls::new(Seed::new(round), round);
        let mut control = CheckedCalls::new(restless, node_limit);
        play(&mut control);
        match control.finish() {
            Ok(tally) => all = all.plus(tally),
            Err(problems) => panic!("round {round}: the platform broke its promises\n{problems}"),
        }
    }
    assert!(all.starts > 0, "no call was started, so nothing was checked");
    all
}
