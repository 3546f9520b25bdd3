//! The paper's learner: a table of values over (limit, CPU, memory), and steps of 20 along the limits.
//!
//! ```text
//!  state    (limit, CPU utilisation in quarters, memory utilisation in quarters)      bins chosen, the paper gives none
//!  actions  -20, 0, +20
//!  reward   throughput / best so far, and exactly 1 within 5 % of it
//!  update   Q(s,a) = 0.5 Q(s,a) + 0.5 (r + 0.9 max Q(s',·))
//!  explore  always until test 50, then with 0.995^n, at least 0.1
//! ```
//!
//! At test 150 it still explores in 0.995^100 = 61 % of its steps, and the floor of 10 % is reached at test 510. The
//! best so far moves, so what was learned early is worth too much later.

use std::collections::BTreeMap;

use windfall_core::Seed;
use windfall_rl::random::Draw;

use super::knative::LoadTestOutcome;
use super::{LIMITS, LimitLearner, limit_at};

const LEARNING_RATE: f64 = 0.5;
const DISCOUNT: f64 = 0.9;
const EXPLORES_UNTIL: u32 = 50;
const EXPLORATION_DECAY: f64 = 0.995;
const EXPLORATION_FLOOR: f64 = 0.1;
const CLOSE: f64 = 0.05;
/// Bins of each utilisation. Chosen.
const BINS: f64 = 4.0;
/// Levels that each action moves by; staying first, so that it wins ties when the learner settles.
const MOVES: [isize; 3] = [0, -1, 1];

/// Level, CPU bin, memory bin.
type State = (usize, u8, u8);

/// The paper's Q-learner.
#[derive(Clone, Debug)]
pub struct QLearner {
    draw: Draw,
    values: BTreeMap<State, [f64; 3]>,
    state: State,
    action: usize,
    level: usize,
    tests: u32,
    best_throughput: f64,
    /// The bins in which each level was last seen.
    seen: [Option<State>; LIMITS.len()],
}

impl QLearner {
    /// One that knows nothing and stands at a random limit.
    pub fn new(seed: Seed) -> Self {
        let mut draw = Draw::new(seed);
        let level = draw.below(LIMITS.len());
        Self {
            draw,
            values: BTreeMap::new(),
            state: (level, 0, 0),
            action: 0,
            level,
            tests: 0,
            best_throughput: 0.0,
            seen: [None; LIMITS.len()],
        }
    }

    /// The share of steps that are random at test `tests`, counted from 1.
    pub fn exploration(tests: u32) -> f64 {
        let decays = f64::from(tests.saturating_sub(EXPLORES_UNTIL));
        EXPLORATION_DECAY.powf(decays).max(EXPLORATION_FLOOR)
    }

    fn values_of(&self, state: State) -> [f64; 3] {
        self.values.get(&state).copied().unwrap_or_default()
    }

    fn greedy(values: [f64; 3]) -> usize {
        (0..3).fold(0, |best, action| if values[action] > values[best] { action } else { best })
    }
}

fn moved(level: usize, action: usize) -> usize {
    level.saturating_add_signed(MOVES[action]).min(LIMITS.len() - 1)
}

fn bin(utilisation: f64) -> u8 {
    (utilisation.clamp(0.0, 0.999) * BINS) as u8
}

impl LimitLearner for QLearner {
    fn next_limit(&mut self) -> u32 {
        self.tests += 1;
        let explores = self.draw.unit() < Self::exploration(self.tests);
        self.action = match explores {
            true => self.draw.below(MOVES.len()),
            false => Self::greedy(self.values_of(self.state)),
        };
        self.level = moved(self.state.0, self.action);
        limit_at(self.level)
    }

    fn learn(&mut self, outcome: &LoadTestOutcome) {
        self.best_throughput = self.best_throughput.max(outcome.throughput);
        let ratio = outcome.throughput / self.best_throughput.max(1e-9);
        let reward = if ratio >= 1.0 - CLOSE { 1.0 } else { ratio };
        let next = (self.level, bin(outcome.cpu_utilisation), bin(outcome.memory_utilisation));
        let ahead = self.values_of(next).into_iter().fold(f64::NEG_INFINITY, f64::max);
        let value = &mut self.values.entry(self.state).or_default()[self.action];
        *value += LEARNING_RATE * (reward + DISCOUNT * ahead - *value);
        self.seen[self.level] = Some(next);
        self.state = next;
    }

    /// Follows its best actions from where it stands, until it stays, comes back, or meets a limit it has not
    /// seen.
    fn settled(&self) -> u32 {
        let mut state = self.state;
        for _ in 0..2 * LIMITS.len() {
            let level = moved(state.0, Self::greedy(self.values_of(state)));
            if level == state.0 {
                break;
            }
            let Some(next) = self.seen[level] else { break };
            state = next;
        }
        limit_at(state.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Throughput falls by 20 per level from the lowest on.
    fn outcome(limit: u32) -> LoadTestOutcome {
        LoadTestOutcome {
            throughput: 510.0 - f64::from(limit),
            success: 1.0,
            ..LoadTestOutcome::default()
        }
    }

    #[test]
    fn exploration_as_in_the_paper() {
        assert_eq!(QLearner::exploration(1), 1.0);
        assert_eq!(QLearner::exploration(50), 1.0);
        assert!((QLearner::exploration(150) - 0.606).abs() < 0.001);
        assert!(QLearner::exploration(509) > EXPLORATION_FLOOR);
        assert_eq!(QLearner::exploration(510), EXPLORATION_FLOOR);
    }

    #[test]
    fn one_step_of_the_update() {
        let mut learner = QLearner::new(Seed::new(3));
        let before = learner.state;
        let limit = learner.next_limit();
        learner.learn(&outcome(limit));
        // The first test is the best so far: 0.5 · (1 + 0.9 · 0).
        assert_eq!(learner.values_of(before)[learner.action], 0.5);
    }

    /// In the 600 tests of the experiment it often does not: where it stays, the value of staying grows.
    #[test]
    fn in_the_long_run_it_finds_the_top_of_a_falling_curve() {
        let mut learner = QLearner::new(Seed::new(1));
        for _ in 0..20_000 {
            let limit = learner.next_limit();
            learner.learn(&outcome(limit));
        }
        assert!(learner.settled() <= 50, "{}", learner.settled());
    }
}
