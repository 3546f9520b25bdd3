//! Twelve functions with measured service laws.
//!
//! A call works for `work` core-milliseconds on at most `parallelism`, waits `fixed` milliseconds whatever
//! its share, and needs `memory` MiB: `run(c) = fixed + work / min(c, parallelism)`.
//!
//! | from | which | how |
//! | --- | --- | --- |
//! | decoupled CPU/memory (EuroSys'23, OpenFaaS on m5) | ocr, face-detector, face-blur, object-store, linpack | the law fitted to medians over CPU sizes (median error 0.5 to 4 %), middle of the inputs; memory: the least that never failed |
//! | FaaSRail (HPDC'24) | aes, image-rotate, html-template, matrix-product, json, image-recognition | mean warm time and memory of one listed input, on one core by assumption |
//! | OpenWhisk, Base64 notebook of WoSC'21's authors | base64 | run time against containers on shared cores is 173 + 104 n ms: 104 ms of work, 173 ms of waiting |
//!
//! Where a source has several inputs, `spread` is their deviation in logarithms; where it has one, 0.3 is
//! assumed. A cold start takes 518 ms for Python (median of 1,095 on Lambda), else 380 ms (Base64's largest
//! mean). The objectives are the knees of [`crate::knee`], which a test recomputes.

use windfall_core::{Allocation, CallDemand, ColdStart, Duration, Mebibytes, MilliCpu};
use windfall_rl::random::Draw;

/// What the calls of one function need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServiceProfile {
    /// Its name.
    pub name: &'static str,
    /// Where its numbers were measured.
    pub source: &'static str,
    /// Median work of a call, core-milliseconds.
    pub work_ms: f64,
    /// Standard deviation of the logarithm of the work.
    pub spread: f64,
    /// Time a call waits whatever its CPU, milliseconds.
    pub fixed_ms: f64,
    /// The most CPU it can use, millicores.
    pub parallelism: u32,
    /// The most memory a usual call needs, MiB.
    pub memory_mib: u32,
    /// What its user reserves per instance, MiB.
    pub reserved_mib: u32,
    /// Median cold start, milliseconds.
    pub cold_start_ms: u64,
    /// The latency its calls are to stay below, milliseconds.
    pub slo_ms: f64,
}

/// One core in the unit of the paper's CPU shares: 1024 shares are one core's weight.
pub const RESERVED_CPU: u32 = 1024;

impl ServiceProfile {
    /// What the user reserves per instance.
    pub fn reservation(&self) -> Allocation {
        Allocation::new(RESERVED_CPU, self.reserved_mib)
    }

    /// How long a new instance takes.
    pub fn cold_start(&self) -> ColdStart {
        ColdStart { median: Duration::from_millis(self.cold_start_ms), sigma: 0.25 }
    }

    /// Mean work of a call, core-seconds: a lognormal's mean is above its median.
    pub fn mean_work(&self) -> f64 {
        self.work_ms * 1e-3 * (0.5 * self.spread * self.spread).exp()
    }

    /// Mean run time on `cpu` cores alone, seconds.
    pub fn mean_run(&self, cpu: f64) -> f64 {
        self.fixed_ms * 1e-3 + self.mean_work() / cpu.min(f64::from(self.parallelism) * 1e-3)
    }

    /// Draws one call.
    pub fn draw(&self, draw: &mut Draw) -> CallDemand {
        let work_ms = self.work_ms * (self.spread * draw.normal()).exp();
        let peak = f64::from(self.memory_mib) * (0.08 * draw.normal()).exp();
        let demand = CallDemand {
            // A core-millisecond is 1000 millicores times 1e6 ns.
            work: (work_ms * 1e9) as u64,
            fixed: Duration::from_nanos((self.fixed_ms * 1e6) as u64),
            parallelism: MilliCpu::new(self.parallelism),
            memory_base: Mebibytes::new((0.5 * peak) as u32),
            memory_peak: Mebibytes::new(peak as u32),
            rise: Duration::ZERO,
            jumps: false,
            cycles: 1,
            shape: 0,
            input: None,
        };
        CallDemand { rise: demand.fastest().scaled(0.5), ..demand }
    }
}

