//! A machine: its account, its instances, and the CPU that its calls compete for.

use windfall_control::NodeBook;
use windfall_core::{Allocation, MilliCpu};

use crate::event_queue::Token;
use crate::settings::Cluster;

/// One node. Invariant: `idle` never exceeds what is free in the book, in either resource.
#[derive(Debug)]
pub(crate) struct Node {
    /// What is granted, owed and held back, with calls named by their slots. Its limit is the node's size times the
    /// over-commit; it is closed while the node is lost.
    pub(crate) book: NodeBook<u32>,
    /// Cores that do the work, whatever was granted.
    pub(crate) cpu: MilliCpu,
    /// Held by instances without a call. They give way, so the book does not count them.
    pub(crate) idle: Allocation,
    /// Its instances, whatever they do.
    pub(crate) instances: Vec<u32>,
    /// Calls that run here, if they are listed.
    pub(crate) running: Vec<u32>,
    /// Millicores that the running calls could use at most, all at their widest.
    pub(crate) potential: u64,
    /// Instances in which several calls could use more than the instance has.
    pub(crate) crowded: u32,
    /// Whether calls here compete, so that their pace depends on each other.
    pub(crate) is_shared: bool,
    /// The reminder of the next change of shares.
    pub(crate) share_token: Token,
}

impl Node {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        let times = |amount: u32, factor: f64| (f64::from(amount) * factor).floor() as u32;
        let limit = Allocation::new(
            times(cluster.node.cpu.get(), cluster.over_commit_cpu),
            times(cluster.node.memory.get(), cluster.over_commit_memory),
        );
        Self {
            book: NodeBook::new(limit),
            cpu: cluster.node.cpu,
            idle: Allocation::ZERO,
            instances: Vec::new(),
            running: Vec::new(),
            potential: 0,
            crowded: 0,
            is_shared: false,
            share_token: Token::NONE,
        }
    }

    /// Whether `need` fits beside all that is granted and kept idle.
    pub(crate) fn fits_beside_idle(&self, need: Allocation) -> bool {
        (self.idle + need).fits(self.book.free())
    }

    /// Whether calls here could want more CPU at once than there is.
    pub(crate) fn competes(&self) -> bool {
        self.potential > u64::from(self.cpu.get()) || self.crowded > 0
    }
}
