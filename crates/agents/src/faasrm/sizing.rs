//! The agent where time, queues and memory kills are real: FaaSRM's state and score network, its
//! safeguard around it, and each reward given to the decision that caused it.
//!
//! What had to change, and why:
//!
//! | in the paper's simulator | here |
//! | --- | --- |
//! | 8 levels of 1 core and 64 MB | 8 equal steps up to the most the safeguard allows: functions differ in scale by 100 |
//! | raw features into tanh | logarithms and shares of the reservation: raw MiB saturate every unit |
//! | exact, constant baseline | mean run of the function's calls at the user's size; demand varies by call |
//! | reward to whichever decision is current | reward to the call's own decision |
//! | sampled in evaluation too | the highest score, as the paper's text says |
//!
//! A worked grid: the user reserves 4 cores, the last call peaked at 1.23. The safeguard allows 1.3 to 4,
//! the levels are 0.5, 1, ..., 4, and 0.5 and 1 are masked. Had it peaked at 3.9, the range would be 4 to
//! 8 and the levels 1, 2, ..., 8: the paper's.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use windfall_core::{
    Allocation, CallDecision, CallId, CallOutcome, CallPolicy, CallView, PeakRange, PeakSettings,
    PolicyError, Seed, Timestamp,
};
use windfall_policy::PerFunction;
use windfall_rl::checkpoint::{Checkpoint, CheckpointError, FORMAT, Header};
use windfall_rl::env::Spec;
use windfall_rl::random::Draw;

use super::candidates::{Candidates, LEVELS};
use super::score_agent::{ScoreAgent, shape};

/// What checkpoints of this agent say they were trained in.
pub const KIND: &str = "windfall/FaasrmSizing-v0";

/// Memory beyond this many times the reservation is never a candidate: more memory makes no call faster.
const MOST_MEMORY: u32 = 4;
/// Slowdowns are cut here, so that one cold cache does not decide an update.
const MOST_SLOWDOWN: f32 = 5.0;

/// What the agent sees and chooses from.
pub fn spec() -> Spec {
    let features = [
        ("in_flight", 0.0, 8.0),
        ("free_cores", 0.0, 8.0),
        ("free_mib", 0.0, 8.0),
        ("mean_gap", 0.0, 8.0),
        ("call_rate", 0.0, 8.0),
        ("mean_cpu_peak_share", 0.0, 10.0),
        ("mean_memory_peak_share", 0.0, 10.0),
        ("mean_run", 0.0, 8.0),
        ("baseline_run", 0.0, 8.0),
        ("candidate_cpu_share", 0.0, 10.0),
        ("candidate_memory_share", 0.0, 10.0),
    ];
    let actions: Vec<String> =
        (1..=LEVELS).flat_map(|c| (1..=LEVELS).map(move |m| format!("{c}x{m}"))).collect();
    let actions: Vec<&str> = actions.iter().map(String::as_str).collect();
    Spec::new(KIND, &features, &actions)
}

/// A checkpoint of this agent without numbers yet, after `iteration` updates on `steps` calls.
pub fn empty_checkpoint(
    seed: Seed,
    iteration: u64,
    steps: u64,
    settings: serde_json::Value,
) -> Checkpoint {
    Checkpoint::new(Header {
        format: FORMAT.to_owned(),
        algorithm: "score-ppo".to_owned(),
        environment: spec(),
        network: Some(shape()),
        seed,
        iteration,
        steps,
        settings,
    })
}

/// One decision with what came of it, for learning.
#[derive(Clone, Debug, PartialEq)]
pub struct Lesson {
    /// What was seen.
    pub seen: Candidates,
    /// The place of the row chosen.
    pub action: usize,
    /// The logarithm of its probability then.
    pub log_probability: f32,
    /// What it paid.
    pub reward: f32,
}

/// Decisions whose calls have ended, in order of their ends.
pub type Lessons = Arc<Mutex<Vec<Lesson>>>;

/// What is known of one function.
#[derive(Clone, Debug, Default)]
struct Seen {
    calls: f64,
    last_at: Option<Timestamp>,
    gaps: Mean,
    cpu_peak: Mean,
    memory_peak: Mean,
    run: Mean,
    /// Of calls that had the user's size throughout.
    baseline: Mean,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    count: f64,
    sum: f64,
}

