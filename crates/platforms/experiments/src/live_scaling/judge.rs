//! A trained policy beside rules, on the kernel and in the simulation it comes from.

use std::sync::Arc;

use serde::Serialize;
use windfall_core::Seed;
use windfall_core::statistics::mean;
use windfall_papers::ece471::table::{CORES, SERVICE_RATE, SLO_SECONDS};
use windfall_papers::ece471::{Ece471, MOST_CONTAINERS, RATES};
use windfall_rl::training::Random;
use windfall_rl::{Decide, Environment};
use windfall_studies::reproduce::{Stage, Watcher};
use windfall_telemetry::statistics::Estimate;

use super::{LiveScaling, Settings};
use crate::error::ExperimentError;
use crate::host::host;

/// Utilisation that the HPA aims at.
const HPA_TARGET: f64 = 0.7;
/// Whom the others are compared with.
const FIXED: &str = "fixed";
/// One policy, over some episodes at each rate.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Judged {
    /// Its name.
    pub policy: String,
    /// Mean return on the kernel.
    pub mean: f64,
    /// 95 % interval of it (Student's) over the episodes, each the mean over the rates; nothing with one episode.
    pub half_width: Option<f64>,
    /// Mean return in simulation, with the same rates and co-tenants.
    pub simulated_mean: f64,
    /// Mean return less that of `fixed` in the same episode at the same rate.
    pub over_fixed: f64,
    /// 95 % interval of it over the episodes.
    pub over_fixed_half_width: Option<f64>,
    /// Mean return at each rate.
    pub returns: Vec<f64>,
    /// The same in simulation.
    pub simulated_returns: Vec<f64>,
    /// Mean return of each episode over the rates.
    pub episodes: Vec<f64>,
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
    /// Episodes at each rate.
    pub episodes: u32,
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
    let episodes = settings.episodes;
    let turns = makers.len() * rates.len();
    watcher.begin(Stage::Runs(turns as u64 * u64::from(episodes)));
    let mut played: Vec<Vec<PlayedEpisode>> = vec![Vec::new(); makers.len()];
    let all = (1..=episodes).flat_map(|episode| rates.iter().map(move |rate| (episode, *rate)));
    for (turn, (episode, rate)) in all.enumerate() {
        let settings = Settings { rate: Some(rate), ..settings };
        let mut order: Vec<usize> = (0..makers.len()).collect();
        if turn % 2 == 1 {
            order.reverse();
        }
        for place in order {
            let (name, make) = &makers[place];
            watcher.describe(&format!("{episode}: {name} at {rate} requests/s"));
            let mut live = LiveScaling::new(Arc::clone(&host), settings);
            let when = When { episode, rate };
            played[place].push(PlayedEpisode::play(&mut live, (name, make), when)?);
            watcher.advance(1);
        }
    }
    watcher.end();
    let fixed = makers.iter().position(|(name, _)| *name == FIXED).map(|place| &played[place]);
    let policies = (makers.iter().zip(&played))
        .map(|((name, _), own)| Judged::of(name, own, fixed.unwrap_or(own), rates, episodes))
        .collect();
    Ok(Judgement {
        environment: super::ID.to_owned(),
        steps: settings.steps,
        step_seconds: settings.step_seconds,
        rates: rates.to_vec(),
        episodes,
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
    makers.push((FIXED, Box::new(|| Box::new(Rule(|_| 0)))));
    makers.push(("random", Box::new(|| Box::new(Random::new(Seed::new(1))))));
    makers
}

/// Which episode, at which rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct When {
    episode: u32,
    rate: u32,
}

/// One episode on the kernel and in simulation.
#[derive(Clone, Copy, Debug)]
struct PlayedEpisode {
    when: When,
    total: f64,
    simulated: f64,
    /// Means over the steps of utilisation, SLO preservation and containers.
    means: (f64, f64, f64),
}

