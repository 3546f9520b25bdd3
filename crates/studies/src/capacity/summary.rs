//! Every policy at its best over-commit, relative to the others, with intervals over functions and seeds.
//!
//! Functions and seeds are drawn again with replacement, the same ones for both sides of a ratio; for each draw the
//! objective is judged anew at every load that was tried. The over-commit and the best incumbent are chosen on all
//! functions, which favours the incumbents.

use serde::Serialize;
use windfall_core::Seed;
use windfall_core::statistics::{Interval, mean, redraw};

use super::contestants::Role;
use super::objective::{Binding, Objective, Service};
use super::search::load_held;
use super::{CapacityResult, CapacityRow, FixedService};

/// Populations that are drawn.
const DRAWS: u64 = 400;
const STREAM: &str = "load held, bootstrap over functions";

/// One policy in one world, at its best over-commit.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CapacitySummary {
    /// The world.
    pub world: String,
    /// The policy as tables call it.
    pub policy: String,
    /// The over-commit that holds the highest load.
    pub best_over_commit: f64,
    /// Load held there, mean over seeds.
    pub load_held: f64,
    /// Seeds that it was played on; ratios are over the same seeds of the other side.
    pub seeds: usize,
    /// Over that of `fixed`.
    pub relative_to_fixed: Option<f64>,
    /// Over that of the best incumbent as published.
    pub relative_to_best_incumbent: Option<f64>,
    /// The lower end of its 95 % interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Over that of the best incumbent with our queue order.
    pub relative_to_best_ordered_incumbent: Option<f64>,
    /// The lower end of its 95 % interval.
    pub ordered_low: Option<f64>,
    /// Over that of ours with nothing learned while calls run.
    pub relative_to_tuned_rule: Option<f64>,
    /// The lower end of its 95 % interval.
    pub rule_low: Option<f64>,
    /// The upper end.
    pub rule_high: Option<f64>,
    /// Over that of the peak oracle with our queue order.
    pub share_of_peak_oracle: Option<f64>,
    /// The clauses that broke first, seed by seed, the most frequent first.
    #[serde(skip)]
    pub binds: String,
}

/// All seeds of a policy at one over-commit.
#[derive(Clone, Debug)]
pub struct Entrant<'a> {
    /// The policy as tables call it.
    pub policy: &'a str,
    /// What it is in the comparison.
    pub role: Role,
    /// The over-commit.
    pub over_commit: f64,
    /// One row for each seed.
    pub rows: Vec<&'a CapacityRow>,
}

impl Entrant<'_> {
    /// Load held, mean over seeds.
    pub fn load_held(&self) -> f64 {
        mean(self.rows.iter().map(|row| row.load_held)).unwrap_or(0.0)
    }

    /// Over what `other` holds on the same seeds.
    fn over(&self, other: &Self) -> Option<f64> {
        let is_shared = |row: &&&CapacityRow| self.rows.iter().any(|own| own.seed == row.seed);
        let shared = other.rows.iter().filter(is_shared);
        let held = mean(shared.map(|row| row.load_held)).filter(|&held| held > 0.0)?;
        Some(self.load_held() / held)
    }
}

/// Every policy of `world` at its best over-commit, in the order of the rows.
pub fn best_of<'a>(result: &'a CapacityResult, world: &str) -> Vec<Entrant<'a>> {
    let mut all: Vec<Entrant<'a>> = Vec::new();
    for row in result.rows.iter().filter(|row| row.world == world) {
        let same =
            |one: &&mut Entrant<'a>| one.policy == row.policy && one.over_commit == row.over_commit;
        match all.iter_mut().find(same) {
            Some(entrant) => entrant.rows.push(row),
            None => all.push(Entrant {
                policy: &row.policy,
                role: row.role,
                over_commit: row.over_commit,
                rows: vec![row],
            }),
        }
    }
    let mut best: Vec<Entrant<'a>> = Vec::new();
    for entrant in all {
        match best.iter_mut().find(|one| one.policy == entrant.policy) {
            // The lower over-commit of equals.
            Some(known) if entrant.load_held() > known.load_held() => *known = entrant,
            Some(_) => {}
            None => best.push(entrant),
        }
    }
    best
}

