//! How fast the platform itself is: cold starts, what it adds to a warm call, and calls per second.
//!
//! Everything of one run shares the protected group: gateway and functions on one side, the client as a process of its
//! own on the other. Calls through the platform and calls straight to the same instance take turns in blocks (A B B A),
//! so that what else the machine does meets both alike.

mod client;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use windfall_core::{Allocation, CallControl, FunctionId};
use windfall_sandbox::{Child, Host, HostOptions, Isolation, SandboxError};

use crate::agent::{Agent, AgentSettings};
use crate::gateway::GatewaySettings;
use crate::service::{Deciders, Service, ServiceError, ServiceSettings};
pub use client::run as run_client;

/// What to measure.
#[derive(Clone, Debug)]
pub struct BenchSettings {
    /// The program that runs the client, with its first arguments; a description of the part is added.
    pub client: (PathBuf, Vec<String>),
    /// Where to keep the database.
    pub folder: PathBuf,
    /// How strictly instances are isolated.
    pub isolation: Isolation,
    /// Cold starts.
    pub cold_starts: u32,
    /// Warm calls on each side.
    pub warm_calls: u32,
    /// How long calls per second are counted, on each side.
    pub seconds: f64,
    /// Connections for that.
    pub connections: u32,
}

/// What was measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BenchResults {
    /// From the request to the answer of a function that has no instance, median.
    pub cold_p50_ms: f64,
    /// The same, 95th percentile.
    pub cold_p95_ms: f64,
    /// A warm call through the platform, median.
    pub warm_p50_ms: f64,
    /// A call straight to the same instance, median.
    pub direct_p50_ms: f64,
    /// What the platform adds to the median.
    pub warm_overhead_p50_ms: f64,
    /// What the platform adds to the 99th percentile.
    pub warm_overhead_p99_ms: f64,
    /// Calls per second through the platform.
    pub calls_per_s: f64,
    /// Calls per second straight to one instance.
    pub direct_calls_per_s: f64,
    /// The same at the platform's 99th percentile, milliseconds.
    pub loaded_p99_ms: f64,
    /// Connections for both.
    pub connections: u32,
    /// Answers that were not what they should be.
    pub errors: u64,
    /// The cgroup driver.
    pub driver: String,
    /// How strictly instances were isolated.
    pub isolation: String,
    /// Load average of the machine over the last minute, at the end.
    pub load_average: f64,
}

/// The functions of the warm parts, in the order in which the client deploys them.
const ALONE: FunctionId = FunctionId(0);
const SHARED: FunctionId = FunctionId(1);

/// One thing for the client to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) task: Task,
    pub(crate) api: SocketAddr,
    pub(crate) key: String,
    pub(crate) direct: Option<SocketAddr>,
    pub(crate) count: u32,
    pub(crate) seconds: f64,
    pub(crate) connections: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Task {
    /// Deploy so many functions and call each once.
    Cold,
    /// Deploy the function of the other parts and call it until it is warm.
    WarmUp,
    /// Call through the platform and straight, in turns.
    Overhead,
    /// As many calls as possible through the platform.
    Calls,
    /// As many calls as possible straight to the instance.
    DirectCalls,
}

/// What the client measured, milliseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) api_ms: Vec<f64>,
    pub(crate) direct_ms: Vec<f64>,
    pub(crate) per_second: f64,
    pub(crate) errors: u64,
}

/// Why nothing was measured. All are fatal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// No host.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// No service.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// A file, a process or a socket.
    #[error("{doing}: {source}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
    /// The client gave no result.
    #[error("the client of part {part} failed: {problem}")]
    Client {
        /// Which part.
        part: String,
        /// What it said.
        problem: String,
    },
}

fn system(doing: &'static str) -> impl FnOnce(std::io::Error) -> BenchError {
    move |source| BenchError::System { doing, source }
}

/// Measures. Call it before any thread exists: the spawner is a fork of this process.
pub fn run(
    settings: &BenchSettings,
    control: Box<dyn CallControl>,
) -> Result<BenchResults, BenchError> {
    let options = HostOptions { isolation: settings.isolation, ..HostOptions::default() };
    let host = Host::start(&options)?;
    host.join(Child::Gateway)?;
    let driver = host.capabilities().driver.to_owned();
    let host = Arc::new(host);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(system("starting the runtime"))?;
    let results = runtime.block_on(measure(settings, &host, control))?;
    drop(runtime);
    let isolation = settings.isolation.to_string();
    Ok(BenchResults { driver, isolation, load_average: load_average(), ..results })
}

