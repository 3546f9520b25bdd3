//! Exact quantiles: every result is kept, so nothing has to be estimated.

/// Numbers in ascending order.
pub(crate) struct Sorted(Vec<u64>);

impl Sorted {
    pub(crate) fn new(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        Self(values)
    }

    /// The smallest value that at least `share` of all do not exceed; 0 if there are none.
    ///
    /// Of 10 values the 0.9 quantile is the ninth.
    pub(crate) fn quantile(&self, share: f64) -> u64 {
        let place = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(place.saturating_sub(1)).copied().unwrap_or(0)
    }

    pub(crate) fn mean(&self) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.total() / self.0.len() as f64 }
    }

    pub(crate) fn total(&self) -> f64 {
        self.0.iter().map(|value| *value as f64).sum()
    }

    /// How many values are above `limit`.
    pub(crate) fn above(&self, limit: u64) -> usize {
        self.0.len() - self.0.partition_point(|value| *value <= limit)
    }

    /// How many values lie in (lower, upper] for bounds that grow by a factor of 2^(1/4), empty ones left out.
    pub(crate) fn buckets(&self) -> Vec<(u64, usize)> {
        let mut buckets: Vec<(u64, usize)> = Vec::new();
        for value in &self.0 {
            let step = ((*value).max(1000) as f64 / 1000.0).log2() * 4.0;
            let upper = (1000.0 * (step.ceil() / 4.0).exp2()).round() as u64;
            match buckets.last_mut() {
                Some((bound, count)) if *bound == upper => *count += 1,
                _ => buckets.push((upper, 1)),
            }
        }
        buckets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        let sorted = Sorted::new((1..=10).rev().collect());
        let at = [0.0, 0.5, 0.9, 0.91, 1.0].map(|share| sorted.quantile(share));
        assert_eq!(at, [1, 5, 9, 10, 10]);
        assert_eq!((sorted.mean(), sorted.above(7)), (5.5, 3));
        assert_eq!(Sorted::new(Vec::new()).quantile(0.5), 0);
    }

    #[test]
    fn buckets_count_everything_once() {
        let values: Vec<u64> = (0..10_000).map(|value| value * 777).collect();
        let buckets = Sorted::new(values.clone()).buckets();
        assert_eq!(buckets.iter().map(|(_, count)| count).sum::<usize>(), values.len());
        assert!(buckets.windows(2).all(|pair| pair[0].0 < pair[1].0));
        // 1 us is the first bound; four more are twice as much.
        assert_eq!(Sorted::new(vec![500, 2000]).buckets(), [(1000, 1), (2000, 1)]);
    }
}
