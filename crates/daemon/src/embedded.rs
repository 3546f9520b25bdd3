//! The embedded platform behind the manager: real functions in real processes, OpenWhisk's API in front of them.
//!
//! ```text
//!   wsk, windfall fn, the load ─► OpenWhisk's API ─► gateway ─► agent thread ─► instances
//!                                                                │    ▲
//!                  records of ended calls, observations, levels ◄┘    └ plans, sizes of calls
//!                                     └────────► Supervisor ──────────┘
//! ```
//!
//! The agent's clock is the manager's clock, so that times in records need no translation.

pub mod load;
mod on_gateway;
pub mod samples;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use windfall_core::{
    Allocation, CallControl, CallRecord, Capabilities, FunctionProfile, Observation, Plan,
    Platform, PlatformError, Receipt, TelemetrySink, Timestamp,
};
use windfall_embedded::pool::SizedBy;
use windfall_embedded::{
    AgentSettings, Deciders, EmbeddedPlatform, GatewaySettings, NodeLevels, Service, ServiceError,
    ServiceSettings,
};
use windfall_sandbox::{Host, Isolation};

use crate::managed_platform::{Invoker, ManagedPlatform, NodeBar, PlatformKind};
use crate::service::Clock;
use on_gateway::OnGateway;

/// Namespace of the functions that users deploy here; not shown in front of their names.
const NAMESPACE: &str = "guest/";

/// How the platform is set up.
#[derive(Clone, Debug)]
pub struct EmbeddedWorld {
    /// Where OpenWhisk's API listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The file with functions and activation records.
    pub database: PathBuf,
    /// What may be granted on this machine.
    pub limit: Allocation,
    /// How strictly functions are isolated.
    pub isolation: Isolation,
    /// Whose size the limits are: the call's or the instance's.
    pub sized_by: SizedBy,
}

/// Why the platform does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddedError {
    /// Fatal: no runtime.
    #[error("the runtime cannot be started: {0}")]
    Runtime(std::io::Error),
    /// Fatal: an address, a file or a thread.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

/// The running platform.
pub struct ManagedEmbedded {
    /// Taken out when it is released.
    platform: Option<EmbeddedPlatform>,
    capabilities: Capabilities,
    functions: Vec<FunctionProfile>,
    ended: Arc<Mutex<Vec<CallRecord>>>,
    bar: NodeBar,
    /// Levels since the last tick.
    levels: MeanLevels,
    kind: PlatformKind,
    clock: Clock,
    address: SocketAddr,
    key: String,
    on_gateway: Arc<OnGateway>,
    serving: Option<Serving>,
}

/// Levels of the node, averaged over the samples since the last tick: calls of 30 ms are running or not at any single
/// moment, and a bar that jumps between nothing and everything shows neither.
#[derive(Clone, Copy, Debug, Default)]
struct MeanLevels {
    /// Cores reserved, granted, harvested, lent and held back.
    sums: [f64; 5],
    samples: u32,
}

impl MeanLevels {
    fn see(&mut self, levels: &NodeLevels) {
        let cpu =
            [levels.reserved, levels.granted.cpu, levels.harvested, levels.lent, levels.held_back];
        self.sums.iter_mut().zip(cpu).for_each(|(sum, cpu)| *sum += cpu.cores());
        self.samples += 1;
    }

    fn mean(self) -> [f64; 5] {
        self.sums.map(|sum| sum / f64::from(self.samples.max(1)))
    }
}

/// What ends with the platform, in this order.
struct Serving {
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
    runtime: Runtime,
    host: Arc<Host>,
}

/// Collects the calls that have ended.
struct Tap(Arc<Mutex<Vec<CallRecord>>>);

impl TelemetrySink for Tap {
    fn call(&mut self, call: &CallRecord) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(call.clone());
    }
}

