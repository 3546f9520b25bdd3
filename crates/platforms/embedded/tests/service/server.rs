//! The service in a process that can be killed.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use windfall_control::CallLoop;
use windfall_core::{Allocation, CallSafeguardChain};
use windfall_embedded::{AgentSettings, Deciders, GatewaySettings, Service, ServiceSettings};
use windfall_policy::Fixed;
use windfall_sandbox::{Host, HostOptions};

/// Serves until it is terminated; the first line on standard output says where.
pub(crate) fn run(database: &str) {
    let host = Arc::new(Host::start(&HostOptions::default()).expect("a host"));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let settings = ServiceSettings {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        database: PathBuf::from(database),
        agent: AgentSettings::new(Allocation::new(2000, 2048)),
        gateway: GatewaySettings::default(),
        deploys_builtins: true,
        tick: Duration::from_secs(2),
    };
    let control = Box::new(CallLoop::new(Box::new(Fixed), CallSafeguardChain::default()));
    let deciders = Deciders { control, ticks: None, sinks: Vec::new() };
    runtime.block_on(async {
        let kind = tokio::signal::unix::SignalKind::terminate();
        let mut stop = tokio::signal::unix::signal(kind).expect("a signal");
        let machine = Arc::clone(&host) as _;
        let service = Service::start(settings, machine, deciders).await.expect("a service");
        println!("{} {}", service.address(), service.key().to_basic());
        std::io::stdout().flush().expect("the test reads");
        let stop = async move {
            stop.recv().await;
        };
        service.serve(stop).await;
    });
}

/// A running server. It ends with the test, also when that panics: what is left of one would fail all tests after it.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) key: String,
}

impl Server {
    pub(crate) fn start(database: &Path) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .arg("server")
            .arg(database)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let mut line = String::new();
        let output = child.stdout.take().expect("it was piped");
        BufReader::new(output).read_line(&mut line).expect("a first line");
        let (address, key) = line.trim().split_once(' ').expect("an address and a key");
        let address = address.parse().expect("an address");
        Self { child, address, key: key.to_owned() }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// SIGTERM; whether it ended well within 15 seconds.
    pub(crate) fn terminate(mut self) -> bool {
        let sent = Command::new("kill").arg(self.child.id().to_string()).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill(1) is there");
        let until = Instant::now() + Duration::from_secs(15);
        while Instant::now() < until {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status.success();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing to kill and to wait for where the test has done so.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processes of this program besides this one: servers, spawners and instances.
pub(crate) fn relatives() -> Vec<u32> {
    let own = std::fs::read_link("/proc/self/exe").expect("this program");
    let entries = std::fs::read_dir("/proc").expect("/proc");
    let pid = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    entries
        .flatten()
        .filter_map(pid)
        .filter(|pid| *pid != std::process::id())
        .filter(|pid| {
            let exe = std::fs::read_link(format!("/proc/{pid}/exe"));
            // A process that has ended and was not waited for has no program.
            exe.is_ok_and(|exe| exe == own)
        })
        .collect()
}

/// Waits until none of them is left.
pub(crate) fn all_gone() -> bool {
    let until = Instant::now() + Duration::from_secs(10);
    while Instant::now() < until {
        if relatives().is_empty() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}
