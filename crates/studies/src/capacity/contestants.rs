//! Who takes part: every incumbent at several over-commits, each of them also with our queue order, the bounds, and
//! ours.

use std::collections::BTreeMap;

use serde::Deserialize;
use windfall_sim::QueueOrder;

use super::objective::Objective;

/// What a contestant is in the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// What everything is relative to.
    Fixed,
    /// A published rule as it is, first come first served.
    Incumbent,
    /// The same rule with our queue order.
    OrderedIncumbent,
    /// One of our own.
    Ours,
    /// The same with every parameter as it was tuned, nothing learned while calls run.
    TunedRule,
    /// Knows the future, with our queue order.
    Oracle,
    /// Another bound, or a part of ours by itself.
    Aside,
}

/// One policy with everything that is set around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Contestant {
    /// What tables call it.
    pub label: String,
    /// Its name in the registry.
    pub policy: String,
    /// Settings of the policy, if they are not the usual ones.
    pub settings: Option<toml::Table>,
    /// Which of the waiting calls starts first.
    pub order: QueueOrder,
    /// Whether short calls wait for a warm instance while they are on time.
    pub waits_for_warm: bool,
    /// Over-commits that are tried.
    pub over_commits: Vec<f64>,
    /// Safeguards around its calls.
    pub call_safeguards: Vec<String>,
    /// What it is in the comparison.
    pub role: Role,
}

/// Over-commits of rules that count reservations, and of those that count less.
const MANY: [f64; 6] = [1.0, 1.25, 1.5, 2.0, 2.5, 3.0];
const ONE: [f64; 1] = [1.0];
/// Over-commits of the peak oracle, whose calls give way like ours.
const BOUND: [f64; 5] = [1.0, 1.1, 1.25, 1.5, 2.0];
/// Incumbents that hold quotas and size memory themselves.
const SIZING: [&str; 5] = ["histogram", "libra", "shabari", "vpa", "autothrottle"];
/// Incumbents that hold weights.
const WEIGHING: [&str; 5] = ["weights", "weights-histogram", "rc-like", "n-sigma", "max-predictor"];

impl Contestant {
    /// A policy of the registry, first come first served, without over-commit.
    pub fn new(policy: &str, role: Role) -> Self {
        Self {
            label: policy.to_owned(),
            policy: policy.to_owned(),
            settings: None,
            order: QueueOrder::FirstCome,
            waits_for_warm: false,
            over_commits: ONE.to_vec(),
            call_safeguards: Vec::new(),
            role,
        }
    }

    /// At these over-commits.
    #[must_use]
    pub fn over_committed(self, over_commits: &[f64]) -> Self {
        Self { over_commits: over_commits.to_vec(), ..self }
    }

    /// With our queue order, in which short calls also wait for a warm instance.
    #[must_use]
    pub fn ordered(self, role: Role) -> Self {
        let label = format!("{}, ordered", self.label);
        Self { order: QueueOrder::SHORTEST_FIRST, waits_for_warm: true, label, role, ..self }
    }

    /// With the memory that users reserve.
    #[must_use]
    pub fn keeping_memory(self) -> Self {
        Self { call_safeguards: vec!["reserved-memory".to_owned()], ..self }
    }

    /// With what service has to be like, if it is a policy that uses it: harm is what the objective calls a violation, half of
    /// those that are allowed may happen, and a call may lose four fifths of what it may be longer. The usual objective
    /// makes the usual settings, and what was set already stays.
    #[must_use]
    pub fn with_objective(mut self, objective: &Objective) -> Self {
        if self.policy == "windfall-admission" {
            let longer = objective.violation_above - 1.0;
            let settings = self.settings.get_or_insert_default();
            let allowed = 0.5 * objective.violation_share;
            let values =
                [("harm_above", longer), ("beta", 0.8 * longer), ("harm_allowed", allowed)];
            for (name, value) in values {
                settings.entry(name).or_insert_with(|| value.into());
            }
        }
        self
    }