impl Mean {
    fn take(&mut self, value: f64) {
        if value.is_finite() && value >= 0.0 {
            self.count += 1.0;
            self.sum += value;
        }
    }

    /// Zero of nothing, as in the original.
    fn get(self) -> f64 {
        if self.count > 0.0 { self.sum / self.count } else { 0.0 }
    }
}

/// How the agent picks.
#[derive(Clone, Debug)]
enum Pick {
    /// The highest score.
    Best,
    /// By probability, and everything is kept for learning.
    Draw(Box<Learning>),
}

#[derive(Clone, Debug)]
struct Learning {
    draw: Draw,
    lessons: Lessons,
    pending: BTreeMap<CallId, Lesson>,
    core_price: f32,
}

/// FaaSRM's agent as a call policy. Run it behind the safeguard `faasrm`.
#[derive(Clone, Debug)]
pub struct FaasrmSizing {
    agent: ScoreAgent,
    ranges: PeakRange,
    functions: PerFunction<Seen>,
    in_flight: u64,
    pick: Pick,
}

impl FaasrmSizing {
    /// The agent as it is used: always the highest score.
    pub fn new(agent: ScoreAgent) -> Self {
        let ranges = PeakRange::new(PeakSettings::default());
        Self { agent, ranges, functions: PerFunction::default(), in_flight: 0, pick: Pick::Best }
    }

    /// The agent as it learns: draws by probability from a stream of `seed`, and leaves every decision
    /// with its reward in `lessons` once the call has ended. The paper's reward has no `core_price`.
    pub fn learning(agent: ScoreAgent, seed: Seed, lessons: Lessons, core_price: f32) -> Self {
        let draw = Draw::new(seed.stream("policy/faasrm"));
        let learning = Learning { draw, lessons, pending: BTreeMap::new(), core_price };
        Self { pick: Pick::Draw(Box::new(learning)), ..Self::new(agent) }
    }

    /// The agent of a checkpoint, refused with a reason if it was made for anything else.
    pub fn from_checkpoint(checkpoint: &Checkpoint) -> Result<Self, CheckpointError> {
        checkpoint.header.check_environment(&spec())?;
        ScoreAgent::from_checkpoint(checkpoint).map(Self::new)
    }

    /// The situation and the sizes of its levels, in millicores and MiB.
    fn candidates(&mut self, call: &CallView) -> (Candidates, [u32; LEVELS], [u32; LEVELS]) {
        let user = call.reservation;
        let most_memory =
            user.memory.get().saturating_mul(MOST_MEMORY).min(call.ceiling.memory.get());
        let ceiling = Allocation::new(call.ceiling.cpu.get(), most_memory.max(user.memory.get()));
        let (least, most) = self.ranges.range(call.function, user, ceiling);
        let (cpu, cpu_allowed) = levels(least.cpu.get(), most.cpu.get());
        let (memory, memory_allowed) = levels(least.memory.get(), most.memory.get());
        let (user_cpu, user_memory) = (user.cpu.cores(), user.memory.mib());
        let function = self.functions.state(call.function);
        let elapsed = call.now.since(Timestamp::ZERO).as_secs_f64();
        let rate = if elapsed > 0.0 { function.calls / elapsed } else { 0.0 };
        let seen = Candidates {
            shared: [
                log_scaled(self.in_flight as f64 + call.waiting as f64),
                log_scaled(call.free_in_cluster.cores),
                log_scaled(call.free_in_cluster.mib),
                log_scaled(function.gaps.get()),
                log_scaled(rate),
                share(function.cpu_peak.get(), user_cpu),
                share(function.memory_peak.get(), user_memory),
                log_scaled(function.run.get()),
                log_scaled(function.baseline.get()),
            ],
            cpu: cpu.map(|millis| share(f64::from(millis) * 1e-3, user_cpu)),
            memory: memory.map(|mib| share(f64::from(mib), user_memory)),
            cpu_allowed,
            memory_allowed,
        };
        (seen, cpu, memory)
    }
}

/// Eight equal steps up to `most`, rounded up, and which of them reach `least`; the last always does.
fn levels(least: u32, most: u32) -> ([u32; LEVELS], u8) {
    let step = |level: usize| (u64::from(most) * (level as u64 + 1)).div_ceil(LEVELS as u64) as u32;
    let sizes: [u32; LEVELS] = std::array::from_fn(step);
    let first = sizes.iter().position(|size| *size >= least).unwrap_or(LEVELS - 1);
    (sizes, super::candidates::bits(first, LEVELS - 1))
}

