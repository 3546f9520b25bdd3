//! What service has to be like while load is raised, and how near a run comes to breaking it.
//!
//! | clause     | by default                                                                             |
//! | ---------- | -------------------------------------------------------------------------------------- |
//! | slow       | at most 1 % of calls with a bounded slowdown above 2                                   |
//! | class      | the same in every class of duration: below 100 ms, 1 s, 10 s, and above                |
//! | violations | at most 0.1 % of calls run more than 5 % longer than alone at their reservation        |
//! | wait       | nobody waits longer than 60 s, or ten of its run times where that is more              |
//! | kills      | no more calls killed for memory than with `fixed`                                      |
//!
//! Each clause becomes a margin: what was measured over what is allowed. 1.5 % of slow calls have a margin of 1.5; the
//! objective holds while the largest margin is at most 1. A class with fewer than 100 calls has no say, because one
//! call would decide it.

use serde::{Deserialize, Serialize};
use windfall_core::Duration;

use super::measure::{CLASSES, FunctionService};

/// Calls below which a class has no say.
const FEWEST_IN_CLASS: f64 = 100.0;

/// What service has to be like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective {
    /// Share of calls that may be slow.
    pub slow_share: f64,
    /// A call is slow if its bounded slowdown is above this.
    pub slow_above: f64,
    /// Whether that holds in every class of duration as well.
    pub in_every_class: bool,
    /// Share of calls that may run longer than alone at their reservation.
    pub violation_share: f64,
    /// A call runs longer if its run time relative to that is above this.
    pub violation_above: f64,
    /// The longest that anybody may wait,
    pub longest_wait: Duration,
    /// or this many of its run times, where that is more.
    pub longest_wait_runs: f64,
    /// Whether calls killed for memory beyond those of `fixed` break it.
    pub counts_kills: bool,
}

impl Default for Objective {
    fn default() -> Self {
        Self {
            slow_share: 0.01,
            slow_above: 2.0,
            in_every_class: true,
            violation_share: 0.001,
            violation_above: 1.05,
            longest_wait: Duration::from_secs(60),
            longest_wait_runs: 10.0,
            counts_kills: true,
        }
    }
}

/// What users say of an objective; the rest is as usual.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ObjectiveSettings {
    /// Share of calls that may be slow.
    pub slow_share: f64,
    /// A call is slow if its bounded slowdown is above this.
    pub slow_above: f64,
    /// Whether that holds in every class of duration as well.
    pub in_every_class: bool,
    /// Share of calls that may run longer than alone at their reservation.
    pub violation_share: f64,
    /// A call runs longer if its run time relative to that is above this.
    pub violation_above: f64,
    /// The longest that anybody may wait, or ten run times where that is more.
    pub longest_wait_seconds: f64,
}

impl Default for ObjectiveSettings {
    fn default() -> Self {
        let usual = Objective::default();
        Self {
            slow_share: usual.slow_share,
            slow_above: usual.slow_above,
            in_every_class: usual.in_every_class,
            violation_share: usual.violation_share,
            violation_above: usual.violation_above,
            longest_wait_seconds: usual.longest_wait.as_secs_f64(),
        }
    }
}

/// Fatal: a number that no objective can have.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{setting} is {value}, allowed is {allowed}")]
pub struct ObjectiveError {
    /// Which one, without its unit.
    pub setting: &'static str,
    /// What was asked for.
    pub value: f64,
    /// What may be asked for.
    pub allowed: &'static str,
}

impl TryFrom<ObjectiveSettings> for Objective {
    type Error = ObjectiveError;

    fn try_from(settings: ObjectiveSettings) -> Result<Self, ObjectiveError> {
        let ObjectiveSettings {
            slow_share,
            slow_above,
            in_every_class,
            violation_share,
            violation_above,
            longest_wait_seconds,
        } = settings;
        const SHARE: &str = "more than 0, at most 1";
        let wait = longest_wait_seconds;
        let checks = [
            ("slow_share", slow_share, 1e-9..=1.0, SHARE),
            ("violation_share", violation_share, 1e-9..=1.0, SHARE),
            ("slow_above", slow_above, 1.0..=1e6, "1 to 1000000"),
            ("violation_above", violation_above, 1.0..=1e6, "1 to 1000000"),
            ("longest_wait", wait, 0.001..=1e9, "0.001 to 1000000000 s"),
        ];
        for (setting, value, range, allowed) in checks {
            if !range.contains(&value) {
                return Err(ObjectiveError { setting, value, allowed });
            }
        }
        Ok(Self {
            slow_share,
            slow_above,
            in_every_class,
            violation_share,
            violation_above,
            longest_wait: Duration::from_secs_f64(wait),
            ..Self::default()
        })
    }
}

/// One demand of an objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clause {
    /// Slow calls overall.
    Slow,
    /// Slow calls in the worst class.
    Class,
    /// Calls that run longer than at their reservation.
    Violations,
    /// The longest wait.
    Wait,
    /// Calls killed for memory.
    Kills,
}

impl Clause {
    /// All of them, in the order of [`Objective::margins`].
    pub const ALL: [Self; 5] = [Self::Slow, Self::Class, Self::Violations, Self::Wait, Self::Kills];

    /// A word for tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::Class => "class",
            Self::Violations => "violations",
            Self::Wait => "wait",
            Self::Kills => "kills",
        }
    }
}

/// The clause that is nearest to breaking, or broken furthest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Binding {
    /// Which.
    pub clause: Clause,
    /// What was measured over what is allowed.
    pub margin: f64,
}

/// What was measured, summed over functions that count so many times each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Service {
    calls: [f64; CLASSES],
    slow: [f64; CLASSES],
    violations: f64,
    kills: f64,
    longest_wait: f64,
}

