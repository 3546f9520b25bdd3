//! Runs that were measured on a Linux kernel, played again: run times and the moments at which sensors show something.
//!
//! `experiments/kernel_cpu/runs.csv` holds the measured runs (`measure_kernel`, an example of the command line crate,
//! writes it). Each kind of run is replayed with the CPU time that was measured in it. What is fitted from the run without
//! any limit is the waiting of functions that wait; the rest is the model's.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use windfall_core::{
    Allocation, Arrival, CallClose, CallControl, CallDecision, CallDemand, CallPlan,
    CallSafeguardChain, CallView, CpuCeiling, Duration, FunctionProfile, GrantChange, Look,
    MilliCpu, NodeId, Nonsense, RunningCall, Seed, Start,
};
use windfall_sim::{CpuModel, KernelCpu, Settings, Simulator};

use crate::stage::{Everything, Script, at, function, work};

const RUNS: &str = include_str!("../../../../experiments/kernel_cpu/runs.csv");
const RESULTS: &str = include_str!("../../../../experiments/kernel_cpu/results.csv");
const DETECTION: &str = include_str!("../../../../experiments/kernel_cpu/detection.csv");

/// Where a period may begin when a call does: this many moments, evenly spread.
const PHASES: u32 = 25;

/// What was measured for one kind of run: medians of its repetitions.
struct Measured {
    set: &'static str,
    name: &'static str,
    how: &'static str,
    wall_ms: f64,
    cpu_ms: f64,
    waits: f64,
}

/// With straight lines between the values.
fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (values.len() - 1) as f64 * share;
    let (low, part) = (place as usize, place.fract());
    values[low] + part * (values[(low + 1).min(values.len() - 1)] - values[low])
}

fn measured() -> Vec<Measured> {
    let mut kinds: BTreeMap<[&str; 3], Vec<Vec<&str>>> = BTreeMap::new();
    for line in RUNS.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        kinds.entry([fields[0], fields[1], fields[2]]).or_default().push(fields);
    }
    kinds
        .into_iter()
        .map(|([set, name, how], runs)| {
            let column = |place: usize| {
                let numbers = runs.iter().map(|run| run[place].parse().expect("a number"));
                quantile(&mut numbers.collect::<Vec<f64>>(), 0.5)
            };
            Measured { set, name, how, wall_ms: column(4), cpu_ms: column(5), waits: column(9) }
        })
        .collect()
}

/// What a function of the replay is granted: its weight in millicores, and whether that is its quota too.
#[derive(Clone, Copy)]
struct Terms {
    weight: u32,
    ceiling: CpuCeiling,
}

impl Terms {
    const fn weight(weight: u32) -> Self {
        Self { weight, ceiling: CpuCeiling::Unlimited }
    }

    fn quota(cores: f64) -> Self {
        Self { weight: (cores * 1e3) as u32, ceiling: CpuCeiling::AtGrant }
    }
}

/// `cpu.shares` that nobody changed, as a weight.
const USUAL: Terms = Terms::weight(1000);
/// `cpu.shares` of 2, where 1024 are usual.
const TWO_SHARES: Terms = Terms::weight(2);
/// The least that can be guaranteed: `cpu.idle`.
const IDLE: Terms = Terms::weight(1);

/// A control that grants each function what the replay says; every look is noted.
struct Replay {
    terms: Vec<Terms>,
    look_every: Option<Duration>,
    seen: Arc<Mutex<Vec<RunningCall>>>,
}

impl CallControl for Replay {
    fn size(&mut self, call: &CallView) -> CallPlan {
        let Terms { weight, ceiling } = self.terms[call.function.index()];
        let mut decision = CallDecision::exactly(Allocation::new(weight, 100), "replay");
        decision.cpu_ceiling =
            ceiling.try_map(|most| Ok::<_, Nonsense>(most.cores())).expect("a number");
        CallSafeguardChain::default().at_dispatch(call, &decision).expect("plain numbers")
    }

    fn start(&mut self, _: &CallView, plan: &CallPlan, _: NodeId, _: Allocation) -> Start {
        let cpu_ceiling = plan.cpu_ceiling();
        Start { grant: plan.grant(), cpu_ceiling, look_after: self.look_every }
    }

    fn look(&mut self, running: &RunningCall, _: &mut Vec<GrantChange>) -> Look {
        self.seen.lock().expect("one thread").push(running.clone());
        Look {
            grant: running.grant,
            cpu_ceiling: self.terms[running.function.index()].ceiling,
            look_after: self.look_every,
            held_back: MilliCpu::ZERO,
            amendments: Vec::new(),
            why: "replay",
        }
    }

