//! Functions with real work: what a call does is fixed, and how long it takes is measured.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};

/// Their names, with the most threads that they run at once.
pub(crate) const NAMES: &[(&str, u32)] = &[
    ("prime", 1),
    ("checksum", 1),
    ("gzip", 1),
    ("json", 1),
    ("sort", 1),
    ("matmul", 1),
    ("matmul-2", 2),
    ("gzip-2", 2),
    ("sleep-mix", 1),
    ("fetch-json", 1),
    ("file-sync", 1),
    ("start-python", 1),
];

/// Runs one call of a function.
pub(crate) fn call(name: &str, database: Option<SocketAddr>) -> anyhow::Result<u64> {
    Ok(match name {
        "prime" => primes(2..1_700_000),
        "checksum" => (0..60).map(|n| u64::from(crc32fast::hash(&text(n, 4 << 20)))).sum(),
        "gzip" => (0..12).map(|n| compressed(n, 1 << 20)).sum::<anyhow::Result<u64>>()?,
        "json" => (0..240).map(|n| parse(&document(n, 900))).sum::<anyhow::Result<u64>>()?,
        "sort" => (0..24).map(sorted).sum(),
        "matmul" => (0..20).map(|n| product(n, 256)).sum(),
        "matmul-2" => both(|half| Ok((0..12).map(|n| product(n + half, 256)).sum()))?,
        "gzip-2" => both(|half| (0..8).map(|n| compressed(n + half, 1 << 20)).sum())?,
        "sleep-mix" => (0..60).map(mixed).sum(),
        "fetch-json" => fetch(database.context("fetch-json needs a database")?, 60)?,
        "file-sync" => (0..40).map(stored).sum::<anyhow::Result<u64>>()?,
        "start-python" => start(
            "python3",
            &[
                "-I",
                "-c",
                "import http.server, json, decimal, asyncio, unittest, xml.dom.minidom, sqlite3, email.message",
            ],
        )?,
        other => bail!("`{other}` is no function; known are {NAMES:?}"),
    })
}

/// Two threads with half of the work each.
fn both(half: impl Fn(u64) -> anyhow::Result<u64> + Sync) -> anyhow::Result<u64> {
    thread::scope(|scope| {
        let other = scope.spawn(|| half(100));
        let own = half(0)?;
        Ok(own + other.join().map_err(|_| anyhow::anyhow!("the other half panicked"))??)
    })
}

fn primes(range: std::ops::Range<u64>) -> u64 {
    let is_prime = |n: &u64| (2..).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
    range.filter(is_prime).count() as u64
}

/// Bytes that compress about as well as logs do.
fn text(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..length)
        .map(|place| {
            if place % 7 == 0 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
            }
            b'a' + (state >> (place % 7)) as u8 % 16
        })
        .collect()
}

fn compressed(seed: u64, length: usize) -> anyhow::Result<u64> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(5));
    encoder.write_all(&text(seed, length))?;
    Ok(encoder.finish()?.len() as u64)
}

fn document(seed: u64, entries: u64) -> String {
    let entry = |n: u64| json!({"id": n * seed, "name": format!("item {n}"), "tags": ["a", "b", seed], "price": n as f64 * 0.37});
    Value::Array((0..entries).map(entry).collect()).to_string()
}

fn parse(document: &str) -> anyhow::Result<u64> {
    let value: Value = serde_json::from_str(document)?;
    Ok(value.to_string().len() as u64)
}

fn sorted(seed: u64) -> u64 {
    let mut numbers: Vec<u64> =
        (0..700_000u64).map(|n| (n + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    numbers.sort_unstable();
    numbers[numbers.len() / 2]
}

fn product(seed: u64, size: usize) -> u64 {
    let entry = |n: usize| ((n as u64 + seed) % 17) as f64;
    let a: Vec<f64> = (0..size * size).map(entry).collect();
    let b: Vec<f64> = (0..size * size).map(|n| entry(n * 3)).collect();
    let mut c = vec![0.0; size * size];
    for row in 0..size {
        for column in 0..size {
            c[row * size + column] =
                (0..size).map(|k| a[row * size + k] * b[k * size + column]).sum();
        }
    }
    c.iter().sum::<f64>() as u64
}

/// A few milliseconds of work, then a wait as for a remote service.
fn mixed(round: u64) -> u64 {
    let found = primes(20_000 + round..80_000 + round);
    thread::sleep(Duration::from_millis(5));
    found
}

/// Compresses a block and waits until the disk has it.
fn stored(round: u64) -> anyhow::Result<u64> {
    let path = std::env::temp_dir().join(format!("windfall-measure-{}", std::process::id()));
    let block = text(round, 1 << 18);
    let mut encoder =
        flate2::write::GzEncoder::new(File::create(&path)?, flate2::Compression::new(5));
    encoder.write_all(&block)?;
    let file = encoder.finish()?;
    file.sync_all()?;
    let length = file.metadata()?.len();
    std::fs::remove_file(path)?;
    Ok(length)
}

/// Starts a language runtime, as a cold start does, and waits until it has imported what it needs.
fn start(program: &str, arguments: &[&str]) -> anyhow::Result<u64> {
    let status = std::process::Command::new(program).args(arguments).status();
    Ok(u64::from(status.with_context(|| format!("starting {program}"))?.success()))
}

/// Asks the database again and again and parses what it answers.
fn fetch(database: SocketAddr, requests: u64) -> anyhow::Result<u64> {
    let mut connection = TcpStream::connect(database)?;
    connection.set_nodelay(true)?;
    let mut total = 0;
    for request in 0..requests {
        connection.write_all(&request.to_le_bytes())?;
        let mut length = [0; 8];
        connection.read_exact(&mut length)?;
        let mut answer = vec![0; u64::from_le_bytes(length) as usize];
        connection.read_exact(&mut answer)?;
        total += parse(std::str::from_utf8(&answer)?)?;
    }
    Ok(total)
}

/// A database on the loopback interface that takes 4 ms for an answer. It runs until its process ends.
pub(crate) fn serve() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let answer = document(7, 4000).into_bytes();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let answer = answer.clone();
            thread::spawn(move || {
                let mut request = [0; 8];
                while client.read_exact(&mut request).is_ok() {
                    thread::sleep(Duration::from_millis(4));
                    let mut message = (answer.len() as u64).to_le_bytes().to_vec();
                    message.extend_from_slice(&answer);
                    if client.write_all(&message).is_err() {
                        return;
                    }
                }
            });
        }
    });
    Ok(address)
}
