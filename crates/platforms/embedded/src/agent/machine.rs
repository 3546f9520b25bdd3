//! What starts processes, sets their limits and reads their sensors: the sandbox, or a stand-in for tests.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use windfall_core::{CallCapabilities, Support};
use windfall_sandbox::{
    CapabilityName, CapabilityState, Exit, Host, InForce, Instance, Launch, Limits, Sensors,
};

/// A place where instances can be started, from any thread.
pub trait Machine: Send + Sync + 'static {
    /// Starts a process; returns when it exists, not when it answers.
    fn launch(&self, launch: &Launch) -> Result<Box<dyn Worker>, String>;
    /// What can be set for it.
    fn capabilities(&self) -> MachineCapabilities;
}

/// What a machine can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineCapabilities {
    /// Per call.
    pub calls: CallCapabilities,
    /// Whether processes can be paused.
    pub pauses: bool,
}

impl MachineCapabilities {
    /// The CPU guarantee of an instance.
    pub(crate) fn cpu(self) -> Support {
        if self.calls.cpu_weight { Support::Live } else { Support::Absent }
    }

    /// The CPU ceiling of an instance.
    pub(crate) fn cpu_ceiling(self) -> Support {
        if self.calls.cpu_ceiling { Support::Live } else { Support::Absent }
    }

    /// The memory of an instance.
    pub(crate) fn memory(self) -> Support {
        if self.calls.memory_live { Support::Live } else { Support::AtStart }
    }
}

/// One process, or a tree of them. Dropping it ends it.
pub trait Worker: Send {
    /// Where it accepts connections.
    fn address(&self) -> SocketAddr;
    /// Changes its limits; what is in force then.
    fn set(&mut self, limits: &Limits) -> InForce;
    /// What it used so far; nothing if that cannot be read.
    fn sense(&mut self) -> Option<Sensors>;
    /// Starts a new memory peak from what is in use now.
    fn reset_memory_peak(&mut self);
    /// Pauses it or lets it go on; whether that worked.
    fn pause(&mut self, is_paused: bool) -> bool;
    /// Read ends of standard output and standard error, once.
    fn take_output(&mut self) -> Option<(OwnedFd, OwnedFd)>;
    /// A descriptor that is readable when it has ended, if there is one.
    fn exit_descriptor(&self) -> Option<OwnedFd>;
    /// How it ended; nothing while it runs.
    fn exited(&mut self) -> Option<Exit>;
    /// Ends it and waits until it is gone.
    fn kill(self: Box<Self>) -> Exit;
}

impl Machine for Host {
    fn launch(&self, launch: &Launch) -> Result<Box<dyn Worker>, String> {
        match Self::launch(self, launch) {
            Ok(instance) => Ok(Box::new(instance)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn capabilities(&self) -> MachineCapabilities {
        let all = Self::capabilities(self);
        let has = |name| all.state(name) != CapabilityState::Absent;
        MachineCapabilities {
            calls: CallCapabilities {
                cpu_weight: has(CapabilityName::CpuWeight),
                cpu_ceiling: has(CapabilityName::CpuQuota),
                cpu_live: has(CapabilityName::CpuQuota) || has(CapabilityName::CpuWeight),
                memory_live: has(CapabilityName::MemoryLimit),
            },
            pauses: has(CapabilityName::Freezer),
        }
    }
}

impl Worker for Instance {
    fn address(&self) -> SocketAddr {
        Self::address(self)
    }

    fn set(&mut self, limits: &Limits) -> InForce {
        Self::set(self, limits).clone()
    }

    fn sense(&mut self) -> Option<Sensors> {
        Self::sense(self).ok()
    }

    fn reset_memory_peak(&mut self) {
        // Without a reset the peak is that of the instance so far, which is what a warm process really needs.
        let _ = Self::reset_memory_peak(self);
    }

    fn pause(&mut self, is_paused: bool) -> bool {
        let done = if is_paused { Self::freeze(self) } else { Self::thaw(self) };
        done.is_ok()
    }

    fn take_output(&mut self) -> Option<(OwnedFd, OwnedFd)> {
        Self::take_output(self).map(|output| (output.stdout, output.stderr))
    }

    fn exit_descriptor(&self) -> Option<OwnedFd> {
        Self::exit_descriptor(self).try_clone_to_owned().ok()
    }

    fn exited(&mut self) -> Option<Exit> {
        Self::exited(self)
    }

    fn kill(self: Box<Self>) -> Exit {
        Self::kill(*self)
    }
}
