//! From decision to permission, per tick. A [`Plan`] has private fields and the chain is its only maker, so
//! handing an unchecked decision to a platform does not compile:
//!
//! ```compile_fail
//! let forged = windfall_core::Plan { targets: vec![], amendments: vec![] };
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::decision::{Decision, Setting, Target};
use crate::observation::Observation;
use crate::platform::{PlanId, Receipt};
use crate::record::{Amendment, Resource};
use crate::time::Duration;
use crate::units::{CpuCeiling, Instances, Mebibytes, MilliCpu, Nonsense, Worth};
use crate::workload::FunctionId;

/// A target in real quantities, on its way through the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedTarget {
    /// Which function.
    pub function: FunctionId,
    /// Instances that should stand ready.
    pub instances: Setting<Instances>,
    /// CPU that each instance is guaranteed while cores are short.
    pub cpu: Setting<MilliCpu>,
    /// CPU that each instance can use at most.
    #[serde(skip_serializing_if = "Setting::is_keep")]
    pub cpu_ceiling: Setting<CpuCeiling>,
    /// Memory of each instance.
    pub memory: Setting<Mebibytes>,
    /// Calls that one instance serves at the same time.
    pub concurrency: Setting<Instances>,
    /// How long an idle instance above the number asked for stays.
    pub keep_alive: Setting<Duration>,
    /// What the idle instance that would go next is worth per MiB.
    #[serde(skip_serializing_if = "Setting::is_keep")]
    pub worth: Setting<Worth>,
}

impl PlannedTarget {
    /// A target that changes nothing of `function`.
    pub fn keep(function: FunctionId) -> Self {
        Self {
            function,
            instances: Setting::Keep,
            cpu: Setting::Keep,
            cpu_ceiling: Setting::Keep,
            memory: Setting::Keep,
            concurrency: Setting::Keep,
            keep_alive: Setting::Keep,
            worth: Setting::Keep,
        }
    }

    /// Whether nothing would change.
    pub fn is_keep(&self) -> bool {
        *self == Self::keep(self.function)
    }

    /// Whether CPU or memory of an instance would change: what can leave a function below its reservation.
    pub fn is_resize(&self) -> bool {
        !(self.cpu.is_keep() && self.memory.is_keep())
    }

    /// This target with every setting that `later` makes.
    fn followed_by(self, later: Self) -> Self {
        Self {
            function: self.function,
            instances: self.instances.followed_by(later.instances),
            cpu: self.cpu.followed_by(later.cpu),
            cpu_ceiling: self.cpu_ceiling.followed_by(later.cpu_ceiling),
            memory: self.memory.followed_by(later.memory),
            concurrency: self.concurrency.followed_by(later.concurrency),
            keep_alive: self.keep_alive.followed_by(later.keep_alive),
            worth: self.worth.followed_by(later.worth),
        }
    }
}

impl TryFrom<&Target> for PlannedTarget {
    type Error = Nonsense;

    fn try_from(proposed: &Target) -> Result<Self, Nonsense> {
        let &Target {
            function,
            instances,
            cpu_cores,
            cpu_ceiling,
            memory_mib,
            concurrency,
            keep_alive,
            worth,
            why: _,
        } = proposed;
        Ok(Self {
            function,
            instances: instances.try_map(Instances::from_count)?,
            cpu: cpu_cores.try_map(MilliCpu::from_cores)?,
            cpu_ceiling: cpu_ceiling.try_map(|most| most.try_map(MilliCpu::from_cores))?,
            memory: memory_mib.try_map(Mebibytes::from_mib)?,
            concurrency: concurrency.try_map(Instances::from_count)?,
            keep_alive,
            worth: worth.try_map(Worth::from_amount)?,
        })
    }
}

/// What a safeguard says about one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As proposed.
    Accept,
    /// Only like this, for this reason.
    Amend {
        /// What is allowed.
        target: PlannedTarget,
        /// Which knob was held back.
        resource: Resource,
        /// One sentence with the numbers.
        reason: Cow<'static, str>,
    },
}

