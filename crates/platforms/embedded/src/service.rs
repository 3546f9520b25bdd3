//! The platform as a service: store, agent, gateway and OpenWhisk's API on one address.

mod defaults;
mod key_file;
mod ticker;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use windfall_control::ControlLoop;
use windfall_core::{CallControl, Policy, SafeguardChain, TelemetrySink};
use windfall_functions::{Runtime, builtins};
use windfall_openwhisk::{
    ApiSettings, ApiState, Bounds, EntityName, Key, Kind, Store, StoreError, StoreSettings, router,
};

use crate::agent::{Agent, AgentSettings, Machine};
use crate::gateway::{Gateway, GatewaySettings};
use crate::platform::EmbeddedPlatform;
use ticker::Ticker;

/// The namespace of the one caller.
const NAMESPACE: &str = "guest";
/// Calls that still run when the service is ended may take so long.
const GRACE: Duration = Duration::from_secs(10);

/// How the service is set up.
#[derive(Clone, Debug)]
pub struct ServiceSettings {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The file with entities and records.
    pub database: PathBuf,
    /// The node.
    pub agent: AgentSettings,
    /// How calls are carried out. The host of the API is filled in.
    pub gateway: GatewaySettings,
    /// Whether built-in functions are deployed that are not there yet.
    pub deploys_builtins: bool,
    /// How often the tick policy is asked, if there is one.
    pub tick: Duration,
}

/// Why the service cannot start. All are fatal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; choose another with --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// The key file cannot be used.
    #[error("the key file {}: {problem}", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What decides about calls and ticks, and who is informed of both.
pub struct Deciders {
    /// Sizes calls.
    pub control: Box<dyn CallControl>,
    /// Decides at ticks, behind its safeguards.
    pub ticks: Option<(Box<dyn Policy>, SafeguardChain)>,
    /// Readers of everything that happens to calls.
    pub sinks: Vec<Box<dyn TelemetrySink>>,
}

/// A platform that listens.
pub struct Service {
    agent: Arc<Agent>,
    gateway: Arc<Gateway>,
    ticker: Option<Ticker>,
    listener: TcpListener,
    routes: axum::Router,
    store: Store,
    address: SocketAddr,
    key: Key,
}

impl Service {
    /// Opens the database, starts the agent and listens. Nothing is answered before [`Self::serve`].
    pub async fn start(
        settings: ServiceSettings,
        machine: Arc<dyn Machine>,
        deciders: Deciders,
    ) -> Result<Self, ServiceError> {
        let listen = |source| ServiceError::Listen { address: settings.listen, source };
        let listener = TcpListener::bind(settings.listen).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let Deciders { control, ticks, sinks } = deciders;
        let runtime = tokio::runtime::Handle::current();
        let agent = Agent::start(settings.agent.clone(), machine, control, sinks, runtime)
            .map_err(ServiceError::Thread)?;
        let gateway = GatewaySettings { api_host: address.to_string(), ..settings.gateway };
        let gateway = Arc::new(Gateway::new(&agent, gateway));
        let (agent, runner) = (Arc::new(agent), Arc::clone(&gateway));
        let path = settings.database;
        let api = api_settings(&settings.agent);
        // Reading the store blocks, which tasks must not.
        let opened = tokio::task::spawn_blocking(move || {
            let store = Store::open(&path, StoreSettings::default())?;
            let namespace = EntityName::new(NAMESPACE).expect("a constant that is a name");
            let identity = key_file::identity(&store, &path, &namespace)?;
            let key = identity.key.clone();
            let state = ApiState::new(runner, store.clone(), vec![identity], api)?;
            state.resume()?;
            Ok::<_, ServiceError>((store, key, state))
        });
        let (store, key, state) = opened.await.expect("opening a store does not panic")?;
        let routes = router(state);
        if settings.deploys_builtins {
            defaults::deploy(&routes, &key).await;
        }
        let ticker = match ticks {
            Some((policy, safeguards)) => {
                let ticks = ControlLoop::new(policy, safeguards);
                let platform = EmbeddedPlatform::new(Arc::clone(&agent));
                Some(Ticker::start(ticks, platform, settings.tick).map_err(ServiceError::Thread)?)
            }
            None => None,
        };
        Ok(Self { agent, gateway, ticker, listener, routes, store, address, key })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The key of the one caller.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// What runs calls, for those that do not come through the API.
    pub fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }

    /// The agent behind it.
    pub fn agent(&self) -> &Arc<Agent> {
        &self.agent
    }

    /// Answers requests until `stop` is ready. Then nobody new is let in, calls that run may end within a grace, every
    /// instance is ended and every record is written.
    pub async fn serve(self, stop: impl Future<Output = ()> + Send + 'static) {
        let Self { agent, ticker, listener, routes, store, .. } = self;
        // Without this the kernel holds small answers back for up to 40 ms.
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        let (stopping, stopped) = tokio::sync::oneshot::channel();
        let serving = axum::serve(listener, routes).with_graceful_shutdown(async move {
            stop.await;
            let _ = stopping.send(());
        });
        let grace = async move {
            // A sender that is gone means that serving ended by itself.
            let _ = stopped.await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            _ = serving.into_future() => {}
            () = grace => {}
        }
        let ended = tokio::task::spawn_blocking(move || {
            drop(ticker);
            match Arc::try_unwrap(agent) {
                Ok(mut agent) => agent.stop(),
                // Someone still watches; the instances end with them.
                Err(agent) => drop(agent),
            }
        });
        let _ = ended.await;
        // What is refused here was refused many times before, and counted.
        let _ = store.flush().await;
    }
}

fn api_settings(agent: &AgentSettings) -> ApiSettings {
    let mut kinds: Vec<Kind> = Runtime::ALL
        .into_iter()
        .filter(|runtime| runtime.program().is_ok())
        .map(|runtime| Kind::default_of_family(runtime.kind()))
        .collect();
    kinds.extend(builtins().iter().map(|builtin| Kind {
        name: builtin.kind(),
        is_default: false,
        aliases: Vec::new(),
    }));
    let largest_memory = agent.ceiling.memory.get().max(128);
    let bounds = Bounds { smallest_memory: 32, largest_memory, ..Bounds::default() };
    ApiSettings { kinds, bounds, ..ApiSettings::default() }
}
