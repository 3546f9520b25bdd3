//! A name becomes a guarded policy.
//!
//! ```text
//!   windfall                  ─► entries            ─┐
//!   kpa, hpa, vpa, autopilot  ─► entries/incumbents ─┼─► Assembled: policy and safeguards, ready to run
//!   CALLS+TICKS               ─► two entries        ─┤
//!   night.safetensors         ─► checkpoint_policy  ─┘
//! ```
//!
//! There is no simulator behind this crate: whoever drives a real platform needs the same policies behind the
//! same safeguards, and must not drag a simulated cluster along.

pub mod checkpoint_policy;
mod entries;

pub use entries::{
    Assembled, CALL_SAFEGUARDS, PolicyEntry, PolicyTable, REGISTRY, call_safeguard, entry,
    is_known, names, pair, read_manifest,
};
