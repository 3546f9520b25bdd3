//! `windfall serve`: the embedded platform alone, until it is asked to end.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use serde_json::json;
use windfall_core::{
    Allocation, CallRecord, FunctionId, FunctionProfile, Mebibytes, QueueOrder, Seed, TelemetrySink,
};
use windfall_embedded::pool::SizedBy;
use windfall_embedded::{AgentSettings, Deciders, GatewaySettings, Service, ServiceSettings};
use windfall_registry::{Assembled, PolicySettings, assemble, sizes_single_calls};
use windfall_sandbox::{Child, Host, HostOptions, Isolation};
use windfall_telemetry::journal::{JournalKinds, JournalWriter, RunManifest};

use crate::arguments::Format;
use crate::output::{command_line, print};

/// Arguments of `serve`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:3233")]
    listen: SocketAddr,
    /// The policy that sizes calls and scales instances: a name, CALLS+TICKS or a checkpoint
    #[arg(long, value_name = "POLICY", default_value = "fixed")]
    policy: String,
    /// How strictly functions are isolated: process, sandbox or sandbox+userns
    #[arg(long, value_name = "LEVEL", default_value = "sandbox")]
    isolation: Isolation,
    /// The file with functions and records; its key lies beside it
    #[arg(long, value_name = "PATH", default_value = "windfall.db")]
    db: PathBuf,
    /// Memory for functions, MiB; by default three quarters of the machine's
    #[arg(long, value_name = "MIB")]
    memory: Option<u32>,
    /// CPU that may be granted for each core there is
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    over_commit: f64,
    /// Which of the waiting calls starts first
    #[arg(long, value_enum, default_value_t)]
    queue_order: WaitingOrder,
    /// Write a journal of all calls to this file
    #[arg(long, value_name = "PATH")]
    journal: Option<PathBuf>,
    /// Do not deploy the built-in functions
    #[arg(long)]
    bare: bool,
    /// How to print where it listens
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Which of the waiting calls starts first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum WaitingOrder {
    /// Whoever waits longest
    #[default]
    FirstCome,
    /// The shortest by the function's mean run time; late calls behind, nobody without end
    ShortestFirst,
}

