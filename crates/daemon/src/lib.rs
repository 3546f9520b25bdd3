//! The manager as a service: the control loop in wall time over any platform, its state, its HTTP API and its dashboard.
//!
//! ```text
//!            ┌──────────── control thread ─────────────┐
//!  platform ─┤ Supervisor: step ─► tick ─► LedgerPlatform ├─► platform
//!            │    │                          │         │
//!            └────┼──────────────────────────┼─────────┘
//!                 ▼                          ▼
//!               Live ◄── api ◄── browser   SQLite ◄── writer thread
//!                 ▲        │
//!             Governance ◄─┘ orders: mode, kill switch, pause, pin, policy
//! ```
//!
//! Clocks are read in [`service`] alone; a [`Supervisor`] gets the time as an argument.

pub mod api;
pub mod client;
pub mod database;
pub mod embedded;
pub mod governance;
pub mod health;
pub mod learning;
pub mod live;
pub mod managed_platform;
pub mod orders;
pub mod service;
pub mod simulated;
pub mod summary;
pub mod supervisor;
pub mod switched_calls;

pub use api::{Server, random_token};
pub use governance::{Governance, Hold, Mode};
pub use live::Live;
pub use managed_platform::{ManagedPlatform, PlatformKind};
pub use orders::{Command, Desk};
pub use service::{Clock, Service};
pub use supervisor::{Supervisor, SupervisorSettings, prepare};
