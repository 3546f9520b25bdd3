//! Learns, per level, how far to smooth each observed gap and how much weight to give the prior.
//!
//! ```text
//!   expert (h, n):  p(gap) = (own gaps, each a triangle of h bins to both sides, + n x prior) / (own + n)
//!   each new gap    score += ln p(gap), old scores decay by 2 %
//!   mixture         the mean of the experts, weighted by e^score
//! ```
//!
//! A timer of 60 s is predicted best by the narrow triangle (1.5 % to both sides), which dominates the mixture after
//! ten gaps. Widely scattered gaps are predicted best by the wide one (43 %): there a gap of 100 s is also evidence
//! for 80 and 120 s, and no instance is started because of a single gap.

use super::gap_bins::{BINS, TAIL};

/// Half-widths of the triangles, in bins of 1.5 %.
const REACHES: [usize; 3] = [1, 6, 24];
/// Factors on the weight of the prior.
const BELIEFS: [f32; 3] = [0.2, 1.0, 4.0];
const EXPERTS: usize = REACHES.len() * BELIEFS.len();
/// Decay of earlier scores with each gap, the same as for the weights of gaps.
const DECAY: f32 = 0.98;
/// Lower bound on the probability of a gap, so that no gap is impossible.
const LEAST: f32 = 1e-7;
/// Experts with a smaller share than this are skipped.
const NO_SHARE: f32 = 1e-4;

/// Scores of the experts of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Blend {
    scores: [f32; EXPERTS],
}

/// Share of a triangle's weight in the bin that is `away` bins from its middle.
fn triangle(reach: usize, away: usize) -> f32 {
    let side = reach + 1;
    (side.saturating_sub(away)) as f32 / (side * side) as f32
}

impl Blend {
    /// Scores the experts by the probability they gave a gap in `bin`, before it is learned. `own` are the gaps so far.
    pub(crate) fn score(
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
            *score = DECAY * *score + (sum / (total + weight)).max(LEAST).ln();
        }
    }

    /// Fills `into` with the probability of every bin.
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

/// Spreads a gap as a triangle; weight beyond either end goes into the last bin there.
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

    /// Probabilities after learning gaps in these bins, in order.
    fn learn(bins: &[usize]) -> Vec<f32> {
        let (mut blend, mut own) = (Blend::default(), Vec::new());
        for &bin in bins {
            blend.score(bin, own.iter().copied(), &flat(), 5.0);
            own.push((bin, 1.0));
        }
        let mut chances = vec![0.0; BINS];
        blend.mix(own.iter().copied(), &flat(), 5.0, &mut chances);
        chances
    }

    #[test]
    fn probabilities_sum_to_one_for_any_history() {
        for bins in [&[][..], &[300; 20], &[0, 5, 640, 644, TAIL, TAIL]] {
            let total: f32 = learn(bins).iter().sum();
            assert!((total - 1.0).abs() < 1e-3, "{bins:?}: {total}");
        }
    }

    #[test]
    fn a_timer_is_predicted_to_the_bin_and_scattered_gaps_are_smoothed() {
        let timer = learn(&[300; 30]);
        assert!(timer[300] > 0.3 && timer[310] < 0.01, "{} {}", timer[300], timer[310]);
        let wild: Vec<usize> = (0..30).map(|n| 280 + n * 17 % 41).collect();
        let wild = learn(&wild);
        let (most, least) =
            wild[285..315].iter().fold((0.0f32, 1.0f32), |(most, least), chance| {
                (most.max(*chance), least.min(*chance))
            });
        assert!(most < 3.0 * least, "even inside their range: {least} to {most}");
    }
}
