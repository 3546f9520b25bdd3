//! Writes three sample reports from made-up but plausible numbers into the folder given as argument.
//!
//! `cargo run -p windfall-telemetry --example sample_report -- target/reports`

use std::{env, fs, io, path::PathBuf};

use windfall_core::{
    Allocation, CallEnd, CallId, CallRecord, CpuCeiling, DecidedBy, Duration, FunctionId,
    IntervalRecord, NodeId, PlainSize, TelemetrySink, Timestamp,
};
use windfall_telemetry::report::{
    ReportContext, TracePicture, comparison_report, run_report, trace_report,
};
use windfall_telemetry::{Comparison, RunLabel, RunMetrics};

/// Name, share of the reservation that is granted, queueing factor, chance of a violation.
const POLICIES: [(&str, f64, f64, f64); 7] = [
    ("fixed", 1.0, 1.0, 0.0),
    ("safeguard-random", 0.78, 0.7, 0.03),
    ("histogram", 0.62, 0.45, 0.02),
    ("oracle", 0.41, 0.2, 0.0),
    ("libra", 0.6, 0.38, 0.012),
    ("freyr", 0.55, 0.35, 0.022),
    ("windfall", 0.46, 0.22, 0.004),
];

struct Draws(u64);

impl Draws {
    fn unit(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}

fn run(policy: (&str, f64, f64, f64), load: f64, seed: u64) -> RunMetrics {
    let (_, granted, queue, violation) = policy;
    let mut draws = Draws(seed * 7919 + 13);
    let mut metrics = RunMetrics::new(Timestamp::ZERO);
    let luck = 0.5 + draws.exponential();
    for id in 0..20_000_u64 {
        let baseline = 0.02 * draws.exponential().exp().min(400.0);
        let is_late = draws.unit() < 0.3 * load * queue;
        let wait = if is_late { draws.exponential().powi(2) * queue * load * luck } else { 0.0 };
        let stretch = if draws.unit() < violation { 1.0 + draws.unit() } else { 1.0 };
        metrics.call(&call(id, wait, baseline, stretch, granted));
    }
    for minute in 0..240_u64 {
        metrics.interval(&interval(minute, load, granted, queue, &mut draws));
    }
    metrics
}

fn call(id: u64, wait: f64, baseline: f64, stretch: f64, granted: f64) -> CallRecord {
    let arrived_at = Timestamp::from_nanos(id * 700_000_000);
    let started_at = arrived_at + Duration::from_secs_f64(wait);
    let run = Duration::from_secs_f64(baseline * stretch);
    let size = Allocation::new(2000, 1024);
    let low = Allocation::new((2000.0 * granted) as u32, 1024);
    CallRecord {
        id: CallId(id),
        function: FunctionId((id * id % 97) as u32 % 40),
        node: NodeId(0),
        end: CallEnd::Completed,
        arrived_at,
        started_at,
        ended_at: started_at + run,
        cold_start: Duration::from_millis(u64::from(id.is_multiple_of(61)) * 300),
        run,
        baseline: Some(Duration::from_secs_f64(baseline)),
        attempts: 1,
        oom_kills: 0,
        input: None,
        reservation: size,
        wanted: PlainSize { cores: granted * 2.0, mib: 1024.0 },
        decided_by: DecidedBy::Policy,
        shadow: None,
        first_grant: low,
        cpu_ceiling: CpuCeiling::AtGrant,
        lowest_grant: low,
        highest_grant: size,
        cpu_granted: (run.as_nanos() as f64 * 2000.0 * granted) as u64,
        cpu_held_back: (run.as_nanos() as f64 * 100.0 * (1.0 - granted)) as u64,
        cpu_used: (baseline * 1e9 * 2000.0 * 0.38) as u64,
        seen: None,
        memory_granted: run.as_nanos() * 1024,
        memory_used: run.as_nanos() * 500,
        changes: 1,
        looks: 2,
        amendments: Vec::new(),
        steps: Vec::new(),
    }
}

fn interval(minute: u64, load: f64, granted: f64, queue: f64, draws: &mut Draws) -> IntervalRecord {
    let day = 0.75 + 0.35 * (minute as f64 / 38.0).sin() + 0.15 * draws.unit();
    let demand = 128.0 * load * day;
    IntervalRecord {
        from: Timestamp::from_secs(minute * 60),
        until: Timestamp::from_secs(minute * 60 + 60),
        capacity_cores: 128.0,
        demand_cores: demand,
        granted_cores: demand.min(128.0) * granted,
        held_back_cores: demand.min(128.0) * 0.05 * (1.0 - granted),
        used_cores: demand.min(128.0) * 0.38,
        harvested_cores: demand.min(128.0) * (1.0 - granted),
        lent_cores: demand * 0.06 * (1.0 - granted),
        granted_mib: demand * 512.0,
        idle_mib: 9000.0,
        running: demand / 2.0,
        waiting: (demand - 90.0).max(0.0) * queue,
        instances: demand / 2.0 + 12.0,
        arrivals: 80,
        ..IntervalRecord::default()
    }
}

fn main() -> io::Result<()> {
    let folder = PathBuf::from(env::args().nth(1).unwrap_or_else(|| "target/reports".to_owned()));
    fs::create_dir_all(&folder)?;
    let names: Vec<String> = (0..40).map(|k| format!("app-{}/handler-{k}", k % 7)).collect();
    let (mut rows, mut details, mut costs) = (Vec::new(), Vec::new(), Vec::new());
    for load in [0.6, 0.85] {
        for policy in POLICIES {
            for seed in 1..=5 {
                let label = RunLabel { policy: policy.0.to_owned(), load, seed };
                let metrics = run(policy, load, seed);
                rows.push(metrics.summary(&label));
                details.push(metrics.detail(&label, &names));
                costs.push(metrics.function_costs());
            }
        }
    }
    let context = ReportContext {
        title: "Sample comparison (made-up numbers)".to_owned(),
        command: "cargo run -p windfall-telemetry --example sample_report".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        settings: serde_json::json!({"nodes": 8, "cores_per_node": 16, "warm_up_seconds": 0}),
    };
    fs::write(folder.join("run.html"), run_report(&context, &rows[30], &details[30]))?;
    let comparison = Comparison::with_functions(rows, &costs, "fixed");
    fs::write(folder.join("comparison.html"), comparison_report(&context, &comparison, &details))?;
    fs::write(folder.join("comparison.txt"), comparison.to_text())?;
    let picture = TracePicture {
        title: "Sample workload (made-up numbers)".to_owned(),
        notes: "Four hours of forty functions.".to_owned(),
        arrivals: (0..240)
            .map(|m| (f64::from(m) * 60.0, 50.0 + 30.0 * (f64::from(m) / 30.0).sin()))
            .collect(),
        durations: (0..60)
            .map(|k| {
                (0.001 * 1.2_f64.powi(k), (-((f64::from(k) - 30.0) / 10.0).powi(2)).exp() * 0.06)
            })
            .collect(),
        popularity: (1..=40).map(|k| (f64::from(k), 10_000.0 / f64::from(k).powf(1.2))).collect(),
        triggers: vec![
            ("http".to_owned(), 0.6),
            ("timer".to_owned(), 0.3),
            ("queue".to_owned(), 0.1),
        ],
        facts: vec![
            ("functions".to_owned(), "40".to_owned()),
            ("calls".to_owned(), "20 000".to_owned()),
        ],
    };
    fs::write(folder.join("trace.html"), trace_report(&context.version, &picture))
}
