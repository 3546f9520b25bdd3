//! `controller` and `restore`.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;
use windfall_kubernetes::controller::Settings;
use windfall_kubernetes::leader;
use windfall_kubernetes::service::{LEASE, Options, Service, Source};
use windfall_kubernetes::webhook::{self, Endpoint};

use super::{Failure, with_client};

#[derive(Args)]
pub(super) struct ControllerArguments {
    /// Seconds between two passes.
    #[arg(long, default_value_t = 15.0, value_parser = positive)]
    interval: f64,
    /// The namespace that the controller runs in: for its Lease and its certificate.
    #[arg(long, env = "POD_NAMESPACE", default_value = "windfall")]
    namespace: String,
    /// The name of this replica in the Lease.
    #[arg(long, env = "POD_NAME", default_value = "windfall-0")]
    identity: String,
    /// Acts without a Lease. Only for a controller that is alone.
    #[arg(long)]
    no_leader_election: bool,
    /// Where probes and metrics are served.
    #[arg(long, default_value = "0.0.0.0:8080")]
    listen: SocketAddr,
    /// Where the webhook listens; it needs --webhook-service or --webhook-url.
    #[arg(long, default_value = "0.0.0.0:9443")]
    webhook_listen: SocketAddr,
    /// The Service in front of the webhook, as NAMESPACE/NAME.
    #[arg(long, conflicts_with = "webhook_url")]
    webhook_service: Option<String>,
    /// The address of the webhook for a controller outside the cluster, as https://HOST:PORT.
    #[arg(long)]
    webhook_url: Option<String>,
    /// A Prometheus server, as http://HOST:PORT.
    #[arg(long)]
    prometheus: Option<String>,
    /// Sources of measurements; all that the cluster offers, if none is named.
    #[arg(long = "source")]
    sources: Vec<SourceName>,
    /// Most writes per pass.
    #[arg(long, default_value_t = 200)]
    max_writes: u32,
    /// Most requests for measurements per pass.
    #[arg(long, default_value_t = 60)]
    max_reads: u32,
    /// Minutes that a workload is left alone after it was given back; each further time doubles it.
    #[arg(long, default_value_t = 10.0, value_parser = positive)]
    cooldown: f64,
    /// Logs what would be changed and changes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Writes logs for people instead of JSON.
    #[arg(long)]
    plain_logs: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum SourceName {
    /// metrics.k8s.io.
    MetricsApi,
    /// The kubelets' pages through the API server.
    Kubelet,
    /// Queue-proxies, autoscaler and activators of Knative.
    Knative,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err(format!("`{text}` is not a number above 0")),
    }
}

impl ControllerArguments {
    fn options(&self) -> Result<Options, Failure> {
        let endpoint = match (&self.webhook_service, &self.webhook_url) {
            (Some(service), _) => {
                let (namespace, name) = service.split_once('/').ok_or_else(|| {
                    Failure::Argument(format!(
                        "--webhook-service is `{service}`; write NAMESPACE/NAME"
                    ))
                })?;
                Some(Endpoint::Service { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            (None, Some(url)) if url.starts_with("https://") => Some(Endpoint::Url(url.clone())),
            (None, Some(url)) => {
                return Err(Failure::Argument(format!(
                    "--webhook-url is `{url}`; write https://HOST:PORT"
                )));
            }
            (None, None) => None,
        };
        if let Some(address) =
            self.prometheus.as_ref().filter(|address| !address.starts_with("http://"))
        {
            return Err(Failure::Argument(format!(
                "--prometheus is `{address}`; write http://HOST:PORT"
            )));
        }
        Ok(Options {
            interval: Duration::from_secs_f64(self.interval),
            namespace: self.namespace.clone(),
            identity: (!self.no_leader_election).then(|| self.identity.clone()),
            seizes: false,
            pages: Some(self.listen),
            webhook: endpoint.map(|endpoint| (self.webhook_listen, endpoint)),
            prometheus: self.prometheus.clone(),
            sources: self.sources.iter().map(|name| name.source()).collect(),
            settings: Settings {
                writes: self.max_writes,
                reads: self.max_reads,
                cooldown: windfall_core::Duration::from_secs_f64(self.cooldown * 60.0),
                dry_run: self.dry_run,
                give_back: false,
            },
        })
    }
}

impl SourceName {
    fn source(self) -> Source {
        match self {
            Self::MetricsApi => Source::MetricsApi,
            Self::Kubelet => Source::Kubelet,
            Self::Knative => Source::Knative,
        }
    }
}

pub(super) fn run(arguments: ControllerArguments) -> Result<(), Failure> {
    log(arguments.plain_logs);
    let options = arguments.options()?;
    with_client(async |client| {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let stop = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        Service::start(client, options).await.run(stop).await;
        Ok(())
    })
}

/// Logs to standard error, filtered by `RUST_LOG`.
pub(super) fn log(is_plain: bool) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second call, in tests, changes nothing.
    let _ = if is_plain { builder.try_init() } else { builder.json().try_init() };
}

#[derive(Args)]
pub(super) struct RestoreArguments {
    /// Seconds after which it gives up.
    #[arg(long, default_value_t = 120.0, value_parser = positive)]
    within: f64,
    /// The namespace of the controllers, which stop acting while this runs and for ten seconds more.
    #[arg(long, env = "POD_NAMESPACE", default_value = "windfall")]
    namespace: String,
}

pub(super) fn restore(arguments: RestoreArguments) -> Result<(), Failure> {
    log(true);
    let within = Duration::from_secs_f64(arguments.within);
    with_client(async |client| {
        let begin = Instant::now();
        // A controller that still runs would do again what is undone here, so its Lease is taken first.
        let seizes = leader::exists(client.clone(), &arguments.namespace, LEASE).await;
        let mut service =
            Service::start(client.clone(), restoring(&arguments.namespace, seizes)).await;
        while !service.leads() && begin.elapsed() < within {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        if seizes {
            tokio::time::sleep(leader::NOTICED).await;
        }
        webhook::unregister(&client).await?;
        // Twice nothing to do in a row: the watches have seen the last change.
        let mut quiet = 0;
        while quiet < 2 {
            if begin.elapsed() > within {
                let limit = within.as_secs();
                return Err(Failure::Unfinished(format!(
                    "not everything was given back within {limit} s"
                )));
            }
            match service.pass().await {
                Some(report) if report.actions == 0 => quiet += 1,
                Some(_) | None => quiet = 0,
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        service.stop().await;
        Ok(())
    })
}

fn restoring(namespace: &str, seizes: bool) -> Options {
    Options {
        interval: Duration::from_secs(1),
        namespace: namespace.to_owned(),
        identity: seizes.then(|| format!("restore-{}", std::process::id())),
        seizes,
        pages: None,
        webhook: None,
        prometheus: None,
        sources: vec![Source::Knative],
        settings: Settings { give_back: true, ..Settings::default() },
    }
}
