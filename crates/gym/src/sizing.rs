//! `windfall/Sizing-v0`: how much CPU and memory the next call gets.
//!
//! ```text
//!   calls of an Azure-like workload ─► row of one call ─► action ─► the simulator runs until the next call arrives
//!                                                                        │
//!               reward: every call that ended on the way ◄───────────────┘
//! ```
//!
//! One step is one call, sized when it arrives. An action is a CPU size relative to what the user reserves, with
//! the memory that the user reserves or with a tenth more than the largest peak seen of the function. The mask keeps
//! to what FaaSRM calls the safeguard's first rule: a function of which nothing is known gets what its user
//! reserves. An action that the mask leaves out is carried out as the user's size.
//!
//! A call that ended pays the mean of what it saved of its reservation, core-seconds and MiB-seconds, less what it
//! lost: a run 25 % longer than at the user's size costs 0.2 (the first 5 % are free), one twice as long or more costs
//! 0.95, one that was killed for memory costs 1 beside its retry. A call that held half its CPU and a quarter of its
//! memory and ran as long as before pays (0.5 + 0.75) / 2 = 0.625.
//!
//! Functions, hours and calls come from the seed; the parts for training, validation and test begin at other
//! hours of the day with other functions.

mod history;
mod world;

use windfall_core::{CallDecision, CallOutcome, Seed};
use windfall_rl::{End, Environment, Spec, Split, Step};

use history::{FEATURES, History};
use world::SizingWorld;

/// Name and version.
pub const ID: &str = "windfall/Sizing-v0";

/// CPU relative to the reservation.
const CPU: [f64; 6] = [0.25, 0.5, 0.75, 1.0, 1.5, 2.0];
/// The place of the user's own CPU in [`CPU`].
const AS_RESERVED: usize = 3;
/// Names of the actions: first with the user's memory, then with memory by the peaks.
const ACTIONS: [&str; 12] = [
    "cpu-0.25",
    "cpu-0.5",
    "cpu-0.75",
    "as-reserved",
    "cpu-1.5",
    "cpu-2",
    "cpu-0.25-fit-memory",
    "cpu-0.5-fit-memory",
    "cpu-0.75-fit-memory",
    "cpu-1-fit-memory",
    "cpu-1.5-fit-memory",
    "cpu-2-fit-memory",
];
/// Memory over the largest peak that was seen: little enough that a call larger than all before it can be killed.
const MEMORY_MARGIN: f64 = 1.1;
/// Losses up to this share are free.
const FREE_LOSS: f64 = 0.05;

/// Settings of [`Sizing`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizingSettings {
    /// What may be seen.
    pub split: Split,
    /// Functions of an episode.
    pub functions: u32,
    /// What users reserve over what the cluster has.
    pub load: f64,
    /// Calls of an episode.
    pub calls: usize,
}

impl Default for SizingSettings {
    fn default() -> Self {
        Self { split: Split::Training, functions: 30, load: 0.8, calls: 400 }
    }
}

/// The environment.
pub struct Sizing {
    settings: SizingSettings,
    spec: Spec,
    world: SizingWorld,
    history: Vec<History>,
    paid: Paid,
}

/// What the calls that ended in the last step paid.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Paid {
    ended: u32,
    saved: f64,
    lost: f64,
    killed: u32,
}

impl Sizing {
    /// An environment whose first episode has not begun.
    pub fn new(settings: SizingSettings) -> Self {
        let spec = Spec::new(ID, &FEATURES, &ACTIONS);
        let world = SizingWorld::new(&settings, Seed::new(0));
        let history = vec![History::default(); world.functions()];
        Self { settings, spec, world, history, paid: Paid::default() }
    }

    fn write_row(&self, row: &mut [f32]) {
        let Some(call) = self.world.next_call() else { return row.fill(0.0) };
        self.history[call.function].write_row(&call, row);
    }

    /// The size that an action means for the next call.
    fn decision(&self, action: usize) -> Option<CallDecision> {
        let call = self.world.next_call()?;
        let history = &self.history[call.function];
        let mut allowed = [false; ACTIONS.len()];
        self.mask(&mut allowed);
        let action = if allowed[action] { action } else { AS_RESERVED };
        let (cpu, fits_memory) = (CPU[action % CPU.len()], action >= CPU.len());
        let reserved = call.reservation.memory.mib();
        let memory_mib = match fits_memory {
            false => reserved,
            true => (MEMORY_MARGIN * history.memory_peak_mib).clamp(1.0, reserved),
        };
        Some(CallDecision {
            cpu_cores: cpu * call.reservation.cpu.cores(),
            memory_mib,
            ..CallDecision::exactly(call.reservation, "an agent")
        })
    }

