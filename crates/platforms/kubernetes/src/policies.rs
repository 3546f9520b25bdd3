//! From the name in a ResourcePolicy to a control loop. Pods are sized and scaled at ticks, so a policy that only sizes
//! single calls cannot decide here; the error says which can.
//!
//! `windfall` is the multidimensional policy of this crate, `simppo` are SIMPPO's agents with the network that is built in; a
//! checkpoint of the same kind is another network. `A+B` joins two tick policies: sizes from the first, numbers
//! from the second. `vpa+kpa` is what many clusters run as two controllers that do not know of each other.

use std::sync::{Arc, Mutex};

use windfall_control::ControlLoop;
use windfall_control::safeguards::{Capacity, FlapBudget, Limits, RateOfChange, StaleObservation};
use windfall_core::{
    Decision, Needs, Observation, Policy, PolicyError, SafeguardChain, Seed, Setting, Target,
    TickRecord,
};
use windfall_registry::checkpoint_policy::is_checkpoint;
use windfall_registry::{PolicySettings, assemble};

use crate::guard::{Bounds, Guards, Held};
use crate::multidimensional::Multidimensional;
use crate::simppo::Simppo;

/// The name of the policy of this crate.
pub const WINDFALL: &str = "windfall";

/// Why a name does not become a loop.
#[derive(Debug, thiserror::Error)]
pub enum PolicyProblem {
    /// The registry does not know it, or cannot read its checkpoint.
    #[error("{0}")]
    Unknown(String),
    /// It decides about single calls only.
    #[error(
        "policy `{0}` sizes single calls and decides nothing at ticks; use windfall, a policy that ticks such as kpa, vpa or queueing, or two of them as vpa+kpa"
    )]
    NoTicks(String),
}

/// The loop for `policy`, with the rules of each member behind the policy's own.
pub fn control_loop(
    policy: &str,
    guards: &Arc<Mutex<Guards>>,
) -> Result<ControlLoop, PolicyProblem> {
    let (decides, chain) = tick_policy(policy, guards)?;
    let chain = chain
        .followed_by(Box::new(Held::new(Arc::clone(guards))))
        .followed_by(Box::new(Bounds::new(Arc::clone(guards))));
    Ok(ControlLoop::new(decides, chain))
}

fn tick_policy(
    policy: &str,
    guards: &Arc<Mutex<Guards>>,
) -> Result<(Box<dyn Policy>, SafeguardChain), PolicyProblem> {
    if policy == WINDFALL {
        let own = Multidimensional::new(Arc::clone(guards));
        return Ok((Box::new(own), own_chain()));
    }
    if let Some(agents) = Simppo::named(policy, guards) {
        let agents = agents.map_err(|error| PolicyProblem::Unknown(error.to_string()))?;
        return Ok((Box::new(agents), own_chain()));
    }
    if let Some((sizes, counts)) = policy.split_once('+').filter(|_| !is_checkpoint(policy)) {
        let (sizes, chain) = tick_policy(sizes, guards)?;
        let (counts, _) = tick_policy(counts, guards)?;
        // Names travel into labels of metrics, which have no plus.
        let name = format!("{}_{}", sizes.name(), counts.name());
        let both = SizesAndCounts { name, sizes, counts };
        return Ok((Box::new(both), chain));
    }
    let seed = Seed::new(0);
    let built = assemble(policy, &PolicySettings::new(), seed)
        .map_err(|error| PolicyProblem::Unknown(error.to_string()))?;
    match built.tick {
        Some(tick) => Ok((tick, built.tick_safeguards)),
        None => Err(PolicyProblem::NoTicks(policy.to_owned())),
    }
}

/// All rules of the control crate that bound a tick.
fn own_chain() -> SafeguardChain {
    SafeguardChain::new(vec![
        Box::new(StaleObservation::default()),
        Box::new(Limits::default()),
        Box::new(RateOfChange::default()),
        Box::new(FlapBudget::default()),
        Box::new(Capacity::default()),
    ])
}

/// Two policies, one for sizes and one for numbers.
struct SizesAndCounts {
    name: String,
    sizes: Box<dyn Policy>,
    counts: Box<dyn Policy>,
}

impl Policy for SizesAndCounts {
    fn name(&self) -> &str {
        &self.name
    }

    fn needs(&self) -> Needs {
        Needs { presence: self.sizes.needs().presence || self.counts.needs().presence }
    }

    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError> {
        let sizes = self.sizes.decide(seen)?;
        let counts = self.counts.decide(seen)?;
        let only_size = |target: Target| Target {
            instances: Setting::Keep,
            concurrency: Setting::Keep,
            keep_alive: Setting::Keep,
            ..target
        };
        let only_count = |target: Target| Target {
            cpu_cores: Setting::Keep,
            cpu_ceiling: Setting::Keep,
            memory_mib: Setting::Keep,
            ..target
        };
        let mut targets: Vec<Target> = sizes.targets.into_iter().map(only_size).collect();
        targets.extend(counts.targets.into_iter().map(only_count));
        let reason = format!("{}; {}", sizes.reason, counts.reason);
        Ok(Decision { targets, reason })
    }

    fn feedback(&mut self, tick: &TickRecord) {
        self.sizes.feedback(tick);
        self.counts.feedback(tick);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_core::conformance::policy_suite;

    fn guards() -> Arc<Mutex<Guards>> {
        Arc::default()
    }

    #[test]
    fn names_pairs_and_nothing_else_become_loops() {
        for name in
            ["windfall", "simppo", "kpa", "vpa", "queueing", "vpa+kpa", "autopilot+windfall"]
        {
            assert!(control_loop(name, &guards()).is_ok(), "{name}");
        }
        let problem =
            |name: &str| control_loop(name, &guards()).err().expect("refused").to_string();
        assert!(problem("libra").contains("sizes single calls"), "{}", problem("libra"));
        assert!(problem("nobody").contains("no policy `nobody`"), "{}", problem("nobody"));
        assert!(problem("vpa+nobody").contains("nobody"));
    }

    #[test]
    fn own_policies_conform() {
        for name in ["windfall", "simppo", "vpa+kpa"] {
            policy_suite(&|| tick_policy(name, &guards()).expect("known").0);
        }
    }
}
