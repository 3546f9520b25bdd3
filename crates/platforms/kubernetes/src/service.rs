//! The controller as a process: what is started, in which order, and what keeps going when something else fails.
//!
//! An API server that does not answer, a role that was taken away or a webhook that cannot be registered never ends the
//! process; it is logged, shown in the conditions and tried again. A process that ends would be restarted by its kubelet
//! with growing pauses, which is longer than any retry here.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::task::JoinSet;

use crate::controller::{Controller, PassReport, Settings};
use crate::discovery::Offers;
use crate::instruments::Instruments;
use crate::leader::{Contender, Leadership, release};
use crate::metrics::MetricsSource;
use crate::metrics::knative::Knative;
use crate::metrics::kubelet::Kubelet;
use crate::metrics::metrics_api::MetricsApi;
use crate::metrics::prometheus::Prometheus;
use crate::server::{self, Pages};
use crate::watch::{self, WatchHealth};
use crate::webhook::{self, Certificate, Endpoint};
use crate::world::{World, now};

/// The Lease.
pub const LEASE: &str = "windfall";
/// The Secret.
const SECRET: &str = "windfall-webhook";
/// Time between two tries of anything that is needed once.
const RETRY: Duration = Duration::from_secs(2);
/// A first list that has failed for so long is said in the conditions.
const FIRST_LIST_PATIENCE: Duration = Duration::from_secs(5);

/// How the process runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Time between two passes.
    pub interval: Duration,
    /// The controller's own namespace.
    pub namespace: String,
    /// The name of this replica; nothing if it is alone and needs no Lease.
    pub identity: Option<String>,
    /// Whether it takes the Lease from its holder, and leaves it with itself at its end: a restore.
    pub seizes: bool,
    /// Where probes and metrics are served.
    pub pages: Option<SocketAddr>,
    /// Where the webhook listens and how the API server reaches it.
    pub webhook: Option<(SocketAddr, Endpoint)>,
    /// Prometheus.
    pub prometheus: Option<String>,
    /// Which sources of measurements are used; all that are offered, if nothing is said.
    pub sources: Vec<Source>,
    /// How the controller works.
    pub settings: Settings,
}

/// A source of measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `metrics.k8s.io`.
    MetricsApi,
    /// The kubelets' pages.
    Kubelet,
    /// Knative's pages.
    Knative,
}

/// The parts of a running controller.
pub struct Service {
    /// The index and the measurements.
    pub world: Arc<World>,
    /// The counters.
    pub instruments: Arc<Instruments>,
    health: Arc<WatchHealth>,
    controller: Controller,
    leadership: Arc<Leadership>,
    tasks: JoinSet<()>,
    options: Options,
    client: Client,
}

impl Service {
    /// Starts watches, pages, webhook and the contest for the Lease.
    pub async fn start(client: Client, options: Options) -> Self {
        Self::start_with(client, options, Vec::new()).await
    }

    /// The same with these sources of measurements, if any, instead of those of the options.
    pub async fn start_with(
        client: Client,
        options: Options,
        given: Vec<Box<dyn MetricsSource>>,
    ) -> Self {
        let world: Arc<World> = Arc::default();
        let health: Arc<WatchHealth> = Arc::default();
        let instruments: Arc<Instruments> = Arc::default();
        let mut tasks = JoinSet::new();
        let leadership = contend(&client, &options, &mut tasks);
        let pages = Pages {
            world: Arc::clone(&world),
            instruments: Arc::clone(&instruments),
            leadership: Arc::clone(&leadership),
        };
        if let Some(address) = options.pages {
            tasks.spawn(async move {
                if let Err(error) = server::serve(address, pages).await {
                    tracing::error!(%address, %error, "probes and metrics are not served");
                }
            });
        }
        let offers = discover(&client).await;
        world.set_offers(offers);
        watch::start(&client, &offers, &world, &health, &mut tasks);
        if let Some((address, endpoint)) = options.webhook.clone() {
            let parts = (client.clone(), Arc::clone(&world), Arc::clone(&instruments));
            tasks.spawn(keep_webhook(parts, options.namespace.clone(), address, endpoint));
        }
        let sources =
            if given.is_empty() { sources(&client, &offers, &options, &world) } else { given };
        let controller = Controller::new(
            client.clone(),
            Arc::clone(&world),
            Arc::clone(&health),
            sources,
            options.settings.clone(),
            (Arc::clone(&instruments), Arc::clone(&leadership)),
        );
        Self { world, instruments, health, controller, leadership, tasks, options, client }
    }

    /// Whether the first lists are complete.
    pub fn is_ready(&self) -> bool {
        let cluster = self.world.cluster();
        cluster.policies.is_complete()
            && cluster.deployments.is_complete()
            && cluster.pods.is_complete()
    }

    /// Whether this replica acts.
    pub fn leads(&self) -> bool {
        self.leadership.holds()
    }

