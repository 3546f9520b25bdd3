//! Settings of the learners, tuned on seeds other than those reported.

use windfall_rl::algorithms::dqn::DqnSettings;
use windfall_rl::algorithms::ppo::PpoSettings;
use windfall_rl::algorithms::q_learning::QLearningSettings;
use windfall_rl::algorithms::reinforce::ReinforceSettings;
use windfall_rl::net::AdamSettings;
use windfall_rl::schedule::Schedule;

use super::HORIZON;

/// Episodes per iteration, as in the course.
pub const EPISODES: usize = 5;

const STEPS: usize = HORIZON as usize;

/// PPO with everything that helps.
///
/// Entropy is paid for tenfold at first. With little of it (0.01) a state beside the best one, such as three
/// containers at three requests per second, is decided by what is right at four before it was ever tried; the
/// sampled policy soon leaves it all the same, so nothing is learned there, and one day the likeliest action
/// is to stay: 2.5 points lost by the greedy policy, none by the one in training. More entropy makes this
/// rarer, and a learning rate that falls over 250 iterations instead of 100 leaves time to mend it.
///
/// Some entropy is paid for until the end. Holding, `up` and `down` do the same here, until `down` is
/// forbidden at 128 shares, which no feature shows: a policy that has come to like `down` alone then
/// does whatever it likes second. Paid for entropy, it likes the three equally.
///
/// Learning rate and entropy fall over the first 250 iterations and then rest: a longer training refines
/// the policy and cannot throw it over. Who decides is a running average of the weights: over some
/// fifty iterations of five hundred, over some five of fifty.
pub fn ppo(iterations: u64) -> PpoSettings {
    #[expect(clippy::cast_precision_loss, reason = "a share needs few digits")]
    let (until, renewed) = ((250.0 / iterations as f32).min(1.0), 10.0 / iterations.max(20) as f32);
    PpoSettings {
        iterations,
        steps: STEPS,
        epochs: 20,
        minibatch: 128,
        discount: 0.9,
        lambda: 0.95,
        entropy: Schedule::Linear { from: 0.1, to: 0.003, until },
        learning_rate: Schedule::Linear { from: 1e-3, to: 1e-5, until },
        average: Some(1.0 - renewed),
        ..PpoSettings::default()
    }
}

/// PPO as the course hands it out: minibatches of five drawn with replacement, Monte-Carlo returns, no
/// bootstrap, no normalisation of observations, ReLU, constant rates.
pub fn ppo_course(iterations: u64) -> PpoSettings {
    PpoSettings {
        iterations,
        steps: STEPS,
        epochs: 5,
        minibatch: 5,
        with_replacement: true,
        discount: 0.99,
        entropy: Schedule::constant(0.01),
        value_weight: 0.05,
        learning_rate: Schedule::constant(3e-4),
        ..PpoSettings::plain()
    }
}

/// DQN, with as many steps per iteration as the others.
pub fn dqn(iterations: u64) -> DqnSettings {
    DqnSettings { iterations, steps: EPISODES * STEPS, ..DqnSettings::default() }
}

/// Tabular Q-learning over containers, rate and, if the environment shows it, the last direction.
pub fn q_learning(iterations: u64, features: usize) -> QLearningSettings {
    QLearningSettings {
        iterations,
        steps: EPISODES * STEPS,
        discount: 0.9,
        epsilon: Schedule::Linear { from: 0.2, to: 0.0, until: 0.8 },
        // The environment is deterministic, so a new value can simply replace the old one.
        learning_rate: Schedule::linear(1.0, 0.1),
        // The best that can follow: 1 / (1 - discount).
        initial: 10.0,
        masks: true,
        levels: [1, 1, 1, 1, 21, 11, 3][..features].to_vec(),
    }
}

/// REINFORCE with a baseline.
pub fn reinforce(iterations: u64) -> ReinforceSettings {
    ReinforceSettings {
        iterations,
        steps: STEPS,
        entropy: Schedule::linear(0.1, 0.0),
        learning_rate: Schedule::linear(1e-2, 5e-4),
        ..ReinforceSettings::default()
    }
}

/// REINFORCE as the course hands it out, but for the length of episodes: no baseline, summed loss.
pub fn reinforce_course(iterations: u64) -> ReinforceSettings {
    ReinforceSettings {
        iterations,
        steps: STEPS,
        discount: 0.9,
        baseline_steps: 0,
        sum_loss: true,
        entropy: Schedule::constant(0.0),
        learning_rate: Schedule::constant(3e-4),
        max_gradient_norm: None,
        adam: AdamSettings { epsilon: 1e-8, ..AdamSettings::default() },
        normalise_observations: false,
        masks: false,
        ..ReinforceSettings::default()
    }
}
