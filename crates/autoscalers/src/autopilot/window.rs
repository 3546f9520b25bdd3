//! Autopilot's window recommender (EuroSys 2020, section 3.2.2): decayed statistics of past usage.
//!
//! ```text
//!  five minutes of 1 s samples ─► histogram s ─► weight 2^(-age / half-life), 12 h CPU, 48 h memory
//!
//!  average      Σ w · mean(s) / Σ w                              batch CPU
//!  percentile   of h[b] = Σ w · b · s[b]: load-weighted          serving CPU: 95th; memory: 98th, or
//!  maximum      of all peaks                                     max(60th percentile, half the maximum)
//!  then + 10 to 15 %, then the maximum of the last hour
//! ```
//!
//! A job uses 1 core in nine samples and 9 cores in one. By count the 90th percentile is 1 core. Weighted by
//! load the nine samples carry 9 and the one carries 9 of 18: half the *load* runs at 9 cores, so the 95th
//! percentile is 9 cores, and the limit 9 · 1.1 = 9.9.

use std::collections::VecDeque;

use super::ladder::Ladder;

/// Statistic of past usage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// The mean: CPU of batch jobs.
    Average,
    /// A load-weighted percentile.
    Percentile(f64),
    /// The largest peak: memory of jobs that must not run out.
    Maximum,
    /// The larger of a percentile and a share of the largest peak: memory of the rest.
    PercentileOrShareOfMaximum {
        /// Which percentile, as a share.
        percentile: f64,
        /// Which share of the largest peak.
        of_maximum: f64,
    },
}

/// Settings of the window recommender.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowSettings {
    /// Statistic of past usage.
    pub statistic: Statistic,
    /// Half-life of the weight of a sample.
    pub half_life_seconds: f64,
    /// How long peaks are kept.
    pub history_seconds: i64,
    /// Margin on small limits.
    pub margin_small: f64,
    /// Margin on limits from `large` on.
    pub margin_large: f64,
    /// Threshold from which a limit counts as large.
    pub large: f64,
    /// The recommendation is the maximum over this time.
    pub hold_seconds: i64,
}

impl WindowSettings {
    /// CPU of a serving job, in cores.
    pub fn serving_cpu() -> Self {
        Self {
            statistic: Statistic::Percentile(0.95),
            half_life_seconds: 12.0 * 3600.0,
            history_seconds: 7 * 86_400,
            margin_small: 0.15,
            margin_large: 0.10,
            large: 4.0,
            hold_seconds: 3600,
        }
    }

    /// Memory of a job with low tolerance to running out, in MiB.
    pub fn memory() -> Self {
        Self {
            statistic: Statistic::Percentile(0.98),
            half_life_seconds: 48.0 * 3600.0,
            large: 4096.0,
            ..Self::serving_cpu()
        }
    }
}

/// The recommender of one resource of one job. Times are seconds from an arbitrary origin.
#[derive(Clone, Debug)]
pub struct WindowRecommender {
    settings: WindowSettings,
    ladder: Ladder,
    load: Vec<f64>,
    weighted_sum: f64,
    weight: f64,
    at: Option<i64>,
    peaks: VecDeque<(i64, f64)>,
    recent: VecDeque<(i64, f64)>,
}

impl WindowRecommender {
    /// Creates a recommender without history.
    pub fn new(settings: WindowSettings, ladder: Ladder) -> Self {
        Self {
            settings,
            load: vec![0.0; ladder.limits().len()],
            ladder,
            weighted_sum: 0.0,
            weight: 0.0,
            at: None,
            peaks: VecDeque::new(),
            recent: VecDeque::new(),
        }
    }

    /// Adds the samples of a window that ended at `at` and returns the new limit; `None` until there was a sample.
    /// Samples that are not finite are dropped.
    pub fn observe(&mut self, at: i64, samples: &[f64]) -> Option<f64> {
        let usable: Vec<f64> =
            samples.iter().copied().filter(|it| it.is_finite() && *it >= 0.0).collect();
        if !usable.is_empty() {
            self.add(at, &usable);
        }
        let fresh = self.fresh()?;
        slide_maximum(&mut self.recent, at, fresh, self.settings.hold_seconds)
    }

