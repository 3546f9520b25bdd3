//! A machine: its account, its instances, and the CPU that its calls compete for.

use windfall_control::{NodeBook, Payment};
use windfall_core::{Allocation, MilliCpu, Timestamp};

use crate::event_queue::Token;
use crate::held_back::HeldBackTime;
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
    /// What holding CPU back kept from new calls so far.
    pub(crate) held_back_time: HeldBackTime,
    /// Millicores that the running calls could use at most, all at their widest.
    pub(crate) potential: u64,
    /// Instances in which several calls could use more than the instance has.
    pub(crate) crowded: u32,
    /// Whether calls here compete, so that their pace depends on each other.
    pub(crate) is_shared: bool,
    /// Whether somebody here gets less CPU than it could use now.
    pub(crate) is_short: bool,
    /// Whether a reminder to look at all calls here is on its way.
    pub(crate) expects_looks: bool,
    /// Millicores for each millicore held, at the last sharing of a contended node.
    pub(crate) level: f64,
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
            held_back_time: HeldBackTime::default(),
            potential: 0,
            crowded: 0,
            is_shared: false,
            is_short: false,
            expects_looks: false,
            level: f64::INFINITY,
            share_token: Token::NONE,
        }
    }

    /// An instance begins to hold `amount` at `now`.
    #[inline]
    pub(crate) fn hold(&mut self, amount: Allocation, now: Timestamp) {
        self.count_held_back(now);
        self.book.hold(amount);
    }

    /// An instance no longer holds `amount` from `now` on.
    #[inline]
    pub(crate) fn release(&mut self, amount: Allocation, now: Timestamp) {
        self.count_held_back(now);
        self.book.release(amount);
    }

    /// Gives what is free to the first call it is owed to.
    pub(crate) fn pay(&mut self, now: Timestamp) -> Option<Payment<u32>> {
        let free = self.book.free().cpu;
        let payment = self.book.pay()?;
        if self.book.held_back() != MilliCpu::ZERO {
            self.held_back_time.pass(now, self.book.held_back(), free);
        }
        Some(payment)
    }

    /// Keeps `amount` back instead of `before` from `now` on.
    pub(crate) fn hold_back(&mut self, before: MilliCpu, amount: MilliCpu, now: Timestamp) {
        // Not through `count_held_back`: the account has to begin when the first amount is kept.
        self.held_back_time.pass(now, self.book.held_back(), self.book.free().cpu);
        self.book.hold_back(before, amount);
    }

    /// Brings the account of what is held back up to `now`; comes before every change of what is free.
    #[inline]
    pub(crate) fn count_held_back(&mut self, now: Timestamp) {
        if self.book.held_back() != MilliCpu::ZERO {
            self.held_back_time.pass(now, self.book.held_back(), self.book.free().cpu);
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
