//! Builds a policy with its safeguards from a name.
//!
//! ```text
//!   windfall                  ─► entries            ─┐
//!   kpa, hpa, vpa, autopilot  ─► entries/incumbents ─┼─► assemble ─► Assembled: policy and safeguards
//!   CALLS+TICKS               ─► two entries        ─┤
//!   night.safetensors         ─► checkpoint_policy  ─┘
//! ```
//!
//! This crate does not depend on the simulator, so a driver of a real platform can use the same policies behind
//! the same safeguards without it.

mod assemble;
pub mod checkpoint_policy;
mod entries;

pub use assemble::{AssembleError, PolicySettings, assemble, sizes_single_calls};
pub use entries::{
    Admission, Assembled, CALL_SAFEGUARDS, PolicyEntry, PolicyTable, REGISTRY, call_safeguard,
    entry, is_known, names, pair, read_manifest,
};