    fn settle(&mut self, outcome: &CallOutcome) {
        self.history[outcome.function.index()].learn(outcome);
        let baseline = self.world.baseline(outcome.id).as_secs_f64().max(1e-6);
        let run = outcome.run().as_secs_f64();
        let (grant, reservation) = (outcome.first_grant, outcome.reservation);
        let cpu = 1.0 - grant.cpu.cores() * run / (reservation.cpu.cores() * baseline);
        let memory = 1.0 - grant.memory.mib() * run / (reservation.memory.mib() * baseline);
        let paid = &mut self.paid;
        paid.ended += 1;
        if outcome.was_killed {
            paid.killed += 1;
            paid.lost += 1.0;
            return;
        }
        let longer = run / baseline - 1.0;
        paid.saved += f64::midpoint(cpu.max(-1.0), memory.max(-1.0));
        paid.lost += (longer - FREE_LOSS).clamp(0.0, 1.0 - FREE_LOSS);
    }
}

impl Environment for Sizing {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn reset(&mut self, seed: Seed, observation: &mut [f32]) {
        self.world = SizingWorld::new(&self.settings, seed);
        self.history.clear();
        self.history.resize(self.world.functions(), History::default());
        self.paid = Paid::default();
        self.write_row(observation);
    }

    fn step(&mut self, action: usize, observation: &mut [f32]) -> Step {
        self.paid = Paid::default();
        if let Some(decision) = self.decision(action) {
            for outcome in self.world.dispatch(decision) {
                self.settle(&outcome);
            }
        }
        self.write_row(observation);
        let is_over = self.world.next_call().is_none();
        let end = if is_over { End::Truncated } else { End::Continues };
        Step { reward: (self.paid.saved - self.paid.lost) as f32, end }
    }

    fn mask(&self, allowed: &mut [bool]) {
        allowed.fill(false);
        allowed[AS_RESERVED] = true;
        let Some(call) = self.world.next_call() else { return };
        if self.history[call.function].ended == 0 {
            return;
        }
        let ceiling = call.ceiling.cpu.cores() / call.reservation.cpu.cores();
        for (place, allowed) in allowed.iter_mut().enumerate() {
            *allowed = CPU[place % CPU.len()] <= ceiling || place == AS_RESERVED;
        }
    }

    fn info(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("ended", f64::from(self.paid.ended)),
            ("saved", self.paid.saved),
            ("lost", self.paid.lost),
            ("killed", f64::from(self.paid.killed)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_rl::env::check_environment;

    fn play(action: usize, seed: u64) -> (f64, u32) {
        let mut env = Sizing::new(SizingSettings::default());
        let mut row = [0.0; FEATURES.len()];
        env.reset(Seed::new(seed), &mut row);
        let (mut total, mut ended) = (0.0, 0);
        loop {
            let step = env.step(action, &mut row);
            total += f64::from(step.reward);
            ended += env.paid.ended;
            if step.end.is_over() {
                return (total, ended);
            }
        }
    }

    #[test]
    fn the_contract_is_kept() {
        check_environment(|| Sizing::new(SizingSettings::default()), 900);
    }

    #[test]
    fn the_users_size_pays_nothing_and_every_call_ends() {
        let (total, ended) = play(AS_RESERVED, 3);
        assert!(total.abs() < 1.0, "{total}");
        assert!(ended >= 400, "{ended}");
    }

    #[test]
    fn a_quarter_of_the_cpu_harms_some_calls_and_twice_of_it_wastes() {
        let best = CPU.len();
        let totals: Vec<f64> = (0..best).map(|action| play(action, 5).0).collect();
        assert!(totals[5] < totals[AS_RESERVED], "{totals:?}");
        assert!(totals.iter().any(|total| *total > 10.0), "{totals:?}");
    }

    #[test]
    fn unknown_functions_get_what_their_users_reserve() {
        let mut env = Sizing::new(SizingSettings::default());
        let mut row = [0.0; FEATURES.len()];
        env.reset(Seed::new(1), &mut row);
        let mut allowed = [true; ACTIONS.len()];
        env.mask(&mut allowed);
        assert_eq!(allowed.iter().filter(|allowed| **allowed).count(), 1);
        assert!(allowed[AS_RESERVED]);
    }
}
