//! Load held on a real kernel, beside the simulator's prediction of the same ramps.
//!
//! ```text
//!   load   0.4   0.5   0.63   0.78   0.98 ..       one ramp: the same calls for every policy, step by step
//!   slow   0 %   1 %   3 %    9 %                  until the objective breaks; crossing 5 % at 0.69 here
//! ```
//!
//! Nothing is run here: whoever has a machine passes what happened to its calls. A step of one ramp has too few calls to
//! judge it, so the calls of a step are judged over all repetitions together, on the kernel as in the simulator.

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use windfall_core::statistics::{Interval, redraw};
use windfall_core::{CallEnd, CallRecord, Duration, FunctionId, Seed, TelemetrySink, Timestamp};
use windfall_telemetry::document::{Block, Document, Section, Table};
use windfall_telemetry::report::ReportContext;

use super::contestants::Role;
use super::measure::{FunctionService, ServiceMeasure};
use super::objective::{Objective, Service};
use super::page::document;
use super::search::{Margin, Measured, Tried, crossing, load_held};
use super::summary::{CapacitySummary, summarize};
use super::texts::to_text;
use super::{CapacityResult, CapacityRow, FixedService};

/// The world of measured rows.
pub const KERNEL: &str = "kernel";
/// How often repetitions are drawn again.
const DRAWS: u64 = 2000;
/// The world of predicted rows.
pub const SIMULATED: &str = "simulated";

/// A function with an input: calls of one kind are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallKind {
    /// Which function.
    pub function: FunctionId,
    /// Run time alone at the reservation, seconds.
    pub baseline: f64,
}

/// One call of a ramp, as far as an objective asks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RampCall {
    /// Its kind.
    pub kind: u32,
    /// The step in which it was due.
    pub step: u32,
    /// From the due moment to its end, seconds.
    pub latency: f64,
    /// How long it ran, seconds.
    pub run: f64,
    /// Attempts that were killed for memory.
    pub kills: u8,
    /// Whether it ended with an answer.
    pub is_answered: bool,
}

/// What happened to each function's calls in each step.
pub fn services(
    objective: &Objective,
    kinds: &[CallKind],
    calls: &[RampCall],
    steps: usize,
) -> Vec<Vec<FunctionService>> {
    let of_step = |step: usize| {
        let is_decided = AtomicBool::new(false);
        let mut measure = ServiceMeasure::new(*objective, Duration::ZERO, u64::MAX, &is_decided);
        let own = calls.iter().filter(|call| call.step as usize == step);
        for (call, kind) in own.filter_map(|call| Some((call, kinds.get(call.kind as usize)?))) {
            measure.call(&record_of(call, kind));
        }
        measure.into_functions()
    };
    (0..steps).map(of_step).collect()
}

fn record_of(call: &RampCall, kind: &CallKind) -> CallRecord {
    let seconds = |seconds: f64| Duration::from_secs_f64(seconds.max(0.0));
    let arrived_at = Timestamp::from_secs(1);
    let ended_at = arrived_at + seconds(call.latency);
    CallRecord {
        function: kind.function,
        arrived_at,
        started_at: arrived_at + seconds(call.latency - call.run),
        ended_at,
        run: seconds(call.run),
        baseline: Some(seconds(kind.baseline)),
        oom_kills: call.kills,
        end: if call.is_answered { CallEnd::Completed } else { CallEnd::Rejected },
        ..CallRecord::default()
    }
}

/// The largest margin of a step.
pub fn margin(objective: &Objective, functions: &[FunctionService]) -> f64 {
    objective.binding(&Service::of(functions, None), 0.0).margin
}

/// How ramps were made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RampSetup {
    /// Load of the first step.
    pub first_load: f64,
    /// Each step has so many times the load of the one before.
    pub ratio: f64,
    /// Steps at most.
    pub steps: u32,
    /// Seconds of a step.
    pub step_seconds: f64,
    /// Inputs over the functions' defaults.
    pub scale: f64,
    /// How long a store takes to answer functions that use one, milliseconds.
    pub store_millis: f64,
    /// Draws the calls, together with the repetition.
    pub seed: u64,
}

