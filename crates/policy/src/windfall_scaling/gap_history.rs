//! History of one level's gaps: a decayed histogram, and the last six gaps, which determine the class.

use super::blend::Blend;
use super::gap_bins::bin_of;

/// Decay of earlier weights with each gap: half is left after 34 gaps.
const DECAY: f32 = 0.98;
/// Weights below this share of a new gap are dropped to bound the memory: a gap is dropped after 342 others.
const FORGOTTEN: f32 = 1e-3;
/// Number of recent gaps whose median determines the class.
const RECENT: usize = 6;

/// Gaps of one level.
#[derive(Clone, Debug, Default)]
pub(crate) struct GapHistory {
    /// Bins with their weights, sorted by bin. Instead of decaying old weights, new ones grow with `scale`.
    bins: Vec<(u16, f32)>,
    /// Weight of the next gap.
    scale: f32,
    /// The last gaps, seconds, oldest first.
    recent: [f32; RECENT],
    count: u32,
    blend: Blend,
}

impl GapHistory {
    /// Number of gaps seen.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The last gaps, seconds, oldest first.
    pub(crate) fn recent(&self) -> &[f32] {
        &self.recent[RECENT - (self.count as usize).min(RECENT)..]
    }

    /// Learns a gap of this length and scores the experts on it. `prior` has the weight of `belief` gaps.
    pub(crate) fn learn(&mut self, seconds: f64, prior: &[f32], belief: f32) {
        let mut blend = self.blend;
        blend.score(bin_of(seconds), self.weights(), prior, belief);
        self.blend = blend;
        self.push(seconds);
    }

    /// Fills `into` with the probability of every bin.
    pub(crate) fn chances(&self, prior: &[f32], belief: f32, into: &mut [f32]) {
        self.blend.mix(self.weights(), prior, belief, into);
    }

    /// Adds a gap of this length without scoring the experts.
    pub(crate) fn push(&mut self, seconds: f64) {
        self.scale = if self.count == 0 { 1.0 } else { self.scale / DECAY };
        let bin = bin_of(seconds) as u16;
        match self.bins.binary_search_by_key(&bin, |(other, _)| *other) {
            Ok(place) => self.bins[place].1 += self.scale,
            Err(place) => self.bins.insert(place, (bin, self.scale)),
        }
        self.recent.rotate_left(1);
        self.recent[RECENT - 1] = seconds as f32;
        self.count = self.count.saturating_add(1);
        if self.scale > 1.0 / FORGOTTEN {
            self.forget();
        }
    }

    /// Rescales the weights so that the last gap has weight 1, and drops negligible ones.
    fn forget(&mut self) {
        let scale = self.scale;
        for (_, weight) in &mut self.bins {
            *weight /= scale;
        }
        self.bins.retain(|(_, weight)| *weight >= FORGOTTEN);
        self.bins.shrink_to_fit();
        self.scale = 1.0;
    }

    /// Bins with their weights; the last gap has weight 1.
    fn weights(&self) -> impl Iterator<Item = (usize, f32)> + Clone {
        let scale = if self.scale > 0.0 { 1.0 / self.scale } else { 0.0 };
        self.bins.iter().map(move |(bin, weight)| (usize::from(*bin), weight * scale))
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bins.capacity() * size_of::<(u16, f32)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_gaps_weigh_less() {
        let mut history = GapHistory::default();
        history.push(61.0);
        history.push(61.1);
        history.push(3600.0);
        let weights: Vec<(usize, f32)> = history.weights().collect();
        assert_eq!(weights.len(), 2);
        assert!((weights[0].1 - (0.98 + 0.98 * 0.98)).abs() < 1e-4, "{weights:?}");
        assert!((weights[1].1 - 1.0).abs() < 1e-6);
        assert_eq!(history.recent(), [61.0, 61.1, 3600.0]);
    }

    #[test]
    fn ten_thousand_gaps_take_no_more_memory_than_a_thousand() {
        let mut history = GapHistory::default();
        for n in 0..10_000u32 {
            history.push(f64::from(n % 977) * 7.3);
        }
        assert!(history.heap_bytes() < 8 * 1024, "{}", history.heap_bytes());
        let total: f32 = history.weights().map(|(_, weight)| weight).sum();
        assert!((total - 50.0).abs() < 1.0, "the weights of a decay of 2 % sum to 50: {total}");
    }
}