    /// One pass, if this replica acts and knows enough.
    pub async fn pass(&mut self) -> Option<PassReport> {
        if !self.leadership.holds() {
            return None;
        }
        if !self.is_ready() {
            // Without the policies there is nobody to tell; their own watch is in the log.
            let problem = self.health.failing(FIRST_LIST_PATIENCE);
            if let Some(problem) = problem.filter(|_| self.world.cluster().policies.is_complete()) {
                self.controller.pass_blind(&problem, now()).await;
            }
            return None;
        }
        let report = self.controller.pass(now()).await;
        tracing::info!(
            policies = report.policies,
            reads = report.reads,
            writes = report.writes,
            put_off = report.put_off,
            seconds = report.seconds,
            "pass"
        );
        Some(report)
    }

    /// Passes until `stop` is done, then gives up the Lease.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut clock = tokio::time::interval(self.options.interval);
        clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = &mut stop => break,
                _ = clock.tick() => {
                    let passed = self.pass().await;
                    if passed.is_none() {
                        // Not yet: look again soon instead of losing a whole interval.
                        clock.reset_after(Duration::from_secs(1).min(self.options.interval));
                    }
                }
            }
        }
        self.stop().await;
    }

    /// Stops everything and gives up the Lease.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
        if let Some(identity) = self.options.identity.as_ref().filter(|_| !self.options.seizes) {
            let released =
                release(self.client.clone(), &self.options.namespace, LEASE, identity).await;
            if let Err(error) = released {
                tracing::warn!(%error, "the lease was not given up; another replica waits for it to end");
            }
        }
    }
}

fn contend(client: &Client, options: &Options, tasks: &mut JoinSet<()>) -> Arc<Leadership> {
    let Some(identity) = &options.identity else { return Arc::new(Leadership::alone()) };
    let contender = Contender::new(client.clone(), &options.namespace, LEASE, identity);
    let contender = if options.seizes { contender.seizing() } else { contender };
    let leadership = contender.leadership();
    tasks.spawn(contender.contend());
    leadership
}

/// Asks what the cluster offers until it answers.
async fn discover(client: &Client) -> Offers {
    loop {
        match tokio::time::timeout(Duration::from_secs(10), Offers::ask(client)).await {
            Ok(Ok(offers)) => {
                tracing::info!(?offers, "the cluster was asked what it offers");
                return offers;
            }
            Ok(Err(error)) => tracing::warn!(%error, "the cluster does not say what it offers"),
            Err(_) => tracing::warn!("the cluster does not answer"),
        }
        tokio::time::sleep(RETRY).await;
    }
}

fn sources(
    client: &Client,
    offers: &Offers,
    options: &Options,
    world: &Arc<World>,
) -> Vec<Box<dyn MetricsSource>> {
    let mut sources: Vec<Box<dyn MetricsSource>> = Vec::new();
    let chosen = |source: Source| options.sources.is_empty() || options.sources.contains(&source);
    if let Some(address) = &options.prometheus {
        sources.push(Box::new(Prometheus::new(address)));
    }
    let by_name = |source: Source| options.sources.contains(&source);
    if offers.metrics_api && chosen(Source::MetricsApi) && options.prometheus.is_none() {
        sources.push(Box::new(MetricsApi::new(client.clone())));
    }
    // The kubelets' pages know throttling and need nothing installed; they are the usual source without Prometheus.
    if by_name(Source::Kubelet) || (options.sources.is_empty() && options.prometheus.is_none()) {
        sources.push(Box::new(Kubelet::new(client.clone())));
    }
    if offers.knative && chosen(Source::Knative) {
        sources.push(Box::new(Knative::new(Arc::clone(world))));
    }
    sources
}

/// Registers the webhook, serves it, and registers it again every minute in case someone removed it.
async fn keep_webhook(
    (client, world, instruments): (Client, Arc<World>, Arc<Instruments>),
    namespace: String,
    address: SocketAddr,
    endpoint: Endpoint,
) {
    let certificate = loop {
        match Certificate::shared(&client, &namespace, SECRET, &endpoint.names()).await {
            Ok(certificate) => break certificate,
            Err(error) => tracing::warn!(%error, "the webhook has no certificate yet"),
        }
        tokio::time::sleep(RETRY).await;
    };
    let registration = async {
        loop {
            let pause = match webhook::register(&client, &endpoint, &certificate).await {
                Ok(()) => Duration::from_secs(60),
                Err(error) => {
                    tracing::warn!(%error, "the webhook is not registered; new pods start at their users' size");
                    RETRY
                }
            };
            tokio::time::sleep(pause).await;
        }
    };
    tokio::select! {
        () = registration => {}
        served = webhook::serve(address, &certificate, world, instruments) => {
            if let Err(error) = served {
                tracing::error!(%address, %error, "the webhook is not served; new pods start at their users' size");
            }
        }
    }
}
