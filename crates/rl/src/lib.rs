//! Learning: environments to act in, networks, algorithms, checkpoints.
//!
//! ```text
//!   ENVIRONMENT ──► observation row ──► POLICY ──► action ──► ENVIRONMENT
//!        │                                ▲
//!        └─► rollout or replay ──► ALGORITHM ──► checkpoint
//! ```
//!
//! | I look for | It is in |
//! | --- | --- |
//! | what an environment must do | [`mod@env`] |
//! | an algorithm, top to bottom | [`algorithms`] |
//! | advantages, value losses, normalisation, schedules, choices | [`advantages`], [`value_loss`], [`normalise`], [`schedule`], [`categorical`] |
//! | networks, gradients, Adam | [`net`] |
//! | a trained policy without allocation | [`policy`] |
//! | files | [`checkpoint`] |
//! | mean and spread over seeds | [`spread`] |
//! | an algorithm or an environment by its name | [`any_learner`], [`catalogue`] |
//! | an environment for other languages | [`conversation`]; for Python the package of `docs/guide/python.md` |
//!
//! The same seed gives the same bytes, on any number of threads and with or without AVX2. Every random
//! stream is derived from the seed, a name and the number of the iteration, so a checkpoint needs no
//! state of a generator and resuming is exact.

pub mod advantages;
pub mod algorithms;
pub mod any_learner;
pub mod bench;
pub mod catalogue;
pub mod categorical;
pub mod checkpoint;
pub mod conversation;
pub mod env;
pub mod learner;
pub mod net;
pub mod normalise;
pub mod parallel;
pub mod player;
pub mod policy;
pub mod random;
pub mod replay;
pub mod rollout;
pub mod schedule;
pub mod spread;
pub mod toy;
pub mod training;
pub mod value_loss;

pub use any_learner::{AnySettings, Kind};
pub use catalogue::{Entry, Split};
pub use checkpoint::{Checkpoint, CheckpointError};
pub use env::{End, Environment, Feature, Spec, Step, VectorEnv};
pub use learner::{IterationReport, Learner};
pub use policy::{Decide, NetworkPolicy, ScorePolicy, evaluate};
pub use spread::Spread;