impl PlayedEpisode {
    /// Requests and co-tenants come from the episode and the rate: the same for every policy, here and in simulation.
    fn play(
        live: &mut LiveScaling,
        (name, make): (&str, &Maker<'_>),
        when: When,
    ) -> Result<Self, ExperimentError> {
        let seed = Seed::new(when.episode.into()).member(when.rate.into());
        let played = play(live, make().as_mut(), seed, &|env| {
            (env.row().util, env.row().slo, f64::from(env.course.containers()))
        });
        if let Some(problem) = live.problem() {
            let first = problem.to_owned();
            let during = format!("{name} at {} requests/s", when.rate);
            return Err(ExperimentError::Calls { during, failed: 1, calls: 1, first });
        }
        let mut simulation = Ece471::new(live.settings.course());
        let simulated = play(&mut simulation, make().as_mut(), seed, &|_| (0.0, 0.0, 0.0));
        Ok(Self { when, total: played.total, simulated: simulated.total, means: played.means })
    }
}

impl Judged {
    fn of(
        name: &str,
        own: &[PlayedEpisode],
        fixed: &[PlayedEpisode],
        rates: &[u32],
        episodes: u32,
    ) -> Self {
        let over = |of: &dyn Fn(&PlayedEpisode) -> f64, is_it: &dyn Fn(&When) -> bool| {
            mean(own.iter().filter(|one| is_it(&one.when)).map(of)).unwrap_or(0.0)
        };
        let by_rate = |of: &dyn Fn(&PlayedEpisode) -> f64| -> Vec<f64> {
            rates.iter().map(|rate| over(of, &|when| when.rate == *rate)).collect()
        };
        let by_episode = |of: &dyn Fn(&PlayedEpisode) -> f64| -> Vec<f64> {
            (1..=episodes).map(|number| over(of, &|when| when.episode == number)).collect()
        };
        let of_fixed = |when: When| {
            fixed.iter().find(|one| one.when == when).map_or(f64::NAN, |one| one.total)
        };
        let returns = by_episode(&|one| one.total);
        let differences = by_episode(&|one| one.total - of_fixed(one.when));
        let half_width = |values: &[f64]| {
            Estimate::of(values).filter(|it| it.samples > 1).map(|it| it.half_width())
        };
        Self {
            policy: name.to_owned(),
            mean: mean(&returns).unwrap_or(0.0),
            half_width: half_width(&returns),
            simulated_mean: over(&|one| one.simulated, &|_| true),
            over_fixed: mean(&differences).unwrap_or(0.0),
            over_fixed_half_width: half_width(&differences),
            returns: by_rate(&|one| one.total),
            simulated_returns: by_rate(&|one| one.simulated),
            episodes: returns,
            utilisation: over(&|one| one.means.0, &|_| true),
            slo_preservation: over(&|one| one.means.1, &|_| true),
            containers: over(&|one| one.means.2, &|_| true),
        }
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
            "{}, {} episodes of {} steps of {} s at rates {:?}\n{:10} {:>16} {:>10} {:>16} {:>12} {:>6} {:>11}",
            self.environment,
            self.episodes,
            self.steps,
            self.step_seconds,
            self.rates,
            "policy",
            "return",
            "simulated",
            "over fixed",
            "utilisation",
            "SLO",
            "containers"
        )];
        let spread = |value: f64, half: Option<f64>| match half {
            Some(half) => format!("{value:.2} ± {half:.2}"),
            None => format!("{value:.2}"),
        };
        for row in rows {
            lines.push(format!(
                "{:10} {:>16} {:>10.2} {:>16} {:>12.2} {:>6.2} {:>11.1}",
                row.policy,
                spread(row.mean, row.half_width),
                row.simulated_mean,
                spread(row.over_fixed, row.over_fixed_half_width),
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

    #[test]
    fn episodes_are_compared_with_fixed_in_the_same_episode_and_rate() {
        let played = |episode: u32, rate: u32, total: f64| PlayedEpisode {
            when: When { episode, rate },
            total,
            simulated: 10.0,
            means: (0.5, 1.0, 4.0),
        };
        let fixed = [played(1, 2, 5.0), played(1, 4, 3.0), played(2, 2, 6.0), played(2, 4, 2.0)];
        let own = [played(1, 2, 7.0), played(1, 4, 5.0), played(2, 2, 8.0), played(2, 4, 4.0)];
        let judged = Judged::of("ours", &own, &fixed, &[2, 4], 2);
        assert_eq!((judged.mean, judged.over_fixed), (6.0, 2.0));
        assert_eq!((judged.returns, judged.episodes), (vec![7.5, 4.5], vec![6.0, 6.0]));
        assert_eq!(judged.over_fixed_half_width, Some(0.0));
    }

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
