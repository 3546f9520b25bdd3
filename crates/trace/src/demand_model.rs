//! Draws the needs of functions and calls that traces do not record.
//!
//! A trace records when calls arrive, how long they take and (sometimes) how much memory they use. How many
//! cores a call can use, how long it waits, its input and its user's reservation are **assumed** here, from
//! `params/demand.toml`, with every draw from the function's own stream.
//!
//! ```text
//!   x  ~ N(0,1)                                  the visible input, size = median * exp(s * x)
//!   z  = sqrt(R2) * x + sqrt(1 - R2) * e         one z each for run time, parallelism and memory
//!   T, p, m = Q_T(z_T), Q_p(z_p), Q_m(z_m)       looked up, see `quantiles`
//!   fixed = phi * T,  work so that run(reservation) = T
//! ```

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;
use rand_xoshiro::Xoshiro256PlusPlus;
use windfall_core::{
    Allocation, CallDemand, ColdStart, Duration, FunctionProfile, Mebibytes, MilliCpu, Seed,
    Trigger,
};

use crate::parameters::{DemandParameters, Reservation, demand, weighted};
use crate::quantiles::{NormalScores, Quantiles, ScoreTable, normal_cdf};

/// Facts about one function that its trace records.
#[derive(Clone, Debug)]
pub(crate) struct FunctionFacts {
    /// Index in the whole trace, so that filters do not change a function's draws.
    pub(crate) member: u64,
    /// A name that is unique in the trace.
    pub(crate) name: String,
    /// The application it belongs to.
    pub(crate) application: String,
    /// What triggers it.
    pub(crate) trigger: Trigger,
    /// Run time at the user's size, ms; drawn if the trace has none.
    pub(crate) duration_ms: Option<Quantiles>,
    /// Memory peak, MiB; drawn if the trace has none.
    pub(crate) memory_mib: Option<Quantiles>,
    /// The user's reservation; drawn if the trace has none.
    pub(crate) reservation: Option<Allocation>,
}

impl FunctionFacts {
    /// Whether its calls are taken to sleep: all of them take the same long time, as calls do that wait for
    /// a timeout. `idle.sleeper_share` of their time is then spent waiting, which is **chosen** and not
    /// measured: a live policy gains more on such calls than on any others.
    pub(crate) fn sleeps(&self) -> bool {
        self.duration_ms.as_ref().is_some_and(|duration_ms| sleeps(duration_ms, demand()))
    }
}

fn sleeps(duration_ms: &Quantiles, parameters: &DemandParameters) -> bool {
    let (shortest, longest) = (duration_ms.at(0.01), duration_ms.at(0.99));
    let idle = &parameters.idle;
    shortest > idle.sleeper_p1_ms && longest < idle.sleeper_p99_over_p1 * shortest
}

/// How the calls of one function are drawn.
#[derive(Clone, Debug)]
pub(crate) struct CallModel {
    run_ns: ScoreTable<129>,
    parallelism_millis: ScoreTable<33>,
    memory_mib: ScoreTable<33>,
    input_kib: Option<ScoreTable<33>>,
    /// sqrt(R2) and sqrt(1 - R2).
    visible: f32,
    hidden: f32,
    idle_share: f32,
    base_share: f32,
    rise_share: f32,
    jumps: bool,
    max_cycles: u8,
    cycles_per_ns: f32,
    cpu: MilliCpu,
    normals: &'static NormalScores,
}

/// A drawn function: the profile that the platform sees, and the distribution of its calls.
#[derive(Clone, Debug)]
pub(crate) struct ModelledFunction {
    pub(crate) profile: FunctionProfile,
    pub(crate) model: CallModel,
    /// Generator for its calls.
    pub(crate) demand: Xoshiro256PlusPlus,
}

