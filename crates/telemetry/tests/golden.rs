//! What people read, kept as files: `WINDFALL_BLESS=1 cargo test -p windfall-telemetry golden` rewrites
//! them, and the difference is reviewed.

use std::path::PathBuf;

use windfall_core::record::GrantStep;
use windfall_core::{
    Allocation, Amendment, Answer as PlatformAnswer, CallEnd, CallId, CallRecord, ClusterView,
    CpuCeiling, DecidedBy, Duration, FunctionId, FunctionView, Instances, MilliCpu, NodeId,
    Observation, Outcome, PlainSize, PlanId, Receipt, Refusal, Resource, Setting, Settled,
    TargetAnswer, Timestamp,
};
use windfall_telemetry::explain::Answer;
use windfall_telemetry::journal::tick::{Allowed, AllowedTarget, JournalDecision, JournalTarget};
use windfall_telemetry::journal::{FunctionNames, NamedFunction, TickEntry};
use windfall_telemetry::{Comparison, RunSummary};

fn assert_golden(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("WINDFALL_BLESS").is_some() {
        std::fs::write(&path, text)
            .expect("the repository is writable where golden files are blessed");
        return;
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == want,
        "{name} has changed; WINDFALL_BLESS=1 rewrites it.\n--- expected\n{want}\n--- got\n{text}"
    );
}

/// Numbers by hand: what a policy has of waiting, of grants and of broken promises.
fn row(policy: &str, load: f64, seed: u64, [wait, granted, broken]: [f64; 3]) -> RunSummary {
    let luck = [1.0, 0.7, 1.9][seed as usize % 3];
    RunSummary {
        policy: policy.to_owned(),
        load,
        seed,
        calls: 20_000,
        completed: 19_990,
        rejected: 10,
        rfet_mean: 1.0 + broken / 4.0,
        slowdown_p50: 1.0,
        slowdown_p95: 1.5 + wait * load,
        slowdown_p99: 2.0 + 40.0 * wait * load * luck,
        bounded_slowdown_p99: 1.0 + 15.0 * wait * load * luck,
        violation_share: broken,
        harvested_share: 1.0 - granted,
        harvested_violation_share: if granted < 1.0 { broken * 1.5 } else { 0.0 },
        cold_share: 0.0164,
        oom_kills: (broken * 100.0) as u64,
        slowdown_p999: 3.0 + 90.0 * wait * load * luck,
        core_seconds_held: 5700.0 * granted * luck,
        core_seconds_granted: 5600.0 * granted * luck,
        core_seconds_held_back: 100.0 * granted * luck,
        core_seconds_used: 2100.0 * luck,
        mib_seconds_granted: 2_900_000.0,
        mib_seconds_used: 1_400_000.0,
        instance_seconds: 40_000.0,
        changes_per_hour: 120.0 * (1.0 - granted),
        measured_hours: 4.0,
        ..RunSummary::default()
    }
}

fn comparison() -> Comparison {
    let policies = [
        ("windfall", [0.22, 0.46, 0.004]),
        ("libra", [0.38, 0.6, 0.012]),
        ("fixed", [1.0, 1.0, 0.0]),
        ("oracle", [0.2, 0.41, 0.0]),
        ("histogram", [0.45, 0.62, 0.02]),
    ];
    let mut rows = Vec::new();
    for load in [0.85, 0.6] {
        for (policy, numbers) in policies {
            rows.extend((1..=3).map(|seed| row(policy, load, seed, numbers)));
        }
    }
    rows.push(RunSummary {
        policy: "asleep".to_owned(),
        load: 0.6,
        seed: 1,
        ..RunSummary::default()
    });
    let silent = row("silent", 0.6, 1, [0.0, 0.0, 0.0]);
    rows.push(RunSummary { completed: 0, rejected: 20_000, harvested_share: 0.0, ..silent });
    Comparison::new(rows, "fixed")
}

#[test]
fn golden_comparison_as_text() {
    assert_golden("comparison.txt", &comparison().to_text());
}

#[test]
fn golden_comparison_as_markdown() {
    assert_golden("comparison.md", &comparison().to_markdown());
}

#[test]
fn golden_comparison_as_csv() {
    assert_golden("comparison.csv", &comparison().to_csv());
}

fn amendment(rule: &'static str, allowed: Option<f64>, reason: &'static str) -> Amendment {
    Amendment {
        rule: rule.into(),
        function: FunctionId(1),
        resource: Resource::Cpu,
        proposed: Some(0.2),
        allowed,
        reason: reason.into(),
    }
}

