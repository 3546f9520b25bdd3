//! One request to Knative's autoscaling sample: `bloat`, `prime` and `sleep` at the same time, and the answer when
//! the slowest is done.
//!
//! ```text
//!  CPU     ▐ touch the memory ▌ sieve ▌            work in one thread, shared with the pod's other requests
//!  sleep   ▐───────────────────────────────▌       a timer
//!  memory      ╱‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾▌         climbs with the touching, falls at the end
//! ```
//!
//! 20 MiB and a sieve up to 1 000 000 are 20 · 0.65 + 2.55 + 0.5 = 16.05 ms of CPU and hold 40 MiB: the runtime's
//! collector lets garbage grow as large as what is alive.
//!
//! Measured with `cargo run --release -p windfall-papers --example request_constants` on a virtual machine with two
//! cores of an AMD EPYC of family 25, model 17 (Linux 6.18), CPU time by the kernel's account:
//!
//! | what | CPU | spread |
//! |---|---|---|
//! | touching fresh memory | 0.646 ms per MiB | 0.12 |
//! | clearing memory that is used again | 0.0375 ms per MiB | 0.33 |
//! | sieve up to 10 000 / 100 000 / 1 000 000 | 1.95 / 2.08 / 2.55 ns per number | 0.04 to 0.39 |
//! | the first two by 1 to 64 workers in one process | 25.9 to 30.3 ms per 40 MiB, no trend | |
//!
//! Chosen: that every request touches fresh memory (the runtime returns what it frees), the collector's factor 2
//! (its default), 0.5 ms for handling a request.

use serde::{Deserialize, Serialize};
use windfall_core::Duration;

/// CPU time of touching one MiB of fresh memory, milliseconds. Measured.
const TOUCH_MS_PER_MIB: f64 = 0.646;
/// CPU time of the sieve per number, nanoseconds, at limits of 10^4, 10^5 and 10^6. Measured; between them the
/// logarithm of the limit interpolates, beyond them the last slope goes on.
const SIEVE_NS: [(f64, f64); 3] = [(4.0, 1.954), (5.0, 2.077), (6.0, 2.548)];
/// Spread of the CPU time from request to request. Measured, on touching memory.
const SPREAD: f64 = 0.12;
/// CPU time of taking a request in and answering it, milliseconds. Chosen.
const HANDLING_MS: f64 = 0.5;
/// Memory held per byte allocated: the collector runs when garbage equals what is alive. Chosen, its default.
const COLLECTOR_FACTOR: f64 = 2.0;

/// The three knobs of the sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestShape {
    /// Memory that is allocated, MB in the sample, MiB here.
    pub bloat_mib: u32,
    /// Primes are found up to this number.
    pub prime: u32,
    /// How long it sleeps, milliseconds.
    pub sleep_ms: u32,
}

/// What a request takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestWork {
    /// CPU time of touching its memory, nanoseconds.
    pub touch_ns: f64,
    /// CPU time of the rest, nanoseconds.
    pub sieve_ns: f64,
    /// How long it sleeps meanwhile.
    pub sleep: Duration,
    /// Memory that it holds in the end, MiB.
    pub memory_mib: f64,
    /// Standard deviation of the logarithm of its CPU time.
    pub spread: f64,
}

impl RequestShape {
    /// What such a request takes, by the constants of this file.
    pub fn work(self) -> RequestWork {
        let bloat = f64::from(self.bloat_mib);
        let prime = f64::from(self.prime);
        RequestWork {
            touch_ns: bloat * TOUCH_MS_PER_MIB * 1e6,
            sieve_ns: prime * sieve_ns_per_number(prime) + HANDLING_MS * 1e6,
            sleep: Duration::from_millis(u64::from(self.sleep_ms)),
            memory_mib: bloat * COLLECTOR_FACTOR,
            spread: SPREAD,
        }
    }
}

fn sieve_ns_per_number(limit: f64) -> f64 {
    let [low, middle, high] = SIEVE_NS;
    let exponent = limit.max(1.0).log10();
    if exponent <= low.0 {
        return low.1;
    }
    let (from, to) = if exponent < middle.0 { (low, middle) } else { (middle, high) };
    from.1 + (exponent - from.0) * (to.1 - from.1) / (to.0 - from.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_request() {
        let work = RequestShape { bloat_mib: 20, prime: 1_000_000, sleep_ms: 0 }.work();
        assert!((work.touch_ns - 12.92e6).abs() < 1.0);
        assert!((work.sieve_ns - 3.048e6).abs() < 1.0);
        assert_eq!(work.memory_mib, 40.0);
    }

    #[test]
    fn the_sieve_costs_what_was_measured_and_more_beyond() {
        assert_eq!(sieve_ns_per_number(100.0), 1.954);
        assert!((sieve_ns_per_number(1e5) - 2.077).abs() < 1e-12);
        assert!((sieve_ns_per_number(1e7) - 3.019).abs() < 1e-12);
    }
}