/// From 0 up to about 4: 0 is 0, 1 is 0.17, 1,000 is 1.7, a million 3.5.
fn log_scaled(value: f64) -> f32 {
    if value.is_finite() { (value.max(0.0).ln_1p() * 0.25) as f32 } else { 0.0 }
}

fn share(value: f64, whole: f64) -> f32 {
    let share = value / whole;
    if share.is_finite() { share.clamp(0.0, 10.0) as f32 } else { 0.0 }
}

/// What a finished call pays, in the paper's terms without the cube root, which only shrinks late rewards:
///
/// ```text
/// s = run / baseline
/// r = - s + (1 - s) if s < 1,  - s - (s - 1) (user's levels) if s > 1
/// ```
///
/// Half the baseline's time pays 0; a tenth more, with 2 + 2 levels reserved, -1.1 - 0.4 = -1.5.
///
/// The paper does not count what is held. With a `price`, core-time granted costs it, in units of the core-time
/// that the user's size would have held: 2 of 4 cores for the baseline's time cost half the price.
fn reward(outcome: &CallOutcome, baseline: f64, price: f32) -> f32 {
    let slowdown = if outcome.was_killed || baseline <= 0.0 {
        if outcome.was_killed { MOST_SLOWDOWN } else { 1.0 }
    } else {
        ((outcome.run().as_secs_f64() / baseline) as f32).clamp(0.0, MOST_SLOWDOWN)
    };
    let user_levels =
        (outcome.reservation.cpu.cores() + outcome.reservation.memory.mib() / 128.0) as f32;
    let bonus = (1.0 - slowdown).max(0.0);
    let penalty = (slowdown - 1.0).max(0.0) * user_levels.clamp(2.0, 16.0);
    let share = outcome.last_grant.cpu.cores() / outcome.reservation.cpu.cores().max(1e-3);
    bonus - slowdown - penalty - price * slowdown * share as f32
}

impl CallPolicy for FaasrmSizing {
    fn name(&self) -> &str {
        "faasrm"
    }

    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        let (seen, cpu, memory) = self.candidates(call);
        self.in_flight += 1;
        let function = self.functions.state(call.function);
        function.calls += 1.0;
        let before = function.last_at.replace(call.arrived_at);
        let gap = before.map(|before| call.arrived_at.since(before).as_secs_f64());
        // Only strictly positive gaps count, as in the original.
        gap.filter(|gap| *gap > 0.0).into_iter().for_each(|gap| function.gaps.take(gap));
        let place = match &mut self.pick {
            Pick::Best => self.agent.best(&seen),
            Pick::Draw(learning) => {
                let (action, log_probability) = self.agent.draw(&seen, &mut learning.draw);
                learning
                    .pending
                    .insert(call.id, Lesson { seen, action, log_probability, reward: 0.0 });
                action
            }
        };
        let (c, m) = Candidates::levels(place);
        let grant = Allocation::new(cpu[c].max(1), memory[m].max(1)).min(call.ceiling);
        Ok(CallDecision::exactly(grant, "the highest score"))
    }

    fn lost(&mut self, call: CallId) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Pick::Draw(learning) = &mut self.pick {
            learning.pending.remove(&call);
        }
    }

    fn learn(&mut self, outcome: &CallOutcome) {
        let function = self.functions.state(outcome.function);
        let baseline = function.baseline.get();
        if let Pick::Draw(learning) = &mut self.pick
            && let Some(lesson) = learning.pending.remove(&outcome.id)
        {
            let reward = reward(outcome, baseline, learning.core_price);
            let mut lessons = learning.lessons.lock().unwrap_or_else(PoisonError::into_inner);
            lessons.push(Lesson { reward, ..lesson });
        }
        self.ranges.observe(outcome);
        if outcome.was_killed {
            return;
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        let run = outcome.run().as_secs_f64();
        function.cpu_peak.take(outcome.cpu_peak_cores);
        function.memory_peak.take(outcome.memory_peak_mib);
        function.run.take(run);
        let had = (outcome.first_grant, outcome.last_grant);
        if had == (outcome.reservation, outcome.reservation) {
            function.baseline.take(run);
        }
    }
}

#[cfg(test)]
mod tests;
