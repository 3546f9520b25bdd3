//! The optimisation loop of PPO: several passes over the samples, minibatch by minibatch.
//!
//! ```text
//! repeat `epochs` times
//!     put the samples into an order
//!     for each minibatch: one gradient step
//!     stop if the mean KL divergence of this pass exceeds `target_kl`
//! ```
//!
//! What a gradient step is belongs to the learner: how the probabilities of a sample are computed and how
//! derivatives flow back differ between a network with one output per action and one that scores candidates.

use crate::random::Draw;

/// In which order a pass visits the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As they were gathered: no minibatch depends on chance.
    Gathered,
    /// Shuffled anew before every pass; each sample is visited once.
    Shuffled,
    /// As many draws as there are samples, each of any sample.
    WithReplacement,
}

/// Passes over the samples of one update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epochs {
    /// At most this many passes.
    pub epochs: usize,
    /// Samples per gradient step; nothing for all of them.
    pub minibatch: Option<usize>,
    /// In which order they are visited.
    pub order: Order,
    /// Mean KL divergence of a pass after which no further pass follows.
    pub target_kl: Option<f32>,
}

/// Sums over the samples of one pass.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Of the clipped objective, negated.
    pub policy_loss: f64,
    /// Of the value loss.
    pub value_loss: f64,
    /// Of the entropy.
    pub entropy: f64,
    /// Of the estimates of the KL divergence from the policy that gathered the samples.
    pub kl: f64,
    /// Samples whose ratio has left its range.
    pub clipped: f64,
    /// Samples.
    pub samples: f64,
}

impl Sums {
    /// Adds `other`, every number times `weight`. With weights of one over the number of samples of a pass, its
    /// sums are means.
    pub fn add(&mut self, other: &Self, weight: f64) {
        self.policy_loss += other.policy_loss * weight;
        self.value_loss += other.value_loss * weight;
        self.entropy += other.entropy * weight;
        self.kl += other.kl * weight;
        self.clipped += other.clipped * weight;
        self.samples += other.samples * weight;
    }

    /// Mean KL divergence; not a number for no samples.
    pub fn mean_kl(&self) -> f64 {
        self.kl / self.samples
    }
}

/// What the passes did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Optimisation {
    /// Passes done.
    pub epochs: usize,
    /// Of the last pass.
    pub last: Sums,
}

impl Epochs {
    /// Goes over `samples` samples. `descend` does one gradient step on the samples it is given and adds what it
    /// saw to the sums of the pass.
    pub fn run(
        &self,
        samples: usize,
        draw: &mut Draw,
        mut descend: impl FnMut(&[usize], &mut Sums),
    ) -> Optimisation {
        let mut order: Vec<usize> = (0..samples).collect();
        let mut done = Optimisation::default();
        for _ in 0..self.epochs {
            match self.order {
                Order::Gathered => {}
                Order::Shuffled => draw.shuffle(&mut order),
                Order::WithReplacement => {
                    order.iter_mut().for_each(|place| *place = draw.below(samples));
                }
            }
            done.last = Sums::default();
            for chosen in order.chunks(self.minibatch.unwrap_or(usize::MAX)) {
                descend(chosen, &mut done.last);
            }
            done.epochs += 1;
            let kl = done.last.mean_kl();
            if self.target_kl.is_some_and(|target| kl > f64::from(target)) {
                break;
            }
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_core::Seed;

    const ALL: Epochs =
        Epochs { epochs: 3, minibatch: None, order: Order::Gathered, target_kl: None };

    fn visited(epochs: &Epochs) -> Vec<Vec<usize>> {
        let mut visited = Vec::new();
        epochs.run(5, &mut Draw::new(Seed::new(1)), |chosen, _| visited.push(chosen.to_vec()));
        visited
    }

    #[test]
    fn one_minibatch_of_everything_keeps_the_order() {
        assert_eq!(visited(&ALL), vec![vec![0, 1, 2, 3, 4]; 3]);
    }

    #[test]
    fn a_shuffled_pass_visits_every_sample_once() {
        let epochs = Epochs { minibatch: Some(2), order: Order::Shuffled, ..ALL };
        let visited = visited(&epochs);
        let sizes: Vec<usize> = visited.iter().map(Vec::len).collect();
        assert_eq!(sizes, [2, 2, 1, 2, 2, 1, 2, 2, 1]);
        for pass in visited.chunks(3) {
            let mut all = pass.concat();
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2, 3, 4]);
        }
    }

    #[test]
    fn passes_end_when_the_policy_has_moved_too_far() {
        let epochs = Epochs { target_kl: Some(0.25), ..ALL };
        let mut kl = 0.0;
        let done = epochs.run(4, &mut Draw::new(Seed::new(1)), |chosen, sums| {
            kl += 0.2;
            let samples = chosen.len() as f64;
            sums.add(&Sums { kl: kl * samples, samples, ..Sums::default() }, 1.0);
        });
        // 0.2 after the first pass, 0.4 after the second.
        assert_eq!(done.epochs, 2);
        assert!((done.last.mean_kl() - 0.4).abs() < 1e-12);
    }

    #[test]
    fn no_samples_means_no_step() {
        let done =
            ALL.run(0, &mut Draw::new(Seed::new(1)), |_, _| panic!("there is nothing to learn"));
        assert_eq!(done.last, Sums::default());
    }
}
