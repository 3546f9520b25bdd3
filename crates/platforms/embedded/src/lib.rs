//! The embedded platform: real functions under real limits on one machine.
//!
//! ```text
//!   OpenWhisk's API ─► Gateway ─ messages ─► agent thread: Pool · NodeBook · CallControl · deadlines
//!                        │                     │
//!                        └── /init, /run ────► instances: processes of the sandbox
//!
//!   ControlLoop (ticks) ─► EmbeddedPlatform ─► agent thread
//! ```
//!
//! - [`pool`]: which instance serves which call, as a state machine without a clock.
//! - [`agent`]: the thread that owns the node and carries out what pool and control decide.
//! - [`gateway`]: calls of actions, from arrival to answer.
//! - [`EmbeddedPlatform`]: the tick side.
//! - [`service`]: all of it on one address, with records in SQLite.

pub mod agent;
pub mod bench;
mod clock;
mod exchange;
mod function;
pub mod gateway;
mod http_client;
mod link;
mod logs;
mod platform;
pub mod pool;
pub mod service;
#[cfg(any(test, feature = "trial"))]
pub mod trial;

pub use agent::{Agent, AgentSettings, Machine, NodeLevels, Status, Worker};
pub use clock::Clock;
pub use function::FunctionSpec;
pub use gateway::{Gateway, GatewaySettings};
pub use platform::EmbeddedPlatform;
pub use service::{Deciders, Service, ServiceError, ServiceSettings};