/// Draws everything about a function that its trace does not record.
pub(crate) fn model_function(facts: &FunctionFacts, seed: Seed) -> ModelledFunction {
    let parameters = demand();
    let mut rng = seed.stream("functions").member(facts.member).generator();
    let traits = Traits::draw(facts, parameters, &mut rng);
    let duration_ms = match &facts.duration_ms {
        Some(measured) => measured.clone(),
        None => assigned_duration(parameters, &mut rng),
    };
    let (parallelism, memory, reservation) = size_function(facts, &traits, parameters, &mut rng);
    let runtime = weighted(&parameters.runtime, |runtime| runtime.share, &mut rng);
    let import = parameters.cold_start.import_factor.draw(&mut rng);
    let input_kib = draw_input(&traits, &duration_ms, parameters, &mut rng);
    let sleeps = sleeps(&duration_ms, parameters);
    let model = CallModel {
        run_ns: ScoreTable::new(|z| duration_ms.at(normal_cdf(z)) * 1e6),
        parallelism_millis: ScoreTable::new(|z| {
            (1000.0 * parallelism * (traits.sigma * z).exp()).clamp(50.0, 16_000.0)
        }),
        memory_mib: ScoreTable::of(&memory),
        visible: if input_kib.is_some() { traits.explained.sqrt() as f32 } else { 0.0 },
        hidden: if input_kib.is_some() { (1.0 - traits.explained).sqrt() as f32 } else { 1.0 },
        input_kib,
        idle_share: if sleeps { parameters.idle.sleeper_share } else { traits.idle_share } as f32,
        base_share: parameters.memory.base_share.draw(&mut rng) as f32,
        rise_share: parameters.memory.rise_share.draw(&mut rng) as f32,
        jumps: rng.random::<f64>() < parameters.memory.jump_share,
        max_cycles: parameters.duration.max_cycles,
        cycles_per_ns: (1e-9 / parameters.duration.cycle_seconds) as f32,
        cpu: reservation.cpu,
        normals: NormalScores::shared(),
    };
    let start = cold_start(
        [parameters.cold_start.sandbox_ms, parameters.cold_start.sandbox_sigma],
        [runtime.init_ms * import, runtime.init_sigma],
    );
    let profile = FunctionProfile {
        name: facts.name.clone(),
        application: facts.application.clone(),
        trigger: facts.trigger,
        runtime: runtime.name.clone(),
        reservation,
        cold_start: start,
    };
    let demand = seed.stream("demand").member(facts.member).generator();
    ModelledFunction { profile, model, demand }
}

/// Behaviour of a function, except for its sizes.
struct Traits {
    cores: f64,
    sigma: f64,
    idle_share: f64,
    /// Share of the variance of the normal score that the input explains; zero if the input is not visible.
    explained: f64,
}

impl Traits {
    fn draw(facts: &FunctionFacts, parameters: &DemandParameters, rng: &mut impl Rng) -> Self {
        let DemandParameters { parallelism, idle, input, .. } = parameters;
        let is_parallel = rng.random::<f64>() < parallelism.parallel_share;
        let (cores, sigma, idle_share) = if is_parallel {
            let cores = *weighted(&parallelism.parallel_cores, |_| 1.0, rng);
            let [narrow, wide] = parallelism.parallel_sigma;
            let sigma = if rng.random::<f64>() < parallelism.narrow_share { narrow } else { wide };
            (cores, sigma, idle.parallel_share.draw(rng))
        } else {
            let cores = parallelism.serial_cores.draw(rng);
            (cores, parallelism.serial_sigma, *weighted(&idle.serial_shares, |_| 1.0, rng))
        };
        let hides_input = rng.random::<f64>() < input.invisible_share;
        let explained = input.explained.draw(rng);
        let hidden = hides_input || facts.trigger == Trigger::Timer;
        Self { cores, sigma, idle_share, explained: if hidden { 0.0 } else { explained } }
    }
}

/// Run times of a function whose trace has none.
fn assigned_duration(parameters: &DemandParameters, rng: &mut impl Rng) -> Quantiles {
    let mean = parameters.assigned_duration.mean_ms.draw_log_uniform(rng);
    let sigma = parameters.assigned_duration.sigma.draw(rng);
    let median = mean * (-0.5 * sigma * sigma).exp();
    Quantiles::lognormal(median, sigma, parameters.duration.low_ms, parameters.duration.high_ms)
}

