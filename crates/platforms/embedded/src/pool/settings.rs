//! How a pool and its functions are set up.

use windfall_core::{Allocation, Duration, Mebibytes, QueueOrder};

/// Whose size the kernel's limits are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SizedBy {
    /// Each call brings its own size; an idle instance keeps its memory and no CPU.
    #[default]
    Call,
    /// Ticks size instances, which hold their size from start to stop.
    Instance,
}

/// Who starts instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScaleOut {
    /// A call that finds no place starts one, within the limits.
    #[default]
    OnDemand,
    /// Ticks alone set the number; a call starts one only if there is none at all.
    OnTick,
}

/// Spare instances of a runtime, without code, for any function of that kind and memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prewarm {
    /// The runtime.
    pub kind: String,
    /// Functions that reserve exactly this much take them.
    pub memory: Mebibytes,
    /// How many stand by.
    pub count: u32,
}

/// How a pool is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// What may be granted on the node.
    pub limit: Allocation,
    /// Whose size the limits are.
    pub sized_by: SizedBy,
    /// Who starts instances.
    pub scale_out: ScaleOut,
    /// Which of the waiting calls starts first.
    pub order: QueueOrder,
    /// Whether short calls wait for a warm instance while they are on time; with the shortest first only.
    pub waits_for_warm: bool,
    /// How long an instance is idle until its processes are paused; never if absent.
    pub pause_after: Option<Duration>,
    /// Instances at most, all functions and spares together.
    pub most_instances: u32,
    /// Spare instances.
    pub prewarm: Vec<Prewarm>,
}

impl PoolSettings {
    /// A pool that may grant `limit` and sizes calls one by one; pauses after 10 s as OpenWhisk does.
    pub fn new(limit: Allocation) -> Self {
        Self {
            limit,
            sized_by: SizedBy::Call,
            scale_out: ScaleOut::OnDemand,
            order: QueueOrder::FirstCome,
            waits_for_warm: false,
            pause_after: Some(Duration::from_secs(10)),
            most_instances: 1000,
            prewarm: Vec::new(),
        }
    }
}

/// A function as its user set it up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionSettings {
    /// A name that no other function has.
    pub name: String,
    /// Which runtime.
    pub kind: String,
    /// What its user reserves for a call or, where calls share instances, for an instance.
    pub reservation: Allocation,
    /// Calls that one instance serves at the same time.
    pub concurrency: u32,
    /// How long an idle instance stays.
    pub keep_alive: Duration,
    /// Instances at most.
    pub most_instances: Option<u32>,
    /// Calls that may wait at most.
    pub most_waiting: usize,
}

impl FunctionSettings {
    /// A function that reserves `reservation` per call, one call per instance; idle instances stay 10 minutes, as in
    /// OpenWhisk.
    pub fn new(name: &str, kind: &str, reservation: Allocation) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            reservation,
            concurrency: 1,
            keep_alive: Duration::from_mins(10),
            most_instances: None,
            most_waiting: 10_000,
        }
    }
}
