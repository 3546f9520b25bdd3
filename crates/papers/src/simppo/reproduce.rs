//! The whole experiment: gate, arms, calibrated rules, margins, sweep over load and growth on the shared nodes of
//! `MultiScaling-v1`; faults and chains on `MultiScaling-v0`.

use serde::Serialize;
use windfall_gym::Split;
use windfall_gym::shared_nodes::LOAD;
use windfall_gym::shared_nodes::function_load::Workload;
use windfall_gym::shared_nodes::rules::{CALIBRATED, RuleSettings};
use windfall_rl::parallel::Workers;

use super::auxiliary::Auxiliary;
use super::chain::{ChainResult, chain};
use super::fault_run::{FaultResult, FaultRun};
use super::growth::{GrowthSettings, GrowthStep, grow, mean_steps};
use super::load_sweep::{LOADS, LoadRatios, LoadRow, load_ratios, load_rows};
use super::online::{Curve, OnlineRow, Ratios, Sizes, trained};
use super::shared::arms::{
    AS_PUBLISHED, Arm, ArmRow, AuxiliaryWorth, Learner, USUAL, auxiliary_worth, table,
};
use super::shared::calibration::{CalibratedRule, CalibrationSizes, calibrate};
use super::shared::gate::{Gate, gate};
use super::shared::margins::{Margin, MarginSizes, in_order, margin};
use super::shared::trial::Trial;
use super::team::{Method, TeamSettings};

mod block_ratios;

pub use block_ratios::BlockRatios;
use block_ratios::block_ratios;

/// How much is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReproduceSettings {
    /// Seeds of everything that is random.
    pub seeds: Vec<u64>,
    /// Functions of the online table and episodes of training and test.
    pub sizes: Sizes,
    /// Growth, and of how many seeds.
    pub growth: GrowthSettings,
    /// Seeds that grow.
    pub growth_seeds: usize,
    /// Episodes of each learner of the margins.
    pub margin_episodes: u64,
    /// Workloads of the margins.
    pub workloads: Vec<Workload>,
    /// Seeds whose training hours rules are calibrated on.
    pub calibration_seeds: usize,
    /// Episodes of training before faults, and of each run with them.
    pub fault_episodes: (u64, u64),
    /// Threads; results do not depend on them.
    pub threads: usize,
}

impl ReproduceSettings {
    /// The experiment with this many seeds.
    pub fn new(seeds: u64) -> Self {
        Self {
            seeds: (1..=seeds).collect(),
            sizes: Sizes { functions: 12, episodes: 120, tests: 2 },
            growth: GrowthSettings {
                sizes: vec![5, 10, 20, 40, 80, 110],
                episodes: 40,
                most: 40,
                tests: 1,
            },
            growth_seeds: 1,
            margin_episodes: 24,
            workloads: [Workload::Azure].into_iter().chain(Workload::SIX).collect(),
            calibration_seeds: 2,
            fault_episodes: (40, 5),
            threads: 2,
        }
    }

    /// Less of everything.
    pub fn quick() -> Self {
        let full = Self::new(1);
        Self {
            sizes: Sizes { functions: 12, episodes: 12, tests: 1 },
            growth: GrowthSettings { sizes: vec![5, 20, 110], episodes: 12, most: 10, tests: 1 },
            growth_seeds: 1,
            margin_episodes: 12,
            calibration_seeds: 1,
            fault_episodes: (12, 3),
            ..full
        }
    }

    /// Units of progress in all: episodes times agents, about.
    pub fn units(&self) -> u64 {
        let (seeds, functions) = (self.seeds.len() as u64, self.sizes.functions as u64);
        let arms = Arm::all().len() as u64 * seeds * self.sizes.episodes * functions;
        let growth: u64 = self.growth.sizes.iter().map(|&count| count as u64 * 20).sum();
        let margins = 3 * seeds * self.workloads.len() as u64 * self.margin_episodes * functions;
        let faults = seeds * (self.fault_episodes.0 + 2 * self.fault_episodes.1) * functions;
        arms + growth * self.growth_seeds as u64 + margins + faults
    }

    fn calibration(&self) -> CalibrationSizes {
        let functions = self.sizes.functions;
        CalibrationSizes { functions, episodes: 1, tower_episodes: 12 }
    }
}

/// One learner by its settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantRow {
    /// Which.
    pub variant: String,
    /// Mean reward of an episode on the test's hours.
    pub reward: f64,
    /// Geometric mean of p99 over isolated S-RL's with the same settings.
    pub p99_to_isolated: f64,
    /// Mean reward of the first fifth of training.
    pub early_reward: f64,
    /// Mean reward of the last fifth of training.
    pub late_reward: f64,
}