/// The platform that is measured, with nothing deployed.
async fn start(
    settings: &BenchSettings,
    host: &Arc<Host>,
    control: Box<dyn CallControl>,
) -> Result<Service, BenchError> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from) as u32;
    let mut agent = AgentSettings::new(Allocation::new(cores * 1000, 8192));
    agent.pool.pause_after = None;
    let service = Service::start(
        ServiceSettings {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            database: settings.folder.join("bench.db"),
            agent,
            gateway: GatewaySettings {
                isolation: settings.isolation,
                ..GatewaySettings::default()
            },
            deploys_builtins: false,
            tick: Duration::from_secs(2),
        },
        Arc::clone(host) as _,
        Deciders { control, ticks: None, sinks: Vec::new() },
    )
    .await?;
    Ok(service)
}

async fn measure(
    settings: &BenchSettings,
    host: &Arc<Host>,
    control: Box<dyn CallControl>,
) -> Result<BenchResults, BenchError> {
    let service = start(settings, host, control).await?;
    let part = Part {
        task: Task::Cold,
        api: service.address(),
        key: service.key().to_basic(),
        direct: None,
        count: settings.cold_starts,
        seconds: settings.seconds,
        connections: settings.connections,
    };
    let agent = Arc::clone(service.agent());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(service.serve(async {
        let _ = stopped.await;
    }));
    let warm_up = ask(settings, host, Part { task: Task::WarmUp, ..part.clone() }).await?;
    let direct = |function| agent.addresses(function).first().copied();
    let warm = Part { direct: direct(ALONE), count: settings.warm_calls, ..part.clone() };
    let shared = Part { direct: direct(SHARED), ..part.clone() };
    let cold = ask(settings, host, part.clone()).await?;
    let reading = tokio::spawn(read_what_direct_calls_print(Arc::clone(&agent)));
    let overhead = ask(settings, host, Part { task: Task::Overhead, ..warm.clone() }).await?;
    let calls = ask(settings, host, Part { task: Task::Calls, ..shared.clone() }).await?;
    let straight = ask(settings, host, Part { task: Task::DirectCalls, ..shared }).await?;
    reading.abort();
    drop(agent);
    let _ = stop.send(());
    let _ = serving.await;
    let all = [&warm_up, &cold, &overhead, &calls, &straight];
    Ok(BenchResults {
        cold_p50_ms: quantile(&cold.api_ms, 0.5),
        cold_p95_ms: quantile(&cold.api_ms, 0.95),
        warm_p50_ms: quantile(&overhead.api_ms, 0.5),
        direct_p50_ms: quantile(&overhead.direct_ms, 0.5),
        warm_overhead_p50_ms: quantile(&overhead.api_ms, 0.5) - quantile(&overhead.direct_ms, 0.5),
        warm_overhead_p99_ms: quantile(&overhead.api_ms, 0.99)
            - quantile(&overhead.direct_ms, 0.99),
        calls_per_s: calls.per_second,
        direct_calls_per_s: straight.per_second,
        loaded_p99_ms: quantile(&calls.api_ms, 0.99),
        connections: settings.connections,
        errors: all.iter().map(|part| part.errors).sum(),
        ..BenchResults::default()
    })
}

/// Direct calls print their last line to nobody: at 50,000 calls/s a pipe of 64 KiB is full after 35 ms.
async fn read_what_direct_calls_print(agent: Arc<Agent>) {
    loop {
        agent.discard_output(ALONE);
        agent.discard_output(SHARED);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Has the client process do one part.
async fn ask(
    settings: &BenchSettings,
    host: &Arc<Host>,
    part: Part,
) -> Result<Measured, BenchError> {
    let (program, arguments) = settings.client.clone();
    let host = Arc::clone(host);
    let name = format!("{:?}", part.task);
    let failed = move |problem: String| BenchError::Client { part: name, problem };
    let description = serde_json::to_string(&part).map_err(|error| failed(error.to_string()));
    let description = description?;
    let name = format!("{:?}", part.task);
    let done = tokio::task::spawn_blocking(move || {
        let child = Command::new(program)
            .args(arguments)
            .arg(description)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        // Without a group of its own the client only measures more noise.
        let _ = host.join_process(Child::Load, child.id());
        child.wait_with_output()
    });
    let output = done
        .await
        .map_err(|error| BenchError::Client { part: name.clone(), problem: error.to_string() })?;
    let output = output.map_err(system("starting the client"))?;
    serde_json::from_slice(&output.stdout)
        .map_err(|error| BenchError::Client { part: name, problem: error.to_string() })
}

fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (sorted.len().saturating_sub(1)) as f64 * share;
    sorted.get(place.round() as usize).copied().unwrap_or(f64::NAN)
}

fn load_average() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|one| one.parse().ok()).unwrap_or(f64::NAN)
}
