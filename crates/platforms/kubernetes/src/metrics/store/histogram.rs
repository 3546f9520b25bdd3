//! Durations as buckets, the way Prometheus counts them.

/// Cumulative counts of durations. Buckets are few and their bounds ascend.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Requests.
    pub count: f64,
    /// Seconds of all together.
    pub sum: f64,
    /// Upper bound in seconds and requests that took at most as long.
    pub buckets: Vec<(f64, f64)>,
}

impl Histogram {
    /// Adds requests to the bucket with this bound, which other lines of the same page may have begun.
    pub fn put_bucket(&mut self, bound: f64, count: f64) {
        match self.buckets.binary_search_by(|(other, _)| other.total_cmp(&bound)) {
            Ok(place) => self.buckets[place].1 += count,
            Err(place) => self.buckets.insert(place, (bound, count)),
        }
    }

    /// What came since `earlier`; everything, if the counters started anew.
    pub fn since(&self, earlier: &Self) -> Self {
        if self.count < earlier.count || self.sum < earlier.sum {
            return self.clone();
        }
        let before = |bound: f64| {
            let found = earlier.buckets.binary_search_by(|(other, _)| other.total_cmp(&bound));
            found.map_or(0.0, |place| earlier.buckets[place].1)
        };
        let new = |(bound, count): &(f64, f64)| (*bound, (count - before(*bound)).max(0.0));
        Self {
            count: self.count - earlier.count,
            sum: self.sum - earlier.sum,
            buckets: self.buckets.iter().map(new).collect(),
        }
    }

    /// Adds the requests of another pod.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        for (bound, count) in &other.buckets {
            self.put_bucket(*bound, *count);
        }
    }

    /// Mean duration, seconds.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }

    /// The quantile, seconds: inside a bucket durations are taken as spread evenly. Ten requests of which four take up
    /// to 0.1 s and all up to 0.5 s have a median of 0.1 + (5 - 4) / 6 · 0.4 = 0.167 s. Above the last finite bound it
    /// is that bound.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let all = self.buckets.last().map(|(_, count)| *count).filter(|count| *count > 0.0)?;
        let rank = q.clamp(0.0, 1.0) * all;
        let (mut lower, mut below) = (0.0, 0.0);
        for (bound, count) in &self.buckets {
            if !bound.is_finite() {
                return Some(lower);
            }
            if *count >= rank && *count > below {
                return Some(lower + (rank - below) / (count - below) * (bound - lower));
            }
            (lower, below) = (*bound, *count);
        }
        Some(lower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(count: f64, sum: f64, buckets: &[(f64, f64)]) -> Histogram {
        Histogram { count, sum, buckets: buckets.to_vec() }
    }

    #[test]
    fn the_worked_quantile_holds() {
        let ten = histogram(10.0, 2.0, &[(0.1, 4.0), (0.5, 10.0), (f64::INFINITY, 10.0)]);
        assert!((ten.quantile(0.5).unwrap() - (0.1 + 0.4 / 6.0)).abs() < 1e-12);
        assert_eq!(ten.mean(), Some(0.2));
        let slow = histogram(1.0, 20.0, &[(0.1, 0.0), (f64::INFINITY, 1.0)]);
        assert_eq!(slow.quantile(0.95), Some(0.1));
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn counters_that_start_anew_count_from_zero() {
        let before = histogram(10.0, 2.0, &[(0.1, 4.0), (0.5, 10.0)]);
        let later = histogram(13.0, 3.0, &[(0.1, 5.0), (0.5, 13.0)]);
        assert_eq!(later.since(&before), histogram(3.0, 1.0, &[(0.1, 1.0), (0.5, 3.0)]));
        let restarted = histogram(2.0, 0.1, &[(0.1, 2.0), (0.5, 2.0)]);
        assert_eq!(restarted.since(&before), restarted);
    }
}