impl RampSetup {
    /// The loads of all steps.
    pub fn loads(&self) -> Vec<f64> {
        (0..self.steps).map(|step| self.first_load * self.ratio.powi(step as i32)).collect()
    }
}

/// One ramp of one policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ramp {
    /// The policy as tables call it.
    pub policy: String,
    /// CPU that may be claimed for each core.
    pub over_commit: f64,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// Steps that were finished.
    pub steps: u32,
    /// Its calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<RampCall>,
    /// CPU time of manager, gateway and load over that and the functions'.
    pub manager_cpu_share: f64,
    /// The same for the thread that decides alone.
    pub agent_cpu_share: f64,
    /// Load average of the machine at the end.
    pub load_average: f64,
    /// Share of the CPU time that the hypervisor gave to others.
    pub steal: f64,
    /// Share of the CPU time that other programs of the machine used.
    #[serde(default)]
    pub others_cpu_share: f64,
}

impl Ramp {
    /// The row that it comes to.
    pub fn row(
        &self,
        world: &str,
        role: Role,
        objective: &Objective,
        loads: &[f64],
        kinds: &[CallKind],
    ) -> CapacityRow {
        let found = services(objective, kinds, &self.calls, self.steps as usize);
        let measured: Vec<Measured> =
            (loads.iter().zip(found)).map(|(&load, result)| Tried { load, result }).collect();
        CapacityRow {
            world: world.to_owned(),
            policy: self.policy.clone(),
            over_commit: self.over_commit,
            seed: self.repetition.into(),
            load_held: load_held(objective, &measured, &[], None),
            role,
            measured,
        }
    }
}

/// The load that a policy holds over that of another, in the same repetitions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PairedRatio {
    /// Kernel or simulated.
    pub world: String,
    /// Whose load.
    pub policy: String,
    /// Over whose.
    pub against: String,
    /// Load held over load held, each over all repetitions together.
    pub ratio: f64,
    /// The lower end of its 95 % interval, with repetitions drawn again.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// How many.
    pub pairs: usize,
}

/// How the prediction of one policy compares.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HeldPrediction {
    /// The policy.
    pub policy: String,
    /// CPU that may be claimed for each core.
    pub over_commit: f64,
    /// Load held on the kernel, all repetitions together.
    pub kernel: f64,
    /// In the simulator.
    pub simulated: f64,
    /// Simulated over measured, less 1.
    pub error: f64,
    /// CPU time of manager, gateway and load over all of it.
    pub manager_cpu_share: f64,
}

/// Everything that was measured and predicted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KernelCapacity {
    /// How ramps were made.
    pub setup: RampSetup,
    /// Rows of both worlds.
    #[serde(skip)]
    pub result: CapacityResult,
    /// Every policy over `fixed`, and ours over everybody.
    pub paired: Vec<PairedRatio>,
    /// The simulator beside the kernel.
    pub prediction: Vec<HeldPrediction>,
    /// Whether the simulator puts the policies in the kernel's order.
    pub same_order: bool,
    /// What else went on, ramp by ramp.
    pub ramps: Vec<Ramp>,
}

impl KernelCapacity {
    /// What rows of both worlds come to. `ramps` are the kernel's, without their calls.
    pub fn new(
        setup: RampSetup,
        objective: &Objective,
        rows: Vec<CapacityRow>,
        ramps: Vec<Ramp>,
        packing: f64,
    ) -> Self {
        let fixed = rows.iter().filter(|row| row.role == Role::Fixed).map(|row| FixedService {
            world: row.world.clone(),
            seed: row.seed,
            functions: row.measured.first().map(|tried| tried.result.clone()).unwrap_or_default(),
            packing_bound: packing,
        });
        let result = CapacityResult { fixed: fixed.collect(), rows };
        let paired = paired(&result.rows, objective);
        let prediction = prediction(&result.rows, &ramps, objective);
        let order = |of: fn(&HeldPrediction) -> f64| {
            let mut order: Vec<usize> = (0..prediction.len()).collect();
            order.sort_by(|&a, &b| of(&prediction[a]).total_cmp(&of(&prediction[b])));
            order
        };
        let same_order = order(|one| one.kernel) == order(|one| one.simulated);
        Self { setup, result, paired, prediction, same_order, ramps }
    }

