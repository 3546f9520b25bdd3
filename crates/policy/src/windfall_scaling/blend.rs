//! How far a gap speaks for its neighbours, and how much the prior weighs beside it: learned by each level.
//!
//! ```text
//!   expert (h, n):  p(gap) = (own gaps, each a triangle of h bins to both sides, + n x prior) / (own + n)
//!   each new gap    score += ln p(gap), old scores fade by 2 %
//!   together        the experts' mean, weighed by e^score
//! ```
//!
//! A timer that comes every 60 s is foretold by the narrow triangle (1.5 % to both sides), and after ten gaps hardly
//! another one counts. Gaps that are all over the place are foretold by the wide one (43 %): there a gap of 100 s
//! is evidence for 80 and 120, and no instance is started for the sake of that one gap.

use super::gap_bins::{BINS, TAIL};

/// How far to both sides, in bins of 1.5 %.
const REACHES: [usize; 3] = [1, 6, 24];
/// What the weight of the prior is multiplied by.
const BELIEFS: [f32; 3] = [0.2, 1.0, 4.0];
const EXPERTS: usize = REACHES.len() * BELIEFS.len();
/// What each gap takes from the scores before it, as from the weights of gaps.
const FADE: f32 = 0.98;
/// No gap is held impossible.
const LEAST: f32 = 1e-7;
/// Shares of an expert below this are not worth the work.
const NO_SHARE: f32 = 1e-4;

/// The scores of the experts of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Blend {
    scores: [f32; EXPERTS],
}

/// The share of a triangle's weight that lies `away` from its middle.
fn triangle(reach: usize, away: usize) -> f32 {
    let side = reach + 1;
    (side.saturating_sub(away)) as f32 / (side * side) as f32
}

impl Blend {
    /// Scores the experts by what they thought of a gap in `bin`, before it is learned. `own` are the gaps so far.
    pub(crate) fn judge(
        &mut self,
        bin: usize,
        own: impl Iterator<Item = (usize, f32)>,
        prior: &[f32],
        belief: f32,
    ) {
        let (mut total, mut near) = (0.0, [0.0; REACHES.len()]);
        for (other, weight) in own {
            total += weight;
            if bin == TAIL || other == TAIL {
                let same = if bin == other { weight } else { 0.0 };
                near.iter_mut().for_each(|sum| *sum += same);
                continue;
            }
            for (sum, reach) in near.iter_mut().zip(REACHES) {
                *sum += weight * triangle(reach, bin.abs_diff(other));
            }
        }
        for (expert, score) in self.scores.iter_mut().enumerate() {
            let weight = belief * BELIEFS[expert % BELIEFS.len()];
            let sum = near[expert / BELIEFS.len()] + weight * prior[bin];
            *score = FADE * *score + (sum / (total + weight)).max(LEAST).ln();
        }
    }

    /// Fills `into` with the chance of every bin.
    pub(crate) fn mix(
        &self,
        own: impl Iterator<Item = (usize, f32)> + Clone,
        prior: &[f32],
        belief: f32,
        into: &mut [f32],
    ) {
        let total: f32 = own.clone().map(|(_, weight)| weight).sum();
        let best = self.scores.iter().copied().fold(f32::MIN, f32::max);
        let trust = self.scores.map(|score| (score - best).exp());
        let all: f32 = trust.iter().sum();
        let (mut spreads, mut of_prior) = ([0.0; REACHES.len()], 0.0);
        for (expert, trust) in trust.iter().enumerate() {
            let weight = belief * BELIEFS[expert % BELIEFS.len()];
            let share = trust / (all * (total + weight).max(f32::MIN_POSITIVE));
            spreads[expert / BELIEFS.len()] += share;
            of_prior += share * weight;
        }
        for (sum, prior) in into.iter_mut().zip(prior) {
            *sum = of_prior * prior;
        }
        let each: f32 = spreads.iter().sum();
        for (bin, weight) in own {
            if bin == TAIL {
                into[TAIL] += each * weight;
                continue;
            }
            for (share, reach) in spreads.into_iter().zip(REACHES) {
                if share > NO_SHARE * each {
                    spread(bin, reach, share * weight, into);
                }
            }
        }
    }
}

/// A gap as a triangle; what would fall beyond the ends stays in the last bin there.
fn spread(bin: usize, reach: usize, weight: f32, into: &mut [f32]) {
    into[bin] += weight * triangle(reach, 0);
    for away in 1..=reach {
        let part = weight * triangle(reach, away);
        into[bin.saturating_sub(away)] += part;
        into[(bin + away).min(BINS - 2)] += part;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat() -> Vec<f32> {
        vec![1.0 / BINS as f32; BINS]
    }

    /// The chances after gaps in these bins, one after the other.
    fn learned(bins: &[usize]) -> Vec<f32> {
        let (mut blend, mut own) = (Blend::default(), Vec::new());
        for &bin in bins {
            blend.judge(bin, own.iter().copied(), &flat(), 5.0);
            own.push((bin, 1.0));
        }
        let mut chances = vec![0.0; BINS];
        blend.mix(own.iter().copied(), &flat(), 5.0, &mut chances);
        chances
    }

    #[test]
    fn chances_sum_to_one_whatever_was_seen() {
        for bins in [&[][..], &[300; 20], &[0, 5, 640, 644, TAIL, TAIL]] {
            let total: f32 = learned(bins).iter().sum();
            assert!((total - 1.0).abs() < 1e-3, "{bins:?}: {total}");
        }
    }

    #[test]
    fn a_timer_is_believed_to_the_bin_and_wild_gaps_in_the_large() {
        let timer = learned(&[300; 30]);
        assert!(timer[300] > 0.3 && timer[310] < 0.01, "{} {}", timer[300], timer[310]);
        let wild: Vec<usize> = (0..30).map(|n| 280 + n * 17 % 41).collect();
        let wild = learned(&wild);
        let (most, least) =
            wild[285..315].iter().fold((0.0f32, 1.0f32), |(most, least), chance| {
                (most.max(*chance), least.min(*chance))
            });
        assert!(most < 3.0 * least, "even inside their range: {least} to {most}");
    }
}