impl From<WaitingOrder> for QueueOrder {
    fn from(order: WaitingOrder) -> Self {
        match order {
            WaitingOrder::FirstCome => Self::FirstCome,
            WaitingOrder::ShortestFirst => Self::SHORTEST_FIRST,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let node = node(arguments)?;
    // First of all: the spawner is a fork of this process, which must not have threads yet.
    let options = HostOptions { isolation: arguments.isolation, ..HostOptions::default() };
    let host = Host::start(&options)?;
    host.join(Child::Gateway)?;
    let driver = host.capabilities().driver;
    let (mut deciders, sized_by) = deciders(&arguments.policy)?;
    if let Some(path) = &arguments.journal {
        deciders.sinks.push(Box::new(CallJournal::create(path, &arguments.policy)?));
    }
    let mut agent = AgentSettings::over_committed(node, arguments.over_commit);
    agent.pool.sized_by = sized_by;
    agent.pool.order = arguments.queue_order.into();
    let settings = ServiceSettings {
        listen: arguments.listen,
        database: arguments.db.clone(),
        agent,
        gateway: GatewaySettings { isolation: arguments.isolation, ..GatewaySettings::default() },
        deploys_builtins: !arguments.bare,
        tick: std::time::Duration::from_secs(2),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the runtime cannot be started")?;
    let host = Arc::new(host);
    runtime.block_on(async {
        // Listened to before anyone is informed of the address, so that no signal is lost.
        let stop = stop_signal()?;
        let service = Service::start(settings, Arc::clone(&host) as _, deciders).await?;
        print(&greeting(arguments, &service, driver))?;
        service.serve(stop).await;
        anyhow::Ok(())
    })?;
    drop(runtime);
    // Ends the spawner and removes the groups.
    drop(host);
    Ok(ExitCode::SUCCESS)
}

/// A journal that is finished when the platform ends.
struct CallJournal(Option<JournalWriter<File>>);

impl CallJournal {
    fn create(path: &Path, policy: &str) -> anyhow::Result<Self> {
        let file =
            File::create(path).with_context(|| format!("{}: cannot be written", path.display()))?;
        let manifest = RunManifest {
            windfall: env!("CARGO_PKG_VERSION").to_owned(),
            command: command_line(),
            policy: policy.to_owned(),
            ..RunManifest::default()
        };
        Ok(Self(Some(JournalWriter::new(file, &manifest, JournalKinds::ALL))))
    }
}

impl TelemetrySink for CallJournal {
    fn functions(&mut self, first: FunctionId, functions: &[FunctionProfile]) {
        if let Some(journal) = &mut self.0 {
            journal.functions(first, functions);
        }
    }

    fn call(&mut self, call: &CallRecord) {
        if let Some(journal) = &mut self.0 {
            journal.call(call);
        }
    }
}

impl Drop for CallJournal {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.0.take().map(JournalWriter::finish) {
            eprintln!("the journal is cut short: {error}");
        }
    }
}

fn greeting(arguments: &Arguments, service: &Service, driver: &str) -> String {
    let (host, key) = (format!("http://{}", service.address()), service.key());
    match arguments.format {
        Format::Json => json!({
            "apihost": host,
            "auth": key.to_string(),
            "policy": arguments.policy,
            "isolation": arguments.isolation.name(),
            "driver": driver,
        })
        .to_string(),
        Format::Text | Format::Csv | Format::Markdown => format!(
            "API host  {host}\nkey       {key}\npolicy    {}, isolation {}, limits by {driver}\n\n\
             wsk property set --apihost {host} --auth {key}\n\n\
             Ctrl-C ends it; calls that run may finish.",
            arguments.policy, arguments.isolation
        ),
    }
}

/// Ready when the process is asked to end.
fn stop_signal() -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be watched")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be watched")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// A policy by its name, behind its safeguards, and whose size the limits are under it.
pub(crate) fn deciders(policy: &str) -> anyhow::Result<(Deciders, SizedBy)> {
    let mut assembled: Assembled = assemble(policy, &PolicySettings::new(), Seed::new(1))?;
    let sized_by = sized_by(policy, &assembled)?;
    let is_of_use = sized_by == SizedBy::Instance || !assembled.ticks_resize_only;
    let safeguards = std::mem::take(&mut assembled.tick_safeguards);
    let ticks = assembled.tick.take().filter(|_| is_of_use).map(|tick| (tick, safeguards));
    let control = Box::new(assembled.call_loop());
    Ok((Deciders { control, ticks, sinks: Vec::new() }, sized_by))
}

/// Whose size the limits are under a policy; an error if it is none for a real platform.
pub(crate) fn sized_by(policy: &str, assembled: &Assembled) -> anyhow::Result<SizedBy> {
    if assembled.foresight {
        bail!("policy `{policy}` needs to know the future, which no real platform does");
    }
    Ok(match &assembled.tick {
        Some(_) if !sizes_single_calls(policy) => SizedBy::Instance,
        _ => SizedBy::Call,
    })
}

fn node(arguments: &Arguments) -> anyhow::Result<Allocation> {
    let factor = arguments.over_commit;
    if !(0.1..=100.0).contains(&factor) {
        bail!("--over-commit is {factor}, allowed is 0.1 to 100");
    }
    let memory = match arguments.memory {
        Some(mib) if mib >= 64 => mib,
        Some(mib) => bail!("--memory is {mib}, allowed is 64 MiB or more"),
        None => return machine_limit(),
    };
    Ok(Allocation { memory: Mebibytes::new(memory), ..machine_limit()? })
}

/// What this machine has for functions: its cores, and three quarters of its memory.
pub(crate) fn machine_limit() -> anyhow::Result<Allocation> {
    let cores = std::thread::available_parallelism().context("the number of cores")?;
    Ok(Allocation::new(usize::from(cores) as u32 * 1000, machine_memory()? / 4 * 3))
}

/// Memory of the machine, MiB.
fn machine_memory() -> anyhow::Result<u32> {
    let text = std::fs::read_to_string("/proc/meminfo").context("memory is read from /proc")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: Option<u64> =
        line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok());
    Ok((kib.context("no MemTotal in /proc/meminfo")? / 1024) as u32)
}
