//! Environments on the simulator: worlds in which a learner scales functions.
//!
//! ```text
//!   FUNCTIONS  measured service law ([`profile`]) x Azure-like load by the minute ([`pattern`])
//!       │
//!       ▼
//!   WORLD      nodes in virtual time, one tick every 5 s, safeguards between decision and plan ([`world`])
//!       │
//!       ├─► windfall/Scaling-v0        one function learns, neighbours follow a rule     ([`scaling`])
//!       ├─► windfall/MultiScaling-v0   every function has an agent                       ([`multi`])
//!       ├─► windfall/MultiScaling-v1   the same on fixed nodes, CPU by weight            ([`shared_nodes`])
//!       ├─► windfall/Sizing-v0         the size of the next call, on another world      ([`sizing`])
//!       └─► classic policies           the same world, the same reward                   ([`classic`])
//! ```
//!
//! | I look for | It is in |
//! | --- | --- |
//! | what an action does, which ones are allowed | [`moves`] |
//! | what a tick pays, term by term | [`reward`] |
//! | how latency is counted, waiting calls included | [`meter`] |
//! | which functions and hours are for training, which for testing | [`windfall_rl::Split`], [`pattern`] |
//! | where an objective comes from | [`knee`] |
//! | PPO beside the classic policies, on the test part | [`contest`] |
//! | environments by name | [`ENTRIES`] |
//! | the same from Python | `docs/guide/python.md` |

mod chain;
pub mod classic;
pub mod contest;
mod entries;
pub mod knee;
pub mod meter;
pub mod moves;
pub mod multi;
pub mod oracle;
pub mod pattern;
pub mod profile;
pub mod reward;
mod rivals;
pub mod scaling;
pub mod shared_nodes;
pub mod sizing;
pub mod traffic;
pub mod world;

pub use entries::ENTRIES;
pub use moves::{Move, Moves};
pub use multi::MultiScaling;
pub use reward::{Paid, RewardSettings};
pub use rivals::rivals;
pub use scaling::Scaling;
pub use shared_nodes::{SharedScaling, SharedSettings};
pub use sizing::Sizing;
pub use traffic::FunctionSetup;
pub use windfall_rl::Split;
pub use world::{World, WorldSettings};