impl Service {
    /// Sums `functions`, each counted as often as `times` says; once, if nothing is said.
    pub fn of(functions: &[FunctionService], times: Option<&[u32]>) -> Self {
        let mut sum = Self::default();
        for (place, function) in functions.iter().enumerate() {
            let times = times.map_or(1, |times| times.get(place).copied().unwrap_or(0));
            if times > 0 {
                sum.add(function, f64::from(times));
            }
        }
        sum
    }

    fn add(&mut self, function: &FunctionService, times: f64) {
        for class in 0..CLASSES {
            self.calls[class] += times * f64::from(function.calls[class]);
            self.slow[class] += times * f64::from(function.slow[class]);
        }
        self.violations += times * f64::from(function.violations);
        self.kills += times * f64::from(function.kills);
        self.longest_wait = self.longest_wait.max(f64::from(function.longest_wait));
    }

    /// Calls that were measured.
    pub fn calls(&self) -> f64 {
        self.calls.iter().sum()
    }

    /// Share of calls that were slow.
    pub fn slow_share(&self) -> f64 {
        self.slow.iter().sum::<f64>() / self.calls().max(1.0)
    }

    /// Share of slow calls in the worst class that has a say.
    pub fn worst_class(&self) -> f64 {
        let shares = self.calls.iter().zip(&self.slow);
        let heard = shares.filter(|(calls, _)| **calls >= FEWEST_IN_CLASS);
        heard.map(|(calls, slow)| slow / calls).fold(0.0, f64::max)
    }

    /// Share of calls that ran longer than alone at their reservation.
    pub fn violation_share(&self) -> f64 {
        self.violations / self.calls().max(1.0)
    }

    /// The longest wait over what was allowed for that call.
    pub fn longest_wait(&self) -> f64 {
        self.longest_wait
    }

    /// Calls killed for memory.
    pub fn kills(&self) -> f64 {
        self.kills
    }
}

impl Objective {
    /// What was measured over what is allowed, clause by clause, given what `fixed` had to kill.
    pub fn margins(&self, service: &Service, kills_of_fixed: f64) -> [(Clause, f64); 5] {
        let over = |measured: f64, allowed: f64| match measured > 0.0 {
            true => measured / allowed.max(1e-12),
            false => 0.0,
        };
        let class = if self.in_every_class { service.worst_class() } else { 0.0 };
        // One kill too many breaks it, so a kill more has a margin above 1 however many `fixed` had.
        let kills = if self.counts_kills { service.kills } else { 0.0 };
        [
            (Clause::Slow, over(service.slow_share(), self.slow_share)),
            (Clause::Class, over(class, self.slow_share)),
            (Clause::Violations, over(service.violation_share(), self.violation_share)),
            (Clause::Wait, service.longest_wait),
            (Clause::Kills, over(kills, kills_of_fixed)),
        ]
    }

    /// The clause that decides, given what `fixed` had to kill.
    pub fn binding(&self, service: &Service, kills_of_fixed: f64) -> Binding {
        let mut binding = Binding { clause: Clause::Slow, margin: 0.0 };
        for (clause, margin) in self.margins(service, kills_of_fixed) {
            if margin > binding.margin {
                binding = Binding { clause, margin };
            }
        }
        binding
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(calls: [u32; 4], slow: [u32; 4]) -> FunctionService {
        FunctionService { calls, slow, ..FunctionService::default() }
    }

    #[test]
    fn settings_are_the_usual_objective_unless_something_is_said_and_mistakes_are_named() {
        assert_eq!(Objective::try_from(ObjectiveSettings::default()), Ok(Objective::default()));
        let wrong = ObjectiveSettings { slow_share: f64::NAN, ..ObjectiveSettings::default() };
        let error = Objective::try_from(wrong).expect_err("no share");
        assert_eq!(error.to_string(), "slow_share is NaN, allowed is more than 0, at most 1");
        let wrong = ObjectiveSettings { longest_wait_seconds: 0.0, ..ObjectiveSettings::default() };
        assert_eq!(Objective::try_from(wrong).expect_err("too short").setting, "longest_wait");
    }

    #[test]
    fn the_worst_clause_decides() {
        let objective = Objective::default();
        let some = service([9000, 900, 100, 0], [10, 5, 2, 0]);
        let binding = objective.binding(&Service::of(&[some], None), 0.0);
        assert_eq!(binding.clause, Clause::Class);
        assert!((binding.margin - 2.0).abs() < 1e-9, "2 of 100 calls: {binding:?}");
        let overall = Objective { in_every_class: false, ..objective };
        let binding = overall.binding(&Service::of(&[some], None), 0.0);
        assert!(binding.clause == Clause::Slow && (binding.margin - 0.17).abs() < 1e-9);
    }

    #[test]
    fn a_class_of_few_calls_has_no_say_and_one_kill_more_than_fixed_breaks_it() {
        let few = FunctionService { kills: 1, ..service([9000, 0, 0, 99], [0, 0, 0, 50]) };
        let objective = Objective::default();
        let all = Service::of(&[few], None);
        assert_eq!(all.worst_class(), 0.0);
        assert!(objective.binding(&all, 1.0).margin <= 1.0);
        let binding = objective.binding(&all, 0.0);
        assert!(binding.clause == Clause::Kills && binding.margin > 1.0);
    }

    #[test]
    fn functions_count_as_often_as_they_are_drawn() {
        let functions = [service([100, 0, 0, 0], [1, 0, 0, 0]), service([100, 0, 0, 0], [0; 4])];
        assert_eq!(Service::of(&functions, None).slow_share(), 0.005);
        assert_eq!(Service::of(&functions, Some(&[2, 0])).slow_share(), 0.01);
        assert_eq!(Service::of(&functions, Some(&[0, 2])).slow_share(), 0.0);
    }
}