const EUROSYS: &str = "decoupled CPU and memory on OpenFaaS, EuroSys 2023";
const FAASRAIL: &str = "FaaSRail, HPDC 2024";

/// The twelve. In `windfall/Scaling-v0` the first six are for training, two for validation, the last four for
/// the test.
pub const TWELVE: [ServiceProfile; 12] = [
    fitted("ocr", (1000.0, 0.32), 205.0, (1100, 210, 320), 3300.0),
    fitted("face-detector", (650.0, 0.2), 150.0, (950, 105, 192), 2100.0),
    fitted("object-store", (730.0, 0.12), 1440.0, (850, 105, 192), 6000.0),
    fitted("linpack", (446.0, 0.08), 671.0, (900, 105, 192), 2700.0),
    measured("aes", 181.5, 39, 64, 540.0),
    measured("html-template", 706.3, 90, 128, 2100.0),
    measured("json", 199.7, 79, 128, 590.0),
    measured("image-recognition", 178.8, 464, 640, 540.0),
    ServiceProfile {
        name: "base64",
        source: "Base64 on OpenWhisk, 40 settings, by the authors of WoSC 2021",
        work_ms: 104.0,
        spread: 0.3,
        fixed_ms: 173.0,
        parallelism: 1000,
        memory_mib: 100,
        reserved_mib: 192,
        cold_start_ms: 380,
        slo_ms: 700.0,
    },
    fitted("face-blur", (660.0, 0.2), 125.0, (900, 105, 192), 2300.0),
    measured("image-rotate", 61.2, 59, 128, 185.0),
    measured("matrix-product", 614.5, 62, 128, 1870.0),
];

const fn fitted(
    name: &'static str,
    (work_ms, spread): (f64, f64),
    fixed_ms: f64,
    (parallelism, memory_mib, reserved_mib): (u32, u32, u32),
    slo_ms: f64,
) -> ServiceProfile {
    ServiceProfile {
        name,
        source: EUROSYS,
        work_ms,
        spread,
        fixed_ms,
        parallelism,
        memory_mib,
        reserved_mib,
        cold_start_ms: 380,
        slo_ms,
    }
}

const fn measured(
    name: &'static str,
    work_ms: f64,
    memory_mib: u32,
    reserved_mib: u32,
    slo_ms: f64,
) -> ServiceProfile {
    ServiceProfile {
        name,
        source: FAASRAIL,
        work_ms,
        spread: 0.3,
        fixed_ms: 5.0,
        parallelism: 1000,
        memory_mib,
        reserved_mib,
        cold_start_ms: 518,
        slo_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_core::Seed;

    #[test]
    fn draws_have_the_stated_mean() {
        for profile in &TWELVE {
            let mut draw = Draw::new(Seed::new(1));
            let count = 4000;
            let total: f64 = (0..count).map(|_| profile.draw(&mut draw).work as f64 * 1e-12).sum();
            let mean = total / f64::from(count);
            assert!((mean / profile.mean_work() - 1.0).abs() < 0.03, "{}: {mean}", profile.name);
        }
    }

    #[test]
    fn every_usual_call_fits_what_its_user_reserves() {
        for profile in &TWELVE {
            let mut draw = Draw::new(Seed::new(2));
            let fits = |_| profile.draw(&mut draw).memory_peak.get() <= profile.reserved_mib;
            assert!((0..2000).all(fits), "{}", profile.name);
        }
    }

    #[test]
    fn the_law_by_hand() {
        // face-detector on half a core: 150 + 650 e^0.02 / 0.5 ms.
        let run = TWELVE[1].mean_run(0.5);
        assert!((run - (0.150 + 0.650 * 0.02f64.exp() / 0.5)).abs() < 1e-12);
    }
}
