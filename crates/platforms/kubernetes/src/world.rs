//! What all parts of the controller share: the index, the measurements, what the cluster offers. Locks are held for the
//! length of a function and never across an await.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use windfall_core::Timestamp;

use crate::cluster::Cluster;
use crate::discovery::Offers;
use crate::metrics::MetricsStore;

/// Shared state.
#[derive(Debug, Default)]
pub struct World {
    cluster: Mutex<Cluster>,
    metrics: Mutex<MetricsStore>,
    offers: RwLock<Offers>,
}

impl World {
    /// The index.
    pub fn cluster(&self) -> MutexGuard<'_, Cluster> {
        // Facts are whole at every moment, so a panic elsewhere does not spoil them.
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The measurements.
    pub fn metrics(&self) -> MutexGuard<'_, MetricsStore> {
        self.metrics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the cluster offers.
    pub fn offers(&self) -> Offers {
        *self.offers.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what the cluster offers.
    pub fn set_offers(&self, offers: Offers) {
        *self.offers.write().unwrap_or_else(PoisonError::into_inner) = offers;
    }
}

/// The time, as nanoseconds since 1970.
pub fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos());
    Timestamp::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// A time as objects of the API write it, RFC 3339 in whole seconds.
pub fn rfc3339(at: Timestamp) -> String {
    let seconds = i64::try_from(at.as_nanos() / 1_000_000_000).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| String::new(), |time| time.to_string())
}

/// The time that an object of the API wrote.
pub fn from_rfc3339(text: &str) -> Option<Timestamp> {
    let seconds = text.parse::<jiff::Timestamp>().ok()?.as_second();
    u64::try_from(seconds).ok().map(Timestamp::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_other_objects_write_them() {
        let at = Timestamp::from_secs(1_790_000_000);
        assert_eq!(rfc3339(at), "2026-09-21T14:13:20Z");
        assert_eq!(from_rfc3339(&rfc3339(at)), Some(at));
        assert_eq!(from_rfc3339("yesterday"), None);
    }
}