fn view(function: u32) -> FunctionView {
    let (size, none) = (Allocation::new(1000, 512), Instances::new(0));
    FunctionView {
        function: FunctionId(function),
        reservation: size,
        allocation: size,
        kept: None,
        start_cpu: None,
        concurrency: 1,
        ready: none,
        busy: none,
        starting: none,
        in_flight: 0,
        queued: 0,
        mean_concurrency: 0.0,
        arrivals: 0,
        completions: 0,
        cold_starts: 0,
        mean_run: None,
        mean_wait: None,
        cpu_used_cores: 0.0,
        memory_peak_mib: 0.0,
        cold_start: Duration::ZERO,
        presence: Vec::new(),
    }
}

fn partly_settled() -> Settled {
    Settled {
        plan: PlanId(80),
        function: FunctionId(1),
        at: Timestamp::from_secs(811),
        outcome: Outcome::Partly { in_force: Allocation::new(700, 256), reason: Refusal::NoRoom },
    }
}

/// Function 1 has a name.
fn names() -> FunctionNames {
    let mut names = FunctionNames::default();
    names.add(&[NamedFunction {
        id: FunctionId(1),
        name: "checkout".to_owned(),
        ..NamedFunction::default()
    }]);
    names
}

#[test]
fn golden_story_of_a_tick() {
    let target = |function, cores| JournalTarget {
        function: FunctionId(function),
        cpu_cores: Setting::Set(cores),
        ..JournalTarget::default()
    };
    let instances = JournalTarget { instances: Setting::Set(Some(3.4)), ..target(0, Some(0.5)) };
    let tick = TickEntry {
        observation: Observation {
            now: Timestamp::from_secs(812),
            taken_at: Timestamp::from_secs(810),
            window: Duration::from_secs(10),
            cluster: ClusterView {
                nodes: 2,
                capacity_cores: 32.0,
                granted_cores: 17.25,
                queued: 1,
                ..ClusterView::default()
            },
            functions: vec![view(0), view(1)],
            settled: vec![partly_settled()],
        },
        decision: JournalDecision {
            targets: vec![instances, target(1, None)],
            reason: "p95 of the last hour".to_owned(),
        },
        decided_by: DecidedBy::Fallback(
            "the policy returned something that is not a number".to_owned(),
        ),
        plan: Allowed {
            id: PlanId(82),
            targets: vec![AllowedTarget {
                function: FunctionId(0),
                instances: Setting::Set(Instances::new(4)),
                cpu: Setting::Set(MilliCpu::new(500)),
                ..AllowedTarget::default()
            }],
            amendments: vec![amendment(
                "stale-observation",
                None,
                "numbers are 2 s old, at most 1 s",
            )],
        },
        receipt: Receipt {
            plan: PlanId(82),
            answers: [(0, PlatformAnswer::Queued), (1, PlatformAnswer::Refused(Refusal::NoRoom))]
                .map(|(id, answer)| TargetAnswer { function: FunctionId(id), answer })
                .to_vec(),
        },
        shadow: None,
        error: None,
    };
    assert_golden(
        "tick.txt",
        &Answer::Tick { number: 81, record: Box::new(tick) }.to_text(&names()),
    );
}

#[test]
fn golden_story_of_a_call() {
    let (size, low) = (Allocation::new(1000, 512), Allocation::new(500, 512));
    let after = |millis| Timestamp::from_secs(100) + Duration::from_millis(millis);
    let step =
        |millis, grant, why: &'static str| GrantStep { at: after(millis), grant, why: why.into() };
    let call = CallRecord {
        id: CallId(4711),
        function: FunctionId(1),
        node: NodeId(3),
        end: CallEnd::Completed,
        arrived_at: Timestamp::from_secs(100),
        started_at: after(350),
        ended_at: after(2450),
        cold_start: Duration::from_millis(300),
        run: Duration::from_millis(2100),
        baseline: Some(Duration::from_millis(1800)),
        attempts: 2,
        oom_kills: 1,
        input: Some(7.5),
        reservation: size,
        wanted: PlainSize { cores: 0.2, mib: 512.0 },
        decided_by: DecidedBy::Policy,
        shadow: None,
        first_grant: low,
        cpu_ceiling: CpuCeiling::AtGrant,
        lowest_grant: low,
        highest_grant: size,
        cpu_granted: 1_650_000_000_000,
        cpu_held_back: 250_000_000_000,
        cpu_used: 1_200_000_000_000,
        seen: None,
        memory_granted: 1_075_200_000_000,
        memory_used: 400_000_000_000,
        changes: 1,
        looks: 4,
        amendments: vec![amendment("recent-peak", Some(0.5), "recent peak 0.45 cores plus margin")],
        steps: vec![step(900, size, "throttled for half of the last 100 ms")],
    };
    assert_golden("call.txt", &Answer::Call(Box::new(call)).to_text(&names()));
}