/// A rule that no policy can get around.
pub trait Safeguard: Send {
    /// The name under which amendments are recorded, from a closed set.
    fn name(&self) -> &'static str;

    /// Called once per tick before any target is reviewed; the place to take in what has settled. Returns the functions
    /// that the rule must review even if nothing is proposed for them.
    fn begin(&mut self, _seen: &Observation) -> Vec<FunctionId> {
        Vec::new()
    }

    /// Judges one target. Called in the order of the chain, each on what the one before allowed.
    fn review(&mut self, seen: &Observation, proposed: &PlannedTarget) -> Verdict;

    /// Called once per tick after the plan is submitted, so budgets count accepted changes.
    fn submitted(&mut self, _seen: &Observation, _plan: &Plan, _receipt: &Receipt) {}
}

/// Permission to act: the only thing a platform accepts. It has at most one target per function.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plan {
    id: PlanId,
    targets: Vec<PlannedTarget>,
    amendments: Vec<Amendment>,
}

impl Plan {
    /// Its number.
    pub fn id(&self) -> PlanId {
        self.id
    }

    /// What is to be done; functions that stay as they are do not appear.
    pub fn targets(&self) -> &[PlannedTarget] {
        &self.targets
    }

    /// Where the safeguards stepped in.
    pub fn amendments(&self) -> &[Amendment] {
        &self.amendments
    }

    /// The same plan under another number.
    #[must_use]
    pub fn numbered(self, id: PlanId) -> Self {
        Self { id, ..self }
    }
}

/// All safeguards of a loop, in order.
#[derive(Default)]
pub struct SafeguardChain {
    rules: Vec<Box<dyn Safeguard>>,
}

impl SafeguardChain {
    /// The chain that asks `rules` in this order; the last word is the last one's.
    pub fn new(rules: Vec<Box<dyn Safeguard>>) -> Self {
        Self { rules }
    }

    /// The same chain with one more rule, which has the last word.
    #[must_use]
    pub fn followed_by(mut self, rule: Box<dyn Safeguard>) -> Self {
        self.rules.push(rule);
        self
    }

    /// The names of its rules, in order.
    pub fn names(&self) -> Vec<&'static str> {
        self.rules.iter().map(|rule| rule.name()).collect()
    }

    /// Turns a decision into a plan, or refuses it whole if any number in it is nonsense.
    pub fn review(&mut self, seen: &Observation, decision: &Decision) -> Result<Plan, Nonsense> {
        self.review_then(&mut [], seen, decision)
    }

    /// The same with further rules after those of the chain: the ones that belong to a loop, whoever is in charge.
    pub fn review_then(
        &mut self,
        last: &mut [&mut dyn Safeguard],
        seen: &Observation,
        decision: &Decision,
    ) -> Result<Plan, Nonsense> {
        let proposed =
            decision.targets.iter().map(PlannedTarget::try_from).collect::<Result<_, _>>()?;
        let mut proposed = one_per_function(proposed);
        for function in every(&mut self.rules, last).flat_map(|rule| rule.begin(seen)) {
            if proposed.iter().all(|target| target.function != function) {
                proposed.push(PlannedTarget::keep(function));
            }
        }
        let mut plan = Plan::default();
        for target in proposed {
            let rules = every(&mut self.rules, last);
            let allowed = review_target(rules, seen, target, &mut plan.amendments);
            if !allowed.is_keep() {
                plan.targets.push(allowed);
            }
        }
        Ok(plan)
    }

    /// Reports what the platform answered to the plan of this tick.
    pub fn submitted(
        &mut self,
        last: &mut [&mut dyn Safeguard],
        seen: &Observation,
        plan: &Plan,
        receipt: &Receipt,
    ) {
        for rule in every(&mut self.rules, last) {
            rule.submitted(seen, plan, receipt);
        }
    }
}

