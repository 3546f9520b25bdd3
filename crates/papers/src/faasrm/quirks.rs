//! Where the paper's simulator departs from what it means to simulate, each departure a switch.

use serde::{Deserialize, Serialize};

/// All switches of the simulator; those of single policies are with the policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quirks {
    /// Every arrival moves all running calls on by a second, beside the second itself. With 1,424 arrivals
    /// in an average step, a call of 10 s ends after 10 more arrivals; this is why nothing is ever
    /// contended there.
    pub arrivals_move_the_clock: bool,
    /// A choice is applied after its own call was started: it sizes the function's next call.
    pub choice_one_call_late: bool,
    /// The last call of the trace never runs.
    pub last_call_is_lost: bool,
    /// The ideal memory is at most 512 MB. Without it the mean baseline is 10.409 s instead of 10.197.
    pub ideal_memory_capped: bool,
    /// The feature "free memory" is twice that of the last server, not the cluster's.
    pub free_memory_of_last_server: bool,
}

impl Quirks {
    /// As published.
    pub const FAITHFUL: Self = Self {
        arrivals_move_the_clock: true,
        choice_one_call_late: true,
        last_call_is_lost: true,
        ideal_memory_capped: true,
        free_memory_of_last_server: true,
    };
}
