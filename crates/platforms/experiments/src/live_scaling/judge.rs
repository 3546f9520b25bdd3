//! A trained policy beside rules, on the kernel and in the simulation it comes from.

use std::sync::Arc;

use serde::Serialize;
use windfall_core::Seed;
use windfall_papers::ece471::table::{CORES, SERVICE_RATE, SLO_SECONDS};
use windfall_papers::ece471::{Ece471, MOST_CONTAINERS, RATES};
use windfall_rl::training::Random;
use windfall_rl::{Decide, Environment};
use windfall_studies::reproduce::{Stage, Watcher};

use super::{LiveScaling, Settings};
use crate::error::ExperimentError;
use crate::host::host;

/// Utilisation that the HPA aims at.
const HPA_TARGET: f64 = 0.7;
/// Seeds of the episodes: the same for every policy, here and in simulation.
const EPISODES: u64 = 1;

/// One policy, over one episode for each rate.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Judged {
    /// Its name.
    pub policy: String,
    /// Mean return on the kernel.
    pub mean: f64,
    /// Mean return in simulation, with the same rates and co-tenants.
    pub simulated_mean: f64,
    /// Return at each rate, from 1 on.
    pub returns: Vec<f64>,
    /// The same in simulation.
    pub simulated_returns: Vec<f64>,
    /// Mean utilisation of a step.
    pub utilisation: f64,
    /// Mean SLO preservation of a step.
    pub slo_preservation: f64,
    /// Mean number of containers.
    pub containers: f64,
}

/// All policies.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Judgement {
    /// The environment.
    pub environment: String,
    /// Steps of an episode.
    pub steps: u32,
    /// Seconds of a step.
    pub step_seconds: f64,
    /// Rates, requests per second of the exercise.
    pub rates: Vec<u32>,
    /// One row per policy.
    pub policies: Vec<Judged>,
}

/// Makes a policy for one episode.
type Maker<'a> = Box<dyn Fn() -> Box<dyn Decide> + 'a>;

/// Plays an episode at each of `rates` with each policy: rules, random moves, and `trained` if there is one. Call it before
/// any thread exists.
pub fn judge(
    trained: Option<&dyn Fn() -> Box<dyn Decide>>,
    settings: Settings,
    rates: &[u32],
    watcher: &dyn Watcher,
) -> Result<Judgement, ExperimentError> {
    settings.check()?;
    if let Some(rate) = rates.iter().find(|rate| !RATES.contains(rate)) {
        let value = rate.to_string();
        return Err(ExperimentError::Setting { name: "--rates", value, allowed: "1 to 8" });
    }
    let host = host("live scaling")?;
    let makers = makers(trained);
    watcher.begin(Stage::Runs((makers.len() * rates.len()) as u64));
    let mut policies: Vec<Judged> = (makers.iter())
        .map(|(name, _)| Judged { policy: (*name).to_owned(), ..Judged::default() })
        .collect();
    for (turn, rate) in rates.iter().enumerate() {
        let settings = Settings { rate: Some(*rate), ..settings };
        let mut order: Vec<usize> = (0..makers.len()).collect();
        if turn % 2 == 1 {
            order.reverse();
        }
        for place in order {
            let (name, make) = &makers[place];
            watcher.describe(&format!("{name} at {rate} requests/s"));
            let mut live = LiveScaling::new(Arc::clone(&host), settings);
            policies[place].add(&mut live, make, (*rate, rates.len()))?;
            watcher.advance(1);
        }
    }
    watcher.end();
    for judged in &mut policies {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        (judged.mean, judged.simulated_mean) =
            (mean(&judged.returns), mean(&judged.simulated_returns));
    }
    Ok(Judgement {
        environment: super::ID.to_owned(),
        steps: settings.steps,
        step_seconds: settings.step_seconds,
        rates: rates.to_vec(),
        policies,
    })
}