/// Parallelism, memory peak and reservation. Those that the trace does not record are drawn such that the
/// ratios between them have the same distribution for all traces.
fn size_function(
    facts: &FunctionFacts,
    traits: &Traits,
    parameters: &DemandParameters,
    rng: &mut impl Rng,
) -> (f64, Quantiles, Allocation) {
    let sizes = &parameters.reservation;
    // The 95th percentile of a lognormal lies 1.645 standard deviations above its median.
    let p95_over_median = (1.645 * traits.sigma).exp();
    let cpu_ratio = CpuRatio::draw(sizes, p95_over_median, rng);
    let memory_ratio = sizes.memory_factor.draw(rng);
    let cores = match facts.reservation {
        Some(reserved) => (reserved.cpu.cores() / cpu_ratio.over_median).max(0.05),
        None => traits.cores,
    };
    let z: f64 = rng.sample(StandardNormal);
    let memory = facts.memory_mib.clone().unwrap_or_else(|| {
        let assigned = &parameters.assigned_memory;
        let median = match facts.reservation {
            Some(reserved) => reserved.memory.mib() / memory_ratio,
            None => assigned.median_mib * (assigned.sigma * z).exp(),
        };
        Quantiles::lognormal(median, 0.04, parameters.memory.low_mib, parameters.memory.high_mib)
    });
    let reservation = facts.reservation.unwrap_or_else(|| Allocation {
        cpu: MilliCpu::new(cpu_ratio.size(sizes, cores)),
        memory: Mebibytes::new(memory_size(sizes, memory.at(0.99), memory_ratio)),
    });
    (cores, memory, reservation)
}

/// Ratio of the CPU that a user reserves to what a median call can use.
struct CpuRatio {
    over_median: f64,
    snaps: Snap,
}

#[derive(Clone, Copy)]
enum Snap {
    Nearest,
    Down,
    No,
}

impl CpuRatio {
    fn draw(sizes: &Reservation, p95_over_median: f64, rng: &mut impl Rng) -> Self {
        let kind = rng.random::<f64>();
        let (over, under) = (sizes.over_factor.draw(rng), sizes.under_factor.draw(rng));
        if kind < sizes.over_share {
            Self { over_median: over * p95_over_median, snaps: Snap::Nearest }
        } else if kind < sizes.over_share + sizes.under_share {
            Self { over_median: under, snaps: Snap::Down }
        } else {
            Self { over_median: sizes.right_factor * p95_over_median, snaps: Snap::No }
        }
    }

    /// The CPU size that a user sets, in millicores.
    ///
    /// Users who reserve too much choose the size nearest in ratio (rounding up would add a third to what they
    /// reserve), users who reserve too little the next lower one, and users who know the need to 5 % set it exactly.
    fn size(&self, sizes: &Reservation, cores: f64) -> u32 {
        let wanted = 1000.0 * (cores * self.over_median).min(sizes.max_cores);
        match self.snaps {
            Snap::Nearest => nearest_in_ratio(&sizes.cpu_millicores, wanted),
            Snap::Down => {
                let below = sizes.cpu_millicores.iter().rev().find(|&&s| f64::from(s) <= wanted);
                below.copied().unwrap_or(wanted.ceil() as u32)
            }
            Snap::No => (wanted / 50.0).ceil() as u32 * 50,
        }
    }
}

/// The memory size that a user sets, in MiB: the size nearest in ratio that holds 1.05 times the 99th percentile.
fn memory_size(sizes: &Reservation, p99: f64, ratio: f64) -> u32 {
    let near = nearest_in_ratio(&sizes.memory_mib, p99 * ratio);
    if f64::from(near) >= 1.05 * p99 {
        return near;
    }
    let above = sizes.memory_mib.iter().find(|&&size| f64::from(size) >= 1.05 * p99);
    above.copied().unwrap_or((1.05 * p99).ceil() as u32)
}

fn nearest_in_ratio(sizes: &[u32], wanted: f64) -> u32 {
    let distance = |size: u32| (f64::from(size) / wanted).ln().abs();
    let nearest = sizes.iter().copied().min_by(|&a, &b| distance(a).total_cmp(&distance(b)));
    nearest.unwrap_or(wanted.ceil() as u32)
}

