//! OpenWhisk's REST API over any runner of actions: entities, activation records in SQLite, limits and keys.
//!
//! ```text
//!  wsk, npm client, curl ─► router ─┬─► entities (in memory, written through to the store)
//!                                   ├─► Runner::run ─► Ran ─► record ─► answer
//!                                   └─► Store: one writer thread, group commit; readers beside it
//! ```

mod action;
mod activation_id;
mod api;
mod entities;
mod entity;
mod identity;
mod key_values;
mod name;
mod parameters;
mod run_answer;
mod runner;
mod settings;
mod store;
mod version;

pub use action::{Action, ActionLimits, Code, Exec, SEQUENCE_KIND};
pub use activation_id::{ActivationId, ActivationIds, BadActivationId};
pub use api::{ApiState, router};
#[cfg(feature = "fuzzing")]
pub use api::{read_action, read_query, read_web_request};
pub use identity::{BadKey, Identity, Key};
pub use key_values::{KeyValue, KeyValues};
pub use name::{BadName, EntityName, FullName, LONGEST_NAME, OWN_NAMESPACE};
#[cfg(feature = "fuzzing")]
pub use parameters::merge_parameters;
pub use runner::{Arrival, Call, Granted, Outcome, Ran, Runner, StartKind, Times};
pub use settings::{ApiSettings, Bounds, Kind, Throttle};
pub use store::{Retention, Store, StoreError, StoreSettings};
pub use version::{BadVersion, Version};
