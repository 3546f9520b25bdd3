//! Episodes of `windfall/Scaling-v0` as learners and classic policies play them: the same functions, loads and
//! seeds for all.

use windfall_core::Seed;
use windfall_rl::{Decide, Environment, Split, Step};

use crate::classic::{Driver, Stepwise, driver, own_target};
use crate::moves::Moves;
use crate::scaling::{Scaling, ScalingSettings};

/// Episodes of one split and one seed: as many as [`windfall_rl::evaluate`] plays.
const EPISODES: u64 = 20;

/// Name in reports, name of the driver, and whether it is held to the learner's moves. Without them a policy
/// takes effect immediately, as it would on a real platform.
const RIVALS: [(&str, &str, bool); 8] = [
    ("fixed", "fixed", true),
    ("hpa", "hpa", true),
    ("queueing", "queueing", true),
    ("ensure", "ensure", true),
    ("oracle", "oracle", true),
    ("hpa-free", "hpa", false),
    ("queueing-free", "queueing", false),
    ("oracle-free", "oracle", false),
];

/// What came of one episode.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Episode {
    /// Sum of rewards.
    pub(crate) total: f64,
    /// Mean SLO preservation of a tick.
    pub(crate) preserved: f64,
    /// Mean CPU utilisation of a tick.
    pub(crate) utilisation: f64,
    /// Core-seconds held.
    pub(crate) core_seconds: f64,
}

/// Returns of the classic policies on the episodes of a split and a seed: those of [`windfall_rl::evaluate`].
pub fn rivals(split: Split, seed: Seed) -> Vec<(&'static str, Vec<f64>)> {
    let totals = |episodes: Vec<Episode>| episodes.iter().map(|episode| episode.total).collect();
    rival_episodes(split, seed).into_iter().map(|(name, found)| (name, totals(found))).collect()
}

/// Every classic policy on the same episodes.
pub(crate) fn rival_episodes(split: Split, seed: Seed) -> Vec<(&'static str, Vec<Episode>)> {
    let episodes = |inner: &str, is_held: bool| {
        seeds(seed).map(|seed| classic_episode(inner, is_held, split, seed)).collect()
    };
    RIVALS.iter().map(|(name, inner, is_held)| (*name, episodes(inner, *is_held))).collect()
}

/// A policy that knows the learner's row and moves, on the same episodes.
pub(crate) fn learner_episodes(policy: &mut dyn Decide, split: Split, seed: Seed) -> Vec<Episode> {
    let mut allowed = vec![true; Moves::course().count()];
    let mut act = |environment: &mut Scaling, row: &mut [f32]| {
        environment.mask(&mut allowed);
        let action = policy.decide(row, &allowed);
        environment.step(action, row)
    };
    seeds(seed).map(|seed| play(split, seed, &mut act)).collect()
}

fn seeds(seed: Seed) -> impl Iterator<Item = Seed> {
    let stream = seed.stream("evaluation");
    (0..EPISODES).map(move |episode| stream.member(episode))
}

fn classic_episode(name: &str, is_held: bool, split: Split, seed: Seed) -> Episode {
    let (reward, moves) = (ScalingSettings::default().reward, Moves::course());
    let free = driver(name, &moves, reward, seed).expect("every rival is a driver");
    let mut policy: Box<dyn Driver> =
        if is_held { Box::new(Stepwise::new(free, moves)) } else { free };
    play(split, seed, &mut |environment, row| {
        let decision = policy.decide(environment.world());
        environment.step_freely(own_target(&decision, 0), row)
    })
}

fn play(
    split: Split,
    seed: Seed,
    act: &mut dyn FnMut(&mut Scaling, &mut [f32]) -> Step,
) -> Episode {
    let mut environment = Scaling::new(ScalingSettings { split, ..ScalingSettings::default() });
    let mut row = vec![0.0; environment.spec().features.len()];
    environment.reset(seed, &mut row);
    let (mut sums, mut ticks) = (Episode::default(), 0.0);
    loop {
        let step = act(&mut environment, &mut row);
        let earned = environment.world().earned(0);
        sums.total += f64::from(step.reward);
        sums.preserved += earned.preserved;
        sums.utilisation += earned.cpu_utilisation;
        ticks += 1.0;
        if step.end.is_over() {
            return Episode {
                total: sums.total,
                preserved: sums.preserved / ticks,
                utilisation: sums.utilisation / ticks,
                core_seconds: environment.world().core_seconds(0),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_rl::catalogue::twenty;
    use windfall_rl::training::Random;

    #[test]
    fn the_oracle_beats_standing_still() {
        let sum = |name| -> f64 {
            let total = |seed| classic_episode(name, true, Split::Test, Seed::new(seed)).total;
            (0..3).map(total).sum()
        };
        assert!(sum("oracle") > sum("fixed"), "{} {}", sum("oracle"), sum("fixed"));
    }

    #[test]
    fn a_learner_plays_the_episodes_of_an_evaluation() {
        let make = |split| -> Box<dyn Environment> {
            Box::new(Scaling::new(ScalingSettings { split, ..ScalingSettings::default() }))
        };
        let random = || Random::new(Seed::new(3));
        let mut panel = twenty(make, Split::Validation);
        let totals = windfall_rl::evaluate(&mut panel, &mut random(), true, Seed::new(7));
        let found = learner_episodes(&mut random(), Split::Validation, Seed::new(7));
        assert_eq!(found.iter().map(|episode| episode.total).collect::<Vec<_>>(), totals);
    }
}
