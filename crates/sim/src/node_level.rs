//! What each node holds at this moment, for whoever draws the cluster.

use windfall_core::{Allocation, MilliCpu};

use crate::simulator::Simulator;

/// One node now. All amounts are those of the calls that have a place on it.
///
/// *Worked.* Two calls reserve 1000m each; one was trimmed to 400m, the other holds 1300m. Then 2000m are reserved,
/// 1700m granted, 600m harvested and 300m lent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeLevel {
    /// Whether it is up.
    pub is_up: bool,
    /// What the node has.
    pub capacity: Allocation,
    /// What the users of its calls reserve.
    pub reserved: MilliCpu,
    /// What its calls hold.
    pub granted: Allocation,
    /// What its calls hold less than reserved.
    pub harvested: MilliCpu,
    /// What its calls hold more than reserved.
    pub lent: MilliCpu,
    /// What is kept out of new calls' reach, as far as it is free.
    pub held_back: MilliCpu,
    /// Millicore-nanoseconds that its running calls have used so far; calls that have ended are in their records.
    pub used_by_running: u64,
    /// Calls that run or start.
    pub calls: u32,
}

impl Simulator<'_> {
    /// Every node as it is now.
    pub fn node_levels(&mut self) -> Vec<NodeLevel> {
        let mut levels: Vec<NodeLevel> = self
            .nodes
            .iter()
            .map(|node| NodeLevel {
                is_up: node.book.is_open(),
                capacity: node.book.limit(),
                held_back: node.book.held_back().min(node.book.free().cpu),
                ..NodeLevel::default()
            })
            .collect();
        let now = self.now;
        for call in self.calls.iter_mut() {
            call.catch_up(now);
            let level = &mut levels[call.record.node.index()];
            let reserved = call.record.reservation.cpu;
            level.reserved += reserved;
            level.granted += call.grant;
            level.harvested += reserved.saturating_sub(call.grant.cpu);
            level.lent += call.grant.cpu.saturating_sub(reserved);
            level.used_by_running += call.record.cpu_used;
            level.calls += 1;
        }
        levels
    }
}
