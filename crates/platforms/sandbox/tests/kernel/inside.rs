//! What runs inside an instance: probes that try something and print `key=value` lines.
#![allow(clippy::print_stdout, reason = "standard output is how a probe answers")]

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;

/// Runs the probe that the arguments name; nothing if this process is not inside.
pub(crate) fn run_if_inside() -> Option<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["inside", "identity"] => identity(),
        ["inside", "processes"] => processes(),
        ["inside", "network", address] => network(address),
        ["inside", "root"] => root(),
        ["inside", "read", paths @ ..] => read(paths),
        ["inside", "write", path, text] => write(path, text),
        ["inside", "calls"] => refused::calls(),
        ["inside", "bomb"] => bomb(),
        ["inside", "hold", mib] => hold(number(mib), true),
        ["inside", "hog"] => hold(u64::MAX, false),
        ["inside", "fill"] => fill(),
        ["inside", "spin", threads] => spin(number(threads)),
        ["inside", "sleep", ..] => sleep(),
        ["inside", "detach", mark] => detach(mark),
        ["inside", "serve"] => serve(),
        ["inside", "exit", code] => return Some(ExitCode::from(number(code) as u8)),
        ["inside", "abort"] => std::process::abort(),
        ["inside", ..] => return Some(ExitCode::from(99)),
        _ => return None,
    }
    Some(ExitCode::SUCCESS)
}

fn number(text: &str) -> u64 {
    text.parse().expect("the tests pass numbers")
}

fn sleep() -> ! {
    loop {
        thread::sleep(Duration::from_secs(60));
    }
}

