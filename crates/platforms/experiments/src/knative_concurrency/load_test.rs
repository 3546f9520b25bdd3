//! One load test of a fresh service over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::json;
use windfall_control::CallLoop;
use windfall_core::{Allocation, CallSafeguardChain, SafeguardChain, Seed};
use windfall_embedded::pool::{ScaleOut, SizedBy};
use windfall_embedded::{AgentSettings, Deciders, GatewaySettings, Service, ServiceSettings};
use windfall_load::{
    CallResult, Credentials, Generator, Measured, Schedule, Shape, Target, run as send,
};
use windfall_openwhisk::Key;
use windfall_papers::knative_concurrency::knative::{LoadTestOutcome, RequestShape};
use windfall_policy::Fixed;
use windfall_sandbox::Host;

use super::autoscale::{KnativeTicks, Seen, Shared, read};
use super::{POD_CPU, POD_MEMORY, PODS, RATE};
use crate::error::{ExperimentError, system};

/// The service under test.
const FUNCTION: &str = "autoscale";
/// Instances may have so many threads: three per request, and one per connection.
const THREADS: u32 = 4096;
/// Time from the change of the limit to the first request: the first tick sets the limit.
const ROLL_OUT: Duration = Duration::from_millis(1300);
/// After this the client gives up; an eighth would be too short for a queue that drains.
const CLIENT_TIMEOUT: windfall_core::Duration = windfall_core::Duration::from_secs(30);

/// Tests a fresh service that takes `limit` calls per instance.
pub(super) fn run(
    host: &Arc<Host>,
    shape: RequestShape,
    limit: u32,
    seconds: f64,
) -> Result<LoadTestOutcome, ExperimentError> {
    let folder = tempfile::tempdir().map_err(system("making a folder for records"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(system("starting the runtime"))?;
    let seen = Shared::default();
    let settings = settings(folder.path().join("test.db"));
    let deciders = deciders(limit, Arc::clone(&seen));
    let machine = Arc::clone(host) as _;
    let service = runtime.block_on(Service::start(settings, machine, deciders))?;
    let (address, key) = (service.address(), service.key().clone());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = runtime.spawn(service.serve(async {
        // A sender that is gone asks for the same.
        let _ = stopped.await;
    }));
    let measured = deploy(address, &key, shape).and_then(|target| {
        std::thread::sleep(ROLL_OUT);
        let length = windfall_core::Duration::from_secs_f64(seconds);
        let schedule = Schedule::generate(Shape::Constant, RATE, length, 1, Seed::new(1))?;
        let generator = Generator { timeout: CLIENT_TIMEOUT, ..Generator::default() };
        Ok(send(&schedule, &[target], &generator, &AtomicBool::new(false))?)
    });
    let _ = stop.send(());
    // A service that panicked while it ended has no more to say than that.
    let _ = runtime.block_on(serving);
    Ok(outcome(&measured?, &read(&seen)))
}

fn settings(database: std::path::PathBuf) -> ServiceSettings {
    let mut agent = AgentSettings::new(Allocation::new(PODS * POD_CPU, PODS * POD_MEMORY));
    agent.pool.sized_by = SizedBy::Instance;
    agent.pool.scale_out = ScaleOut::OnTick;
    agent.pool.most_instances = PODS;
    agent.pool.pause_after = None;
    agent.pids = THREADS;
    ServiceSettings {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        database,
        agent,
        gateway: GatewaySettings::default(),
        deploys_builtins: false,
        tick: Duration::from_secs(1),
    }
}

fn deciders(limit: u32, seen: Shared) -> Deciders {
    let control = CallLoop::new(Box::new(Fixed), CallSafeguardChain::default());
    let ticks: Box<dyn windfall_core::Policy> = Box::new(KnativeTicks::new(limit, seen));
    Deciders {
        control: Box::new(control),
        ticks: Some((ticks, SafeguardChain::default())),
        sinks: Vec::new(),
    }
}

/// Deploys the function by the request that a user would send.
fn deploy(address: SocketAddr, key: &Key, shape: RequestShape) -> Result<Target, ExperimentError> {
    let credentials = Credentials::new(&address.to_string(), &key.to_string())?;
    let action = json!({
        "exec": {"kind": format!("builtin:{FUNCTION}"), "code": FUNCTION},
        "limits": {"memory": POD_MEMORY, "timeout": 60_000},
        "annotations": [{"key": "cpu", "value": f64::from(POD_CPU) / 1e3}],
    });
    let url = format!("http://{address}/api/v1/namespaces/_/actions/{FUNCTION}");
    let headers = [format!("Authorization: {}", key.to_basic())];
    let put = Target::url(&url, &headers, Some(&action.to_string()))?.with_method("PUT")?;
    let once = Schedule::generate(
        Shape::Constant,
        1.0,
        windfall_core::Duration::from_secs(1),
        1,
        Seed::new(1),
    )?;
    let answer = send(&once, &[put], &Generator::default(), &AtomicBool::new(false))?;
    match answer.samples.first().map(|sample| &sample.result) {
        Some(CallResult::Status(200)) => {}
        other => {
            let first = format!("the function cannot be deployed: {other:?}");
            let during = "a load test".to_owned();
            return Err(ExperimentError::Calls { during, failed: 1, calls: 1, first });
        }
    }
    let RequestShape { bloat_mib, prime, sleep_ms } = shape;
    let body = json!({"bloat": bloat_mib, "prime": prime, "sleep": sleep_ms}).to_string();
    Ok(Target::action(FUNCTION, &credentials, &body)?)
}

fn outcome(measured: &Measured, seen: &Seen) -> LoadTestOutcome {
    let mut outcome = LoadTestOutcome::default();
    let mut latencies = Vec::new();
    for sample in &measured.samples {
        outcome.requests += 1;
        latencies.push(sample.latency().as_millis_f64());
        match &sample.result {
            CallResult::Status(200) => outcome.succeeded += 1,
            CallResult::Status(429 | 503) => outcome.refused += 1,
            // The platform answers for a process that the kernel killed.
            CallResult::Status(_) => outcome.killed += 1,
            CallResult::Failed(_) => outcome.timed_out += 1,
        }
    }
    latencies.sort_by(f64::total_cmp);
    let count = latencies.len().max(1) as f64;
    let p95 = windfall_core::statistics::nearest_rank(&latencies, 0.95);
    let pod_cores = f64::from(POD_CPU) / 1e3;
    LoadTestOutcome {
        throughput: f64::from(outcome.succeeded) / measured.total.as_secs_f64().max(1e-9),
        mean_ms: latencies.iter().sum::<f64>() / count,
        p95_ms: p95.unwrap_or(0.0),
        success: f64::from(outcome.succeeded) / count,
        mean_pods: seen.pods(),
        cpu_utilisation: (seen.cpu_per_pod() / pod_cores).min(1.0),
        memory_utilisation: (seen.memory_per_pod() / f64::from(POD_MEMORY)).min(1.0),
        // A fresh process of the built-in functions holds about 1 MiB.
        idle_memory_utilisation: 1.0 / f64::from(POD_MEMORY),
        in_service_per_pod: seen.in_flight_per_pod(),
        took: windfall_core::Duration::from_secs_f64(ROLL_OUT.as_secs_f64()) + measured.total,
        ..outcome
    }
}