/// The summaries of all worlds, and of the packing bound.
pub fn summarize(objective: &Objective, result: &CapacityResult) -> Vec<CapacitySummary> {
    let mut worlds: Vec<&str> = result.rows.iter().map(|row| row.world.as_str()).collect();
    worlds.dedup();
    worlds.into_iter().flat_map(|world| summarize_world(objective, result, world)).collect()
}

fn summarize_world(
    objective: &Objective,
    result: &CapacityResult,
    world: &str,
) -> Vec<CapacitySummary> {
    let best = best_of(result, world);
    let fixed: Vec<&FixedService> = result.fixed.iter().filter(|one| one.world == world).collect();
    let seeds = fixed.len();
    let top = |role: Role| {
        let of_role = best.iter().filter(|one| one.role == role && one.rows.len() == seeds);
        of_role.max_by(|a, b| a.load_held().total_cmp(&b.load_held()))
    };
    let (incumbent, ordered) = (top(Role::Incumbent), top(Role::OrderedIncumbent));
    let bootstrap = Bootstrap { objective, fixed: &fixed };
    let summary = |one: &Entrant<'_>| {
        let over = |role: Role| top(role).and_then(|other| one.over(other));
        // Seeds are drawn again together, so both sides need all of them.
        let is_whole = one.rows.len() == seeds;
        let interval =
            |other: Option<&Entrant<'_>>| bootstrap.ratio(one, other.filter(|_| is_whole)?);
        let rule = top(Role::TunedRule).filter(|_| one.role == Role::Ours);
        let rule_interval = interval(rule);
        let (interval, ordered_interval) = (interval(incumbent), interval(ordered));
        CapacitySummary {
            world: world.to_owned(),
            policy: one.policy.to_owned(),
            best_over_commit: one.over_commit,
            load_held: one.load_held(),
            seeds: one.rows.len(),
            relative_to_fixed: over(Role::Fixed),
            relative_to_best_incumbent: over(Role::Incumbent),
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
            relative_to_best_ordered_incumbent: over(Role::OrderedIncumbent),
            ordered_low: ordered_interval.map(|interval| interval.low),
            relative_to_tuned_rule: rule.and_then(|rule| one.over(rule)),
            rule_low: rule_interval.map(|interval| interval.low),
            rule_high: rule_interval.map(|interval| interval.high),
            share_of_peak_oracle: over(Role::Oracle),
            binds: binds(objective, one, &fixed),
        }
    };
    let packing = mean(fixed.iter().map(|one| one.packing_bound)).unwrap_or(0.0);
    let over = |other: Option<&Entrant<'_>>| {
        other.map(Entrant::load_held).filter(|&held| held > 0.0).map(|held| packing / held)
    };
    let bound = CapacitySummary {
        world: world.to_owned(),
        policy: "packing bound".to_owned(),
        best_over_commit: 1.0,
        load_held: packing,
        seeds,
        relative_to_fixed: over(top(Role::Fixed)),
        relative_to_best_incumbent: over(incumbent),
        relative_to_best_ordered_incumbent: over(ordered),
        share_of_peak_oracle: over(top(Role::Oracle)),
        ..CapacitySummary::default()
    };
    best.iter().map(summary).chain([bound]).collect()
}