/// The rules of a chain and those after it, in order.
fn every<'a>(
    rules: &'a mut [Box<dyn Safeguard>],
    last: &'a mut [&mut dyn Safeguard],
) -> impl Iterator<Item = &'a mut dyn Safeguard> {
    let first = rules.iter_mut().map(|rule| rule.as_mut() as &mut dyn Safeguard);
    first.chain(last.iter_mut().map(|rule| &mut **rule as &mut dyn Safeguard))
}

/// Targets of the same function become one, later settings before earlier ones: a platform answers once per function.
fn one_per_function(proposed: Vec<PlannedTarget>) -> Vec<PlannedTarget> {
    // The usual decision is in the order of ids.
    if proposed.is_sorted_by(|a, b| a.function < b.function) {
        return proposed;
    }
    let mut places = BTreeMap::new();
    let mut merged: Vec<PlannedTarget> = Vec::with_capacity(proposed.len());
    for target in proposed {
        let place = *places.entry(target.function).or_insert(merged.len());
        match merged.get_mut(place) {
            Some(earlier) => *earlier = earlier.clone().followed_by(target),
            None => merged.push(target),
        }
    }
    merged
}

fn review_target<'a>(
    rules: impl Iterator<Item = &'a mut dyn Safeguard>,
    seen: &Observation,
    mut target: PlannedTarget,
    amendments: &mut Vec<Amendment>,
) -> PlannedTarget {
    for rule in rules {
        let Verdict::Amend { target: allowed, resource, reason } = rule.review(seen, &target)
        else {
            continue;
        };
        amendments.push(Amendment {
            rule: Cow::Borrowed(rule.name()),
            function: target.function,
            resource,
            proposed: resource.of(&target),
            allowed: resource.of(&allowed),
            reason,
        });
        target = allowed;
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_one_target_per_function_and_the_later_setting_counts() {
        let target = |id, count, cores| Target {
            instances: count,
            cpu_cores: cores,
            ..Target::keep(FunctionId(id))
        };
        let set = Setting::Set::<f64>;
        let targets = vec![
            target(3, set(1.0), Setting::Keep),
            target(0, set(2.0), Setting::Keep),
            target(3, set(4.0), set(0.5)),
            target(3, Setting::Keep, Setting::Keep),
        ];
        let decision = Decision { targets, reason: String::new() };
        let plan = SafeguardChain::default().review(&Observation::default(), &decision).unwrap();
        let found: Vec<_> = plan
            .targets()
            .iter()
            .map(|one| (one.function.0, one.instances.value().map(Instances::get)))
            .collect();
        assert_eq!(found, [(3, Some(4)), (0, Some(2))]);
        assert_eq!(plan.targets()[0].cpu, Setting::Set(MilliCpu::new(500)));
    }

    /// Gives function 7 a core at every tick, whatever is proposed.
    struct Insists;

    impl Safeguard for Insists {
        fn name(&self) -> &'static str {
            "insists"
        }
        fn begin(&mut self, _: &Observation) -> Vec<FunctionId> {
            vec![FunctionId(7)]
        }
        fn review(&mut self, _: &Observation, proposed: &PlannedTarget) -> Verdict {
            let target =
                PlannedTarget { cpu: Setting::Set(MilliCpu::new(1000)), ..proposed.clone() };
            if proposed.function != FunctionId(7) || target == *proposed {
                return Verdict::Accept;
            }
            Verdict::Amend { target, resource: Resource::Cpu, reason: "it must have one".into() }
        }
    }

    #[test]
    fn a_rule_can_insist_on_a_function_that_nobody_proposed() {
        let mut rule = Insists;
        let plan = SafeguardChain::default()
            .review_then(&mut [&mut rule], &Observation::default(), &Decision::default())
            .unwrap();
        assert_eq!(plan.targets()[0].cpu, Setting::Set(MilliCpu::new(1000)));
        assert_eq!((plan.amendments().len(), plan.amendments()[0].proposed), (1, None));
    }
}
