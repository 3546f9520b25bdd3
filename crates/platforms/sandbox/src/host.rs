//! The machine as a place for instances.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::RecvFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::capabilities::{Capability, CapabilityName, CapabilityState, HostCapabilities};
use crate::connection::{Claimed, Connection};
use crate::control::{UNLIMITED, apply};
use crate::driver::{Driver, Picked};
use crate::error::SandboxError;
use crate::instance::{Instance, Output, Parts};
use crate::launch::{Bind, Isolation, Launch, Program};
use crate::rights::is_privileged;
use crate::spawner::Setup;
use crate::survey::{Trials, survey};
use crate::wire::{Order, Status, is_readable_within, receive, send};

/// A trial takes milliseconds, and longer only on a machine that is very busy.
const TRIAL_PATIENCE: Duration = Duration::from_secs(10);

/// A child of the run's protected parent group, besides the one that holds the instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child {
    /// The manager itself: gateway and agent.
    Gateway,
    /// The load generator, so that it meets its schedule whatever the functions do.
    Load,
}

impl Child {
    const fn group(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Load => "load",
        }
    }
}

/// Which cgroup driver to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriverChoice {
    /// The best one that works: cgroups (v1, hybrid or v2) or, without the rights for them, the emulated one.
    #[default]
    Best,
    /// Cgroups or an error.
    Cgroup,
    /// Without cgroups: signals, nice values, resource limits and `/proc`.
    Emulated,
}

/// How to start a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOptions {
    /// Which driver to use.
    pub driver: DriverChoice,
    /// Isolation of the children that are kept ready.
    pub isolation: Isolation,
    /// Children kept ready: isolated and in their groups, waiting for a program. Entering a group of cgroup v1 takes
    /// 7 ms when it happens rarely; a parked child has that behind it.
    pub parked: usize,
    /// CPU shares of the run's parent group. 262144 is the kernel's maximum: other programs on the machine then hardly
    /// disturb the run.
    pub shares: u32,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            driver: DriverChoice::Best,
            isolation: Isolation::Sandbox,
            parked: 4,
            shares: 262_144,
        }
    }
}

/// The machine as a place for instances: the spawner process, the cgroup tree of this run, and what both can do.
///
/// Dropping it ends the spawner, kills every instance and removes the groups of the run.
pub struct Host {
    capabilities: HostCapabilities,
    driver: Driver,
    is_privileged: bool,
    connection: Arc<Connection>,
    leftovers: Vec<String>,
}

impl Host {
    /// Removes leftovers of crashed runs, picks a driver, creates the groups of this run, starts the spawner and tries
    /// out what the machine permits.
    ///
    /// Call it before any thread exists: the spawner is a fork of this process.
    pub fn start(options: &HostOptions) -> Result<Self, SandboxError> {
        allow_descriptors();
        let Picked { driver, leftovers } = Driver::pick(options.driver, options.shares)?;
        let is_privileged = is_privileged();
        let setup = Setup {
            tree: driver.tree().cloned(),
            is_privileged,
            isolation: options.isolation,
            parked: options.parked,
        };
        let connection = Arc::new(Connection::start(setup)?);
        let capabilities = HostCapabilities { driver: driver.name(), capabilities: Vec::new() };
        let mut host = Self { capabilities, driver, is_privileged, connection, leftovers };
        if let Some(tree) = host.driver.tree() {
            // What it does counts as the manager's work and must not wait behind other programs.
            tree.join("gateway", host.spawner())?;
        }
        host.capabilities = host.survey()?;
        Ok(host)
    }

    /// Starts a process at each level of isolation that does everything but execute a program.
    fn survey(&self) -> Result<HostCapabilities, SandboxError> {
        let plain = self.connection.claim("trial", Isolation::Process)?;
        let levels = [Isolation::Sandbox, Isolation::SandboxUserns];
        let [sandbox, userns] = levels.map(|isolation| {
            let child = self.connection.claim("trial", isolation);
            child.map_err(|error| error.to_string()).and_then(|child| self.trial(&child))
        });
        let trials = Trials { sandbox, userns };
        let capabilities = survey(&self.driver, plain.slot, &trials, self.is_privileged);
        self.connection.discard(plain.slot);
        Ok(capabilities)
    }

    fn trial(&self, child: &Claimed) -> Result<(), String> {
        let nothing = File::open("/dev/null").map_err(|error| error.to_string())?;
        // A child that failed already has said why.
        let _ = send(&child.control, &Order::trial(), &[nothing.as_fd(); 4]);
        let mut reason = None;
        let outcome = loop {
            if !is_readable_within(&child.control, TRIAL_PATIENCE) {
                break Err(format!("no answer within {} s", TRIAL_PATIENCE.as_secs()));
            }
            match receive::<Status>(&child.control, RecvFlags::empty()) {
                Ok(Some((Status::Failed { reason: why }, _))) => reason = Some(why),
                Ok(Some((Status::Exited { code: 0 }, _))) => break Ok(()),
                other => break Err(reason.unwrap_or_else(|| format!("ended: {other:?}"))),
            }
        };
        self.connection.discard(child.slot);
        outcome
    }