    /// Every policy at its best over-commit.
    pub fn summaries(&self, objective: &Objective) -> Vec<CapacitySummary> {
        summarize(objective, &self.result)
    }

    /// For a terminal.
    pub fn text(&self, objective: &Objective) -> String {
        let mut text = to_text(&self.summaries(objective));
        text.push_str("  load held, kernel and simulator\n");
        for one in &self.prediction {
            let _ = writeln!(
                text,
                "  {:32} {:>5} {:>7.3} {:>7.3} {:>+6.1} %  manager {:.1} %",
                one.policy,
                one.over_commit,
                one.kernel,
                one.simulated,
                one.error * 100.0,
                one.manager_cpu_share * 100.0
            );
        }
        text.push_str("\n  pairs on the kernel\n");
        for one in self.paired.iter().filter(|one| one.world == KERNEL) {
            let _ = writeln!(
                text,
                "  {:32} over {:32} {:.2} ({:.2} to {:.2}, {} pairs)",
                one.policy, one.against, one.ratio, one.low, one.high, one.pairs
            );
        }
        text
    }

    /// The page.
    pub fn page(&self, context: ReportContext, objective: &Objective) -> Document {
        let mut page = document(context, objective, &self.result, &self.summaries(objective));
        let mut table =
            Table::new(["policy", "over-commit", "kernel", "simulated", "error", "manager's CPU"]);
        for one in &self.prediction {
            table.rows.push(vec![
                one.policy.as_str().into(),
                format!("{}", one.over_commit).as_str().into(),
                format!("{:.3}", one.kernel).as_str().into(),
                format!("{:.3}", one.simulated).as_str().into(),
                format!("{:+.1} %", one.error * 100.0).as_str().into(),
                format!("{:.1} %", one.manager_cpu_share * 100.0).as_str().into(),
            ]);
        }
        let lead = "The same calls in the simulator with the kernel's CPU, on models fitted to calls alone.";
        let section = Section::new("Prediction", lead).with(Block::Table(table));
        page.sections.push(section);
        let mut table = Table::new(["world", "policy", "over", "ratio", "95 %", "pairs"]);
        for one in &self.paired {
            table.rows.push(vec![
                one.world.as_str().into(),
                one.policy.as_str().into(),
                one.against.as_str().into(),
                format!("{:.2}", one.ratio).as_str().into(),
                format!("{:.2} to {:.2}", one.low, one.high).as_str().into(),
                format!("{}", one.pairs).as_str().into(),
            ]);
        }
        let lead = "The same calls under both, one after the other in ABBA order.";
        page.sections.push(Section::new("Pairs", lead).with(Block::Table(table)));
        page
    }
}

/// Rows of one policy at one over-commit.
fn same(one: &CapacityRow, other: &CapacityRow) -> bool {
    one.world == other.world && one.policy == other.policy && one.over_commit == other.over_commit
}

/// The first row of each policy at each over-commit.
fn firsts(rows: &[CapacityRow]) -> Vec<&CapacityRow> {
    let is_first = |(place, row): &(usize, &CapacityRow)| {
        !rows[..*place].iter().any(|before| same(before, row))
    };
    rows.iter().enumerate().filter(is_first).map(|(_, row)| row).collect()
}

fn paired(rows: &[CapacityRow], objective: &Objective) -> Vec<PairedRatio> {
    let firsts = firsts(rows);
    let mut found = Vec::new();
    for policy in &firsts {
        for against in firsts.iter().filter(|one| one.world == policy.world) {
            let is_asked = policy.role == Role::Ours || against.role == Role::Fixed;
            if !is_asked || same(policy, against) {
                continue;
            }
            let [own, other] = [policy, against].map(|one| Pool::of(rows, one));
            let (own, other) = own.in_common(other);
            let Some(ratio) = own.over(&other, objective, None) else { continue };
            let drawn = drawn_again(&own, &other, objective);
            let Some(Interval { low, high }) = drawn else { continue };
            found.push(PairedRatio {
                world: policy.world.clone(),
                policy: label(policy),
                against: label(against),
                ratio,
                low,
                high,
                pairs: own.rows.len(),
            });
        }
    }
    found
}

