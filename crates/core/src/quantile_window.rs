//! Quantiles of the last so many values.
//!
//! The values are held twice: in order of arrival, to know which one leaves, and in order of size, to
//! read any quantile by index. A new value costs two binary searches and one short move of memory.
//!
//! The quantile is the nearest rank: of `n` values, the `ceil(q n)`-th smallest. Of 1, 2, .., 100 the
//! 99th percentile is 99; of fewer than 100 values it is the largest.

/// The last `capacity` values, ready for quantiles.
#[derive(Clone, Debug)]
pub struct QuantileWindow {
    capacity: usize,
    /// In order of arrival from `oldest` on, once the window is full.
    arrived: Vec<f32>,
    oldest: usize,
    sorted: Vec<f32>,
}

impl QuantileWindow {
    /// An empty window of `capacity` values, at least one.
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), arrived: Vec::new(), oldest: 0, sorted: Vec::new() }
    }

    /// Takes a value in; the oldest leaves if the window is full. NaN and endless values are ignored.
    pub fn push(&mut self, value: f64) {
        // Beyond f32 is as good as endless.
        let value = value as f32;
        if !value.is_finite() {
            return;
        }
        if self.arrived.len() < self.capacity {
            self.arrived.push(value);
        } else {
            let gone = std::mem::replace(&mut self.arrived[self.oldest], value);
            self.oldest = (self.oldest + 1) % self.capacity;
            let place = self.sorted.partition_point(|&held| held < gone);
            self.sorted.remove(place);
        }
        let place = self.sorted.partition_point(|&held| held < value);
        self.sorted.insert(place, value);
    }

    /// How many values are held.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The nearest-rank quantile, `q` from 0 to 1; nothing of an empty window.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let n = self.sorted.len();
        // A hair is taken off before rounding up: 0.07 x 100 is 7.000000000000001.
        let rank = (q * n as f64 - 1e-9).ceil() as usize;
        self.sorted.get(rank.clamp(1, n.max(1)) - 1).map(|&value| f64::from(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn window(capacity: usize, values: impl IntoIterator<Item = f64>) -> QuantileWindow {
        let mut window = QuantileWindow::new(capacity);
        values.into_iter().for_each(|value| window.push(value));
        window
    }

    #[test]
    fn the_nearest_rank_by_hand() {
        let hundred = window(512, (1..=100).rev().map(f64::from));
        for (q, expected) in [(0.0, 1.0), (0.05, 5.0), (0.07, 7.0), (0.5, 50.0), (0.99, 99.0)] {
            assert_eq!(hundred.quantile(q), Some(expected), "{q}");
        }
        assert_eq!(hundred.quantile(1.0), Some(100.0));
        assert_eq!(window(512, [3.0, 1.0]).quantile(0.99), Some(3.0));
        assert_eq!(QuantileWindow::new(4).quantile(0.5), None);
    }

    #[test]
    fn a_spike_is_forgotten_when_it_leaves_the_window() {
        let mut last_three = window(3, [9.0, 1.0, 2.0]);
        assert_eq!(last_three.quantile(1.0), Some(9.0));
        last_three.push(3.0);
        assert_eq!(last_three.quantile(1.0), Some(3.0));
        assert_eq!(last_three.len(), 3);
    }

    #[test]
    fn nonsense_is_ignored() {
        let held = window(3, [f64::NAN, f64::INFINITY, 1e300, 2.0]);
        assert_eq!((held.len(), held.quantile(0.5)), (1, Some(2.0)));
    }

    proptest! {
        #[test]
        fn it_agrees_with_sorting_the_last_values(
            values in prop::collection::vec(-1e6f32..1e6, 1..60), capacity in 1usize..20, q in 0.0f64..=1.0
        ) {
            let held = window(capacity, values.iter().map(|&value| f64::from(value)));
            let mut last = values[values.len().saturating_sub(capacity)..].to_vec();
            last.sort_by(f32::total_cmp);
            let rank = ((q * last.len() as f64 - 1e-9).ceil() as usize).max(1);
            prop_assert_eq!(held.quantile(q), Some(f64::from(last[rank - 1])));
        }
    }
}