    /// With other settings, under another name.
    #[must_use]
    pub fn with_settings(self, label: &str, settings: toml::Table) -> Self {
        Self { label: label.to_owned(), settings: Some(settings), ..self }
    }
}

/// Everybody, where memory is scarce or not. Where it is not, incumbents that would size it get what users reserve,
/// because a call killed for memory breaks the objective and there is nothing to gain.
pub fn everybody(memory_is_scarce: bool) -> Vec<Contestant> {
    let incumbents = SIZING.iter().chain(&WEIGHING).map(|policy| {
        let one = Contestant::new(policy, Role::Incumbent).over_committed(&MANY);
        if memory_is_scarce { one } else { one.keeping_memory() }
    });
    let mut incumbents: Vec<Contestant> = incumbents.collect();
    let trimming = toml::Table::from_iter([("trim_millis".to_owned(), 100.into())]);
    let histogram = incumbents[0].clone();
    incumbents.push(histogram.with_settings("histogram, trimming", trimming));
    let ordered = incumbents.iter().cloned().map(|one| one.ordered(Role::OrderedIncumbent));
    let mut all = vec![Contestant::new("fixed", Role::Fixed)];
    all.extend(incumbents.iter().cloned());
    all.push(Contestant::new("fixed", Role::Fixed).ordered(Role::OrderedIncumbent));
    all.extend(ordered);
    all.push(Contestant::new("peak-oracle", Role::Aside).over_committed(&BOUND));
    all.push(oracle());
    all.push(Contestant::new("windfall", Role::Aside).over_committed(&MANY[..3]).keeping_memory());
    all.push(Contestant::new("windfall-admission", Role::Aside));
    if memory_is_scarce {
        let memory = toml::Table::from_iter([("sizes_memory".to_owned(), true.into())]);
        let ours = Contestant::new("windfall-admission", Role::Ours);
        let ours = ours.with_settings("windfall-admission, memory sized", memory);
        all.push(ours.ordered(Role::Ours));
        let sizing = incumbents.iter().filter(|one| SIZING.contains(&one.policy.as_str()));
        all.extend(sizing.cloned().map(Contestant::keeping_memory).map(|one| {
            let label = format!("{}, memory kept", one.label);
            Contestant { label, ..one }
        }));
    }
    let ours = Contestant::new("windfall-admission", Role::Ours);
    let rule = toml::Table::from_iter([("harm_allowed".to_owned(), 0.0.into())]);
    let rule = ours.clone().with_settings("windfall-admission, caution not learned", rule);
    all.push(rule.ordered(Role::TunedRule));
    all.push(ours.ordered(Role::Ours));
    all
}

/// The bound: it knows what calls will use, and has all of ours but the estimates.
fn oracle() -> Contestant {
    Contestant::new("peak-oracle", Role::Oracle).over_committed(&BOUND).ordered(Role::Oracle)
}

/// A few of everybody, for a first look: the strongest of each kind.
pub fn quick() -> Vec<Contestant> {
    let kept = ["fixed", "histogram", "weights", "weights-histogram", "windfall-admission"];
    let mut few: Vec<Contestant> =
        everybody(false).into_iter().filter(|one| kept.contains(&one.policy.as_str())).collect();
    few.push(oracle());
    few.retain(|one| one.role != Role::Aside);
    for one in few.iter_mut().filter(|one| one.over_commits == MANY) {
        one.over_commits = vec![1.5, 2.0, 3.0];
    }
    few
}

/// Who of everybody takes part, and what is changed about them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Choice {
    /// Only those whose labels begin like one of these, and `fixed`; the strongest few if there are none.
    pub policies: Vec<String>,
    /// Everybody instead of the strongest few.
    pub all: bool,
    /// Over-commits instead of the usual ones, for rules that are tried at several.
    pub over_commits: Vec<f64>,
    /// Settings by policy, over the usual ones.
    pub settings: BTreeMap<String, toml::Table>,
}

