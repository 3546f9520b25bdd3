//! What can go wrong with instances.

use std::io;
use std::path::PathBuf;

use crate::launch::Isolation;

/// Why the host or one of its instances could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A file of the kernel or of the program could not be used.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried: read, write, create, remove, open.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A system call failed.
    #[error("{call} failed while {doing}: {source}")]
    System {
        /// The system call.
        call: &'static str,
        /// What it was needed for.
        doing: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A setting that no driver accepts.
    #[error("{what} is {value}; allowed is {allowed}")]
    Setting {
        /// The setting.
        what: &'static str,
        /// What was given.
        value: String,
        /// What may be given.
        allowed: &'static str,
    },
    /// The level of isolation is not possible on this machine.
    #[error("isolation `{isolation}` is not possible here: {reason}; {fix}")]
    Isolation {
        /// The level that was asked for.
        isolation: Isolation,
        /// What the kernel refused.
        reason: String,
        /// What to do.
        fix: String,
    },
    /// A driver that was asked for by name and is not possible on this machine.
    #[error("the cgroup driver `{driver}` is not possible here: {reason}; {fix}")]
    Driver {
        /// The driver that was asked for.
        driver: &'static str,
        /// What is missing.
        reason: String,
        /// What to do.
        fix: String,
    },
    /// The spawner could not make a process.
    #[error("the spawner cannot make a process for `{name}`: {reason}")]
    Spawn {
        /// Name given at launch.
        name: String,
        /// What the kernel refused.
        reason: String,
    },
    /// The spawner process ended; every instance ended with it.
    #[error("the spawner process is gone, and every instance with it; start a new host")]
    SpawnerGone,
    /// The instance ended before the operation.
    #[error("the instance `{name}` has ended")]
    Ended {
        /// Name given at launch.
        name: String,
    },
}

impl SandboxError {
    /// For use with `map_err` on one file.
    pub(crate) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }

    /// For use with `map_err` on one system call.
    pub(crate) fn system<E: Into<io::Error>>(
        call: &'static str,
        doing: &'static str,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self::System { call, doing, source: source.into() }
    }
}
