//! What a prior is worth: every gap of one half in order, foretold, planned for, replayed and then learned.

use windfall_core::{Duration, Timestamp};
use windfall_policy::{GapReplay, GapTables, GapTrial, LevelGap, WindfallScalingSettings};

use crate::gaps::{FunctionGaps, KnownGap};
use crate::network::{CLASSES, HazardNetwork, class_of_bin};

/// Prices of a MiB-second in weighted waits.
pub(crate) const PRICES: [f64; 5] = [3e-6, 1e-5, 3e-5, 1e-4, 3e-4];

/// Who says what is believed of a gap before its level has shown enough.
pub(crate) enum Prior<'a> {
    /// The tables by class.
    Tables,
    /// The tables by class, and what a level shows itself counts for nothing.
    TablesAlone,
    /// A network predicts the share of each class of lengths; the tables place it inside the class.
    Network(&'a HazardNetwork),
}

/// Sums over the gaps of one half that ended after the warm-up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict {
    gaps: f64,
    log_likelihood: f64,
    /// Weighted waits, MiB-seconds and starts ahead at each price.
    weighted_waits: [f64; PRICES.len()],
    mib_seconds: [f64; PRICES.len()],
    starts: [f64; PRICES.len()],
}

impl Verdict {
    /// Per gap.
    pub(crate) fn log_likelihood(&self) -> f64 {
        self.log_likelihood / self.gaps
    }

    /// Weighted waits and price x MiB-seconds per gap, at each price.
    pub(crate) fn costs(&self) -> [f64; PRICES.len()] {
        std::array::from_fn(|at| {
            (self.weighted_waits[at] + PRICES[at] * self.mib_seconds[at]) / self.gaps
        })
    }

    /// Their geometric mean over the prices.
    pub(crate) fn cost(&self) -> f64 {
        let logs: f64 = self.costs().iter().map(|cost| cost.ln()).sum();
        (logs / PRICES.len() as f64).exp()
    }

    /// Starts ahead per thousand gaps, mean over the prices.
    pub(crate) fn starts(&self) -> f64 {
        1e3 * self.starts.iter().sum::<f64>() / (self.gaps * PRICES.len() as f64)
    }

    pub(crate) fn gaps(&self) -> f64 {
        self.gaps
    }
}

/// The half that is judged, and what was fitted on the other.
pub(crate) struct Judge<'a> {
    pub(crate) functions: Vec<&'a FunctionGaps>,
    pub(crate) tables: &'a GapTables,
    pub(crate) tick: Duration,
    /// Gaps that end before are learned and not counted.
    pub(crate) from: Timestamp,
}

impl Judge<'_> {
    pub(crate) fn verdict(&self, prior: &Prior<'_>) -> Verdict {
        let replay = GapReplay::new(self.tick);
        let mut verdict = Verdict::default();
        for function in &self.functions {
            let known: Vec<&KnownGap> = function.gaps.iter().collect();
            let predicted = match prior {
                Prior::Network(network) => network.chances(&known),
                Prior::Tables | Prior::TablesAlone => Vec::new(),
            };
            self.judge(function, prior, &predicted, &replay, &mut verdict);
        }
        verdict
    }

    /// Goes through the gaps of one function; `predicted` is what a network says of each.
    fn judge(
        &self,
        function: &FunctionGaps,
        prior: &Prior<'_>,
        predicted: &[[f32; CLASSES]],
        replay: &GapReplay,
        verdict: &mut Verdict,
    ) {
        let belief = WindfallScalingSettings::default().prior_gaps;
        let mut levels: Vec<GapTrial> = Vec::new();
        for (place, KnownGap { gap, .. }) in function.gaps.iter().enumerate() {
            while levels.len() <= gap.level {
                levels.push(GapTrial::new(levels.len()));
            }
            let level = &mut levels[gap.level];
            let table = level.prior(self.tables);
            let believed =
                predicted.get(place).map_or(table.to_vec(), |predicted| refined(predicted, table));
            if gap.until > self.from {
                let chances = match prior {
                    Prior::TablesAlone => believed.clone(),
                    Prior::Tables | Prior::Network(_) => level.chances(&believed, belief),
                };
                verdict.count(function, gap, &chances, replay);
            }
            level.learn(gap, &believed, belief);
        }
    }
}

impl Verdict {
    fn count(
        &mut self,
        function: &FunctionGaps,
        gap: &LevelGap,
        chances: &[f32],
        replay: &GapReplay,
    ) {
        self.gaps += 1.0;
        self.log_likelihood += gap.log_likelihood(chances);
        for (at, price) in PRICES.into_iter().enumerate() {
            let settings = WindfallScalingSettings { price, ..Default::default() };
            let outcome = replay.outcome(gap, chances, &function.stakes, &settings);
            self.weighted_waits[at] += outcome.weighted_wait;
            self.mib_seconds[at] += outcome.held_seconds * function.stakes.memory_mib;
            self.starts[at] += f64::from(outcome.starts_ahead);
        }
    }
}

/// The chance of every bin: of its class by `predicted`, inside it by `table`. A class is 36 % wide and a timer is not, so an
/// even spread would judge the resolution of the network and not its hazard.
fn refined(predicted: &[f32; CLASSES], table: &[f32]) -> Vec<f32> {
    let mut of_class = [0.0; CLASSES];
    for (bin, chance) in table.iter().enumerate() {
        of_class[class_of_bin(bin)] += chance;
    }
    let share = |(bin, chance): (usize, &f32)| {
        let class = class_of_bin(bin);
        predicted[class] * chance / of_class[class].max(f32::MIN_POSITIVE)
    };
    table.iter().enumerate().map(share).collect()
}