    /// The level of isolation, if it is possible here.
    fn check(&self, isolation: Isolation) -> Result<(), SandboxError> {
        let name = match isolation {
            Isolation::Process => return Ok(()),
            Isolation::Sandbox => CapabilityName::IsolationSandbox,
            Isolation::SandboxUserns => CapabilityName::IsolationUserns,
        };
        match self.capabilities.get(name) {
            Some(Capability { state: CapabilityState::Absent, how, fix, .. }) => {
                let fix = fix.clone().unwrap_or_default();
                Err(SandboxError::Isolation { isolation, reason: how.clone(), fix })
            }
            _ => Ok(()),
        }
    }

    /// What this machine permits.
    pub fn capabilities(&self) -> &HostCapabilities {
        &self.capabilities
    }

    /// Parent groups of crashed runs that were removed at the start.
    pub fn leftovers(&self) -> &[String] {
        &self.leftovers
    }

    /// Process id of the spawner.
    pub fn spawner(&self) -> u32 {
        self.connection.spawner().as_raw_nonzero().get().unsigned_abs()
    }

    /// Starts an instance. Returns when its process exists and has its limits, not when it answers; a failure to
    /// execute the program is reported by [`Instance::exited`]. May be called from any thread.
    pub fn launch(&self, launch: &Launch) -> Result<Instance, SandboxError> {
        self.check(launch.isolation)?;
        let executable = open_executable(&launch.program)?;
        let (listener, address) = listen()?;
        let pipe = || {
            pipe_with(PipeFlags::CLOEXEC).map_err(SandboxError::system("pipe", "catching output"))
        };
        let ((stdout, to_stdout), (stderr, to_stderr)) = (pipe()?, pipe()?);
        let order = self.order(launch)?;
        let child = self.connection.claim(&launch.name, launch.isolation)?;
        let prepared = self.driver.control(&child).map(|mut control| {
            let in_force = apply(control.as_mut(), &launch.limits, &UNLIMITED);
            let descriptors =
                [executable.as_fd(), listener.as_fd(), to_stdout.as_fd(), to_stderr.as_fd()];
            // A child that has failed says why when the instance is asked for its exit.
            let _ = send(&child.control, &order, &descriptors);
            (control, in_force)
        });
        let (control, in_force) = prepared.inspect_err(|_| self.connection.discard(child.slot))?;
        Ok(Instance::new(Parts {
            name: launch.name.clone(),
            address,
            child,
            control,
            in_force,
            output: Output { stdout, stderr },
            connection: Arc::clone(&self.connection),
        }))
    }

    fn order(&self, launch: &Launch) -> Result<Order, SandboxError> {
        let program = &launch.program;
        let path = std::fs::canonicalize(&program.executable)
            .map_err(SandboxError::file("find", &program.executable))?;
        let is_visible = launch.isolation == Isolation::Process || path.starts_with("/usr");
        let files = program.files.iter().map(resolve).collect::<Result<_, _>>()?;
        Ok(Order {
            name: launch.name.clone(),
            path: is_visible.then(|| path.display().to_string()),
            arguments: program.arguments.clone(),
            environment: launch.environment.clone(),
            files,
            scratch_mib: launch.scratch.get().max(1),
            most_processes: self.most_processes(launch),
            is_trial: false,
        })
    }

    /// Without groups, a user namespace of its own makes a limit per user one per instance.
    fn most_processes(&self, launch: &Launch) -> Option<u32> {
        let is_alone = !self.is_privileged && launch.isolation != Isolation::Process;
        (self.driver.tree().is_none() && is_alone).then_some(launch.limits.pids)
    }

    /// Moves the calling process with all of its threads into the group of `child`, for protection against other
    /// programs on the machine. Without effect where there are no groups. Undone when the host is dropped.
    pub fn join(&self, child: Child) -> Result<(), SandboxError> {
        self.driver.tree().map_or(Ok(()), |tree| tree.join(child.group(), 0))
    }

    /// Moves another process, for instance a load generator that was started as a program of its own.
    pub fn join_process(&self, child: Child, pid: u32) -> Result<(), SandboxError> {
        self.driver.tree().map_or(Ok(()), |tree| tree.join(child.group(), pid))
    }

    /// Moves only the calling thread; possible on cgroup v1. Returns whether it was moved.
    pub fn join_thread(&self, child: Child) -> Result<bool, SandboxError> {
        self.driver.tree().map_or(Ok(false), |tree| tree.join_thread(child.group()))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(tree) = self.driver.tree() {
            tree.leave();
        }
        self.connection.end();
        if let Some(tree) = self.driver.tree() {
            tree.remove();
        }
    }
}

/// An instance takes about 20 descriptors of the manager, so 200 of them exceed the usual soft limit of 1024.
fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let highest = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Raising it up to the hard limit needs no right.
    let _ = setrlimit(Resource::Nofile, highest);
}

/// Opens the executable with the manager's rights; the child executes it by descriptor.
fn open_executable(program: &Program) -> Result<File, SandboxError> {
    File::options()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_CLOEXEC)
        .open(&program.executable)
        .map_err(SandboxError::file("open", &program.executable))
}

fn listen() -> Result<(TcpListener, SocketAddr), SandboxError> {
    let failed = SandboxError::system("bind", "making a listener on 127.0.0.1");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    let failed = SandboxError::system("getsockname", "making a listener on 127.0.0.1");
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Free of symbolic links, because the child resolves it below another root.
fn resolve(file: &Bind) -> Result<Bind, SandboxError> {
    let source =
        std::fs::canonicalize(&file.source).map_err(SandboxError::file("find", &file.source))?;
    Ok(Bind { source, target: file.target.clone() })
}
