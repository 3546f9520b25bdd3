//! Training watched from outside: iterations, an evaluation now and then, which policy was the best.

use serde::{Deserialize, Serialize};
use windfall_core::Seed;
use windfall_core::statistics::{Interval, mean};

use crate::catalogue::{Entry, Split};
use crate::checkpoint::Checkpoint;
use crate::learner::{IterationReport, Learner};
use crate::policy::{Decide, evaluate};

/// Returns of the episodes of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Their mean.
    pub mean: f64,
    /// The worst.
    pub low: f64,
    /// The best.
    pub high: f64,
}

impl Evaluation {
    /// Of these returns; at least one.
    pub fn of(returns: &[f64]) -> Self {
        let Interval { low, high } = Interval::covering(returns);
        Self { mean: mean(returns).unwrap_or(0.0), low, high }
    }
}

/// One point of the curves of a training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// What the iteration did.
    #[serde(flatten)]
    pub report: IterationReport,
    /// How the policy does without exploration on the validation part, where it was evaluated.
    pub evaluation: Option<Evaluation>,
}

/// A line of a curve's file that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("line {line}")]
pub struct CurveError {
    /// Which one, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub source: serde_json::Error,
}

/// Reads the file of a curve, one point per line; a last line that a crash cut short is left out.
pub fn read_curve(text: &str) -> Result<Vec<CurvePoint>, CurveError> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let read = |(place, line)| {
        serde_json::from_str(line).map_err(|source| CurveError { line: place + 1, source })
    };
    whole.lines().enumerate().map(read).collect()
}

/// The best evaluation so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// After which iteration.
    pub iteration: u64,
    /// Its mean return.
    pub mean: f64,
}

impl Best {
    /// The best of a curve; the first of equals.
    pub fn of(curve: &[CurvePoint]) -> Option<Self> {
        curve.iter().fold(None, |best, point| Self::better(best, point).or(best))
    }

    /// The point, if it is better than what was.
    fn better(best: Option<Self>, point: &CurvePoint) -> Option<Self> {
        let mean = point.evaluation?.mean;
        let is_better = best.is_none_or(|best| mean > best.mean);
        is_better.then_some(Self { iteration: point.report.iteration, mean })
    }
}

/// A learner with its evaluations.
pub struct Training {
    learner: Box<dyn Learner>,
    entry: &'static Entry,
    masks: bool,
    /// Iterations of the whole training.
    iterations: u64,
    /// Iterations between two evaluations.
    evaluate_every: u64,
    best: Option<Best>,
}

impl Training {
    /// Of a learner in an environment, from its beginning or going on after `curve`.
    pub fn new(
        learner: Box<dyn Learner>,
        entry: &'static Entry,
        iterations: u64,
        evaluate_every: u64,
        curve: &[CurvePoint],
    ) -> Self {
        let masks = learner.checkpoint().header.masks();
        let evaluate_every = evaluate_every.max(1);
        Self { learner, entry, masks, iterations, evaluate_every, best: Best::of(curve) }
    }

    /// Iterations done.
    pub fn iteration(&self) -> u64 {
        self.learner.iteration()
    }

    /// The best evaluation so far.
    pub fn best(&self) -> Option<Best> {
        self.best
    }

    /// Everything needed to go on bit for bit.
    pub fn checkpoint(&self) -> Checkpoint {
        self.learner.checkpoint()
    }

    /// One more iteration; and whether its policy is the best so far.
    pub fn iterate(&mut self) -> (CurvePoint, bool) {
        let report = self.learner.iterate();
        let is_due = report.iteration.is_multiple_of(self.evaluate_every);
        let is_last = report.iteration == self.iterations;
        let evaluation = (is_due || is_last).then(|| {
            let policy = self.learner.policy();
            play(self.entry, policy, self.masks, Split::Validation, Seed::new(0))
        });
        let evaluation = evaluation.map(|returns| Evaluation::of(&returns));
        let point = CurvePoint { report, evaluation };
        let better = Best::better(self.best, &point);
        self.best = better.or(self.best);
        (point, better.is_some())
    }
}

/// One episode in each environment of a panel; their returns.
pub fn play(
    entry: &Entry,
    mut policy: Box<dyn Decide>,
    masks: bool,
    split: Split,
    seed: Seed,
) -> Vec<f64> {
    evaluate(&mut (entry.panel)(split), policy.as_mut(), masks, seed)
}

/// A policy that chooses among the allowed actions with equal probability: what learning must beat.
#[derive(Clone, Debug)]
pub struct Random(crate::random::Draw);

impl Random {
    /// From a stream of its own.
    pub fn new(seed: Seed) -> Self {
        Self(crate::random::Draw::new(seed.stream("random policy")))
    }
}

impl Decide for Random {
    fn decide(&mut self, _observation: &[f32], allowed: &[bool]) -> usize {
        self.0.among(allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any_learner::Kind;
    use crate::toy::ENTRIES;

    #[test]
    fn the_corridor_is_learned_and_the_best_policy_known() {
        let entry = &ENTRIES[1];
        let make = || (entry.make)(Split::Training);
        let settings = entry.settings(Kind::Ppo, 25);
        let learner = settings.start(&make, 8, Seed::new(3), 1);
        let mut training = Training::new(learner, entry, 25, 10, &[]);
        let mut curve = Vec::new();
        while training.iteration() < 25 {
            curve.push(training.iterate().0);
        }
        let evaluated: Vec<u64> = curve
            .iter()
            .filter(|point| point.evaluation.is_some())
            .map(|point| point.report.iteration)
            .collect();
        assert_eq!(evaluated, [10, 20, 25]);
        assert_eq!(training.best(), Best::of(&curve));
        assert!((training.best().unwrap().mean - 0.98).abs() < 1e-6);
        let line = serde_json::to_string(&curve[9]).unwrap();
        assert_eq!(serde_json::from_str::<CurvePoint>(&line).unwrap(), curve[9]);
    }

    #[test]
    fn random_choices_are_among_the_allowed() {
        let mut random = Random::new(Seed::new(1));
        let chosen: Vec<usize> =
            (0..50).map(|_| random.decide(&[], &[false, true, false, true])).collect();
        assert!(chosen.contains(&1) && chosen.contains(&3));
        assert!(chosen.iter().all(|action| [1, 3].contains(action)));
    }
}