    fn add(&mut self, at: i64, samples: &[f64]) {
        let age = self.at.map_or(0, |last| (at - last).max(0));
        let decay = (-(age as f64) / self.settings.half_life_seconds).exp2();
        self.load.iter_mut().for_each(|load| *load *= decay);
        self.weighted_sum *= decay;
        self.weight *= decay;
        self.at = Some(self.at.map_or(at, |last| last.max(at)));
        for sample in samples {
            self.load[self.ladder.rung(*sample)] += sample;
        }
        self.weighted_sum += samples.iter().sum::<f64>() / samples.len() as f64;
        self.weight += 1.0;
        let peak = samples.iter().copied().fold(0.0, f64::max);
        slide_maximum(&mut self.peaks, at, peak, self.settings.history_seconds);
    }

    /// The statistic with its margin.
    fn fresh(&self) -> Option<f64> {
        let maximum = self.peaks.front().map(|(_, peak)| *peak)?;
        let base = match self.settings.statistic {
            Statistic::Average => self.weighted_sum / self.weight,
            Statistic::Percentile(share) => self.percentile(share),
            Statistic::Maximum => maximum,
            Statistic::PercentileOrShareOfMaximum { percentile, of_maximum } => {
                self.percentile(percentile).max(of_maximum * maximum)
            }
        };
        let is_large = base >= self.settings.large;
        let margin = if is_large { self.settings.margin_large } else { self.settings.margin_small };
        Some(base * (1.0 + margin))
    }

    /// The limit that covers `share` of the load.
    fn percentile(&self, share: f64) -> f64 {
        let wanted = share * self.load.iter().sum::<f64>();
        let mut sum = 0.0;
        let rung = self.load.iter().position(|load| {
            sum += load;
            sum >= wanted
        });
        self.ladder.limit(rung.unwrap_or(usize::MAX))
    }
}

/// Records `value` at `at` and returns the maximum of the last `span` seconds.
fn slide_maximum(past: &mut VecDeque<(i64, f64)>, at: i64, value: f64, span: i64) -> Option<f64> {
    while past.back().is_some_and(|(_, smaller)| *smaller <= value) {
        past.pop_back();
    }
    past.push_back((at, value));
    while past.front().is_some_and(|(old, _)| at - old > span) {
        past.pop_front();
    }
    past.front().map(|(_, largest)| *largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recommender(statistic: Statistic) -> WindowRecommender {
        let settings = WindowSettings { statistic, ..WindowSettings::serving_cpu() };
        WindowRecommender::new(settings, Ladder::new(1.0, 1.0 + 1.0 / 1024.0, 4096))
    }

    const BURSTY: [f64; 10] = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 9.0];

    fn near(found: Option<f64>, wanted: f64) -> bool {
        found.is_some_and(|found| (found / wanted - 1.0).abs() < 0.002)
    }

    #[test]
    fn percentiles_are_weighted_by_load() {
        assert!(near(recommender(Statistic::Percentile(0.95)).observe(0, &BURSTY), 9.9));
        assert!(near(recommender(Statistic::Percentile(0.49)).observe(0, &BURSTY), 1.15));
    }

    #[test]
    fn the_other_statistics() {
        assert!(near(recommender(Statistic::Average).observe(0, &BURSTY), 1.8 * 1.15));
        assert!(near(recommender(Statistic::Maximum).observe(0, &BURSTY), 9.9));
        let either = Statistic::PercentileOrShareOfMaximum { percentile: 0.4, of_maximum: 0.5 };
        assert!(near(recommender(either).observe(0, &BURSTY), 4.5 * 1.1));
    }

    #[test]
    fn old_load_decays_and_the_last_hour_is_held() {
        let mut recommender = recommender(Statistic::Average);
        assert!(near(recommender.observe(0, &[8.0]), 8.8));
        // One half-life later the old mean counts half: (8 · 0.5 + 2) / 1.5 = 4.
        assert!(near(recommender.observe(12 * 3600, &[2.0]), 4.4));
        assert!(near(recommender.observe(12 * 3600 + 3600, &[0.0]), 4.4));
    }

    #[test]
    fn nothing_is_recommended_before_the_first_sample() {
        let mut recommender = recommender(Statistic::Maximum);
        assert_eq!(recommender.observe(0, &[]), None);
        assert_eq!(recommender.observe(1, &[f64::NAN, -1.0]), None);
    }
}
