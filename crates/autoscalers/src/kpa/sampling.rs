//! How many pods are scraped each second, and how their statistics are extrapolated to all.
//!
//! ```text
//!  N ready pods ──► n = N              if N <= 3
//!                   n = ceil(N X / (N + X - 1)),  X = 1.96² · 100 / 5² = 15.3664
//!  sum over the n, divided by n, times N  =  the revision's total
//! ```
//!
//! 100 pods: ceil(1536.64 / 114.3664) = ceil(13.44) = 14. If those 14 report 42 requests in flight in total, the
//! estimate for the revision is 42 / 14 · 100 = 300. Pods at least as old as the stable window are scraped first;
//! younger ones only fill the sample, because their averages still rise.

/// Sample size for 95 % confidence within 5, given a variance of 100 and an infinite population.
const INFINITE_POPULATION_SAMPLE: f64 = 1.96 * 1.96 * 100.0 / (5.0 * 5.0);

/// Number of pods that are scraped out of `population`.
pub fn sample_size(population: u32) -> u32 {
    let count = f64::from(population);
    if population <= 3 {
        return population;
    }
    (count * INFINITE_POPULATION_SAMPLE / (count + INFINITE_POPULATION_SAMPLE - 1.0)).ceil() as u32
}

/// Report of one pod (or an activator) for a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stat {
    /// Requests in flight, averaged over the second.
    pub average_concurrent: f64,
    /// Requests in flight that came through an activator, which has already counted them.
    pub average_proxied_concurrent: f64,
    /// Requests in the second.
    pub request_count: f64,
    /// Requests in the second that came through an activator.
    pub proxied_request_count: f64,
}

impl Stat {
    /// Requests in flight that did not come through an activator.
    pub fn concurrency(self) -> f64 {
        self.average_concurrent - self.average_proxied_concurrent
    }

    /// Requests per second that did not come through an activator.
    pub fn rps(self) -> f64 {
        self.request_count - self.proxied_request_count
    }
}

/// Which pods are scraped, as indices into `ages_seconds`: old ones first, in the given order. Upstream shuffles within
/// each group; here the order is up to the caller.
pub fn pods_to_scrape(ages_seconds: &[u64], stable_window_seconds: u32) -> Vec<usize> {
    let is_old = |place: &usize| ages_seconds[*place] >= u64::from(stable_window_seconds);
    let (old, young): (Vec<usize>, Vec<usize>) = (0..ages_seconds.len()).partition(is_old);
    let wanted = sample_size(ages_seconds.len() as u32) as usize;
    old.into_iter().chain(young).take(wanted).collect()
}

/// Extrapolates the total of a revision with `population` pods from the reports of a sample.
pub fn extrapolate(sample: &[Stat], population: u32) -> Stat {
    let (size, all) = (sample.len().max(1) as f64, f64::from(population));
    let total = |part: fn(&Stat) -> f64| sample.iter().map(part).sum::<f64>() / size * all;
    Stat {
        average_concurrent: total(|stat| stat.average_concurrent),
        average_proxied_concurrent: total(|stat| stat.average_proxied_concurrent),
        request_count: total(|stat| stat.request_count),
        proxied_request_count: total(|stat| stat.proxied_request_count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_sizes_of_the_reference() {
        let sizes = [(0, 0), (1, 1), (3, 3), (4, 4), (10, 7), (100, 14), (1000, 16)];
        for (population, wanted) in sizes {
            assert_eq!(sample_size(population), wanted, "{population} pods");
        }
    }

    #[test]
    fn young_pods_only_fill_the_sample() {
        let ages = [5, 100, 7, 100, 100, 100, 100, 100, 9, 100];
        assert_eq!(pods_to_scrape(&ages, 60), [1, 3, 4, 5, 6, 7, 9]);
        assert_eq!(pods_to_scrape(&[5, 60, 59], 60), [1, 0, 2]);
    }

    #[test]
    fn a_sample_is_extrapolated_and_proxied_requests_are_subtracted() {
        let report =
            Stat { average_concurrent: 3.0, average_proxied_concurrent: 1.0, ..Stat::default() };
        let total = extrapolate(&[report; 14], 100);
        assert!((total.average_concurrent - 300.0).abs() < 1e-9);
        assert!((total.concurrency() - 200.0).abs() < 1e-9);
    }
}
