//! A name becomes a guarded policy.
//!
//! ```text
//!   windfall                  ─► entries            ─┐
//!   kpa, hpa, vpa, autopilot  ─► entries/incumbents ─┼─► assemble ─► Assembled: policy and safeguards
//!   CALLS+TICKS               ─► two entries        ─┤
//!   night.safetensors         ─► checkpoint_policy  ─┘
//! ```
//!
//! There is no simulator behind this crate: whoever drives a real platform needs the same policies behind the
//! same safeguards, and must not drag a simulated cluster along.

mod assemble;
pub mod checkpoint_policy;
mod entries;

pub use assemble::{AssembleError, PolicySettings, assemble, sizes_single_calls};
pub use entries::{
    Assembled, CALL_SAFEGUARDS, PolicyEntry, PolicyTable, REGISTRY, call_safeguard, entry,
    is_known, names, pair, read_manifest,
};
