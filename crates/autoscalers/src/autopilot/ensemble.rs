//! Autopilot's second recommender (EuroSys 2020, section 3.2.3): many small models, each an argmin, and an
//! argmin over them.
//!
//! ```text
//!  model m, decay d_m, margin M_m, for every possible limit L:
//!    o(L) = (1 - d_m) o(L) + d_m · samples above L          cost of being too low
//!    u(L) = (1 - d_m) u(L) + d_m · samples below L          cost of being too high
//!    L'_m = argmin  w_o o(L) + w_u u(L) + w_ΔL [L changed]      L_m = L'_m + M_m
//!
//!  all models: c_m = d (w_o · above L_m + w_u · below L_m + w_ΔL [L_m changed]) + (1 - d) c_m
//!  result: the L_m of  argmin  c_m + w_Δm [model changed] + w_ΔL [limit changed]
//! ```
//!
//! Ten samples, nine at 1 and one at 4; limits 1, 2, 4, 8; w_o = 4, w_u = 1, d_m = 1. L = 1: one above, none
//! below, cost 4. L = 2: one above, nine below, 13. L = 4: none above, nine below, 9. L = 8: 10. The model
//! chooses 1. With w_o = 10 it is L = 4: 9 against 10. The usage determines the cost of every limit, so this
//! learns without exploration.

use super::ladder::Ladder;

/// Settings of the ensemble; the first five are the paper's hyper-parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct EnsembleSettings {
    /// d: decay of the models' own costs.
    pub decay: f64,
    /// w_o: price of a sample above the limit.
    pub overrun: f64,
    /// w_u: price of a sample below it.
    pub underrun: f64,
    /// w_ΔL: price of changing the limit.
    pub limit_change: f64,
    /// w_Δm: price of changing the model.
    pub model_change: f64,
    /// The models to choose from.
    pub models: Vec<ModelSettings>,
}

/// Knobs of one model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelSettings {
    /// d_m: weight of the newest window.
    pub decay: f64,
    /// M_m: margin as a share of the limit.
    pub margin: f64,
}

impl Default for EnsembleSettings {
    /// The paper tunes these on traces but does not publish the values; these are our own.
    fn default() -> Self {
        let decays = [0.02, 0.1, 0.5];
        let margins = [0.0, 0.1, 0.25];
        let model = |decay: f64| margins.map(|margin| ModelSettings { decay, margin });
        Self {
            decay: 0.1,
            overrun: 50.0,
            underrun: 1.0,
            limit_change: 0.5,
            model_change: 0.5,
            models: decays.into_iter().flat_map(model).collect(),
        }
    }
}

#[derive(Clone, Debug)]
struct Model {
    decay: f64,
    margin: f64,
    above: Vec<f64>,
    below: Vec<f64>,
    /// The rung of its last argmin, before the margin.
    rung: Option<usize>,
    /// Its last limit, after the margin.
    limit: f64,
    cost: f64,
}

/// The recommender of one resource of one job.
#[derive(Clone, Debug)]
pub struct Ensemble {
    settings: EnsembleSettings,
    ladder: Ladder,
    models: Vec<Model>,
    chosen: Option<(usize, f64)>,
}

impl Ensemble {
    /// Creates an ensemble without history.
    pub fn new(settings: EnsembleSettings, ladder: Ladder) -> Self {
        let zeros = vec![0.0; ladder.limits().len()];
        let model = |&ModelSettings { decay, margin }: &ModelSettings| Model {
            decay,
            margin,
            above: zeros.clone(),
            below: zeros.clone(),
            rung: None,
            limit: 0.0,
            cost: 0.0,
        };
        Self { models: settings.models.iter().map(model).collect(), settings, ladder, chosen: None }
    }

    /// Adds the samples of one window and returns the new limit; `None` until there was a sample. Samples that
    /// are not finite are dropped.
    pub fn observe(&mut self, samples: &[f64]) -> Option<f64> {
        let mut sorted: Vec<f64> =
            samples.iter().copied().filter(|it| it.is_finite() && *it >= 0.0).collect();
        if sorted.is_empty() {
            return self.chosen.map(|(_, limit)| limit);
        }
        sorted.sort_by(f64::total_cmp);
        for model in &mut self.models {
            model.learn(&sorted, &self.ladder, &self.settings);
        }
        let last = self.chosen;
        let price = |place: usize, model: &Model| {
            let other_model = last.is_some_and(|(chosen, _)| chosen != place);
            let other_limit = last.is_some_and(|(_, limit)| limit != model.limit);
            model.cost
                + if other_model { self.settings.model_change } else { 0.0 }
                + if other_limit { self.settings.limit_change } else { 0.0 }
        };
        let priced = self.models.iter().enumerate().map(|(at, model)| (at, price(at, model)));
        let best = least(priced)?;
        let limit = self.models[best].limit;
        self.chosen = Some((best, limit));
        Some(limit)
    }

