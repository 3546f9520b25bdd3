//! The paper's agent in the paper's simulator: raw features, choices drawn by probability in evaluation
//! too, and a reward that goes to whichever decision is current when a call ends.
//!
//! ```text
//! r = - sum(s) / done^(1/3)  + sum over good calls (1 - s)  - sum over bad calls (s - 1)(user's levels)
//! ```
//!
//! over the calls that ended since the decision before, with `s` = RFET and `done` the calls ended so far.
//! Two calls end, the 8th at half its baseline and the 9th at 1.5 times it, with 2 + 2 levels reserved:
//! r = -2 / 9^(1/3) + 0.5 - 0.5 x 4 = -2.46 (with `done` = 9 for both, as at the decision).

use serde::Serialize;
use windfall_agents::faasrm::ScoreAgent;
use windfall_agents::faasrm::candidates::{Candidates, bits};
use windfall_agents::faasrm::score_ppo::{Sample, ScorePpo, ScorePpoSettings};
use windfall_core::Seed;
use windfall_rl::parallel::Workers;
use windfall_rl::random::Draw;
use windfall_trace::freyr_sample::SampledFunction;

use super::calls::Calls;
use super::function_model::Levels;
use super::quirks::Quirks;
use super::replay::EndedCall;
use super::safeguard::{Range, SafeguardOnly, range};
use super::simulator::{Choice, Seen, Sizer, replay};

/// What the network is shown: nothing is normalised.
fn candidates(seen: &Seen<'_>, range: &Range) -> Candidates {
    let peaks = seen.history.mean_peaks();
    let levels = std::array::from_fn(|level| level as f32 + 1.0);
    let numbers = [
        seen.in_flight as f64,
        seen.free_cpu as f64,
        seen.free_memory as f64,
        seen.history.mean_gap(),
        seen.history.rate(seen.second),
        peaks.cpu,
        peaks.memory,
        seen.history.mean_seconds(),
        f64::from(seen.function.baseline()),
    ];
    Candidates {
        shared: numbers.map(|number| number as f32),
        cpu: levels,
        memory: levels,
        cpu_allowed: bits(range.least.cpu as usize - 1, range.most.cpu as usize - 1),
        memory_allowed: bits(range.least.memory as usize - 1, range.most.memory as usize - 1),
    }
}

/// What calls that ended since the last decision add to the reward, before the cube root is known.
#[derive(Clone, Copy, Debug, Default)]
struct Earned {
    slowdowns: f64,
    extra: f64,
    done: u64,
}

impl Earned {
    fn take(&mut self, call: &EndedCall, done: u64) {
        let slowdown = call.rfet();
        self.slowdowns += slowdown;
        self.done = done;
        let levels = f64::from(call.user.cpu + call.user.memory);
        self.extra += if slowdown < 1.0 { 1.0 - slowdown } else { (1.0 - slowdown) * levels };
    }

    fn reward(&self) -> f64 {
        self.extra - self.slowdowns / (self.done.max(1) as f64).cbrt()
    }
}

/// The agent as a sizer.
#[derive(Clone, Debug)]
pub struct PaperAgent {
    agent: ScoreAgent,
    draw: Draw,
    earned: Earned,
    /// Decisions so far with the reward that came after each; only kept to learn from.
    kept: Option<Vec<Sample>>,
}

impl PaperAgent {
    /// As it is evaluated.
    pub fn new(agent: ScoreAgent, seed: Seed) -> Self {
        let draw = Draw::new(seed.stream("faasrm/agent"));
        Self { agent, draw, earned: Earned::default(), kept: None }
    }

    /// As it learns.
    pub fn learning(agent: ScoreAgent, seed: Seed) -> Self {
        Self { kept: Some(Vec::new()), ..Self::new(agent, seed) }
    }

    /// All decisions, each with the sum of the rewards from it on: the discount is 1.
    fn into_samples(self) -> (Vec<Sample>, f64) {
        let mut samples = self.kept.unwrap_or_default();
        if let Some(last) = samples.last_mut() {
            last.value = self.earned.reward() as f32;
        }
        let mut sum = 0.0;
        for sample in samples.iter_mut().rev() {
            sum += f64::from(sample.value);
            sample.value = sum as f32;
        }
        (samples, sum)
    }
}

impl Sizer for PaperAgent {
    fn choose(&mut self, seen: &Seen<'_>) -> Choice {
        let range = range(seen);
        let rows = candidates(seen, &range);
        let (action, log_probability) = self.agent.draw(&rows, &mut self.draw);
        let reward = std::mem::take(&mut self.earned).reward();
        if let Some(kept) = &mut self.kept {
            if let Some(before) = kept.last_mut() {
                before.value = reward as f32;
            }
            kept.push(Sample { seen: rows, action, log_probability, value: 0.0 });
        }
        let (cpu, memory) = Candidates::levels(action);
        let size = Levels { cpu: cpu as u32 + 1, memory: memory as u32 + 1 };
        Choice { size: Some(size), is_safeguarded: range.is_safeguarded }
    }

