//! Learned against calibrated, workload by workload: what learning is worth over a rule that somebody tuned.
//!
//! On every workload the rule is the calibrated one of the highest reward on training hours. Learners are trained on the
//! same hours: SIMPPO (our settings, one network for all), a residual on a calibrated rule, and targets set for one. The
//! learner is chosen on validation hours; it is kept there if its reward is above the rule's by more than the interval.
//! Both are then tested once on test hours.

use serde::Serialize;
use windfall_core::statistics::mean;
use windfall_gym::Split;
use windfall_gym::shared_nodes::function_load::Workload;
use windfall_rl::parallel::Workers;

use super::arms::USUAL;
use super::calibration::{CalibratedRule, CalibrationSizes, best, best_to_correct};
use super::paired::{Estimate, Pairs};
use super::trial::Trial;
use crate::simppo::auxiliary::Auxiliary;
use crate::simppo::online::{OnlineRow, mean_reward};
use crate::simppo::team::{Method, TeamSettings};

/// One learner and one rule on one workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Margin {
    /// Which workload.
    pub workload: String,
    /// The learner.
    pub learned: String,
    /// The calibrated rule.
    pub best_rule: String,
    /// What the learner holds over what the rule holds, a GiB as a tenth of a core.
    pub cost_ratio: f64,
    /// Interval of that ratio.
    pub cost_low: f64,
    /// See above.
    pub cost_high: f64,
    /// Calls beyond their objective, learner's over rule's.
    pub violations_ratio: f64,
    /// Interval of that ratio.
    pub violations_low: f64,
    /// See above.
    pub violations_high: f64,
    /// Share of the learner's calls beyond their objective, percent.
    pub learned_violation_percent: f64,
    /// Of the rule's.
    pub rule_violation_percent: f64,
    /// Reward of an episode, learner's less rule's.
    pub reward_difference: f64,
    /// Interval of that difference.
    pub low: f64,
    /// See above.
    pub high: f64,
    /// Reward of an episode.
    pub learned_reward: f64,
    /// Of the rule.
    pub rule_reward: f64,
    /// Of the same rule with its usual parameters.
    pub usual_rule_reward: f64,
    /// Whether validation hours showed it to be better than the rule by more than the noise.
    pub is_kept: bool,
    /// Every learner that was tried, with its reward less the rule's on validation hours.
    pub tried: Vec<(String, Estimate)>,
}

/// How much is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarginSizes {
    /// Functions.
    pub functions: usize,
    /// Episodes of training.
    pub episodes: u64,
    /// Episodes of validation and of test.
    pub tests: u64,
}

/// The learners that are tried.
fn learners(episodes: u64) -> [(&'static str, TeamSettings); 3] {
    let make = |method| TeamSettings::new(method, episodes).shared().heard();
    [
        ("simppo", make(Method::Simppo(USUAL))),
        ("residual", make(Method::Residual(Auxiliary::None))),
        ("targets", make(Method::Targets(Auxiliary::None))),
    ]
}

/// Rows of one learner on validation and test hours.
struct Candidate {
    learner: &'static str,
    seen: Vec<OnlineRow>,
    tested: Vec<OnlineRow>,
}

/// Compares on one workload.
pub fn margin(
    workload: Workload,
    seeds: &[u64],
    rules: &[CalibratedRule],
    sizes: MarginSizes,
    workers: &Workers,
    progress: &(dyn Fn(u64) + Sync),
) -> Option<Margin> {
    let (rule, base) = (best(rules)?, best_to_correct(rules)?);
    let trial = |seed| Trial { rule: base.settings, ..Trial::new(seed, sizes.functions, workload) };
    let mut jobs = Vec::new();
    for (learner, settings) in learners(sizes.episodes) {
        jobs.extend(seeds.iter().map(|&seed| (learner, settings.clone(), seed)));
    }
    let done = workers.map(&jobs, |(learner, settings, seed)| {
        let trial = trial(*seed);
        let (mut team, _) = trial.train(learner, settings.clone(), sizes.episodes, progress);
        let mut test = |split| trial.test(learner, &mut team, split, sizes.tests);
        (test(Split::Validation), test(Split::Test))
    });
    let mut candidates: Vec<Candidate> = Vec::new();
    for ((learner, ..), (seen, tested)) in jobs.iter().zip(done) {
        match candidates.iter_mut().find(|one| one.learner == *learner) {
            Some(one) => {
                one.seen.extend(seen);
                one.tested.extend(tested);
            }
            None => candidates.push(Candidate { learner, seen, tested }),
        }
    }
    let tower = CalibrationSizes { functions: sizes.functions, episodes: 1, tower_episodes: 12 };
    let of_rule = |split| -> Vec<OnlineRow> {
        let part = (split, sizes.tests);
        let rows = workers.map(seeds, |&seed| rule.test(&trial(seed), part, tower));
        rows.into_iter().flatten().collect()
    };
    let usual = |seed: &u64| {
        let usual = windfall_gym::shared_nodes::rules::RuleSettings::usual(&rule.rule)?;
        let rows = trial(*seed).rule_with(&rule.rule, usual, (Split::Test, sizes.tests));
        Some(mean_reward(rows.iter()))
    };
    let (seen, tested) = (of_rule(Split::Validation), of_rule(Split::Test));
    let usual_rule_reward = mean(seeds.iter().filter_map(usual)).unwrap_or(0.0);
    let found = compared(workload, rule, &candidates, (&seen, &tested))?;
    Some(Margin { usual_rule_reward, ..found })
}

fn compared(
    workload: Workload,
    rule: &CalibratedRule,
    candidates: &[Candidate],
    (seen, tested): (&[OnlineRow], &[OnlineRow]),
) -> Option<Margin> {
    let gain = |one: &Candidate| Pairs::new(&one.seen, seen).difference(&|row| row.reward);
    let tried: Vec<(String, Estimate)> =
        candidates.iter().map(|one| (one.learner.to_owned(), gain(one))).collect();
    let place = (0..candidates.len())
        .max_by(|&one, &other| tried[one].1.value.total_cmp(&tried[other].1.value))?;
    let chosen = &candidates[place];
    let pairs = Pairs::new(&chosen.tested, tested);
    let cost = pairs.ratio_of_sums(&OnlineRow::cost);
    let late = pairs.ratio_of_sums(&|row| row.violations);
    let reward = pairs.difference(&|row| row.reward);
    let percent = |rows: &[OnlineRow]| {
        let sum = |of: &dyn Fn(&OnlineRow) -> f64| rows.iter().map(of).sum::<f64>();
        100.0 * sum(&|row| row.violations) / sum(&|row| row.judged_calls).max(1.0)
    };
    Some(Margin {
        workload: workload.name().to_owned(),
        learned: chosen.learner.to_owned(),
        best_rule: rule.label(),
        cost_ratio: cost.value,
        cost_low: cost.low,
        cost_high: cost.high,
        violations_ratio: late.value,
        violations_low: late.low,
        violations_high: late.high,
        learned_violation_percent: percent(&chosen.tested),
        rule_violation_percent: percent(tested),
        reward_difference: reward.value,
        low: reward.low,
        high: reward.high,
        learned_reward: mean_reward(chosen.tested.iter()),
        rule_reward: mean_reward(tested.iter()),
        usual_rule_reward: 0.0,
        is_kept: tried[place].1.low > 0.0,
        tried,
    })
}

/// Rows where the rule wins first.
pub fn in_order(mut margins: Vec<Margin>) -> Vec<Margin> {
    margins.sort_by(|one, other| one.reward_difference.total_cmp(&other.reward_difference));
    margins
}
