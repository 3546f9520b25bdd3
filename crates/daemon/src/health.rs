//! Whether the loop is on time, sees what is happening, and can write down what it does.

use serde::Serialize;
use windfall_core::{Duration, Timestamp};

/// What the control thread reports about itself.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// When the last tick began.
    pub last_tick: Timestamp,
    /// How long it took.
    pub tick_took: Duration,
    /// The longest one so far.
    pub longest_tick: Duration,
    /// When the last picture that a tick saw was measured.
    pub seen_at: Timestamp,
    /// Why the last tick had no observation.
    pub blind: Option<String>,
    /// Functions in doubt.
    pub in_doubt: usize,
    /// Functions whose size was changed from here and that are not managed any more.
    pub to_restore: usize,
    /// Whether the policy is quarantined and every call gets its reservation.
    pub is_quarantined: bool,
    /// What is wrong with the database; nothing if it takes everything.
    pub database: Option<String>,
    /// Rows that the database did not take.
    pub rows_dropped: u64,
}

/// How one thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As it should be.
    Ok,
    /// Works with less than it should.
    Degraded,
    /// Does not work; what is in doubt has its own allocation.
    Failing,
}

/// One check, for people and scripts.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What is checked.
    pub name: &'static str,
    /// How it is.
    pub state: State,
    /// One sentence with the numbers.
    pub detail: String,
}

/// All checks.
#[derive(Clone, Debug, Serialize)]
pub struct HealthReport {
    /// The worst of them.
    pub state: State,
    /// Each.
    pub checks: Vec<Check>,
}

impl Health {
    /// Judges everything at `now` by the clock of the reader, so that a loop that hangs is seen by everyone else.
    pub fn report(&self, now: Timestamp, tick: Duration) -> HealthReport {
        let checks = vec![
            self.ticks(now, tick),
            self.observations(now, tick),
            self.policy(),
            self.sizes(),
            self.writes(),
        ];
        let state = checks.iter().map(|check| check.state).max().unwrap_or(State::Ok);
        HealthReport { state, checks }
    }

    fn ticks(&self, now: Timestamp, tick: Duration) -> Check {
        let since = now.since(self.last_tick);
        // One tick may be late on a busy machine; two that are missing are a fault.
        let state = match since.as_secs_f64() / tick.as_secs_f64().max(1e-3) {
            late if late > 5.0 => State::Failing,
            late if late > 2.5 => State::Degraded,
            _ => State::Ok,
        };
        let detail = format!(
            "last tick {:.1} s ago (every {:.1} s), took {:.1} ms, longest {:.1} ms",
            since.as_secs_f64(),
            tick.as_secs_f64(),
            self.tick_took.as_millis_f64(),
            self.longest_tick.as_millis_f64(),
        );
        Check { name: "ticks on time", state, detail }
    }

    fn observations(&self, now: Timestamp, tick: Duration) -> Check {
        let age = now.since(self.seen_at);
        let state = match (&self.blind, age.as_secs_f64() / tick.as_secs_f64().max(1e-3)) {
            (_, old) if old > 30.0 => State::Failing,
            (Some(_), _) => State::Degraded,
            (None, old) if old > 3.5 => State::Degraded,
            (None, _) => State::Ok,
        };
        let age = age.as_secs_f64();
        let detail = match &self.blind {
            Some(error) => format!("no observation: {error}; the last one is {age:.1} s old"),
            None => format!("the last one is {age:.1} s old"),
        };
        Check { name: "observations fresh", state, detail }
    }

    fn policy(&self) -> Check {
        let (state, detail) = match self.is_quarantined {
            true => (State::Degraded, "quarantined after failures: every call gets its own size"),
            false => (State::Ok, "in charge"),
        };
        Check { name: "policy", state, detail: detail.to_owned() }
    }

    fn sizes(&self) -> Check {
        let Self { in_doubt, to_restore, .. } = *self;
        let state = if in_doubt + to_restore == 0 { State::Ok } else { State::Degraded };
        let detail = format!("{in_doubt} functions in doubt, {to_restore} being restored");
        Check { name: "sizes known", state, detail }
    }

    fn writes(&self) -> Check {
        let (state, detail) = match &self.database {
            Some(problem) => {
                let dropped = self.rows_dropped;
                (State::Degraded, format!("{problem}; {dropped} rows were not written"))
            }
            None => (State::Ok, "takes everything".to_owned()),
        };
        Check { name: "database", state, detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_secs(2);

    #[test]
    fn a_loop_that_hangs_is_seen_by_the_clock_of_the_reader() {
        let health = Health {
            last_tick: Timestamp::from_secs(100),
            seen_at: Timestamp::from_secs(100),
            ..Health::default()
        };
        assert_eq!(health.report(Timestamp::from_secs(101), TICK).state, State::Ok);
        assert_eq!(health.report(Timestamp::from_secs(107), TICK).state, State::Degraded);
        assert_eq!(health.report(Timestamp::from_secs(130), TICK).state, State::Failing);
    }

    #[test]
    fn a_blind_tick_and_a_full_disk_degrade_and_are_named() {
        let health = Health {
            blind: Some("platform unreachable: it is away".to_owned()),
            database: Some("disk full".to_owned()),
            rows_dropped: 7,
            ..Health::default()
        };
        let report = health.report(Timestamp::from_secs(1), TICK);
        assert_eq!(report.state, State::Degraded);
        let details: Vec<&str> = report.checks.iter().map(|check| check.detail.as_str()).collect();
        assert!(details.iter().any(|detail| detail.contains("it is away")), "{details:?}");
        assert!(details.iter().any(|detail| detail.contains("7 rows")), "{details:?}");
    }
}
