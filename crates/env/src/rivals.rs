//! Classic policies on the episodes in which a learner of [`crate::scaling`] is evaluated.

use windfall_core::Seed;
use windfall_rl::{Environment, Split};

use crate::classic::{Driver, Stepwise, driver, own_target};
use crate::moves::Moves;
use crate::scaling::{Scaling, ScalingSettings};

/// Name in reports, name of the driver, and whether it is held to the learner's moves. Without them a policy
/// gets what it wishes at once, as it would on a real platform.
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

/// Their returns on the twenty episodes of a split and a seed: those of [`windfall_rl::evaluate`].
pub fn rivals(split: Split, seed: Seed) -> Vec<(&'static str, Vec<f64>)> {
    let stream = seed.stream("evaluation");
    let returns = |inner: &str, is_held: bool| {
        (0..20).map(|episode| play(inner, is_held, split, stream.member(episode))).collect()
    };
    RIVALS.iter().map(|(name, inner, is_held)| (*name, returns(inner, *is_held))).collect()
}

fn play(name: &str, is_held: bool, split: Split, seed: Seed) -> f64 {
    let settings = ScalingSettings { split, ..ScalingSettings::default() };
    let (reward, moves) = (settings.reward, Moves::course());
    let mut environment = Scaling::new(settings);
    let mut row = vec![0.0; environment.spec().features.len()];
    environment.reset(seed, &mut row);
    let free = driver(name, &moves, reward, seed).expect("every rival is a driver");
    let mut policy: Box<dyn Driver> =
        if is_held { Box::new(Stepwise::new(free, moves)) } else { free };
    let mut total = 0.0;
    loop {
        let decision = policy.decide(environment.world());
        let step = environment.step_freely(own_target(&decision, 0), &mut row);
        total += f64::from(step.reward);
        if step.end.is_over() {
            return total;
        }
    }
}

#[test]
fn the_oracle_beats_standing_still() {
    let sum = |name| -> f64 {
        (0..3).map(|episode| play(name, true, Split::Test, Seed::new(episode))).sum()
    };
    assert!(sum("oracle") > sum("fixed"), "{} {}", sum("oracle"), sum("fixed"));
}
