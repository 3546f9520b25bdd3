//! A machine: what it has, what it has granted, and what it owes.

use windfall_core::{Allocation, MilliCpu, Timestamp};

use crate::event_queue::Token;
use crate::held_back::HeldBackTime;
use crate::settings::Cluster;

/// One node. Invariant: `idle` never exceeds `free`, in either resource.
#[derive(Debug)]
pub(crate) struct Node {
    /// Whether it is there.
    pub(crate) is_up: bool,
    /// Cores that do the work, whatever was granted.
    pub(crate) cpu: MilliCpu,
    /// What may be granted: its size times the over-commit.
    pub(crate) limit: Allocation,
    /// What is left of it beside instances that serve or start; idle ones give way.
    pub(crate) free: Allocation,
    /// Held by instances without a call.
    pub(crate) idle: Allocation,
    /// Its instances, whatever they do.
    pub(crate) instances: Vec<u32>,
    /// Calls that run here, if they are listed.
    pub(crate) running: Vec<u32>,
    /// CPU kept out of new calls' reach for running ones that may want it back.
    pub(crate) held_back: MilliCpu,
    /// What that kept from new calls so far.
    pub(crate) held_back_time: HeldBackTime,
    /// Calls whose raise found no room, in the order they asked.
    pub(crate) debts: Vec<u32>,
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
            is_up: true,
            cpu: cluster.node.cpu,
            limit,
            free: limit,
            idle: Allocation::ZERO,
            instances: Vec::new(),
            running: Vec::new(),
            held_back: MilliCpu::ZERO,
            held_back_time: HeldBackTime::default(),
            debts: Vec::new(),
            potential: 0,
            crowded: 0,
            is_shared: false,
            share_token: Token::NONE,
        }
    }

    /// An instance begins to hold `amount` at `now`.
    #[inline]
    pub(crate) fn hold(&mut self, amount: Allocation, now: Timestamp) {
        self.count_held_back(now);
        self.free -= amount;
    }

    /// An instance no longer holds `amount` from `now` on.
    #[inline]
    pub(crate) fn release(&mut self, amount: Allocation, now: Timestamp) {
        self.count_held_back(now);
        self.free += amount;
    }

    /// Keeps `amount` back instead of `before` from `now` on.
    pub(crate) fn hold_back(&mut self, before: MilliCpu, amount: MilliCpu, now: Timestamp) {
        // Not through `count_held_back`: the account has to begin when the first amount is kept.
        self.held_back_time.pass(now, self.held_back, self.free.cpu);
        self.held_back -= before;
        self.held_back += amount;
    }

    /// Brings the account of what is held back up to `now`; comes before every change of what is free.
    #[inline]
    pub(crate) fn count_held_back(&mut self, now: Timestamp) {
        if self.held_back != MilliCpu::ZERO {
            self.held_back_time.pass(now, self.held_back, self.free.cpu);
        }
    }

    /// Held by instances that serve or start.
    pub(crate) fn granted(&self) -> Allocation {
        self.limit - self.free
    }

    /// What a new call could get. Debts come first: a node that owes takes nobody in. So does what is
    /// held back, unless nothing runs here that it could be held back for.
    pub(crate) fn room(&self) -> Allocation {
        if !self.is_up || !self.debts.is_empty() {
            return Allocation::ZERO;
        }
        Allocation { cpu: self.free.cpu.saturating_sub(self.held_back), ..self.free }
    }

    /// Whether `need` fits beside all that is granted and kept idle.
    pub(crate) fn fits_beside_idle(&self, need: Allocation) -> bool {
        (self.idle + need).fits(self.free)
    }

    /// Whether a new call could get `need`: whether it fits [`Self::room`], without working that out.
    pub(crate) fn has_room(&self, need: Allocation) -> bool {
        let with_held_back = Allocation { cpu: need.cpu + self.held_back, ..need };
        self.is_up & self.debts.is_empty() & with_held_back.fits(self.free)
    }

    /// Whether calls here could want more CPU at once than there is.
    pub(crate) fn competes(&self) -> bool {
        self.potential > u64::from(self.cpu.get()) || self.crowded > 0
    }
}