/// Input sizes such that run time grows with a power of them: the spread of the input is the explained
/// spread of the run time over the exponent.
fn draw_input(
    traits: &Traits,
    duration_ms: &Quantiles,
    parameters: &DemandParameters,
    rng: &mut impl Rng,
) -> Option<ScoreTable<33>> {
    let median = parameters.input.median_kib.draw_log_uniform(rng);
    let exponent = parameters.input.duration_exponent.draw(rng);
    // Quartiles of a normal distribution are 1.349 standard deviations apart.
    let spread = (duration_ms.at(0.75) / duration_ms.at(0.25)).ln() / 1.349;
    let sigma = (spread * traits.explained.sqrt() / exponent).clamp(0.05, 3.0);
    (traits.explained > 0.0).then(|| ScoreTable::new(|x| median * (sigma * x).exp()))
}

/// Sum of two lognormal times, approximated by a lognormal with the same mean and variance (Fenton and Wilkinson).
fn cold_start(sandbox: [f64; 2], init: [f64; 2]) -> ColdStart {
    let moments = |[median, sigma]: [f64; 2]| {
        let spread = sigma * sigma;
        let mean = median * (0.5 * spread).exp();
        (mean, mean * mean * (spread.exp() - 1.0))
    };
    let ((mean_a, variance_a), (mean_b, variance_b)) = (moments(sandbox), moments(init));
    let mean = mean_a + mean_b;
    let spread = (1.0 + (variance_a + variance_b) / (mean * mean)).ln();
    let median_ms = mean * (-0.5 * spread).exp();
    ColdStart { median: Duration::from_secs_f64(median_ms * 1e-3), sigma: spread.sqrt() }
}

impl CallModel {
    /// Mean run time at the user's size, in seconds.
    pub(crate) fn mean_run_seconds(&self) -> f64 {
        self.run_ns.mean() * 1e-9
    }

    /// Draws a call.
    #[inline(always)]
    pub(crate) fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> CallDemand {
        let (x, e) = self.normals.pair(rng.next_u64());
        let seen = self.visible * x;
        let run = self.run_ns.at(seen + self.hidden * e);
        let input = self.input_kib.as_ref().map(|table| table.at(x));
        self.complete(run as i64 as u64, input, seen, rng)
    }

    /// Draws the remaining needs of a call whose run time `run_ns` has the normal score `z` among its function's calls.
    pub(crate) fn draw_given(
        &self,
        run_ns: u64,
        z: f32,
        rng: &mut Xoshiro256PlusPlus,
    ) -> CallDemand {
        // The inverse of `draw`: the input given the run time has the same correlation.
        let (e, _) = self.normals.pair(rng.next_u64());
        let x = self.visible * z + self.hidden * e;
        let input = self.input_kib.as_ref().map(|table| table.at(x));
        self.complete(run_ns, input, self.visible * x, rng)
    }

    #[inline(always)]
    fn complete(
        &self,
        run_ns: u64,
        input: Option<f32>,
        seen: f32,
        rng: &mut Xoshiro256PlusPlus,
    ) -> CallDemand {
        let (e_p, e_m) = self.normals.pair(rng.next_u64());
        let parallelism = self.parallelism_millis.at(seen + self.hidden * e_p) as u32;
        // Up to the next whole MiB.
        let peak = self.memory_mib.at(seen + self.hidden * e_m) as u32 + 1;
        // Signed in both directions: one instruction where unsigned conversions take ten.
        let run = run_ns as i64 as f32;
        let cycles = (run * self.cycles_per_ns + 0.5) as u8;
        let cycles = cycles.clamp(1, self.max_cycles);
        let demand = CallDemand {
            work: 0,
            fixed: Duration::from_nanos((run * self.idle_share) as i64 as u64),
            parallelism: MilliCpu::new(parallelism),
            memory_base: Mebibytes::new(((peak as f32 * self.base_share) as u32).max(1)),
            memory_peak: Mebibytes::new(peak),
            rise: Duration::ZERO,
            jumps: self.jumps,
            cycles,
            shape: if cycles > 1 { rng.next_u32() } else { 0 },
            input,
        };
        demand.with_run_time_and_rise(Duration::from_nanos(run_ns), self.cpu, self.rise_share)
    }
}