/// Which clauses break at the first load that is not held, the most frequent first.
fn binds(objective: &Objective, entrant: &Entrant<'_>, fixed: &[&FixedService]) -> String {
    let mut counts: Vec<(&'static str, u32)> = Vec::new();
    for row in &entrant.rows {
        let known = fixed.iter().find(|one| one.seed == row.seed);
        let kills = known.map_or(0.0, |one| Service::of(&one.functions, None).kills());
        let broken = row
            .measured
            .iter()
            .map(|tried| objective.binding(&Service::of(&tried.result, None), kills))
            .find(|binding| binding.margin > 1.0);
        let Some(Binding { clause, .. }) = broken else { continue };
        match counts.iter_mut().find(|(name, _)| *name == clause.name()) {
            Some((_, count)) => *count += 1,
            None => counts.push((clause.name(), 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Draws functions and seeds again.
struct Bootstrap<'a> {
    objective: &'a Objective,
    fixed: &'a [&'a FixedService],
}

impl Bootstrap<'_> {
    fn ratio(&self, ours: &Entrant<'_>, theirs: &Entrant<'_>) -> Option<Interval> {
        let functions = self.fixed.iter().map(|one| one.functions.len()).max()?;
        let stream = Seed::new(0).stream(STREAM);
        let ratios: Vec<f64> = (0..DRAWS)
            .filter_map(|draw| {
                let mut rng = stream.member(draw).generator();
                let seeds = redraw(ours.rows.len(), &mut rng);
                let times = redraw(functions, &mut rng);
                let (ours, theirs) =
                    (self.held(ours, &seeds, &times), self.held(theirs, &seeds, &times));
                (theirs > 0.0).then(|| ours / theirs)
            })
            .collect();
        Interval::middle_95(ratios)
    }

    /// Load held, mean over the seeds that were drawn.
    fn held(&self, entrant: &Entrant<'_>, seeds: &[u32], times: &[u32]) -> f64 {
        let drawn = entrant.rows.iter().zip(seeds).filter(|(_, count)| **count > 0);
        let sum: f64 = drawn
            .map(|(row, &count)| {
                let fixed = self.fixed.iter().find(|one| one.seed == row.seed);
                let kills = fixed.map_or(&[][..], |one| &one.functions);
                f64::from(count) * load_held(self.objective, &row.measured, kills, Some(times))
            })
            .sum();
        sum / f64::from(seeds.iter().sum::<u32>().max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::measure::FunctionService;
    use super::super::search::Tried;
    use super::*;

    fn row(policy: &str, role: Role, over_commit: f64, held: f64) -> CapacityRow {
        let at = |load: f64, slow: u32| Tried {
            load,
            result: vec![
                FunctionService {
                    calls: [1000, 0, 0, 0],
                    slow: [slow, 0, 0, 0],
                    ..FunctionService::default()
                };
                3
            ],
        };
        CapacityRow {
            world: "w".into(),
            policy: policy.into(),
            over_commit,
            seed: 1,
            load_held: held,
            role,
            measured: vec![at(held * 0.99, 5), at(held * 1.01, 20)],
        }
    }

    fn result() -> CapacityResult {
        CapacityResult {
            rows: vec![
                row("fixed", Role::Fixed, 1.0, 0.5),
                row("weights", Role::Incumbent, 1.0, 0.8),
                row("weights", Role::Incumbent, 2.0, 1.0),
                row("weights, ordered", Role::OrderedIncumbent, 2.0, 1.2),
                row("ours, nothing learned", Role::TunedRule, 1.0, 1.25),
                row("ours", Role::Ours, 1.0, 1.5),
                row("peak-oracle, ordered", Role::Oracle, 1.0, 1.6),
            ],
            fixed: vec![FixedService {
                world: "w".into(),
                seed: 1,
                functions: vec![FunctionService::default(); 3],
                packing_bound: 2.4,
            }],
        }
    }

    #[test]
    fn every_policy_is_judged_at_its_best_over_commit() {
        let summaries = summarize(&Objective::default(), &result());
        let of = |policy: &str| summaries.iter().find(|one| one.policy == policy).expect(policy);
        assert_eq!(of("weights").best_over_commit, 2.0);
        let ours = of("ours");
        assert_eq!(ours.relative_to_fixed, Some(3.0));
        assert_eq!(ours.relative_to_best_incumbent, Some(1.5));
        assert!((ours.relative_to_best_ordered_incumbent.unwrap() - 1.25).abs() < 1e-9);
        assert!((ours.share_of_peak_oracle.unwrap() - 1.5 / 1.6).abs() < 1e-9);
        assert_eq!(ours.relative_to_tuned_rule, Some(1.2));
        assert_eq!(of("weights").relative_to_tuned_rule, None, "a comparison of ours with ours");
        // All functions are alike, so drawing them again changes nothing.
        let (low, high) = (ours.low.unwrap(), ours.high.unwrap());
        assert!((low - 1.5).abs() < 1e-6 && (high - 1.5).abs() < 1e-6, "{low} {high}");
        assert_eq!(of("packing bound").load_held, 2.4);
    }
}
