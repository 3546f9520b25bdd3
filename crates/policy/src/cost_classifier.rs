//! An online classifier that minimises expected cost: one regression of cost per class, the lowest prediction wins.
//!
//! ```text
//!   predicted cost of class k = w_k . (1, x, x^2)        x: the standardised logarithm of the input
//!   class = the k with the least predicted cost           (cost-sensitive one-against-all)
//!   after the call, one recursive least-squares step per class towards the cost it would have had
//! ```
//!
//! With a cost of 1 for each class too high and `u` for each class too low, the choice converges to the
//! `u / (1 + u)` quantile of the right class, given the input: u = 19 is the 95th percentile.

/// Number of features, and of weights per class.
const FEATURES: usize = 3;
/// Ridge regularisation at the start, when few calls have been seen.
const RIDGE: f64 = 1.0;
/// Upper bound on the variance of one weight; it starts at 1 / [`RIDGE`].
const MAX_VARIANCE: f64 = 10.0;

/// Feature vector of one call.
type Features = [f64; FEATURES];

/// Predicts the cost of every class, updated after each call.
#[derive(Clone, Debug)]
pub struct CostClassifier {
    /// One row of weights per class.
    weights: Vec<Features>,
    /// Inverse of the second-moment matrix of the features, shared by all classes (recursive least squares).
    inverse: [[f64; FEATURES]; FEATURES],
    /// Mean and sum of squared deviations of the log input, and the number of calls seen.
    mean: f64,
    spread: f64,
    seen: u32,
    forgetting: f64,
}

impl CostClassifier {
    /// Creates a classifier without any data. Each new call multiplies the weight of earlier calls by `forgetting`.
    pub fn new(classes: usize, forgetting: f64) -> Self {
        let mut inverse = [[0.0; FEATURES]; FEATURES];
        for (place, row) in inverse.iter_mut().enumerate() {
            row[place] = 1.0 / RIDGE;
        }
        let weights = vec![[0.0; FEATURES]; classes];
        Self { weights, inverse, mean: 0.0, spread: 0.0, seen: 0, forgetting }
    }

    /// Number of calls it has learned from.
    pub fn seen(&self) -> u32 {
        self.seen
    }

    fn features(&self, log_input: Option<f64>) -> Features {
        let deviation = (self.spread / f64::from(self.seen.max(1))).sqrt();
        let x = match log_input.filter(|_| deviation > 1e-9) {
            // Beyond three deviations the squared term would dominate the prediction.
            Some(x) => ((x - self.mean) / deviation).clamp(-3.0, 3.0),
            None => 0.0,
        };
        [1.0, x, x * x]
    }

    /// Returns the class with the lowest predicted cost; ties go to the lowest class.
    pub fn choose(&self, log_input: Option<f64>) -> usize {
        let x = self.features(log_input);
        let costs = self.weights.iter().map(|weights| dot(weights, &x));
        let mut best = (0, f64::INFINITY);
        for (class, cost) in costs.enumerate() {
            if cost < best.1 {
                best = (class, cost);
            }
        }
        best.0
    }

    /// Learns that class `k` would have cost `cost(k)` for this call.
    pub fn learn(&mut self, log_input: Option<f64>, cost: impl Fn(usize) -> f64) {
        if let Some(x) = log_input {
            let before = x - self.mean;
            self.mean += before / f64::from(self.seen + 1);
            self.spread += before * (x - self.mean);
        }
        self.seen = self.seen.saturating_add(1);
        let x = self.features(log_input);
        let gain = self.advance(&x);
        for (class, weights) in self.weights.iter_mut().enumerate() {
            let error = cost(class) - dot(weights, &x);
            for (weight, gain) in weights.iter_mut().zip(gain) {
                *weight += gain * error;
            }
        }
    }

    /// Updates the inverse moments with the features of one call. Returns the gain of each weight.
    fn advance(&mut self, x: &Features) -> Features {
        let mut pushed = [0.0; FEATURES];
        for (place, row) in self.inverse.iter().enumerate() {
            pushed[place] = dot(row, x);
        }
        let scale = self.forgetting + dot(&pushed, x);
        let gain = pushed.map(|value| value / scale);
        for (i, row) in self.inverse.iter_mut().enumerate() {
            for (j, value) in row.iter_mut().enumerate() {
                // Average the two products so that rounding keeps the matrix symmetric; forgetting
                // would amplify any asymmetry within a few thousand calls.
                *value -= 0.5 * (gain[i] * pushed[j] + gain[j] * pushed[i]);
            }
        }
        self.inverse.iter_mut().flatten().for_each(|value| *value /= self.forgetting);
        for place in 0..FEATURES {
            self.limit_variance(place);
        }
        gain
    }

    /// Bounds the variance of a feature that never varies (no input, always the same input), which forgetting
    /// would otherwise grow without limit. Row and column shrink by the same factor, which keeps the matrix
    /// positive semi-definite.
    fn limit_variance(&mut self, place: usize) {
        let variance = self.inverse[place][place];
        if variance > MAX_VARIANCE {
            let shrink = (MAX_VARIANCE / variance).sqrt();
            for other in 0..FEATURES {
                self.inverse[place][other] *= shrink;
                self.inverse[other][place] *= shrink;
            }
        }
    }
}

fn dot(a: &Features, b: &Features) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(right: usize, under: f64) -> impl Fn(usize) -> f64 {
        move |class| {
            let off = class as f64 - right as f64;
            if off >= 0.0 { off } else { -off * under }
        }
    }

    #[test]
    fn it_follows_the_input() {
        let mut classifier = CostClassifier::new(12, 0.999);
        for n in 0..600 {
            let (x, right) = if n % 2 == 0 { (1.0, 2) } else { (5.0, 8) };
            classifier.learn(Some(x), linear(right, 10.0));
        }
        assert_eq!((classifier.choose(Some(1.0)), classifier.choose(Some(5.0))), (2, 8));
    }

    #[test]
    fn it_stays_stable_for_a_million_calls() {
        let mut classifier = CostClassifier::new(12, 0.998);
        for n in 0..1_000_000u64 {
            // Inputs that hardly vary, then constant inputs, then none at all: nearly collinear features.
            let input = match n % 3_000 {
                0..1_000 => Some(3.0 + 1e-4 * (n % 7) as f64),
                1_000..2_000 => Some(3.0),
                _ => None,
            };
            classifier.learn(input, linear(if n % 20 == 0 { 6 } else { 4 }, 50.0));
        }
        assert_eq!([classifier.choose(Some(3.0)), classifier.choose(None)], [6, 6]);
    }

    #[test]
    fn a_high_cost_of_undersizing_converges_to_a_high_quantile() {
        let mut classifier = CostClassifier::new(12, 1.0);
        for n in 0..1000 {
            // One call in ten needs class 7, the others class 3: a 19 to 1 penalty (p95) covers class 7.
            classifier.learn(None, linear(if n % 10 == 0 { 7 } else { 3 }, 19.0));
        }
        assert_eq!(classifier.choose(None), 7);
        let mut low_penalty = CostClassifier::new(12, 1.0);
        for n in 0..1000 {
            low_penalty.learn(None, linear(if n % 10 == 0 { 7 } else { 3 }, 2.0));
        }
        assert_eq!(low_penalty.choose(None), 3);
    }
}
