//! What the work of Knative's autoscaling sample costs on this machine: touching fresh memory, clearing memory
//! that is used again, sieving primes; each alone and by many workers in one process.
//!
//! `cargo run --release -p windfall-papers --example request_constants`
//!
//! CPU time as the kernel counts it, so that a busy machine disturbs little. A number is the median over
//! batches, its spread half the distance between the 16th and the 84th percentile as a share of it. The
//! numbers of one machine are in `crates/papers/src/knative_concurrency/knative/request.rs`.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "this program measures time and prints it"
)]

use std::fs;
use std::hint::black_box;
use std::thread;

const MIB: usize = 1 << 20;
const PAGE: usize = 4096;
const BATCHES: usize = 25;

/// CPU milliseconds that this thread has had.
fn cpu_ms() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() * 1e-6
}

/// `bloat`: fresh memory, touched on every page, then given back. Blocks above 32 MiB are never kept by the
/// allocator, so every page is new.
fn bloat(mib: usize) {
    let mut block = vec![0_u8; mib * MIB];
    for page in block.chunks_mut(PAGE) {
        page[0] = 1;
    }
    black_box(&block);
}

/// `prime`: the largest prime below `limit`, with a sieve.
fn prime(limit: usize) {
    let mut composite = vec![false; limit];
    let mut largest = 0;
    for number in 2..limit {
        if composite[number] {
            continue;
        }
        largest = number;
        let mut multiple = number * number;
        while multiple < limit {
            composite[multiple] = true;
            multiple += number;
        }
    }
    black_box(largest);
}

/// Median CPU milliseconds of `work`, and its spread as a share of the median.
fn measure(batch: usize, mut work: impl FnMut()) -> (f64, f64) {
    let mut millis: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let began = cpu_ms();
            (0..batch).for_each(|_| work());
            (cpu_ms() - began) / batch as f64
        })
        .collect();
    millis.sort_by(f64::total_cmp);
    let at = |share: f64| millis[((BATCHES - 1) as f64 * share) as usize];
    (at(0.5), (at(0.84) - at(0.16)) / 2.0 / at(0.5))
}

/// CPU milliseconds of one piece of work when `workers` of one process do it side by side.
fn side_by_side(workers: usize, rounds: usize, work: fn()) -> f64 {
    let spent: f64 = thread::scope(|scope| {
        let one = || {
            let began = cpu_ms();
            (0..rounds).for_each(|_| work());
            cpu_ms() - began
        };
        let all: Vec<_> = (0..workers).map(|_| scope.spawn(one)).collect();
        all.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    spent / (workers * rounds) as f64
}

fn main() {
    println!("work                       CPU ms   spread");
    for mib in [40, 100] {
        let (median, spread) = measure(8, || bloat(mib));
        let each = median / mib as f64;
        println!(
            "touch fresh {mib:>4} MiB     {median:>8.3}   {spread:>6.2}   {each:.4} ms per MiB"
        );
    }
    let mut kept = vec![1_u8; 40 * MIB];
    let (median, spread) = measure(8, || {
        kept.fill(0);
        black_box(&kept);
    });
    println!(
        "clear used    40 MiB     {median:>8.3}   {spread:>6.2}   {:.4} ms per MiB",
        median / 40.0
    );
    for limit in [10_000, 100_000, 1_000_000] {
        let (median, spread) = measure(40_000_000 / limit / 20 + 4, || prime(limit));
        let each = median * 1e6 / limit as f64;
        println!(
            "prime {limit:>9}          {median:>8.4}   {spread:>6.2}   {each:.3} ns per number"
        );
    }
    println!("\nworkers   touch fresh 40 MiB, CPU ms each   prime 100000, CPU ms each");
    for workers in [1, 2, 4, 8, 16, 32, 64] {
        let bloats = side_by_side(workers, (128 / workers).max(2), || bloat(40));
        let primes = side_by_side(workers, (2048 / workers).max(32), || prime(100_000));
        println!("{workers:>7}   {bloats:>31.3}   {primes:>25.4}");
    }
}