/// Everything that came out.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Results {
    /// Whether agents meet; asked first.
    pub gate: Gate,
    /// Every policy, function and seed: the arms as published and all rules.
    pub online: Vec<OnlineRow>,
    /// The published ratios.
    pub ratios: Ratios,
    /// The same for every set of settings and networks, with intervals.
    pub block_ratios: Vec<BlockRatios>,
    /// Every combination of settings, networks and learner.
    pub arms: Vec<ArmRow>,
    /// What the auxiliary state is worth.
    pub auxiliary_worth: AuxiliaryWorth,
    /// Rules with the parameters that were found for them.
    pub rules: Vec<CalibratedRule>,
    /// Learned against calibrated, where rules win first.
    pub margins: Vec<Margin>,
    /// From few functions to many.
    pub growth: Vec<GrowthStep>,
    /// Faults.
    pub faults: FaultResult,
    /// A chain.
    pub chain: ChainResult,
    /// Training.
    pub curves: Vec<Curve>,
    /// Every combination, in short.
    pub variants: Vec<VariantRow>,
    /// Policies at other loads.
    pub load_sweep: Vec<LoadRow>,
    /// The published ratios at other loads.
    pub load_ratios: Vec<LoadRatios>,
}

/// One piece of work for one core.
#[derive(Clone, Copy, Debug)]
enum Job {
    Growth(u64),
    Arm(Arm, u64),
    Faults(u64),
}

/// What it brought.
#[derive(Default)]
struct Done {
    rows: Vec<OnlineRow>,
    curve: Option<Curve>,
    sweep: Vec<(f64, OnlineRow)>,
    growth: Option<Vec<GrowthStep>>,
    faults: Option<FaultResult>,
}

/// The longest first, so that no core waits for the other at the end.
fn jobs(settings: &ReproduceSettings) -> Vec<Job> {
    let mut jobs: Vec<Job> =
        settings.seeds.iter().take(settings.growth_seeds).map(|&seed| Job::Growth(seed)).collect();
    for arm in Arm::all() {
        jobs.extend(settings.seeds.iter().map(|&seed| Job::Arm(arm, seed)));
    }
    jobs.extend(settings.seeds.iter().map(|&seed| Job::Faults(seed)));
    jobs
}

/// Runs everything. `progress` receives units of [`ReproduceSettings::units`] as they are done.
pub fn reproduce(settings: &ReproduceSettings, progress: &(dyn Fn(u64) + Sync)) -> Results {
    let workers = Workers::new(settings.threads);
    let mut results = Results { gate: gate(&workers, 1), ..Results::default() };
    let seeds = &settings.seeds;
    for &workload in &settings.workloads {
        let calibration = &seeds[..settings.calibration_seeds.min(seeds.len())];
        let rules = calibrate(workload, calibration, settings.calibration(), &workers);
        let sizes = MarginSizes {
            functions: settings.sizes.functions,
            episodes: settings.margin_episodes,
            tests: settings.sizes.tests,
        };
        results.margins.extend(margin(workload, seeds, &rules, sizes, &workers, progress));
        results.rules.extend(rules);
    }
    results.margins = in_order(std::mem::take(&mut results.margins));
    learned(settings, &workers, &mut results, progress);
    results.chain = chain(seeds, Split::Test, 200, progress);
    results
}

/// Arms, rules beside them, growth and faults.
fn learned(
    settings: &ReproduceSettings,
    workers: &Workers,
    results: &mut Results,
    progress: &(dyn Fn(u64) + Sync),
) {
    let done = workers.map(&jobs(settings), |job| carry_out(*job, settings, progress));
    let (mut rows, mut curves, mut growth, mut sweep) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for one in done {
        rows.extend(one.rows);
        curves.extend(one.curve);
        growth.extend(one.growth);
        sweep.extend(one.sweep);
        if let Some(faults) = one.faults {
            results.faults = std::mem::take(&mut results.faults).and(faults);
        }
    }
    let ruled = workers.map(&settings.seeds, |&seed| rules(seed, settings, &results.rules));
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        ruled.into_iter().flatten().partition(|(load, _)| *load == LOAD);
    sweep.extend(elsewhere);
    results.arms = table(&rows, &curves);
    results.auxiliary_worth = auxiliary_worth(&rows);
    results.variants = results.arms.iter().map(variant).collect();
    let names: Vec<String> = arms_as_published().iter().map(Arm::name).collect();
    results.curves = curves.into_iter().filter(|it| names.contains(&it.policy)).collect();
    let ensure: Vec<OnlineRow> =
        here.iter().map(|(_, row)| row).filter(|row| row.policy == "ensure").cloned().collect();
    results.block_ratios = block_ratios(&rows, &ensure);
    results.online = rows.into_iter().filter(|row| names.contains(&row.policy)).collect();
    results.online.extend(here.into_iter().map(|(_, row)| row));
    results.ratios = Ratios::of(&results.online);
    sweep.extend(results.online.iter().map(|row| (LOAD, row.clone())));
    results.load_sweep = load_rows(&sweep);
    results.load_ratios = load_ratios(&sweep);
    results.growth = mean_steps(&growth);
}

