//! A new version is on trial for a minute. If more calls are late than before it took over, the version before returns.

use windfall_core::{Duration, Timestamp};

/// How long a version is watched.
const LENGTH: Duration = Duration::from_secs(60);
/// Judged calls that are needed before a verdict.
const ENOUGH: u64 = 40;
/// The share of late calls may rise by so much; beyond it service has degraded.
const WORSE: f64 = 0.02;
/// Standard errors by which a rise must stand out from chance.
const CLEARLY: f64 = 2.0;

/// Calls that were judged by their objective, and late or failed ones among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// Judged calls.
    pub judged: u64,
    /// Late or failed.
    pub late: u64,
}

impl Service {
    /// The share of late calls; 0 if none was judged.
    pub fn late_share(self) -> f64 {
        if self.judged == 0 { 0.0 } else { self.late as f64 / self.judged as f64 }
    }

    /// What came since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            judged: self.judged.saturating_sub(earlier.judged),
            late: self.late.saturating_sub(earlier.late),
        }
    }
}

/// How a trial ends.
#[derive(Clone, Debug, PartialEq)]
pub enum TrialEnd {
    /// The version stays.
    Kept(String),
    /// The version before returns.
    RolledBack(String),
}

/// The watch over a new version.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    began: Timestamp,
    /// Service in the minute before.
    before: Service,
    /// Counters when it began.
    counted: Service,
}

impl Trial {
    /// Begins at `now`; `counted` are the counters since the start, `before` the service of the time before.
    pub fn begin(now: Timestamp, counted: Service, before: Service) -> Self {
        Self { began: now, before, counted }
    }

    /// When it is over.
    pub fn until(&self) -> Timestamp {
        self.began + LENGTH
    }

    /// Judges it; nothing while it goes on.
    ///
    /// Before 1 % were late; under the new version 9 of 60 calls are: 15 %. By chance a share of 3 % (what is allowed)
    /// varies by 2.2 %, so 15 % stands out by five of these and the version goes.
    pub fn judge(&self, now: Timestamp, counted: Service) -> Option<TrialEnd> {
        let under = counted.since(self.counted);
        let allowed = self.before.late_share() + WORSE;
        let chance = (allowed * (1.0 - allowed).max(0.0) / under.judged.max(1) as f64).sqrt();
        let reason = format!(
            "{:.1} % of {} calls late, {:.1} % before",
            under.late_share() * 100.0,
            under.judged,
            self.before.late_share() * 100.0
        );
        if under.judged >= ENOUGH && under.late_share() > allowed + CLEARLY * chance {
            return Some(TrialEnd::RolledBack(format!("service degraded: {reason}")));
        }
        (now >= self.until()).then_some(TrialEnd::Kept(reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial() -> Trial {
        let before = Service { judged: 500, late: 5 };
        Trial::begin(Timestamp::from_secs(100), Service { judged: 1000, late: 10 }, before)
    }

    #[test]
    fn a_version_that_degrades_service_goes_before_the_minute_is_over() {
        let counted = Service { judged: 1060, late: 19 };
        let end = trial().judge(Timestamp::from_secs(115), counted);
        let Some(TrialEnd::RolledBack(reason)) = end else { panic!("{end:?}") };
        assert_eq!(reason, "service degraded: 15.0 % of 60 calls late, 1.0 % before");
    }

    #[test]
    fn a_version_that_serves_as_well_is_kept_after_the_minute() {
        let counted = Service { judged: 1400, late: 14 };
        assert_eq!(trial().judge(Timestamp::from_secs(130), counted), None);
        let end = trial().judge(Timestamp::from_secs(160), counted);
        assert!(matches!(end, Some(TrialEnd::Kept(_))), "{end:?}");
    }
}