/// All repetitions of a policy at one over-commit, judged together: at each load the calls of all of them.
struct Pool<'a> {
    rows: Vec<&'a CapacityRow>,
}

impl<'a> Pool<'a> {
    fn of(rows: &'a [CapacityRow], one: &CapacityRow) -> Self {
        Self { rows: rows.iter().filter(|row| same(row, one)).collect() }
    }

    /// Both with the repetitions that both have, in the same order.
    fn in_common(mut self, mut other: Self) -> (Self, Self) {
        self.rows.retain(|own| other.rows.iter().any(|row| row.seed == own.seed));
        other.rows.retain(|own| self.rows.iter().any(|row| row.seed == own.seed));
        self.rows.sort_by_key(|row| row.seed);
        other.rows.sort_by_key(|row| row.seed);
        (self, other)
    }

    /// The load that is held, each repetition counted as often as `times` says. A repetition that was given up serves
    /// higher loads as badly as its last one, which is too kind to it.
    fn held(&self, objective: &Objective, times: Option<&[u32]>) -> f64 {
        let longest = self.rows.iter().max_by_key(|row| row.measured.len());
        let loads = longest.map_or(&[][..], |row| &row.measured);
        let pooled = loads.iter().enumerate().map(|(step, Tried { load, .. })| {
            let (mut result, mut counts) = (Vec::new(), Vec::new());
            for (place, row) in self.rows.iter().enumerate() {
                let Some(tried) = row.measured.get(step).or(row.measured.last()) else { continue };
                result.extend_from_slice(&tried.result);
                counts.resize(result.len(), times.map_or(1, |times| times[place]));
            }
            let margin = objective.binding(&Service::of(&result, Some(&counts)), 0.0).margin;
            Margin { load: *load, margin }
        });
        crossing(pooled).unwrap_or(0.0)
    }

    /// Load held over load held.
    fn over(&self, other: &Self, objective: &Objective, times: Option<&[u32]>) -> Option<f64> {
        let held = other.held(objective, times);
        (held > 0.0).then(|| self.held(objective, times) / held)
    }
}

/// The ratio with repetitions drawn again, the same ones for both.
fn drawn_again(own: &Pool<'_>, other: &Pool<'_>, objective: &Objective) -> Option<Interval> {
    let stream = Seed::new(0).stream("load held on the kernel, bootstrap over repetitions");
    let ratio = |draw: u64| {
        let times = redraw(own.rows.len(), &mut stream.member(draw).generator());
        own.over(other, objective, Some(&times))
    };
    Interval::middle_95((0..DRAWS).filter_map(ratio).collect())
}

fn label(row: &CapacityRow) -> String {
    match row.over_commit == 1.0 {
        true => row.policy.clone(),
        false => format!("{} at {}", row.policy, row.over_commit),
    }
}

