//! The one clock of a platform: integer time since it started.

use std::time::Instant;

use windfall_core::{Duration, Timestamp};

/// Turns moments of the machine's steady clock into time since the platform started. Copies agree.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
}

impl Clock {
    /// A clock that shows zero now.
    pub fn start() -> Self {
        Self { started: Instant::now() }
    }

    /// The moment at which it showed zero.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.at(Instant::now())
    }

    /// The time at `moment`; zero for moments before the start.
    pub fn at(&self, moment: Instant) -> Timestamp {
        let passed = moment.saturating_duration_since(self.started);
        Timestamp::ZERO + duration(passed)
    }
}

/// A length of the standard library in integer time.
pub(crate) fn duration(passed: std::time::Duration) -> Duration {
    Duration::from_nanos(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX))
}

/// The way back.
pub(crate) fn std_duration(length: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(length.as_nanos())
}