/// The rules, random moves, and what was trained.
fn makers(trained: Option<&dyn Fn() -> Box<dyn Decide>>) -> Vec<(&'static str, Maker<'_>)> {
    let mut makers: Vec<(&str, Maker<'_>)> = Vec::new();
    if let Some(trained) = trained {
        makers.push(("trained", Box::new(trained)));
    }
    makers.push(("hpa", Box::new(|| Box::new(Rule(hpa)))));
    makers.push(("queueing", Box::new(|| Box::new(Rule(queueing)))));
    makers.push(("fixed", Box::new(|| Box::new(Rule(|_| 0)))));
    makers.push(("random", Box::new(|| Box::new(Random::new(Seed::new(EPISODES))))));
    makers
}

impl Judged {
    /// Plays an episode at `rate`, one of `rates`, on the kernel and in simulation.
    fn add(
        &mut self,
        live: &mut LiveScaling,
        make: &Maker<'_>,
        (rate, rates): (u32, usize),
    ) -> Result<(), ExperimentError> {
        let seed = Seed::new(EPISODES).member(u64::from(rate));
        let played = play(live, make().as_mut(), seed, &|env| {
            (env.row().util, env.row().slo, f64::from(env.course.containers()))
        });
        if let Some(problem) = live.problem() {
            let first = problem.to_owned();
            let during = format!("{} at {rate} requests/s", self.policy);
            return Err(ExperimentError::Calls { during, failed: 1, calls: 1, first });
        }
        let mut simulation = Ece471::new(live.settings.course());
        let simulated = play(&mut simulation, make().as_mut(), seed, &|_| (0.0, 0.0, 0.0));
        self.returns.push(played.total);
        self.simulated_returns.push(simulated.total);
        self.utilisation += played.means.0 / rates as f64;
        self.slo_preservation += played.means.1 / rates as f64;
        self.containers += played.means.2 / rates as f64;
        Ok(())
    }
}

struct Episode {
    total: f64,
    /// Means over the steps of what was asked for.
    means: (f64, f64, f64),
}

fn play<E: Environment>(
    environment: &mut E,
    policy: &mut dyn Decide,
    seed: Seed,
    of: &dyn Fn(&E) -> (f64, f64, f64),
) -> Episode {
    let spec = environment.spec().clone();
    let mut row = vec![0.0; spec.features.len()];
    let mut allowed = vec![true; spec.actions.len()];
    environment.reset(seed, &mut row);
    let (mut total, mut steps, mut sums) = (0.0, 0.0, (0.0, 0.0, 0.0));
    loop {
        environment.mask(&mut allowed);
        let step = environment.step(policy.decide(&row, &allowed), &mut row);
        total += f64::from(step.reward);
        let (a, b, c) = of(environment);
        sums = (sums.0 + a, sums.1 + b, sums.2 + c);
        steps += 1.0;
        if step.end.is_over() {
            return Episode { total, means: (sums.0 / steps, sums.1 / steps, sums.2 / steps) };
        }
    }
}

/// A rule that wants so many containers more than there are: its sign is the move.
struct Rule(fn(&Shown) -> i64);

impl Decide for Rule {
    fn decide(&mut self, observation: &[f32], allowed: &[bool]) -> usize {
        // hold, out, in
        let action = match (self.0)(&Shown::of(observation)) {
            0 => 0,
            1.. => 1,
            _ => 2,
        };
        if allowed.get(action).copied().unwrap_or(false) { action } else { 0 }
    }
}

/// The observation in its own units.
struct Shown {
    util: f64,
    containers: f64,
    shares: f64,
    others: f64,
    rate: f64,
}

impl Shown {
    fn of(row: &[f32]) -> Self {
        let at = |place: usize| row.get(place).copied().map_or(0.0, f64::from);
        let containers = (at(4) * 20.0).round();
        Self {
            util: at(0),
            containers,
            shares: at(2) * 20_480.0 / containers.max(1.0),
            others: at(3) * 92_160.0,
            rate: at(5) * 10.0,
        }
    }
}

fn hpa(shown: &Shown) -> i64 {
    let wanted = (shown.containers * shown.util / HPA_TARGET).ceil();
    let wanted = wanted.clamp(1.0, f64::from(MOST_CONTAINERS));
    (wanted - shown.containers) as i64
}

/// The fewest containers whose M/M/1 latency keeps the objective, beside these co-tenants.
fn queueing(shown: &Shown) -> i64 {
    let keeps = |n: &f64| {
        let cores = CORES * shown.shares / (n * shown.shares + shown.others).max(1.0);
        let spare = SERVICE_RATE * cores.min(1.0) - shown.rate / n;
        spare > 0.0 && 1.0 / spare <= SLO_SECONDS
    };
    let wanted = (1..=MOST_CONTAINERS).map(f64::from).find(keeps);
    (wanted.unwrap_or_else(|| f64::from(MOST_CONTAINERS)) - shown.containers) as i64
}

impl Judgement {
    /// The table for a terminal, best first.
    pub fn text(&self) -> String {
        let mut rows: Vec<&Judged> = self.policies.iter().collect();
        rows.sort_by(|one, other| other.mean.total_cmp(&one.mean));
        let mut lines = vec![format!(
            "{}, {} steps of {} s at rates {:?}\n{:10} {:>9} {:>10} {:>12} {:>6} {:>11}",
            self.environment,
            self.steps,
            self.step_seconds,
            self.rates,
            "policy",
            "return",
            "simulated",
            "utilisation",
            "SLO",
            "containers"
        )];
        for row in rows {
            lines.push(format!(
                "{:10} {:>9.2} {:>10.2} {:>12.2} {:>6.2} {:>11.1}",
                row.policy,
                row.mean,
                row.simulated_mean,
                row.utilisation,
                row.slo_preservation,
                row.containers
            ));
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four containers at 6 requests/s, utilisation 0.9, beside 1024 shares of others.
    const ROW: [f32; 7] = [0.9, 1.0, 4096.0 / 20_480.0, 1024.0 / 92_160.0, 0.2, 0.6, 1.0];

    #[test]
    fn rules_move_one_container_towards_what_they_want() {
        let all = [true; 5];
        // 4 * 0.9 / 0.7 = 5.1, so six are wanted.
        assert_eq!(Rule(hpa).decide(&ROW, &all), 1);
        // Four containers serve exactly 6 a second, so a fifth is needed.
        assert_eq!(Rule(queueing).decide(&ROW, &all), 1);
        assert_eq!(Rule(|_| 0).decide(&ROW, &all), 0);
        let idle = [0.05, 1.0, ROW[2], ROW[3], ROW[4], 0.1, 0.0];
        assert_eq!(Rule(hpa).decide(&idle, &all), 2);
        assert_eq!(Rule(queueing).decide(&idle, &all), 2);
        assert_eq!(Rule(hpa).decide(&idle, &[true, true, false, true, true]), 0);
    }
}
