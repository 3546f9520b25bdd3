//! Measures every built-in function with an input: time, CPU time and memory of a warm call at a quarter of its
//! default input, at the default, and at twice that. Each is a process of its own, so that memory is its own too.
//!
//!   cargo build --profile quick -p windfall-functions --examples
//!   measure_builtins

use std::fs;
use std::io::Write;
use std::process::Command;
use std::time::Instant;

use serde_json::json;
use windfall_functions::{Builtin, builtins};

const REPETITIONS: u32 = 5;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut out = std::io::stdout();
    if let (Some(name), Some(size)) = (arguments.next(), arguments.next()) {
        let line = measure(&name, size.parse().expect("a number"));
        let _ = writeln!(out, "{line}");
        return;
    }
    let own = std::env::current_exe().expect("/proc is mounted");
    let _ = writeln!(out, "function             input         wall ms   CPU ms   peak MiB");
    for builtin in builtins() {
        let Some(input) = builtin.input else { continue };
        for size in [input.default.div_ceil(4), input.default, input.default * 2] {
            let measured = Command::new(&own).args([builtin.name, &size.to_string()]).output();
            let text = measured.map(|done| String::from_utf8_lossy(&done.stdout).trim().to_owned());
            let text = text.unwrap_or_else(|why| why.to_string());
            let _ = writeln!(out, "{:20} {size:8}      {text}", builtin.name);
        }
    }
}

fn measure(name: &str, size: u32) -> String {
    let builtin = Builtin::named(name).expect("a name from the list");
    let parameter = builtin.input.expect("it has an input").parameter;
    let parameters = json!({ parameter: size });
    // The first call of some builds what the others use.
    builtin.run(&parameters).expect("it runs");
    let (began, cpu) = (Instant::now(), cpu_ticks());
    for _ in 0..REPETITIONS {
        builtin.run(&parameters).expect("it runs");
    }
    let wall = began.elapsed().as_secs_f64() * 1e3 / f64::from(REPETITIONS);
    // A tick is 10 ms.
    let cpu = (cpu_ticks() - cpu) as f64 * 10.0 / f64::from(REPETITIONS);
    format!("{wall:8.1} {cpu:8.1} {:10.1}", peak_mib())
}

/// User and system time of this process and its threads.
fn cpu_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("/proc is mounted");
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    after_name
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum()
}

fn peak_mib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|text| text.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.unwrap_or(f64::NAN) / 1024.0
}
