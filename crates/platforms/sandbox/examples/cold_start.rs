//! Measures how long an instance takes from launch to its first answer over HTTP, for each level of isolation, and
//! what sampling and changing a running one costs.
//!
//! `cargo run -p windfall-sandbox --profile quick --example cold_start -- 50` starts 50 of each, one at a time with a
//! pause between them, so that every start is a rare one.
#![allow(clippy::print_stdout, reason = "an example reports on the terminal")]

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use windfall_core::{Mebibytes, MilliCpu};
use windfall_sandbox::{Child, Host, HostOptions, Isolation, Launch, Limits, Program};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

fn main() -> Result<(), Box<dyn Error>> {
    let argument = std::env::args().nth(1);
    if argument.as_deref() == Some("serve") {
        return serve();
    }
    let count: u32 = argument.map_or(Ok(20), |text| text.parse())?;
    for isolation in Isolation::ALL {
        let host = Host::start(&HostOptions { isolation, ..HostOptions::default() })?;
        host.join(Child::Gateway)?;
        sleep(Duration::from_millis(300));
        let mut times = Vec::new();
        let mut launches = Vec::new();
        for number in 0..count {
            let (launched, answered) = start_once(&host, isolation, number)?;
            launches.push(launched);
            times.push(answered);
            sleep(Duration::from_millis(150));
        }
        println!("{isolation}: launch {}, first answer {}", spread(launches), spread(times));
        costs(&host, isolation)?;
    }
    Ok(())
}

/// Reads and writes of one running instance, each a thousand times.
fn costs(host: &Host, isolation: Isolation) -> Result<(), Box<dyn Error>> {
    let mut instance = host.launch(&launch(isolation, 0))?;
    let (mut senses, mut sets, mut freezes, mut thaws) = (vec![], vec![], vec![], vec![]);
    for number in 0..1000 {
        let limits = Limits::new(MilliCpu::new(500 + number), Mebibytes::new(128 + number % 2))
            .with_quota(MilliCpu::new(300 + number));
        let start = Instant::now();
        instance.sense()?;
        senses.push(start.elapsed());
        let start = Instant::now();
        instance.set(&limits);
        sets.push(start.elapsed());
    }
    for _ in 0..50 {
        let start = Instant::now();
        instance.freeze()?;
        freezes.push(start.elapsed());
        let start = Instant::now();
        instance.thaw()?;
        thaws.push(start.elapsed());
    }
    println!(
        "{isolation}: sense {}, set weight, quota and memory {}",
        spread(senses),
        spread(sets)
    );
    println!("{isolation}: freeze {}, thaw {}", spread(freezes), spread(thaws));
    Ok(())
}

fn launch(isolation: Isolation, number: u32) -> Launch {
    Launch {
        name: format!("cold/{number}"),
        program: Program::this().argument("serve"),
        environment: Vec::new(),
        isolation,
        limits: Limits::new(MilliCpu::new(1000), Mebibytes::new(128)),
        scratch: Mebibytes::new(16),
    }
}

fn start_once(
    host: &Host,
    isolation: Isolation,
    number: u32,
) -> Result<(Duration, Duration), Box<dyn Error>> {
    let start = Instant::now();
    let mut instance = host.launch(&launch(isolation, number))?;
    let launched = start.elapsed();
    let mut stream = TcpStream::connect(instance.address())?;
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n")?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer) {
        return Err(format!("no answer ({error}), exit {:?}", instance.exited()).into());
    }
    Ok((launched, start.elapsed()))
}

fn serve() -> Result<(), Box<dyn Error>> {
    let listener = listenfd::ListenFd::from_env().take_tcp_listener(0)?.ok_or("no listener")?;
    for stream in listener.incoming() {
        let mut stream = stream?;
        let mut request = [0; 1024];
        let _ = stream.read(&mut request)?;
        stream.write_all(ANSWER)?;
    }
    Ok(())
}

fn spread(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
    format!("p50 {:.3} ms, p95 {:.3} ms, max {:.3} ms", at(50), at(95), at(100))
}
