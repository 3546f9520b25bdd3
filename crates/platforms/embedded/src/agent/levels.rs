//! What running calls hold, and the records of those that have ended.

use windfall_core::{CallEnd, CallRecord, Timestamp};

use super::message::{No, NodeLevels};
use super::node::Node;
use crate::pool::ReplyReason;

impl Node {
    pub(super) fn levels(&self) -> NodeLevels {
        let book = self.pool.book();
        let mut levels = NodeLevels {
            capacity: book.limit(),
            granted: book.in_force(),
            held_back: book.held_back(),
            ..NodeLevels::default()
        };
        for call in self.desk.calls.values().filter(|call| call.instance.is_some()) {
            let (own, held) = (call.view.reservation.cpu, call.grant.cpu);
            levels.reserved += own;
            levels.harvested += own.saturating_sub(held);
            levels.lent += held.saturating_sub(own);
            levels.calls += 1;
        }
        levels
    }

    /// Hands the record of a call that has ended to everyone who reads them.
    pub(super) fn publish(&mut self, mut record: CallRecord, at: Timestamp, end: CallEnd) {
        (record.ended_at, record.end) = (at, end);
        for sink in &mut self.sinks {
            sink.call(&record);
        }
    }
}

/// How a call without an answer is recorded; nothing for one that ends with the platform.
pub(super) fn end_of(no: &No) -> Option<CallEnd> {
    Some(match no {
        No::Stopping => return None,
        No::WaitedTooLong => CallEnd::Rejected,
        No::Pool(ReplyReason::OutOfMemory) => CallEnd::OutOfMemory,
        No::Pool(ReplyReason::Crashed(_) | ReplyReason::LaunchFailed(_)) => CallEnd::NodeLost,
        No::Pool(
            ReplyReason::QueueFull { .. } | ReplyReason::TooLarge { .. } | ReplyReason::Removed,
        ) => CallEnd::Rejected,
    })
}
