//! The two loops and what keeps them safe.
//!
//! ```text
//!  tick:  observe ─► policy ─► safeguards ─► submit ─► record      ControlLoop, every few seconds
//!  call:  size ─► start ─► look ─► look ─► … ─► close              CallLoop, once per request
//! ```
//!
//! Both loops ask a policy that may be wrong in any way: it can fail, panic, ask for NaN, or flap. A failed or
//! senseless decision is replaced by a fallback that restores what the user reserved; a policy that keeps
//! failing is put in [`quarantine`]; everything else goes through the safeguards, which leave an
//! amendment wherever they step in. A shadow policy can be asked beside either loop and is never obeyed.

pub mod admission;
pub mod call_loop;
pub mod call_safeguards;
pub mod harvest_pool;
pub mod node_book;
mod node_ledger;
pub mod quarantine;
pub mod restore;
pub mod safeguards;
pub mod tick_loop;

pub use admission::{AdmissionBook, AdmissionSettings, CautionSettings, Predictor};
pub use call_loop::{CallCounters, CallLoop};
pub use harvest_pool::{Coverage, HarvestPool, Recall};
pub use node_book::{NodeBook, Payment};
pub use quarantine::Quarantine;
pub use restore::RestoreReservations;
pub use tick_loop::{ControlLoop, TickCounters};
