//! From wish to permission, per tick. A [`Plan`] has private fields and the chain is its only maker, so
//! handing an unchecked wish to a platform does not compile:
//!
//! ```compile_fail
//! let forged = windfall_core::Plan { targets: vec![], amendments: vec![] };
//! ```

use std::borrow::Cow;

use serde::Serialize;

use crate::decision::{Decision, Setting, Target};
use crate::observation::Observation;
use crate::record::{Amendment, Resource};
use crate::time::Duration;
use crate::units::{Instances, Mebibytes, MilliCpu, Nonsense, Worth};
use crate::workload::FunctionId;

/// A wish in real quantities, on its way through the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedTarget {
    /// Which function.
    pub function: FunctionId,
    /// Instances that should stand ready.
    pub instances: Setting<Instances>,
    /// CPU of each instance.
    pub cpu: Setting<MilliCpu>,
    /// Memory of each instance.
    pub memory: Setting<Mebibytes>,
    /// Calls that one instance serves at once.
    pub concurrency: Setting<Instances>,
    /// How long an idle instance above the wished number stays.
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
}

impl TryFrom<&Target> for PlannedTarget {
    type Error = Nonsense;

    fn try_from(wish: &Target) -> Result<Self, Nonsense> {
        let &Target {
            function,
            instances,
            cpu_cores,
            memory_mib,
            concurrency,
            keep_alive,
            worth,
            why: _,
        } = wish;
        Ok(Self {
            function,
            instances: instances.try_map(Instances::from_count)?,
            cpu: cpu_cores.try_map(MilliCpu::from_cores)?,
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

    /// Judges one target. Called in the order of the chain, each on what the one before allowed.
    fn review(&mut self, seen: &Observation, proposed: &PlannedTarget) -> Verdict;

    /// Told once per tick what was carried out in the end, so that budgets count deeds, not wishes.
    fn carried_out(&mut self, _seen: &Observation, _plan: &Plan) {}
}

/// Permission to act: the only thing a platform accepts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plan {
    targets: Vec<PlannedTarget>,
    amendments: Vec<Amendment>,
}

impl Plan {
    /// What is to be done; functions that stay as they are do not appear.
    pub fn targets(&self) -> &[PlannedTarget] {
        &self.targets
    }

    /// Where the safeguards stepped in.
    pub fn amendments(&self) -> &[Amendment] {
        &self.amendments
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

    /// The names of its rules, in order.
    pub fn names(&self) -> Vec<&'static str> {
        self.rules.iter().map(|rule| rule.name()).collect()
    }

    /// Turns a wish into a plan, or refuses it whole if any number in it is nonsense.
    pub fn review(&mut self, seen: &Observation, wish: &Decision) -> Result<Plan, Nonsense> {
        let proposed: Vec<PlannedTarget> =
            wish.targets.iter().map(PlannedTarget::try_from).collect::<Result<_, _>>()?;
        let mut plan = Plan::default();
        for target in proposed {
            let allowed = self.review_target(seen, target, &mut plan.amendments);
            if !allowed.is_keep() {
                plan.targets.push(allowed);
            }
        }
        for rule in &mut self.rules {
            rule.carried_out(seen, &plan);
        }
        Ok(plan)
    }

    fn review_target(
        &mut self,
        seen: &Observation,
        mut target: PlannedTarget,
        amendments: &mut Vec<Amendment>,
    ) -> PlannedTarget {
        for rule in &mut self.rules {
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
}
