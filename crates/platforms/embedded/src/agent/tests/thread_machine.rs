//! A machine whose processes are threads: they answer over real sockets, and can be made to refuse, die and crash.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use windfall_core::CallCapabilities;
use windfall_sandbox::{Exit, InForce, Launch, Limits, Sensors, Setting};

use super::super::machine::{Machine, MachineCapabilities, Worker};

/// Starts threads instead of processes.
#[derive(Debug, Default)]
pub(crate) struct ThreadMachine {
    /// Every so many lowerings of memory are refused, whichever process they are for; none if 0.
    pub(crate) refuses_memory: u32,
    pub(crate) lowerings: Arc<AtomicU32>,
    /// Launches fail.
    pub(crate) is_broken: AtomicBool,
    pub(crate) launches: AtomicU32,
    pub(crate) alive: Arc<AtomicU32>,
}

/// What the threads of one instance share.
#[derive(Debug)]
struct Shared {
    memory: AtomicU32,
    busy: AtomicU64,
    exit: Mutex<Option<Exit>>,
    /// Closed when the instance has ended.
    lifeline: Mutex<Option<std::io::PipeWriter>>,
    streams: Mutex<Vec<TcpStream>>,
    alive: Arc<AtomicU32>,
    address: SocketAddr,
}

impl Shared {
    fn end(&self, exit: Exit) {
        let mut ended = self.exit.lock().unwrap();
        if ended.is_none() {
            *ended = Some(exit);
            self.alive.fetch_sub(1, Ordering::SeqCst);
            for stream in self.streams.lock().unwrap().drain(..) {
                let _ = stream.shutdown(std::net::Shutdown::Both);
            }
            self.lifeline.lock().unwrap().take();
            // Wakes the thread that accepts.
            let _ = TcpStream::connect(self.address);
        }
    }

    fn has_ended(&self) -> bool {
        self.exit.lock().unwrap().is_some()
    }
}

struct ThreadWorker {
    shared: Arc<Shared>,
    limits: Limits,
    lifeline: std::io::PipeReader,
    output: Option<(OwnedFd, OwnedFd)>,
    refuses_memory: u32,
    lowerings: Arc<AtomicU32>,
}

impl Machine for ThreadMachine {
    fn launch(&self, launch: &Launch) -> Result<Box<dyn Worker>, String> {
        self.launches.fetch_add(1, Ordering::SeqCst);
        if self.is_broken.load(Ordering::SeqCst) {
            return Err("no processes left".to_owned());
        }
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let (lifeline, writer) = std::io::pipe().map_err(|error| error.to_string())?;
        let ((stdout, out), (stderr, err)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
        self.alive.fetch_add(1, Ordering::SeqCst);
        let shared = Arc::new(Shared {
            memory: AtomicU32::new(launch.limits.memory.get()),
            busy: AtomicU64::new(0),
            exit: Mutex::new(None),
            lifeline: Mutex::new(Some(writer)),
            streams: Mutex::new(Vec::new()),
            alive: Arc::clone(&self.alive),
            address,
        });
        let server = Arc::clone(&shared);
        std::thread::spawn(move || accept(&server, &listener, out, err));
        Ok(Box::new(ThreadWorker {
            shared,
            limits: launch.limits,
            lifeline,
            output: Some((stdout.into(), stderr.into())),
            refuses_memory: self.refuses_memory,
            lowerings: Arc::clone(&self.lowerings),
        }))
    }

    fn capabilities(&self) -> MachineCapabilities {
        MachineCapabilities { calls: CallCapabilities::ALL, pauses: true }
    }
}

impl Worker for ThreadWorker {
    fn address(&self) -> SocketAddr {
        self.shared.address
    }

    fn set(&mut self, limits: &Limits) -> InForce {
        let mut in_force = InForce::all(limits);
        if limits.memory < self.limits.memory {
            let lowerings = self.lowerings.fetch_add(1, Ordering::SeqCst) + 1;
            if self.refuses_memory > 0 && lowerings.is_multiple_of(self.refuses_memory) {
                in_force.memory = Setting::refused(self.limits.memory, "in use");
            }
        }
        self.limits = in_force.limits();
        self.shared.memory.store(self.limits.memory.get(), Ordering::SeqCst);
        in_force
    }