fn prediction(rows: &[CapacityRow], ramps: &[Ramp], objective: &Objective) -> Vec<HeldPrediction> {
    let held = |of: &CapacityRow, world: &str| {
        let of = CapacityRow { world: world.to_owned(), measured: Vec::new(), ..of.clone() };
        Pool::of(rows, &of).held(objective, None)
    };
    let manager = |of: &CapacityRow| {
        let own = ramps
            .iter()
            .filter(|ramp| ramp.policy == of.policy && ramp.over_commit == of.over_commit);
        windfall_core::statistics::mean(own.map(|ramp| ramp.manager_cpu_share)).unwrap_or(0.0)
    };
    let measured = firsts(rows).into_iter().filter(|row| row.world == KERNEL);
    measured
        .map(|row| {
            let (kernel, simulated) = (held(row, KERNEL), held(row, SIMULATED));
            HeldPrediction {
                policy: row.policy.clone(),
                over_commit: row.over_commit,
                kernel,
                simulated,
                error: simulated / kernel.max(1e-9) - 1.0,
                manager_cpu_share: manager(row),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: CallKind = CallKind { function: FunctionId(0), baseline: 0.1 };

    /// A hundred calls in a step, of which so many wait for a second.
    fn step(step: u32, slow: u32) -> impl Iterator<Item = RampCall> {
        (0..100).map(move |number| RampCall {
            kind: 0,
            step,
            latency: if number < slow { 1.1 } else { 0.1 },
            run: 0.1,
            kills: 0,
            is_answered: true,
        })
    }

    fn row(world: &str, policy: &str, repetition: u32, slow: [u32; 3]) -> CapacityRow {
        let calls = (0..3).flat_map(|place| step(place, slow[place as usize])).collect();
        let ramp = Ramp {
            policy: policy.into(),
            over_commit: 1.0,
            repetition,
            steps: 3,
            calls,
            ..Ramp::default()
        };
        let role = if policy == "fixed" { Role::Fixed } else { Role::Ours };
        let objective = Objective { slow_share: 0.05, ..Objective::default() };
        ramp.row(world, role, &objective, &[0.5, 1.0, 2.0], &[KIND])
    }

    #[test]
    fn a_ramp_holds_the_load_at_which_its_worst_margin_first_crosses_one() {
        // Margins of 0.2 and 5 between 0.5 and 1: crossed in the middle of the logarithms.
        let held = row(KERNEL, "fixed", 1, [1, 25, 0]).load_held;
        assert!((held - 0.5_f64.sqrt()).abs() < 1e-6, "{held}");
        assert_eq!(row(KERNEL, "fixed", 1, [0, 0, 0]).load_held, 2.0);
    }

    #[test]
    fn a_step_is_judged_over_all_repetitions_and_who_gave_up_serves_no_better_later() {
        // 8 of 100 are slow in one repetition and none in the other: 4 % of both together.
        let mut rows = vec![row(KERNEL, "ours", 1, [0, 8, 25]), row(KERNEL, "ours", 2, [0, 0, 25])];
        let objective = Objective { slow_share: 0.05, ..Objective::default() };
        let held = Pool::of(&rows, &rows[0]).held(&objective, None);
        assert!(held > 1.0 && held < 2.0, "{held}");
        // Counted twice, the first repetition decides: 16 of 200.
        let first = Pool::of(&rows, &rows[0]).held(&objective, Some(&[2, 0]));
        assert!(first > 0.5 && first < 1.0, "{first}");
        // 8 and 25 of 200 at a load of 2: margins of 0.8 and 3.3.
        rows[0].measured.truncate(2);
        let share = 1.25_f64.ln() / (1.25_f64 * 3.3).ln();
        let held = Pool::of(&rows, &rows[0]).held(&objective, None);
        assert!((held - 2.0_f64.powf(share)).abs() < 1e-6, "{held}");
    }

    #[test]
    fn policies_are_compared_in_the_same_repetition_and_with_the_simulator() {
        let rows = vec![
            row(KERNEL, "fixed", 1, [1, 25, 99]),
            row(KERNEL, "ours", 1, [0, 1, 25]),
            row(KERNEL, "ours", 2, [0, 1, 25]),
            row(SIMULATED, "fixed", 1, [1, 25, 99]),
            row(SIMULATED, "ours", 1, [0, 0, 0]),
        ];
        let objective = Objective { slow_share: 0.05, ..Objective::default() };
        let found = KernelCapacity::new(RampSetup::default(), &objective, rows, Vec::new(), 3.0);
        let [one, simulated] = &found.paired[..] else { panic!("{:?}", found.paired) };
        assert!((one.ratio - 2.0).abs() < 1e-6 && one.pairs == 1, "{one:?}");
        assert_eq!((simulated.world.as_str(), simulated.against.as_str()), (SIMULATED, "fixed"));
        assert!(found.same_order && found.prediction[0].error.abs() < 1e-9);
        assert!(found.text(&Objective::default()).contains("over fixed"));
    }
}