fn identity() {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    for key in
        ["Uid", "Gid", "Groups", "CapEff", "CapPrm", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"]
    {
        let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        println!("{key}={}", line.unwrap_or_default().split_whitespace().next().unwrap_or(""));
    }
    println!("pid={}", std::process::id());
    let mut variables: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
    variables.sort();
    println!("variables={}", variables.join(","));
    println!("descriptors={}", entries("/proc/self/fd").join(","));
    println!("host={}", fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim());
}

fn entries(folder: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn processes() {
    let is_number = |name: &String| name.chars().all(|letter| letter.is_ascii_digit());
    let seen: Vec<String> = entries("/proc").into_iter().filter(is_number).collect();
    println!("processes={}", seen.join(","));
}

/// Tries the machine's own loopback interface and an address reserved for documentation.
fn network(address: &str) {
    let interfaces = fs::read_to_string("/proc/net/dev").unwrap_or_default();
    let names: Vec<&str> =
        interfaces.lines().filter_map(|line| Some(line.split_once(':')?.0.trim())).collect();
    println!("interfaces={}", names.join(","));
    for (key, address) in [("machine", address), ("outside", "192.0.2.1:80")] {
        let address: SocketAddr = address.parse().expect("the tests pass addresses");
        let answer = TcpStream::connect_timeout(&address, Duration::from_secs(2));
        println!(
            "{key}={}",
            answer.map_or_else(|error| format!("{:?}", error.kind()), |_| "connected".into())
        );
    }
}

fn root() {
    for folder in ["/", "/usr", "/usr/bin", "/etc", "/dev", "/tmp"] {
        try_to_write(folder, &format!("{folder}/written-by-test"));
    }
    // What is there already would give the value that it has.
    try_to_write("/proc/sys", "/proc/sys/kernel/panic");
    println!("folders={}", entries("/").join(","));
    println!("kcore={}", fs::read("/proc/kcore").map_or(0, |content| content.len()));
}

fn try_to_write(key: &str, path: &str) {
    let answer = fs::write(path, "0");
    println!(
        "{key}={}",
        answer.map_or_else(|error| format!("{:?}", error.kind()), |()| "written".into())
    );
}

fn read(paths: &[&str]) {
    for path in paths {
        let answer = fs::read_to_string(path);
        println!("{path}={}", answer.unwrap_or_else(|error| format!("{:?}", error.kind())));
    }
}

fn write(path: &str, text: &str) {
    println!("written={}", fs::write(path, text).is_ok());
    println!("read={}", fs::read_to_string(path).unwrap_or_default());
}

/// Starts processes until that is refused.
fn bomb() {
    let mut children = Vec::new();
    // Far above every limit that the tests set.
    for _ in 0..500 {
        match Command::new("/usr/bin/sleep").arg("60").spawn() {
            Ok(child) => children.push(child),
            Err(error) => {
                println!("stopped={:?}", error.kind());
                break;
            }
        }
    }
    println!("started={}", children.len());
    for mut child in children {
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Leaves a process in a session of its own behind whose parent has ended, says so and stays.
fn detach(mark: &str) -> ! {
    let script = "(setsid sh -c 'sleep 600; :' \"$0\" > /dev/null 2>&1 &)";
    let left = Command::new("/bin/sh").args(["-c", script, mark]).status();
    println!("left={}", left.is_ok_and(|status| status.success()));
    sleep()
}

/// Takes memory in steps of 4 MiB and writes to all of it.
fn hold(mib: u64, stay: bool) {
    let mut held = Vec::new();
    for _ in 0..mib / 4 {
        held.push(vec![1_u8; 4 << 20]);
        std::hint::black_box(&mut held);
    }
    println!("held={mib}");
    if stay {
        sleep();
    }
}

/// Writes to /tmp until it is full.
fn fill() {
    let mut written = 0_u64;
    let mut file = fs::File::create("/tmp/fill").expect("/tmp is writable");
    let block = vec![7_u8; 64 << 10];
    let answer = loop {
        match file.write(&block) {
            Ok(bytes) => written += bytes as u64,
            Err(error) => break format!("{:?}", error.kind()),
        }
    };
    println!("written={written}\nanswer={answer}");
}

fn spin(threads: u64) {
    for _ in 1..threads {
        thread::spawn(busy);
    }
    busy();
}

fn busy() {
    let mut state = 1_u64;
    loop {
        state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

/// Answers every connection on the inherited listener.
fn serve() {
    let listener = listenfd::ListenFd::from_env()
        .take_tcp_listener(0)
        .ok()
        .flatten()
        .expect("the listener is descriptor 3");
    for stream in listener.incoming() {
        let mut stream = stream.expect("a connection");
        let mut question = [0; 16];
        let length = stream.read(&mut question).unwrap_or(0);
        let _ = stream.write_all(&question[..length]);
    }
}

/// System calls that have no safe wrapper, made with arguments that are harmless even if they are allowed.
#[allow(unsafe_code)]
mod refused {
    pub(super) fn calls() {
        let calls = [
            ("mount", libc::SYS_mount),
            ("umount2", libc::SYS_umount2),
            ("ptrace", libc::SYS_ptrace),
            ("unshare", libc::SYS_unshare),
            ("setns", libc::SYS_setns),
            ("bpf", libc::SYS_bpf),
            ("keyctl", libc::SYS_keyctl),
            ("add_key", libc::SYS_add_key),
            ("perf_event_open", libc::SYS_perf_event_open),
            ("io_uring_setup", libc::SYS_io_uring_setup),
            ("userfaultfd", libc::SYS_userfaultfd),
            ("open_by_handle_at", libc::SYS_open_by_handle_at),
            ("pivot_root", libc::SYS_pivot_root),
            ("sethostname", libc::SYS_sethostname),
        ];
        for (name, call) in calls {
            // SAFETY: all arguments are zero, which every one of these calls answers with an error or, `unshare` and
            // `ptrace(PTRACE_TRACEME)`, with a change of this process alone.
            let answer = unsafe { libc::syscall(call, 0, 0, 0, 0, 0, 0) };
            report(name, answer);
        }
        // SAFETY: no pointers.
        let socket = unsafe { libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0) };
        report("vsock", i64::from(socket));
        let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
        // SAFETY: without a new stack this is a fork; a child that exists in spite of the filter ends immediately.
        let child = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
        if child == 0 {
            std::process::exit(0);
        }
        report("clone_newuser", child);
        // SAFETY: a size of zero is answered with EINVAL where the call is allowed.
        report("clone3", unsafe { libc::syscall(libc::SYS_clone3, 0, 0) });
    }

    fn report(name: &str, answer: i64) {
        let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        let answer = match (answer, error) {
            (0.., _) => "allowed".to_owned(),
            (_, libc::EPERM) => "EPERM".to_owned(),
            (_, libc::ENOSYS) => "ENOSYS".to_owned(),
            (_, other) => format!("errno {other}"),
        };
        println!("{name}={answer}");
    }
}
