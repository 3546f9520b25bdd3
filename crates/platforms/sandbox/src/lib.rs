//! Instances as isolated processes under cgroups: spawner, namespaces, limits and sensors.
//!
//! ```text
//!  manager (many threads)                      spawner (one thread)             instance
//!  Host::launch ──────── request ────────────► take a parked child ───────────► joined its groups,
//!     │          ◄─ pid, control socket ─────  or clone3 a new one               namespaces, root file system
//!     └─ limits into the groups, then the order (program, listener, pipes) ────► drop privileges, execve
//!  Instance::set / sense / freeze: kept descriptors of the group's files
//!  drop of an Instance ── discard ───────────► kill, reap, remove the groups
//! ```
//!
//! The manager never forks: a [`Host`] starts the spawner before any thread exists, and the spawner creates every
//! instance. If the manager ends in whatever way, the spawner reads the end of its socket, kills what it started,
//! removes the groups and ends; if the spawner is killed too, the kernel kills the instances (`PR_SET_PDEATHSIG`) and
//! the next [`Host`] removes the empty groups.
//!
//! An instance accepts on an inherited listener (descriptor 3), so it needs no network of its own and the first
//! request waits in the backlog until the program is ready.

mod capabilities;
mod cgroup;
mod connection;
mod control;
mod driver;
mod emulated;
mod error;
mod exit;
mod host;
mod instance;
mod launch;
mod limits;
mod rights;
mod sensors;
mod spawner;
mod survey;
mod syscalls;
mod wire;

pub use capabilities::{Capability, CapabilityName, CapabilityState, HostCapabilities};
pub use error::SandboxError;
pub use exit::Exit;
pub use host::{Child, DriverChoice, Host, HostOptions};
pub use instance::{Instance, Output};
pub use launch::{Bind, Isolation, Launch, Program};
pub use limits::{InForce, Limits, Quota, Setting};
pub use sensors::{Pressure, Sensors};