/// Those whose names tables always had.
fn arms_as_published() -> Vec<Arm> {
    let is_listed = |arm: &Arm| {
        (arm.block, arm.networks) == AS_PUBLISHED
            && !matches!(arm.learner, Learner::Simppo(other) if other != USUAL)
    };
    Arm::all().into_iter().filter(is_listed).collect()
}

fn variant(row: &ArmRow) -> VariantRow {
    VariantRow {
        variant: row.name.clone(),
        reward: row.reward,
        p99_to_isolated: row.p99_to_isolated,
        early_reward: row.early_training,
        late_reward: row.late_training,
    }
}

/// What rules do at every load: as usual, and as calibrated for Azure's hours.
fn rules(
    seed: u64,
    settings: &ReproduceSettings,
    calibrated: &[CalibratedRule],
) -> Vec<(f64, OnlineRow)> {
    let mut all = Vec::new();
    for load in LOADS {
        let trial = Trial { load, ..Trial::new(seed, settings.sizes.functions, Workload::Azure) };
        let part = (Split::Test, if load == LOAD { settings.sizes.tests } else { 1 });
        let mut rows = trial.random(part);
        for name in CALIBRATED.into_iter().chain(["fixed", "oracle"]) {
            let usual = RuleSettings::usual(name).expect("every listed rule is named");
            rows.extend(trial.rule_with(name, usual, part));
        }
        for rule in calibrated.iter().filter(|rule| rule.workload == Workload::Azure.name()) {
            rows.extend(rule.test(&trial, part, settings.calibration()));
        }
        all.extend(rows.into_iter().map(|row| (load, row)));
    }
    all
}

fn carry_out(job: Job, settings: &ReproduceSettings, progress: &(dyn Fn(u64) + Sync)) -> Done {
    match job {
        Job::Growth(seed) => {
            let arm = arms_as_published().into_iter().find(|arm| arm.name() == "simppo");
            let arm = arm.expect("simppo is as published");
            let episodes = settings.growth.episodes + 5 * settings.growth.most;
            let steps = grow(arm.team(episodes), &settings.growth, seed, progress);
            Done { growth: Some(steps), ..Done::default() }
        }
        Job::Arm(arm, seed) => train_arm(arm, seed, settings, progress),
        Job::Faults(seed) => {
            Done { faults: Some(faults(seed, settings, progress)), ..Done::default() }
        }
    }
}

fn train_arm(
    arm: Arm,
    seed: u64,
    settings: &ReproduceSettings,
    progress: &(dyn Fn(u64) + Sync),
) -> Done {
    let sizes = settings.sizes;
    let (mut team, curve) = arm.train(seed, sizes.functions, sizes.episodes, progress);
    let rows = arm.test(&mut team, (seed, LOAD), sizes.tests);
    let mut sweep = Vec::new();
    if arms_as_published().contains(&arm) {
        for load in LOADS.into_iter().filter(|load| *load != LOAD) {
            let rows = arm.test(&mut team, (seed, load), 1);
            sweep.extend(rows.into_iter().map(|row| (load, row)));
        }
    }
    Done { rows, curve: Some(curve), sweep, ..Done::default() }
}

/// A team of `MultiScaling-v0` with and without faults.
fn faults(seed: u64, settings: &ReproduceSettings, progress: &(dyn Fn(u64) + Sync)) -> FaultResult {
    let (before, episodes) = settings.fault_episodes;
    let method = Method::Simppo(Auxiliary::MeanField);
    let functions: Vec<u64> = (0..settings.sizes.functions as u64).collect();
    let team = TeamSettings::new(method, before).shared();
    let (team, _) = trained("simppo", team, (seed, functions), before, progress);
    FaultRun { seed, split: Split::Test, episodes, learns: true }.compare(&team, progress)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_and_two_find_the_same() {
        let small = |threads| {
            let mut settings = ReproduceSettings::quick();
            settings.sizes = Sizes { functions: 3, episodes: 1, tests: 1 };
            settings.growth = GrowthSettings { sizes: vec![2, 3], episodes: 1, most: 1, tests: 1 };
            settings.fault_episodes = (1, 1);
            settings.margin_episodes = 1;
            settings.workloads = vec![Workload::Azure, Workload::Chain];
            settings.threads = threads;
            serde_json::to_string(&reproduce(&settings, &|_| {})).unwrap()
        };
        let text = small(1);
        assert_eq!(text, small(2));
        for key in [
            "\"online\"",
            "\"simppo_to_isolated_p99\"",
            "\"longest_gap_ticks\"",
            "\"objective_ms\"",
            "\"others_loss_percent\"",
            "\"oracle_meets\"",
            "\"reward_difference\"",
            "\"cost_ratio\"",
            "\"violations_ratio\"",
        ] {
            assert!(text.contains(key), "{key} is missing");
        }
    }
}
