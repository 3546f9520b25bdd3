//! A sandbox that serves calls of one function.

use windfall_core::{Allocation, CpuCeiling, Duration, Mebibytes, Timestamp};

use crate::bucket::Bucket;
use crate::event_queue::Token;
use crate::idle::{Neighbours, Rest};
use crate::members::Members;
use crate::placement::Place;

/// Whether an instance can serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// On its way up.
    Starting,
    /// Can serve.
    Ready,
}

/// One instance.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) function: u32,
    pub(crate) node: u32,
    /// Steps of the walk from its function's home to its node.
    pub(crate) steps: u32,
    pub(crate) stage: Stage,
    /// Whether it starts ahead of any call, on memory that counts as idle and CPU that is let go when it is ready.
    pub(crate) prewarms: bool,
    /// What it holds on its node while it serves or starts; while idle, what it keeps.
    pub(crate) held: Allocation,
    /// The rule for the most CPU it may use; `held` is its weight.
    pub(crate) ceiling: CpuCeiling,
    /// Memory that its process keeps from earlier calls; only the kernel's CPU model knows of it.
    pub(crate) resident: Mebibytes,
    /// What its last call left of the quota.
    pub(crate) bucket: Bucket,
    /// The calls it serves.
    pub(crate) calls: Members,
    /// The most CPU its calls could use together.
    pub(crate) widest: u64,
    /// When its start began, and when it could serve.
    pub(crate) start: (Timestamp, Timestamp),
    /// When its last call left.
    pub(crate) idle_since: Timestamp,
    /// Its rest, if it is ready and has no call.
    pub(crate) rest: Rest,
    /// Its neighbour in the list of idle instances.
    pub(crate) neighbours: Neighbours,
    /// The reminder that it is ready.
    pub(crate) token: Token,
    /// The reminder that its calls together outgrow its memory.
    pub(crate) kill_token: Token,
}

impl Instance {
    /// An instance on its way up.
    pub(crate) fn starting(function: u32, at: Place, held: Allocation, now: Timestamp) -> Self {
        Self {
            function,
            node: at.node,
            steps: at.steps,
            stage: Stage::Starting,
            prewarms: false,
            held,
            ceiling: CpuCeiling::AtGrant,
            resident: Mebibytes::ZERO,
            bucket: Bucket::default(),
            calls: Members::Nobody,
            widest: 0,
            start: (now, now),
            idle_since: now,
            rest: Rest::NONE,
            neighbours: Neighbours::NONE,
            token: Token::NONE,
            kill_token: Token::NONE,
        }
    }

    /// Whether it is ready and has no call.
    pub(crate) fn is_idle(&self) -> bool {
        self.rest != Rest::NONE
    }

    /// The most CPU it may use, millicores.
    pub(crate) fn cpu_limit(&self) -> u64 {
        self.ceiling.limit(self.held.cpu).map_or(u64::MAX, |limit| u64::from(limit.get()))
    }

    /// What its calls could use at most: their parallelism, held down by the instance's own limit.
    pub(crate) fn potential(&self) -> u64 {
        self.widest.min(self.cpu_limit())
    }

    /// How much of the wait of a call that came at `arrived` was for this instance's start.
    ///
    /// A call that came at 3 s and finds an instance that started from 2 s to 5 s waited 2 s for it.
    pub(crate) fn start_waited_for(&self, arrived: Timestamp) -> Duration {
        let (began, ready) = self.start;
        ready.since(arrived.max(began))
    }

    /// Whether several calls here could use more than the instance has.
    pub(crate) fn is_crowded(&self) -> bool {
        self.calls.len() > 1 && self.widest > self.cpu_limit()
    }
}