impl ManagedEmbedded {
    /// Starts agent, gateway and API on `host`, with calls sized by `control`.
    pub fn start(
        world: &EmbeddedWorld,
        host: Host,
        control: impl CallControl + 'static,
    ) -> Result<Self, EmbeddedError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("platform")
            .enable_all()
            .build()
            .map_err(EmbeddedError::Runtime)?;
        let kind = match host.capabilities().driver {
            "emulated" => PlatformKind::Emulated,
            _ => PlatformKind::Embedded,
        };
        let mut agent = AgentSettings::new(world.limit);
        agent.pool.sized_by = world.sized_by;
        let settings = ServiceSettings {
            listen: world.listen,
            database: world.database.clone(),
            agent,
            gateway: GatewaySettings { isolation: world.isolation, ..GatewaySettings::default() },
            deploys_builtins: false,
            tick: std::time::Duration::from_secs(2),
        };
        let ended = Arc::new(Mutex::new(Vec::new()));
        let sinks: Vec<Box<dyn TelemetrySink>> = vec![Box::new(Tap(Arc::clone(&ended)))];
        let deciders = Deciders { control: Box::new(control), ticks: None, sinks };
        let host = Arc::new(host);
        let machine = Arc::clone(&host) as _;
        let service = runtime.block_on(Service::start(settings, machine, deciders))?;
        let agent = Arc::clone(service.agent());
        let gateway = Arc::clone(service.gateway());
        let (address, key) = (service.address(), service.key().to_string());
        let on_gateway = Arc::new(OnGateway::new(gateway, runtime.handle().clone()));
        let (stop, stopped) = oneshot::channel();
        // A sender that is gone asks for an end just as well.
        let task = runtime.spawn(service.serve(async { drop(stopped.await) }));
        Ok(Self {
            capabilities: agent.capabilities(),
            clock: Clock::began_at(agent.clock().started()),
            platform: Some(EmbeddedPlatform::new(agent)),
            functions: Vec::new(),
            ended,
            bar: NodeBar::default(),
            levels: MeanLevels::default(),
            kind,
            address,
            key,
            on_gateway,
            serving: Some(Serving { stop, task, runtime, host }),
        })
    }

    /// The clock that all its times refer to.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Where OpenWhisk's API listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The key of that API.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Takes up the functions that are deployed now, before a manager asks for them.
    pub fn learn_functions(&mut self) -> Result<(), PlatformError> {
        let now = self.clock.now();
        self.observe(now).map(drop)
    }

    /// Ends everything: nobody new is let in, calls that run may end within a grace, then instances, spawner and groups
    /// go.
    fn shut_down(&mut self) {
        self.on_gateway.close();
        let Some(Serving { stop, task, runtime, host }) = self.serving.take() else { return };
        // The other end is gone if the service has ended by itself.
        let _ = stop.send(());
        let _ = runtime.block_on(task);
        // The agent ends every instance when its last owner lets go of it.
        self.platform = None;
        runtime.shutdown_timeout(std::time::Duration::from_secs(5));
        drop(host);
    }
}

impl Drop for ManagedEmbedded {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// A function as people call it: without the one namespace there is.
fn short(mut profile: FunctionProfile) -> FunctionProfile {
    if let Some(name) = profile.name.strip_prefix(NAMESPACE) {
        profile.name = name.to_owned();
        profile.application.clone_from(&profile.name);
    }
    profile
}

impl Platform for ManagedEmbedded {
    fn functions(&self) -> &[FunctionProfile] {
        &self.functions
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn observe(&mut self, now: Timestamp) -> Result<Observation, PlatformError> {
        let ended = || PlatformError::Unreachable("the platform has been ended".to_owned());
        let platform = self.platform.as_mut().ok_or_else(ended)?;
        let seen = platform.observe(now).inspect_err(|_| self.bar.is_up = false)?;
        let new = platform.functions().iter().skip(self.functions.len());
        self.functions.extend(new.cloned().map(short));
        self.bar.used_cores = seen.functions.iter().map(|view| view.cpu_used_cores).sum();
        Ok(seen)
    }

    fn submit(&mut self, now: Timestamp, plan: &Plan) -> Receipt {
        use windfall_core::{Answer, Refusal};
        match &mut self.platform {
            Some(platform) => platform.submit(now, plan),
            None => Receipt::of(plan, |_| Answer::Refused(Refusal::Unreachable)),
        }
    }
}

impl ManagedPlatform for ManagedEmbedded {
    fn kind(&self) -> PlatformKind {
        self.kind
    }

    fn collect(&mut self, _now: Timestamp, calls: &mut Vec<CallRecord>) {
        calls.append(&mut self.ended.lock().unwrap_or_else(PoisonError::into_inner));
        let agent = self.platform.as_ref().map(EmbeddedPlatform::agent);
        if self.bar.is_up
            && let Some(levels) = agent.and_then(|agent| agent.levels())
        {
            self.levels.see(&levels);
        }
    }

    fn nodes(&mut self, _now: Timestamp) -> Vec<NodeBar> {
        let agent = self.platform.as_ref().map(EmbeddedPlatform::agent);
        let Some(levels) = agent.and_then(|agent| agent.levels()) else {
            self.bar.is_up = false;
            return vec![self.bar];
        };
        self.levels.see(&levels);
        let [reserved_cores, granted_cores, harvested_cores, lent_cores, held_back_cores] =
            std::mem::take(&mut self.levels).mean();
        self.bar = NodeBar {
            is_up: true,
            capacity_cores: levels.capacity.cpu.cores(),
            reserved_cores,
            granted_cores,
            used_cores: self.bar.used_cores,
            harvested_cores,
            lent_cores,
            held_back_cores,
            granted_mib: levels.granted.memory.mib(),
            capacity_mib: levels.capacity.memory.mib(),
            calls: levels.calls,
        };
        vec![self.bar]
    }

    fn invoker(&self) -> Option<Arc<dyn Invoker>> {
        Some(Arc::clone(&self.on_gateway) as Arc<dyn Invoker>)
    }

    fn release(&mut self, _now: Timestamp) {
        self.shut_down();
    }
}
