//! Where every call went.

use serde::{Deserialize, Serialize};
use windfall_core::CallEnd;

/// Every call that arrived is in exactly one other column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Calls that came.
    pub arrived: u64,
    /// Calls that were answered.
    pub completed: u64,
    /// Calls that were killed at the user's own size.
    pub out_of_memory: u64,
    /// Calls that were lost with their node.
    pub node_lost: u64,
    /// Calls that were turned away.
    pub rejected: u64,
    /// Calls in a queue.
    pub waiting: u64,
    /// Calls on an instance, starting ones included.
    pub running: u64,
}

impl Ledger {
    /// No call is lost and none is counted twice.
    pub fn balances(&self) -> bool {
        let Self { arrived, completed, out_of_memory, node_lost, rejected, waiting, running } =
            *self;
        arrived == completed + out_of_memory + node_lost + rejected + waiting + running
    }

    /// Books the end of a call that was running or waiting until now.
    pub(crate) fn book(&mut self, end: CallEnd) {
        *match end {
            CallEnd::Completed => &mut self.completed,
            CallEnd::OutOfMemory => &mut self.out_of_memory,
            CallEnd::NodeLost => &mut self.node_lost,
            CallEnd::Rejected => &mut self.rejected,
        } += 1;
    }
}