    fn close(&mut self, _: CallClose<'_>, _: &mut Vec<GrantChange>) {}
}

/// One measured situation on two cores.
struct Situation {
    kernel: KernelCpu,
    /// Who runs: terms, demand, and when it starts, in seconds.
    cast: Vec<(Terms, CallDemand, f64)>,
}

impl Situation {
    fn settings(&self) -> Settings {
        let mut settings = Settings::new(1, Allocation::new(2000, 10_000));
        settings.cluster.over_commit_cpu = 1000.0;
        settings.ceiling = Allocation::new(10_000, 10_000);
        settings.cold_starts = false;
        settings.cpu = CpuModel::Kernel(self.kernel);
        settings
    }

    /// Plays it with everybody `delay` later; run times in milliseconds, in the order of the cast.
    fn play(&self, delay: f64) -> Vec<f64> {
        let profiles: Vec<FunctionProfile> =
            self.cast.iter().map(|_| function(1000, 100)).collect();
        let arrivals: Vec<Arrival> = (0u32..)
            .zip(&self.cast)
            .map(|(place, (_, demand, start))| at(start + delay, place, *demand))
            .collect();
        let terms = self.cast.iter().map(|(terms, ..)| *terms).collect();
        let control = Replay { terms, look_every: None, seen: Arc::default() };
        let mut seen = Everything::default();
        let script = Script::new(profiles, arrivals);
        Simulator::new(self.settings(), script, control, &mut seen, Seed::new(1)).run_to_end();
        seen.calls.sort_by_key(|call| call.function.0);
        seen.calls.iter().map(|call| call.run.as_millis_f64()).collect()
    }
}

/// Hungry threads that never end within a run.
fn hog(threads: f64) -> CallDemand {
    work(30.0, threads)
}

/// `cpu_ms` of work on `threads`, in `rounds` with `wait_ms` of waiting in all.
fn rounds(cpu_ms: f64, threads: f64, wait_ms: f64, rounds: f64) -> (CallDemand, Duration) {
    let demand = CallDemand {
        fixed: Duration::from_secs_f64(wait_ms * 1e-3),
        ..work(cpu_ms * 1e-3, threads)
    };
    let whole = cpu_ms / threads + wait_ms;
    (demand, Duration::from_secs_f64(whole * 1e-3 / rounds.max(1.0)))
}

fn period(how: &str) -> Duration {
    let is_short = how.ends_with("p20") || how == "quota20";
    Duration::from_millis(if is_short { 20 } else { 100 })
}

/// Two donors and their borrowers. The donors wait as long as they ask for.
fn lending(run: &Measured) -> Situation {
    let (work_ms, wait_ms, count) = match run.name {
        "20-20" => (20.0, 20.0, 75.0),
        "3-5" => (3.0, 5.0, 375.0),
        _ => (60.0, 300.0, 9.0),
    };
    let mean = work_ms / (work_ms + wait_ms);
    let (demand, round) = rounds(run.cpu_ms, 1.0, wait_ms * count, count);
    let (donor, borrower) = match run.how {
        "nobody" => (USUAL, None),
        "idle" => (USUAL, Some(IDLE)),
        "shares2" => (USUAL, Some(TWO_SHARES)),
        "equal" => (USUAL, Some(USUAL)),
        _ => (Terms::quota(1.05 * mean), Some(TWO_SHARES)),
    };
    let mut cast = vec![(donor, demand, 0.1), (donor, demand, 0.107)];
    cast.extend(borrower.map(|terms| (terms, hog(2.0), 0.0)));
    let burst = if run.how.ends_with("burst") { 1.0 } else { 0.0 };
    Situation { kernel: kernel(period(run.how), burst, round), cast }
}

/// One call of a function, and what competes with it.
fn call(run: &Measured, alone: &Measured) -> Situation {
    let threads = if run.name.ends_with("-2") { 2.0 } else { 1.0 };
    // Whoever waits less than ten times computes from start to end.
    let waits = if alone.waits < 10.0 { 0.0 } else { alone.wall_ms - alone.cpu_ms };
    let (demand, round) = rounds(run.cpu_ms, threads, waits, alone.waits);
    let (own, others) = match run.how {
        "alone" => (USUAL, None),
        "quota75" => (Terms::quota(0.75 * threads), None),
        "quota50" | "quota50p20" => (Terms::quota(0.5 * threads), None),
        "quota25" | "quota25p20" => (Terms::quota(0.25 * threads), None),
        "equal" => (USUAL, Some(USUAL)),
        "threefold" => (Terms::weight(3000), Some(USUAL)),
        "shares2" => (USUAL, Some(TWO_SHARES)),
        _ => (USUAL, Some(IDLE)),
    };
    let mut cast = vec![(own, demand, 0.3)];
    cast.extend(others.map(|terms| (terms, hog(2.0), 0.0)));
    Situation { kernel: kernel(period(run.how), 0.0, round), cast }
}

fn kernel(period: Duration, burst: f64, round: Duration) -> KernelCpu {
    let usual = KernelCpu::default();
    KernelCpu { period, burst, round, round_waits: 1.0, follows_rounds: true, ..usual }
}

/// Every kind of run with what the simulator says about it, milliseconds.
fn replayed() -> Vec<(Measured, f64)> {
    let runs = measured();
    let alone = |run: &Measured| {
        let alone = runs.iter().find(|one| one.name == run.name && one.how == "alone");
        alone.expect("each function was measured alone")
    };
    let simulate = |run: &Measured| {
        let (situation, subjects) = match run.set {
            "lending" => (lending(run), 2),
            _ => (call(run, alone(run)), 1),
        };
        let delays = (0..PHASES).map(|phase| f64::from(phase) / f64::from(PHASES) * 0.1);
        let mean = |delay| situation.play(delay)[..subjects].iter().sum::<f64>() / subjects as f64;
        quantile(&mut delays.map(mean).collect::<Vec<f64>>(), 0.5)
    };
    let simulated: Vec<f64> = runs.iter().map(simulate).collect();
    runs.into_iter().zip(simulated).collect()
}

/// The table of `experiments/kernel_cpu`: what was measured, what is simulated, and the error.
fn results() -> String {
    let mut table = String::from("set,name,how,measured_ms,simulated_ms,error\n");
    for (Measured { set, name, how, wall_ms, .. }, simulated) in replayed() {
        let error = simulated / wall_ms - 1.0;
        table += &format!("{set},{name},{how},{wall_ms:.1},{simulated:.1},{error:.3}\n");
    }
    table
}

#[test]
fn run_times_are_those_of_the_kernel() {
    let table = results();
    let error = |line: &str| line.rsplit(',').next().and_then(|field| field.parse::<f64>().ok());
    let mut errors: Vec<f64> = table.lines().skip(1).filter_map(error).map(f64::abs).collect();
    let (middle, far) = (quantile(&mut errors, 0.5), quantile(&mut errors, 0.95));
    assert!(middle <= 0.03 && far <= 0.10, "median {middle}, 95th percentile {far}");
    assert!(table == RESULTS, "experiments/kernel_cpu/results.csv should be\n{table}");
}

/// Milliseconds from the wake-up of a call until a look shows throttling, and until one shows more than twice the quota.
fn detect(period: Duration, wait_ms: f64) -> (f64, f64) {
    let (quota, wakes_after) = (0.05, wait_ms / 2.0);
    let demand = CallDemand { fixed: Duration::from_secs_f64(wait_ms * 1e-3), ..work(0.150, 1.0) };
    let situation = Situation {
        kernel: KernelCpu { round_waits: 0.0, ..kernel(period, 0.0, Duration::from_millis(1)) },
        cast: vec![(Terms::quota(quota), demand, 0.1)],
    };
    let seen: Arc<Mutex<Vec<RunningCall>>> = Arc::default();
    let terms = situation.cast.iter().map(|(terms, ..)| *terms).collect();
    let look_every = Some(Duration::from_millis(5));
    let control = Replay { terms, look_every, seen: Arc::clone(&seen) };
    let mut settings = situation.settings();
    (settings.sensors.cpu_noise, settings.sensors.cpu_jitter) = (0.0, Duration::ZERO);
    let script = Script::new(vec![function(1000, 100)], vec![at(wait_ms * 1e-3, 0, demand)]);
    Simulator::new(settings, script, control, Everything::default(), Seed::new(1)).run_to_end();
    let seen = seen.lock().expect("one thread");
    let since = |call: &RunningCall| call.elapsed().as_millis_f64() - wakes_after;
    let first = |shows: &dyn Fn(&RunningCall) -> bool| {
        seen.iter().find(|call| since(call) > 0.0 && shows(call)).map_or(f64::NAN, since)
    };
    (
        first(&|call| call.sensed.throttled_share > 0.0),
        first(&|call| call.sensed.cpu_used_cores > 2.0 * quota),
    )
}

#[test]
fn sensors_show_throttling_when_the_kernel_does() {
    for period in [100, 20] {
        let (mut throttling, mut used) = (Vec::new(), Vec::new());
        for line in DETECTION.lines().skip(1).filter(|line| line.starts_with(&format!("{period},")))
        {
            let fields: Vec<f64> =
                line.split(',').map(|field| field.parse().expect("a number")).collect();
            throttling.push(fields[2]);
            used.push(fields[3]);
        }
        let simulated: Vec<(f64, f64)> = (0..200)
            .map(|n| detect(Duration::from_millis(period), 500.0 + 0.977 * f64::from(n)))
            .collect();
        let (mut shown, mut burst): (Vec<f64>, Vec<f64>) = simulated.into_iter().unzip();
        for (what, measured, simulated) in
            [("throttling", &mut throttling, &mut shown), ("use", &mut used, &mut burst)]
        {
            // The 90th percentile of sixty wake-ups is known to about 4 ms.
            for (share, looks) in [(0.5, 1.0), (0.9, 2.0)] {
                let (kernel, model) = (quantile(measured, share), quantile(simulated, share));
                assert!(
                    (kernel - model).abs() <= looks * 5.0,
                    "{what} at a period of {period} ms: {kernel} and {model} ms"
                );
            }
        }
    }
}