impl Choice {
    /// The contestants in worlds where memory is scarce or not.
    pub fn contestants(&self, memory_is_scarce: bool) -> Result<Vec<Contestant>, ChoiceError> {
        let is_chosen = !self.policies.is_empty();
        let mut all = if self.all || is_chosen { everybody(memory_is_scarce) } else { quick() };
        let begins = |one: &Contestant, name: &String| one.label.starts_with(name.as_str());
        if let Some(name) =
            self.policies.iter().find(|name| !all.iter().any(|one| begins(one, name)))
        {
            let known: Vec<&str> = all.iter().map(|one| one.label.as_str()).collect();
            return Err(ChoiceError::Nobody { name: name.clone(), known: known.join("; ") });
        }
        if is_chosen {
            all.retain(|one| {
                one.label == "fixed" || self.policies.iter().any(|name| begins(one, name))
            });
        }
        if let Some(&factor) = self.over_commits.iter().find(|one| !(0.1..=100.0).contains(*one)) {
            return Err(ChoiceError::OverCommit { factor });
        }
        let is_bound = |one: &Contestant| one.policy == "peak-oracle";
        for one in all.iter_mut().filter(|one| one.over_commits.len() > 1 && !is_bound(one)) {
            if !self.over_commits.is_empty() {
                one.over_commits.clone_from(&self.over_commits);
            }
        }
        for (policy, table) in &self.settings {
            let mut known = all.iter_mut().filter(|one| one.policy == *policy).peekable();
            if known.peek().is_none() {
                return Err(ChoiceError::Absent { policy: policy.clone() });
            }
            known.for_each(|one| one.settings.get_or_insert_default().extend(table.clone()));
        }
        Ok(all)
    }
}

/// Why a choice cannot be made. All are fatal.
#[derive(Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ChoiceError {
    /// Nobody is called like this.
    #[error("policies: nobody's name begins with `{name}`; there are {known}")]
    Nobody {
        /// What was asked for.
        name: String,
        /// Everybody's labels.
        known: String,
    },
    /// No machine can be over-committed like this.
    #[error("over-commits holds {factor}, allowed is 0.1 to 100")]
    OverCommit {
        /// What was asked for.
        factor: f64,
    },
    /// A setting is for somebody who does not take part.
    #[error("set names `{policy}`, which does not take part")]
    Absent {
        /// Who is meant.
        policy: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(choice: &Choice) -> Vec<String> {
        let all = choice.contestants(false).expect("the choice can be made");
        all.into_iter().map(|one| one.label).collect()
    }

    #[test]
    fn fixed_takes_part_beside_whoever_is_chosen() {
        let chosen = Choice { policies: vec!["peak".into()], ..Choice::default() };
        assert_eq!(labels(&chosen), ["fixed", "peak-oracle", "peak-oracle, ordered"]);
        assert_eq!(labels(&Choice::default()).len(), quick().len());
    }

    #[test]
    fn over_commits_replace_those_of_rules_that_have_several() {
        let policies = vec!["weights".into(), "peak".into()];
        let choice = Choice { policies, over_commits: vec![1.75], ..Choice::default() };
        let all = choice.contestants(false).expect("the choice can be made");
        let of =
            |label: &str| &all.iter().find(|one| one.label == label).expect(label).over_commits;
        assert_eq!((of("weights"), of("peak-oracle")), (&vec![1.75], &BOUND.to_vec()));
    }

    #[test]
    fn mistakes_name_what_is_there() {
        let wrong = |choice: Choice| choice.contestants(false).expect_err("wrong").to_string();
        let nobody = Choice { policies: vec!["wieghts".into()], ..Choice::default() };
        assert!(wrong(nobody).contains("`wieghts`; there are fixed; "));
        let far = Choice { over_commits: vec![0.0], ..Choice::default() };
        assert!(wrong(far).contains("allowed is 0.1 to 100"));
        let settings = BTreeMap::from([("vpa".to_owned(), toml::Table::new())]);
        assert!(wrong(Choice { settings, ..Choice::default() }).contains("`vpa`"));
    }
}
