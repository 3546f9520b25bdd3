//! One running instance.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::net::RecvFlags;
use rustix::process::Signal;

use crate::connection::{Claimed, Connection};
use crate::control::{Control, apply};
use crate::error::SandboxError;
use crate::exit::Exit;
use crate::limits::{InForce, Limits};
use crate::sensors::Sensors;
use crate::wire::{Status, receive};

/// Standard output and standard error of an instance, as read ends of pipes.
#[derive(Debug)]
pub struct Output {
    /// Standard output.
    pub stdout: OwnedFd,
    /// Standard error.
    pub stderr: OwnedFd,
}

/// One running instance. Dropping it kills all of its processes and removes its groups, without waiting.
pub struct Instance {
    name: String,
    address: SocketAddr,
    child: Claimed,
    control: Box<dyn Control>,
    in_force: InForce,
    output: Option<Output>,
    /// What the child reported before it ended.
    failure: Option<String>,
    is_killed: bool,
    exit: Option<Exit>,
    connection: Arc<Connection>,
}

/// What a new instance is made of.
pub(crate) struct Parts {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    pub(crate) child: Claimed,
    pub(crate) control: Box<dyn Control>,
    pub(crate) in_force: InForce,
    pub(crate) output: Output,
    pub(crate) connection: Arc<Connection>,
}

impl Instance {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { name, address, child, control, in_force, output, connection } = parts;
        Self {
            name,
            address,
            child,
            control,
            in_force,
            output: Some(output),
            failure: None,
            is_killed: false,
            exit: None,
            connection,
        }
    }

    /// Name given at launch.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it accepts connections. The first request waits in the backlog until the program is ready.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Process id as the machine sees it.
    pub fn pid(&self) -> u32 {
        self.child.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// The limits in force now.
    pub fn in_force(&self) -> &InForce {
        &self.in_force
    }

    /// Changes the limits; reports per resource what is in force and why it differs. Takes microseconds, except for a
    /// memory limit below the page cache in use (cgroup v1 reclaims it first: about 5 ms).
    pub fn set(&mut self, limits: &Limits) -> &InForce {
        self.in_force = apply(self.control.as_mut(), limits, &self.in_force.limits());
        &self.in_force
    }

    /// What it used so far, up to its end.
    pub fn sense(&mut self) -> Result<Sensors, SandboxError> {
        self.control.sense().map_err(SandboxError::system("read", "reading the sensors"))
    }

    /// Starts a new memory peak from what is in use now.
    pub fn reset_memory_peak(&mut self) -> Result<(), SandboxError> {
        let doing = "resetting the memory peak";
        self.control.reset_memory_peak().map_err(SandboxError::system("write", doing))
    }

    /// Stops all of its processes; they use no CPU until [`thaw`](Self::thaw). Returns when they are stopped.
    pub fn freeze(&mut self) -> Result<(), SandboxError> {
        self.control.set_frozen(true).map_err(SandboxError::system("write", "freezing"))
    }

    /// Lets a frozen instance go on.
    pub fn thaw(&mut self) -> Result<(), SandboxError> {
        self.control.set_frozen(false).map_err(SandboxError::system("write", "thawing"))
    }

    /// Standard output and standard error, once.
    pub fn take_output(&mut self) -> Option<Output> {
        self.output.take()
    }

    /// How it ended; nothing while it runs. Never waits.
    pub fn exited(&mut self) -> Option<Exit> {
        while self.exit.is_none() {
            match receive::<Status>(&self.child.control, RecvFlags::DONTWAIT) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                status => self.note(status),
            }
        }
        self.exit.clone()
    }

    /// Readable when [`exited`](Self::exited) should be asked again; for `tokio::io::unix::AsyncFd`.
    pub fn exit_descriptor(&self) -> BorrowedFd<'_> {
        self.child.control.as_fd()
    }

    /// Kills it and waits until it is gone. One in which the kernel has killed a process for memory by then counts as
    /// killed for memory: the rest of it may only not have ended yet.
    pub fn kill(mut self) -> Exit {
        if self.exited().is_none() {
            self.is_killed = self.control.oom_kills() == 0;
            // The group first; the process alone if there is no group, or it cannot be killed as a whole.
            let _ = self.control.kill();
            let _ = rustix::process::pidfd_send_signal(&self.child.pidfd, Signal::KILL);
        }
        loop {
            if let Some(exit) = self.exit.take() {
                return exit;
            }
            let status = receive::<Status>(&self.child.control, RecvFlags::empty());
            self.note(status);
        }
    }

    /// Takes a status, or the end of the socket, into account.
    fn note(&mut self, status: io::Result<Option<(Status, Vec<OwnedFd>)>>) {
        self.exit = match status {
            Ok(Some((Status::Failed { reason }, _))) => {
                self.failure = Some(reason);
                None
            }
            Ok(Some((Status::Exited { code }, _))) => Some(match self.failure.take() {
                Some(reason) => Exit::NotStarted(reason),
                None => Exit::Code(code),
            }),
            Ok(Some((Status::Killed { signal }, _))) => Some(self.killed_by(signal)),
            Ok(None) | Err(_) => Some(Exit::SpawnerGone),
        };
    }

    /// The kernel's memory killer sends SIGKILL as well and counts it; only both together are a proof.
    fn killed_by(&mut self, signal: i32) -> Exit {
        let by_kernel = signal == libc::SIGKILL && !self.is_killed && self.control.oom_kills() > 0;
        if by_kernel { Exit::OutOfMemory } else { Exit::Signal(signal) }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.connection.discard(self.child.slot);
    }
}
