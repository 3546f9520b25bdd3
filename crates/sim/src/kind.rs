//! The two kinds of platform, and the one place that tells them apart.
//!
//! | kind | who holds | file |
//! |---|---|---|
//! | every call brings its own size | each call its grant; an idle instance its memory | `per_call` |
//! | instances are sized by ticks and shared | each instance, from start to stop, busy or idle | `sized_instances` |
//!
//! What differs is a function of [`Behaviour`], which each kind implements in its own file. The rest of the crate asks
//! with `by_kind!`, which holds the only `match`. It is resolved where it stands, so that a run pays for one predictable
//! branch and not for a call through a table.

mod per_call;
mod sized_instances;

pub(crate) use per_call::PerCall;
pub(crate) use sized_instances::SizedInstances;
use windfall_core::Allocation;

use crate::function::Waiting;
use crate::settings::Settings;
use crate::simulator::Simulator;

/// Which kind a platform is. It stays for a whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Every call brings its own size.
    PerCall,
    /// Instances are sized by ticks, and calls share them.
    SizedInstances,
}

impl Kind {
    pub(crate) fn of(settings: &Settings) -> Self {
        if settings.sizes_calls() { Self::PerCall } else { Self::SizedInstances }
    }
}

/// `by_kind!(simulator => arrive(function, waiting))`: what the simulator's kind does there.
macro_rules! by_kind {
    ($simulator:expr => $what:ident($($argument:expr),*)) => {{
        use $crate::kind::{Behaviour, Kind, PerCall, SizedInstances};
        match $simulator.kind {
            Kind::PerCall => PerCall::$what($simulator, $($argument),*),
            Kind::SizedInstances => SizedInstances::$what($simulator, $($argument),*),
        }
    }};
}
pub(crate) use by_kind;

/// What the kinds do differently.
pub(crate) trait Behaviour {
    /// A call comes: it starts or joins the queue of its function.
    fn arrive(sim: &mut Simulator<'_>, function: u32, waiting: Waiting);

    /// `node` has room and calls are waiting.
    fn use_room(sim: &mut Simulator<'_>, node: u32);

    /// How many calls of `function` are in need of an instance.
    fn in_need(sim: &Simulator<'_>, function: u32) -> u32;

    /// A call has left its instance; what it held itself is free again.
    fn give_back(sim: &mut Simulator<'_>, slot: u32);

    /// An instance has a free place.
    fn place_is_free(sim: &mut Simulator<'_>, function: u32, instance: u32);

    /// The calls of an instance were killed and wait again.
    fn after_kill(sim: &mut Simulator<'_>, function: u32);

    /// An instance begins to be idle.
    fn begin_idle(sim: &mut Simulator<'_>, instance: u32);

    /// An instance is idle no longer.
    fn end_idle(sim: &mut Simulator<'_>, instance: u32);

    /// An instance is gone.
    fn stop(sim: &mut Simulator<'_>, instance: u32);

    /// What an instance holds that starts ahead of any call.
    fn size_ahead(sim: &Simulator<'_>, function: u32) -> Allocation;

    /// Whether an instance that no call waits for may push out idle ones.
    fn evicts_ahead(sim: &Simulator<'_>) -> bool;

    /// An instance that starts ahead of any call begins to hold its size.
    fn hold_ahead(sim: &mut Simulator<'_>, instance: u32);

    /// Whether idle instances hold room that a new one may need, so that some are stopped for it.
    fn stops_idle_for_instances(sim: &Simulator<'_>) -> bool;

    /// The size that the next instance of `function` starts with, where calls and not ticks decide it.
    fn start_of_next(sim: &Simulator<'_>, function: u32) -> Option<Allocation>;
}
