//! Functions to look at without writing one: built-in programs under names and sizes as users choose them, which is more
//! than most calls need.

use serde_json::{Value, json};
use windfall_core::{Allocation, Duration};
use windfall_functions::Builtin;

/// A sample function.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Its name.
    pub name: &'static str,
    /// The built-in program that it runs.
    pub builtin: &'static str,
    /// What its user reserves.
    pub reservation: Allocation,
    /// The parameter that says how much there is to do, and its usual value.
    pub input: (&'static str, u32),
    /// CPU time of a usual call; of one with twice the input, `2^growth` times as much.
    pub cpu: Duration,
    /// How CPU time grows with the input: 1 in proportion, 2 with its square.
    pub growth: f64,
    /// Time in which a usual call waits for somebody else.
    pub waits: Duration,
}

const fn sample(
    (name, builtin): (&'static str, &'static str),
    reservation: Allocation,
    input: (&'static str, u32),
    (cpu_ms, growth, waits_ms): (u64, f64, u64),
) -> Sample {
    let (cpu, waits) = (Duration::from_millis(cpu_ms), Duration::from_millis(waits_ms));
    Sample { name, builtin, reservation, input, cpu, growth, waits }
}

/// All of them. CPU times are those of one core of a common server; they size the load and nothing else.
pub const SAMPLES: &[Sample] = &[
    sample(
        ("checksum", "arithmetic"),
        Allocation::new(500, 128),
        ("million_steps", 20),
        (20, 1.0, 0),
    ),
    sample(
        ("classify-photo", "image-recognition"),
        Allocation::new(1000, 384),
        ("pictures", 1),
        (80, 1.0, 0),
    ),
    sample(
        ("draw-genome", "dna-visualisation"),
        Allocation::new(1000, 256),
        ("kilobases", 250),
        (40, 1.0, 2),
    ),
    sample(
        ("encode-clip", "video-encode"),
        Allocation::new(1000, 384),
        ("frames", 20),
        (55, 1.0, 8),
    ),
    sample(
        ("fetch-report", "autoscale"),
        Allocation::new(1000, 256),
        ("sleep", 200),
        (2, 0.0, 200),
    ),
    sample(("greet", "hello"), Allocation::new(100, 64), ("size", 1), (1, 0.0, 0)),
    sample(("poll-partner", "autoscale"), Allocation::new(500, 128), ("sleep", 120), (2, 0.0, 120)),
    sample(
        ("recommend", "nearest-neighbours"),
        Allocation::new(1000, 256),
        ("points", 20_000),
        (45, 1.0, 0),
    ),
    sample(
        ("render-page", "dynamic-html"),
        Allocation::new(500, 128),
        ("rows", 20_000),
        (25, 1.0, 0),
    ),
    sample(("send-mail", "email"), Allocation::new(500, 128), ("mails", 2000), (12, 1.0, 40)),
    sample(
        ("sort-orders", "merge-sort"),
        Allocation::new(1000, 256),
        ("thousand_numbers", 200),
        (25, 1.0, 0),
    ),
    sample(("sync-orders", "autoscale"), Allocation::new(500, 128), ("sleep", 80), (2, 0.0, 80)),
    sample(("thumbnail", "image-resize"), Allocation::new(1000, 256), ("width", 500), (50, 2.0, 5)),
    sample(
        ("train-model", "gradient-descent"),
        Allocation::new(1000, 256),
        ("samples", 40_000),
        (65, 1.0, 0),
    ),
];

impl Sample {
    /// The body of the request that deploys it.
    pub fn action(&self) -> Value {
        let (kind, timeout) = match Builtin::named(self.builtin) {
            Some(builtin) => (builtin.kind(), builtin.timeout.as_nanos() / 1_000_000),
            None => (format!("builtin:{}", self.builtin), 60_000),
        };
        json!({
            "exec": { "kind": kind, "code": self.builtin },
            "limits": { "timeout": timeout, "memory": self.reservation.memory.get() },
            "annotations": [
                { "key": "cpu", "value": self.reservation.cpu.cores() },
                { "key": "input", "value": self.input.0 },
            ],
        })
    }

    /// The input of a call with `factor` times the usual work.
    pub fn input_for(&self, factor: f64) -> u32 {
        let growth = if self.growth > 0.0 { self.growth } else { 1.0 };
        (f64::from(self.input.1) * factor.powf(1.0 / growth)).round().max(1.0) as u32
    }

    /// Core-seconds that a usual call reserves, from its start to its end.
    pub(super) fn reserved_core_seconds(&self) -> f64 {
        let cores = self.reservation.cpu.cores();
        self.cpu.as_secs_f64() + self.waits.as_secs_f64() * cores
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_runs_with_its_usual_and_its_largest_input() {
        for sample in SAMPLES {
            let builtin = Builtin::named(sample.builtin).expect(sample.builtin);
            for factor in [0.3, 1.0, 3.0] {
                let mut parameters = json!({ sample.input.0: sample.input_for(factor) });
                if sample.builtin == "autoscale" {
                    parameters["prime"] = 1000.into();
                }
                builtin.run(&parameters).unwrap_or_else(|error| panic!("{}: {error}", sample.name));
            }
        }
    }

    #[test]
    fn twice_the_work_of_a_picture_is_not_twice_its_width() {
        let thumbnail =
            SAMPLES.iter().find(|sample| sample.name == "thumbnail").expect("it is there");
        assert_eq!(thumbnail.input_for(4.0), 2 * thumbnail.input.1);
    }
}