    /// Index in the settings of the model that was chosen last.
    pub fn chosen_model(&self) -> Option<usize> {
        self.chosen.map(|(place, _)| place)
    }
}

impl Model {
    fn learn(&mut self, sorted: &[f64], ladder: &Ladder, settings: &EnsembleSettings) {
        for (rung, limit) in ladder.limits().iter().enumerate() {
            let Counts { above, below } = Counts::of(sorted, *limit);
            self.above[rung] = (1.0 - self.decay) * self.above[rung] + self.decay * above;
            self.below[rung] = (1.0 - self.decay) * self.below[rung] + self.decay * below;
        }
        let price = |rung: usize| {
            let is_change = self.rung.is_some_and(|last| last != rung);
            settings.overrun * self.above[rung]
                + settings.underrun * self.below[rung]
                + if is_change { settings.limit_change } else { 0.0 }
        };
        let priced = (0..ladder.limits().len()).map(|rung| (rung, price(rung)));
        let rung = least(priced).unwrap_or(0);
        let limit = ladder.limit(rung) * (1.0 + self.margin);
        let is_change = self.rung.is_some() && limit != self.limit;
        let Counts { above, below } = Counts::of(sorted, limit);
        let now = settings.overrun * above
            + settings.underrun * below
            + if is_change { settings.limit_change } else { 0.0 };
        self.cost = settings.decay * now + (1.0 - settings.decay) * self.cost;
        self.rung = Some(rung);
        self.limit = limit;
    }
}

/// How many samples lie on either side of a limit.
struct Counts {
    above: f64,
    below: f64,
}

impl Counts {
    fn of(sorted: &[f64], limit: f64) -> Self {
        let below = sorted.partition_point(|sample| *sample < limit);
        let not_above = sorted.partition_point(|sample| *sample <= limit);
        Self { above: (sorted.len() - not_above) as f64, below: below as f64 }
    }
}

/// Index of the lowest price, the first one among ties.
fn least(priced: impl Iterator<Item = (usize, f64)>) -> Option<usize> {
    priced.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: [f64; 10] = [1.0, 1.0, 1.0, 1.0, 4.0, 1.0, 1.0, 1.0, 1.0, 1.0];

    /// Models as (decay, margin).
    fn ensemble(overrun: f64, models: &[(f64, f64)]) -> Ensemble {
        let models =
            models.iter().map(|&(decay, margin)| ModelSettings { decay, margin }).collect();
        let settings = EnsembleSettings { overrun, models, ..EnsembleSettings::default() };
        Ensemble::new(settings, Ladder::new(1.0, 2.0, 4))
    }

    #[test]
    fn the_worked_argmin() {
        assert_eq!(ensemble(4.0, &[(1.0, 0.0)]).observe(&SAMPLES), Some(1.0));
        assert_eq!(ensemble(10.0, &[(1.0, 0.0)]).observe(&SAMPLES), Some(4.0));
        assert_eq!(ensemble(10.0, &[(1.0, 0.5)]).observe(&SAMPLES), Some(6.0));
    }

    #[test]
    fn a_slow_model_is_replaced_after_being_wrong_for_long() {
        let mut ensemble = ensemble(10.0, &[(0.01, 0.0), (1.0, 0.0)]);
        for _ in 0..20 {
            ensemble.observe(&[1.0]);
        }
        let first = ensemble.chosen_model();
        assert_eq!(first, Some(0));
        let limits: Vec<Option<f64>> = (0..5).map(|_| ensemble.observe(&[8.0])).collect();
        assert_eq!(limits.last(), Some(&Some(8.0)));
        assert_eq!(ensemble.chosen_model(), Some(1));
    }

    #[test]
    fn without_samples_the_last_limit_is_kept() {
        let mut ensemble = ensemble(10.0, &[(1.0, 0.0)]);
        assert_eq!(ensemble.observe(&[]), None);
        ensemble.observe(&[2.0]);
        assert_eq!(ensemble.observe(&[f64::NAN]), Some(2.0));
    }
}
