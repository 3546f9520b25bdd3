//! The whole experiment: training, online table, sweep over load, growth, faults, chain.

use serde::Serialize;
use windfall_core::statistics::mean;
use windfall_gym::Split;
use windfall_rl::parallel::Workers;

use super::auxiliary::Auxiliary;
use super::chain::{ChainResult, chain};
use super::fault_run::{FaultResult, FaultRun};
use super::growth::{GrowthSettings, GrowthStep, grow};
use super::load_sweep::{LOADS, LoadRatios, LoadRow, load_ratios, load_rows};
use super::online::{
    Curve, Exam, LOAD, OnlineRow, Ratios, Sizes, classic, isolated, mean_reward, p99_ratio, tested,
    trained,
};
use super::team::{Method, TeamSettings};

/// The auxiliary state that stands for SIMPPO in the tables.
pub(crate) const DEFAULT: Auxiliary = Auxiliary::MeanField;

/// SIMPPO without its auxiliary state, by its name in the table of variants.
pub const SHARED_SINGLE: &str = "s-rl, one network for all";

/// S-RL among others as its authors trained it, by its name in the table of variants.
pub const PUBLISHED_PPO: &str = "s-rl, one network each, published PPO";

/// How much is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReproduceSettings {
    /// Seeds of everything that is random.
    pub seeds: Vec<u64>,
    /// Functions of the online table and episodes of training and test.
    pub sizes: Sizes,
    /// Growth.
    pub growth: GrowthSettings,
    /// Episodes of each run with faults.
    pub fault_episodes: u64,
    /// Threads; results do not depend on them.
    pub threads: usize,
}

impl ReproduceSettings {
    /// The experiment with this many seeds.
    pub fn new(seeds: u64) -> Self {
        Self {
            seeds: (1..=seeds).collect(),
            sizes: Sizes { functions: 12, episodes: 120, tests: 3 },
            growth: GrowthSettings {
                sizes: vec![5, 10, 20, 40, 80, 110],
                episodes: 120,
                most: 60,
                tests: 2,
            },
            fault_episodes: 20,
            threads: 2,
        }
    }

    /// Less of everything.
    pub fn quick() -> Self {
        let full = Self::new(1);
        Self {
            sizes: Sizes { functions: 12, episodes: 60, tests: 1 },
            growth: GrowthSettings { sizes: vec![5, 20, 110], episodes: 60, most: 47, tests: 1 },
            fault_episodes: 5,
            ..full
        }
    }

    /// Units of progress in all: episodes times agents, about.
    pub fn units(&self) -> u64 {
        let jobs = jobs(self).len() as u64;
        let training = jobs * self.sizes.episodes * self.sizes.functions as u64;
        let growth: u64 = self.growth.sizes.iter().map(|&count| count as u64 * 15).sum();
        let faults =
            self.seeds.len() as u64 * self.fault_episodes * 2 * self.sizes.functions as u64;
        training + growth + faults
    }
}

/// One auxiliary state or switch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantRow {
    /// Which.
    pub variant: String,
    /// Mean reward of an episode on the test's hours.
    pub reward: f64,
    /// Geometric mean of p99 over isolated S-RL's.
    pub p99_to_isolated: f64,
    /// Mean reward of the first fifth of training.
    pub early_reward: f64,
}

/// Everything that came out.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Results {
    /// Every policy, function and seed.
    pub online: Vec<OnlineRow>,
    /// The published ratios.
    pub ratios: Ratios,
    /// From few functions to many.
    pub growth: Vec<GrowthStep>,
    /// Faults.
    pub faults: FaultResult,
    /// A chain.
    pub chain: ChainResult,
    /// Training.
    pub curves: Vec<Curve>,
    /// Auxiliary states, parameter sharing.
    pub variants: Vec<VariantRow>,
    /// Policies at other loads.
    pub load_sweep: Vec<LoadRow>,
    /// The published ratios at other loads.
    pub load_ratios: Vec<LoadRatios>,
}

/// One training with all that follows from it.
#[derive(Clone, Debug)]
struct Job {
    name: String,
    seed: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Isolated,
    Team(Box<TeamSettings>),
}

/// What a job brought.
#[derive(Default)]
struct Done {
    rows: Vec<OnlineRow>,
    curve: Option<Curve>,
    sweep: Vec<(f64, Vec<OnlineRow>)>,
    faults: Option<FaultResult>,
}

fn jobs(settings: &ReproduceSettings) -> Vec<Job> {
    let episodes = settings.sizes.episodes;
    let one_each = |method| Kind::Team(Box::new(TeamSettings::new(method, episodes)));
    let shared = |method| Kind::Team(Box::new(TeamSettings::new(method, episodes).shared()));
    let mut jobs = Vec::new();
    for &seed in &settings.seeds {
        let mut push = |name: &str, kind| jobs.push(Job { name: name.to_owned(), seed, kind });
        push("simppo", shared(Method::Simppo(DEFAULT)));
        push("s-rl", one_each(Method::Single));
        push("mappo", shared(Method::Mappo));
        push("residual", shared(Method::Residual(DEFAULT)));
        push("isolated", Kind::Isolated);
        for variant in Auxiliary::ALL.into_iter().filter(|variant| *variant != DEFAULT) {
            push(&format!("simppo, {}", variant.name()), shared(Method::Simppo(variant)));
        }
        push("simppo, one network each", one_each(Method::Simppo(DEFAULT)));
        push(SHARED_SINGLE, shared(Method::Single));
        let published = TeamSettings::new(Method::Single, episodes).with_published_ppo();
        push(PUBLISHED_PPO, Kind::Team(Box::new(published)));
    }
    jobs
}