    fn ended(&mut self, call: &EndedCall, done: u64) {
        self.earned.take(call, done);
    }
}

/// How much is trained.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TrainingSettings {
    /// Workloads, each replayed once and learned from once. The authors' settings have 250.
    pub episodes: usize,
    /// Functions in each. The authors have 1,000.
    pub functions: usize,
    /// The paper's unless said otherwise.
    pub ppo: ScorePpoSettings,
}

impl Default for TrainingSettings {
    /// As many episodes as the authors' settings, of a twentieth of their size.
    fn default() -> Self {
        Self { episodes: 250, functions: 50, ppo: ScorePpoSettings::published() }
    }
}

impl TrainingSettings {
    /// To see it work in seconds.
    pub fn quick() -> Self {
        Self { episodes: 10, functions: 20, ..Self::default() }
    }
}

/// One episode of the learning curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Episode {
    /// Its number, from 1.
    pub episode: usize,
    /// Mean RFET of the agent.
    pub rfet: f64,
    /// Mean RFET of a random choice in the safeguard's range, on the same calls.
    pub random_rfet: f64,
    /// Sum of the rewards.
    pub reward: f64,
    /// Mean entropy of the choices.
    pub entropy: f64,
}

/// A finished training.
#[derive(Clone, Debug)]
pub struct Training {
    /// The agent that was kept: that of the episode with the lowest mean RFET, as in the original.
    pub agent: ScoreAgent,
    /// Episode by episode.
    pub curve: Vec<Episode>,
}

/// Trains an agent on workloads drawn anew from `sample` for every episode. `progress` is called after each.
pub fn train(
    sample: &[SampledFunction],
    settings: &TrainingSettings,
    seed: Seed,
    workers: &Workers,
    progress: &mut dyn FnMut(&Episode),
) -> Training {
    let mut learner = ScorePpo::new(settings.ppo, seed);
    let mut kept = (f64::INFINITY, learner.agent());
    let mut curve = Vec::with_capacity(settings.episodes);
    for number in 0..settings.episodes {
        let seed = seed.stream("episode").member(number as u64);
        let calls = Calls::resampled(sample, settings.functions, seed);
        let random = replay(&calls, &Quirks::FAITHFUL, &mut SafeguardOnly::random(seed)).summary();
        let mut sizer = PaperAgent::learning(learner.agent(), seed);
        let rfet = replay(&calls, &Quirks::FAITHFUL, &mut sizer).summary().rfet_mean;
        if rfet < kept.0 {
            kept = (rfet, learner.agent());
        }
        let (samples, reward) = sizer.into_samples();
        let entropy = learner.update(&samples, workers).entropy;
        let episode =
            Episode { episode: number + 1, rfet, random_rfet: random.rfet_mean, reward, entropy };
        progress(&episode);
        curve.push(episode);
    }
    Training { agent: kept.1, curve }
}

#[cfg(test)]
mod tests {
    use super::super::calls::generated_sample;
    use super::*;

    #[test]
    fn the_worked_reward() {
        let mut earned = Earned::default();
        let call = |seconds| EndedCall {
            seconds,
            baseline: 10,
            size: Levels::both(2),
            user: Levels::both(2),
            is_safeguarded: false,
        };
        earned.take(&call(5), 8);
        earned.take(&call(15), 9);
        assert!((earned.reward() + 2.0 / 9.0_f64.cbrt() + 1.5).abs() < 1e-12);
    }

    #[test]
    fn returns_are_sums_of_all_that_follows() {
        let agent = ScoreAgent::new(Seed::new(1));
        let calls = Calls::resampled(&generated_sample(20, Seed::new(1)), 5, Seed::new(2));
        let mut sizer = PaperAgent::learning(agent, Seed::new(3));
        replay(&calls, &Quirks::FAITHFUL, &mut sizer);
        let (samples, total) = sizer.into_samples();
        // One decision for each call but the last, which is lost.
        assert_eq!(samples.len(), calls.events.len() - 1);
        assert!((f64::from(samples[0].value) - total).abs() < 1e-3 * total.abs());
        assert!(samples.iter().all(|sample| sample.seen.allows(sample.action)));
    }

    #[test]
    fn a_training_follows_its_seed() {
        let sample = generated_sample(30, Seed::new(1));
        let settings = TrainingSettings { episodes: 2, functions: 5, ..TrainingSettings::quick() };
        let curve = |threads| {
            train(&sample, &settings, Seed::new(1), &Workers::new(threads), &mut |_| ()).curve
        };
        assert_eq!(curve(1), curve(2));
    }
}