    fn sense(&mut self) -> Option<Sensors> {
        let busy = Duration::from_nanos(self.shared.busy.load(Ordering::SeqCst));
        Some(Sensors {
            cpu_time: busy,
            memory_rss: 10 << 20,
            memory_peak: 12 << 20,
            ..Sensors::default()
        })
    }

    fn reset_memory_peak(&mut self) {}

    fn pause(&mut self, _: bool) -> bool {
        true
    }

    fn take_output(&mut self) -> Option<(OwnedFd, OwnedFd)> {
        self.output.take()
    }

    fn exit_descriptor(&self) -> Option<OwnedFd> {
        self.lifeline.try_clone().ok().map(OwnedFd::from)
    }

    fn exited(&mut self) -> Option<Exit> {
        self.shared.exit.lock().unwrap().clone()
    }

    fn kill(self: Box<Self>) -> Exit {
        self.shared.end(Exit::Signal(9));
        self.shared.exit.lock().unwrap().clone().unwrap()
    }
}

impl Drop for ThreadWorker {
    fn drop(&mut self) {
        self.shared.end(Exit::Signal(9));
    }
}

fn accept(
    shared: &Arc<Shared>,
    listener: &TcpListener,
    out: std::io::PipeWriter,
    err: std::io::PipeWriter,
) {
    let output = Arc::new(Mutex::new((out, err)));
    while let Ok((stream, _)) = listener.accept() {
        if shared.has_ended() {
            return;
        }
        let _ = stream.set_nodelay(true);
        shared.streams.lock().unwrap().push(stream.try_clone().unwrap());
        let (shared, output) = (Arc::clone(shared), Arc::clone(&output));
        std::thread::spawn(move || serve(&shared, stream, &output));
    }
}

type Pipes = Mutex<(std::io::PipeWriter, std::io::PipeWriter)>;

fn serve(shared: &Shared, mut stream: TcpStream, output: &Pipes) {
    while let Some((is_run, body)) = read_request(&mut stream) {
        let mut answer = (200, "{}".to_owned());
        if is_run {
            let request: Value = serde_json::from_slice(&body).unwrap_or_default();
            answer = run(shared, &request["value"], output);
            let mut pipes = output.lock().unwrap();
            let line = format!("{}\n", windfall_functions::END_OF_ACTIVATION);
            let _ = pipes.0.write_all(line.as_bytes());
            let _ = pipes.1.write_all(line.as_bytes());
        }
        if shared.has_ended() {
            return;
        }
        let (status, body) = answer;
        let length = body.len();
        let text = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{body}");
        if stream.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

/// A function for tests: `sleep` milliseconds, `needs` MiB, `crash`, `print` text, `fail`.
fn run(shared: &Shared, value: &Value, output: &Pipes) -> (u16, String) {
    let begun = Instant::now();
    if let Some(text) = value["print"].as_str() {
        let _ = writeln!(output.lock().unwrap().0, "{text}");
    }
    let sleep = Duration::from_millis(value["sleep"].as_u64().unwrap_or(0));
    while begun.elapsed() < sleep && !shared.has_ended() {
        std::thread::sleep(Duration::from_millis(1).min(sleep));
    }
    shared.busy.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::SeqCst);
    if value["needs"].as_u64().unwrap_or(0) > u64::from(shared.memory.load(Ordering::SeqCst)) {
        shared.end(Exit::OutOfMemory);
    }
    if value["crash"].as_bool() == Some(true) {
        shared.end(Exit::Signal(11));
    }
    match value["fail"].as_bool() {
        Some(true) => (502, r#"{"error":"no"}"#.to_owned()),
        _ => (200, r#"{"done":true}"#.to_owned()),
    }
}

fn read_request(stream: &mut TcpStream) -> Option<(bool, Vec<u8>)> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
            let length: usize = text
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .and_then(|number| number.trim().parse().ok())
                .unwrap_or(0);
            if bytes.len() >= head + 4 + length {
                return Some((text.starts_with("post /run"), bytes[head + 4..].to_vec()));
            }
        }
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
    }
}
