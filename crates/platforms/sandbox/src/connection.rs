//! The manager's side of the spawner.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, Shutdown, shutdown};
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::error::SandboxError;
use crate::launch::Isolation;
use crate::spawner::{self, Setup};
use crate::syscalls::{Fork, fork};
use crate::wire::{Answer, Request, pair, receive, send};

/// The spawner kills and removes everything at its end; it gives up after 5 s itself.
const PATIENCE: Duration = Duration::from_secs(6);
const STEP: Duration = Duration::from_millis(1);

/// A child that the spawner handed out.
pub(crate) struct Claimed {
    pub(crate) slot: u64,
    pub(crate) pid: Pid,
    /// Orders go out here, statuses come in.
    pub(crate) control: OwnedFd,
    pub(crate) pidfd: OwnedFd,
}

/// The manager's side of the spawner.
pub(crate) struct Connection {
    socket: OwnedFd,
    /// Held from a request to its answer.
    claiming: Mutex<()>,
    spawner: Pid,
}

impl Connection {
    /// Starts the spawner.
    pub(crate) fn start(setup: Setup) -> Result<Self, SandboxError> {
        let (here, there) =
            pair().map_err(SandboxError::system("socketpair", "starting the spawner"))?;
        match fork().map_err(SandboxError::system("fork", "starting the spawner"))? {
            Fork::Child => spawner::run(setup, there),
            Fork::Parent(spawner) => Ok(Self { socket: here, claiming: Mutex::new(()), spawner }),
        }
    }

    /// Process id of the spawner.
    pub(crate) fn spawner(&self) -> Pid {
        self.spawner
    }

    /// Asks for a child.
    pub(crate) fn claim(&self, name: &str, isolation: Isolation) -> Result<Claimed, SandboxError> {
        let gone = |_: io::Error| SandboxError::SpawnerGone;
        let guard = self.claiming.lock().unwrap_or_else(PoisonError::into_inner);
        send(&self.socket, &Request::Claim { isolation }, &[]).map_err(gone)?;
        let answer = receive::<Answer>(&self.socket, RecvFlags::empty()).map_err(gone)?;
        drop(guard);
        let refused = |reason: String| SandboxError::Spawn { name: name.to_owned(), reason };
        match answer.ok_or(SandboxError::SpawnerGone)? {
            (Answer::Refused { reason }, _) => Err(refused(reason)),
            (Answer::Claimed { slot, pid }, descriptors) => {
                let mut descriptors = descriptors.into_iter();
                match (Pid::from_raw(pid), descriptors.next(), descriptors.next()) {
                    (Some(pid), Some(control), Some(pidfd)) => {
                        Ok(Claimed { slot, pid, control, pidfd })
                    }
                    // Descriptors get lost if this process has too many open.
                    _ => {
                        self.discard(slot);
                        Err(refused("no descriptors are left; raise `ulimit -n`".to_owned()))
                    }
                }
            }
        }
    }

    /// Gives a child back: it is killed and its groups are removed. Does not wait.
    pub(crate) fn discard(&self, slot: u64) {
        // A spawner that is gone took the child with it.
        let _ = send(self.socket.as_fd(), &Request::Discard { slot }, &[]);
    }

    /// Ends the spawner with all of its children, and waits until it is gone.
    pub(crate) fn end(&self) {
        let _ = shutdown(&self.socket, Shutdown::Both);
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            match waitpid(Some(self.spawner), WaitOptions::NOHANG) {
                Ok(None) => std::thread::sleep(STEP),
                _ => return,
            }
        }
    }
}