/// Runs everything. `progress` receives units of [`ReproduceSettings::units`] as they are done.
pub fn reproduce(settings: &ReproduceSettings, progress: &(dyn Fn(u64) + Sync)) -> Results {
    let workers = Workers::new(settings.threads);
    let jobs = jobs(settings);
    let done = workers.map(&jobs, |job| carry_out(job, settings, progress));
    let mut results = Results::default();
    let mut sweep: Vec<(f64, OnlineRow)> = Vec::new();
    let (mut others, mut other_curves) = (Vec::new(), Vec::new());
    for (job, done) in jobs.iter().zip(done) {
        if job.name.contains(',') {
            others.extend(done.rows);
            other_curves.extend(done.curve);
        } else {
            results.online.extend(done.rows);
            results.curves.extend(done.curve);
        }
        for (load, rows) in done.sweep {
            sweep.extend(rows.into_iter().map(|row| (load, row)));
        }
        if let Some(faults) = done.faults {
            results.faults = std::mem::take(&mut results.faults).and(faults);
        }
    }
    let tested = workers.map(&settings.seeds, |seed| classics(*seed, settings.sizes));
    for (load, row) in tested.into_iter().flatten() {
        if load == LOAD {
            results.online.push(row);
        } else {
            sweep.push((load, row));
        }
    }
    results.ratios = Ratios::of(&results.online);
    results.variants = variants(&results, &others, &other_curves);
    let (isolated, others): (Vec<OnlineRow>, Vec<OnlineRow>) =
        results.online.iter().cloned().partition(|row| row.policy == "isolated");
    sweep.extend(others.into_iter().map(|row| (LOAD, row)));
    results.load_sweep = load_rows(&isolated, &sweep);
    results.load_ratios = load_ratios(&isolated, &sweep);
    let episodes = settings.growth.episodes + 5 * settings.growth.most;
    let team = TeamSettings::new(Method::Simppo(DEFAULT), episodes).shared();
    results.growth = grow(team, &settings.growth, settings.seeds[0], progress);
    results.chain = chain(&settings.seeds, Split::Test, 200, progress);
    results
}

/// Policies that need no training, in the order of tables.
const CLASSICS: [&str; 7] =
    ["ensure", "hpa", "queueing", "windfall-scaling", "fixed", "oracle", "random"];

/// What they do at every load.
fn classics(seed: u64, sizes: Sizes) -> Vec<(f64, OnlineRow)> {
    let mut all = Vec::new();
    for name in CLASSICS {
        for load in LOADS {
            let exam = if load == LOAD { Exam::usual(sizes) } else { Exam::at(load) };
            let rows = classic(name, seed, sizes.functions, exam);
            all.extend(rows.into_iter().map(|row| (load, row)));
        }
    }
    all
}

fn carry_out(job: &Job, settings: &ReproduceSettings, progress: &(dyn Fn(u64) + Sync)) -> Done {
    let (sizes, exam) = (settings.sizes, Exam::usual(settings.sizes));
    let team = match &job.kind {
        Kind::Isolated => {
            let team = TeamSettings::new(Method::Single, sizes.episodes);
            let (rows, curve) = isolated(&team, (job.seed, exam), sizes, progress);
            return Done { rows, curve: Some(curve), ..Done::default() };
        }
        Kind::Team(team) => team,
    };
    let functions: Vec<u64> = (0..sizes.functions as u64).collect();
    let who = (job.seed, functions);
    let (mut team, curve) =
        trained(&job.name, (**team).clone(), who.clone(), sizes.episodes, progress);
    let rows = tested(&job.name, &mut team, who.clone(), exam);
    let mut done = Done { rows, curve: Some(curve), ..Done::default() };
    if !job.name.contains(',') {
        for load in LOADS.into_iter().filter(|load| *load != LOAD) {
            let rows = tested(&job.name, &mut team, who.clone(), Exam::at(load));
            done.sweep.push((load, rows));
        }
    }
    if job.name == "simppo" {
        let run = FaultRun {
            seed: job.seed,
            split: Split::Test,
            episodes: settings.fault_episodes,
            learns: true,
        };
        done.faults = Some(run.compare(&team, progress));
    }
    done
}

/// SIMPPO's variants beside it, each on the seeds it was run with.
fn variants(results: &Results, others: &[OnlineRow], curves: &[Curve]) -> Vec<VariantRow> {
    let all: Vec<OnlineRow> = results.online.iter().chain(others).cloned().collect();
    let mut names: Vec<&str> = vec!["simppo"];
    for row in others {
        if !names.contains(&row.policy.as_str()) {
            names.push(&row.policy);
        }
    }
    let early = |name: &str| {
        let all = results.curves.iter().chain(curves).filter(|curve| curve.policy == name);
        let first_fifths = all.flat_map(|curve| &curve.rewards[..curve.rewards.len().div_ceil(5)]);
        mean(first_fifths).unwrap_or(0.0)
    };
    let variant = |name: &&str| VariantRow {
        variant: if *name == "simppo" {
            format!("simppo, {}, one network for all", DEFAULT.name())
        } else {
            (*name).to_owned()
        },
        reward: mean_reward(all.iter().filter(|row| row.policy == *name)),
        p99_to_isolated: p99_ratio(&all, name, "isolated"),
        early_reward: early(name),
    };
    names.iter().map(variant).collect()
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
            settings.fault_episodes = 1;
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
        ] {
            assert!(text.contains(key), "{key} is missing");
        }
    }
}
