//! Online linear regression: least squares with exponential forgetting.
//!
//! The state is the weight `n`, the means and the centred second moments. A new point `(x, y)` first decays
//! them by `forgetting` and then updates them (Welford), which avoids cancellation far from the origin:
//!
//! ```text
//!   slope = Sxy / Sxx      R2 = Sxy^2 / (Sxx Syy)      y(x) = mean_y + slope (x - mean_x)
//! ```
//!
//! Through (0, 0), (1, 2), (2, 1): means 1 and 1, Sxx = 2, Sxy = 1, Syy = 2, so the slope is 0.5, the
//! line is `0.5 + 0.5 x` and R2 is 0.25.

/// A regression line of y on x, updated point by point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineFit {
    forgetting: f64,
    points: u32,
    weight: f64,
    mean_x: f64,
    mean_y: f64,
    sxx: f64,
    sxy: f64,
    syy: f64,
}

impl LineFit {
    /// Creates an empty fit. Each new point multiplies the weight of earlier ones by `forgetting`: 1 forgets
    /// nothing, 0.998 halves a point's weight after 346 more.
    pub fn new(forgetting: f64) -> Self {
        let (mean_x, mean_y, sxx, sxy, syy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        Self { forgetting, points: 0, weight: 0.0, mean_x, mean_y, sxx, sxy, syy }
    }

    /// Adds a point. A point that is not finite is ignored.
    pub fn push(&mut self, x: f64, y: f64) {
        if !(x.is_finite() && y.is_finite()) {
            return;
        }
        self.points = self.points.saturating_add(1);
        let kept = self.weight * self.forgetting;
        self.weight = kept + 1.0;
        let (dx, dy) = (x - self.mean_x, y - self.mean_y);
        self.mean_x += dx / self.weight;
        self.mean_y += dy / self.weight;
        let gain = kept / self.weight;
        self.sxx = self.forgetting * self.sxx + gain * dx * dx;
        self.sxy = self.forgetting * self.sxy + gain * dx * dy;
        self.syy = self.forgetting * self.syy + gain * dy * dy;
    }

    /// Number of points added.
    pub fn points(&self) -> u32 {
        self.points
    }

    /// Share of the variance of y that the line explains; 0 if x or y never varied.
    pub fn r2(&self) -> f64 {
        let scale = self.sxx * self.syy;
        if scale > 0.0 { (self.sxy * self.sxy / scale).min(1.0) } else { 0.0 }
    }

    /// Value at `x` with the slope shrunk towards zero, as if `flat_points` more points lay on a flat line.
    /// Returns the mean if `x` is unknown or never varied, and `None` before the first point.
    pub fn shrunk_at(&self, x: Option<f64>, flat_points: f64) -> Option<f64> {
        let shrinkage = self.weight / (self.weight + flat_points);
        let rise = match x.filter(|_| self.sxx > 0.0) {
            Some(x) => shrinkage * self.sxy / self.sxx * (x - self.mean_x),
            None => 0.0,
        };
        (self.points > 0).then_some(self.mean_y + rise)
    }

    /// Value of the line at `x`; `None` until x has varied.
    pub fn at(&self, x: f64) -> Option<f64> {
        (self.sxx > 0.0).then(|| self.mean_y + self.sxy / self.sxx * (x - self.mean_x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(points: &[(f64, f64)], forgetting: f64) -> LineFit {
        let mut fit = LineFit::new(forgetting);
        points.iter().for_each(|&(x, y)| fit.push(x, y));
        fit
    }

    #[test]
    fn the_worked_numbers() {
        let fit = through(&[(0.0, 0.0), (1.0, 2.0), (2.0, 1.0)], 1.0);
        assert!((fit.at(0.0).unwrap() - 0.5).abs() < 1e-12);
        assert!((fit.at(4.0).unwrap() - 2.5).abs() < 1e-12);
        assert!((fit.r2() - 0.25).abs() < 1e-12);
    }

    #[test]
    fn points_on_a_line_have_an_r2_of_one() {
        let far = 1e6;
        let fit = through(&[(far, 1.0), (far + 1.0, 3.0), (far + 5.0, 11.0)], 0.998);
        assert!((fit.r2() - 1.0).abs() < 1e-9);
        assert!((fit.at(far + 2.0).unwrap() - 5.0).abs() < 1e-6);
    }

    #[test]
    fn without_variation_there_is_no_line() {
        let fit = through(&[(2.0, 1.0), (2.0, 5.0)], 1.0);
        assert_eq!((fit.at(2.0), fit.r2()), (None, 0.0));
        let flat = through(&[(1.0, 3.0), (2.0, 3.0)], 1.0);
        assert_eq!((flat.at(9.0), flat.r2()), (Some(3.0), 0.0));
    }

    #[test]
    fn forgetting_is_weighted_least_squares() {
        // Weights 1/4, 1/2, 1: mean_x = 2.5 / 1.75, mean_y = 2 / 1.75, by the weighted normal equations.
        let (points, weights) = ([(0.0, 0.0), (1.0, 2.0), (2.0, 1.0)], [0.25, 0.5, 1.0]);
        let total: f64 = weights.iter().sum();
        let mean = |of: &dyn Fn((f64, f64)) -> f64| {
            points.iter().zip(weights).map(|(&p, w)| w * of(p)).sum::<f64>() / total
        };
        let (mx, my) = (mean(&|p| p.0), mean(&|p| p.1));
        let slope = mean(&|p| (p.0 - mx) * (p.1 - my)) / mean(&|p| (p.0 - mx) * (p.0 - mx));
        let fit = through(&points, 0.5);
        assert!((fit.at(3.0).unwrap() - (my + slope * (3.0 - mx))).abs() < 1e-12);
    }

    #[test]
    fn a_shrunk_line_is_flatter_when_there_are_few_points() {
        let few = through(&[(0.0, 0.0), (1.0, 2.0), (2.0, 1.0)], 1.0);
        // Three points against three on the mean: half of the slope 0.5, around the mean (1, 1).
        assert!((few.shrunk_at(Some(3.0), 3.0).unwrap() - 1.5).abs() < 1e-12);
        assert_eq!(few.shrunk_at(None, 3.0), Some(1.0));
        assert_eq!(LineFit::new(1.0).shrunk_at(Some(1.0), 3.0), None);
    }

    #[test]
    fn points_that_are_not_finite_are_ignored() {
        let mut fit = through(&[(0.0, 0.0), (1.0, 1.0)], 1.0);
        let before = fit;
        fit.push(f64::NAN, 1.0);
        fit.push(1.0, f64::INFINITY);
        assert_eq!((fit, fit.points()), (before, 2));
    }
}
