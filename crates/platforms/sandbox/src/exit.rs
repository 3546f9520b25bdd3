//! How an instance ended.

use std::fmt;

/// How an instance ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The program ended by itself with this code.
    Code(i32),
    /// A signal ended it: a crash, or the caller's own [`kill`](crate::Instance::kill). In a sandbox the program is the
    /// first process of its pid namespace and does not receive signals it sends itself, so `abort` appears as
    /// SIGSEGV (11) instead of SIGABRT (6).
    Signal(i32),
    /// The kernel killed it because it exceeded its memory limit.
    OutOfMemory,
    /// The program never ran: a step of its start failed, for instance because the executable does not exist.
    NotStarted(String),
    /// The spawner was killed, and the instance with it.
    SpawnerGone,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => write!(f, "killed by signal {signal}"),
            Self::OutOfMemory => write!(f, "killed because it exceeded its memory limit"),
            Self::NotStarted(reason) => write!(f, "not started: {reason}"),
            Self::SpawnerGone => write!(f, "killed with the spawner process"),
        }
    }
}
