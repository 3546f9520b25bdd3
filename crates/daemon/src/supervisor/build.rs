//! From settings to the parts of a manager: the call control that the platform is given, and the loop.

use std::sync::Arc;

use windfall_control::quarantine::catch;
use windfall_control::{CallLoop, ControlLoop};
use windfall_core::{
    Decision, Duration, Needs, Observation, Policy, PolicyError, SafeguardChain, Seed,
};
use windfall_registry::{AssembleError, Assembled, PolicySettings, assemble};

use super::versions::Named;
use crate::governance::{CallRule, Governance, Mode, TickRule};
use crate::switched_calls::{FinishedCall, PolicySlot, SwitchedCalls};

/// What a manager is started with.
#[derive(Clone, Debug)]
pub struct SupervisorSettings {
    /// A name, a pair `CALLS+TICKS`, or the path of a checkpoint.
    pub policy: String,
    /// Settings of policies by name.
    pub policy_settings: PolicySettings,
    /// A policy that is asked beside it and never obeyed.
    pub shadow: Option<String>,
    /// How much it may do at first.
    pub mode: Mode,
    /// Time between two ticks.
    pub tick: Duration,
    /// Everything random in policies is drawn from it.
    pub seed: u64,
    /// Whether a learner offers new versions of the policy.
    pub learns: bool,
    /// What a core costs per hour.
    pub price_per_core_hour: f64,
    /// The currency of the price.
    pub currency: String,
}

impl Default for SupervisorSettings {
    fn default() -> Self {
        Self {
            policy: "windfall".to_owned(),
            policy_settings: PolicySettings::new(),
            shadow: None,
            mode: Mode::default(),
            tick: Duration::from_secs(2),
            seed: 1,
            learns: false,
            price_per_core_hour: 0.04,
            currency: "$".to_owned(),
        }
    }
}

/// What a platform is started with.
pub struct PlatformParts {
    /// The control that it asks about every call.
    pub calls: SwitchedCalls,
    /// What its observations must contain.
    pub needs: Needs,
    /// Whether CPU is to be guaranteed by weight, where the platform has the choice.
    pub by_weight: bool,
}

/// Parts of a manager that exist before its platform does.
pub struct Prepared {
    pub(super) control: ControlLoop,
    pub(super) governance: Arc<Governance>,
    pub(super) slot: Arc<PolicySlot>,
    pub(super) settings: SupervisorSettings,
    pub(super) in_charge: Named,
}

/// Builds the parts of a manager; the platform gets the second one.
pub fn prepare(settings: SupervisorSettings) -> Result<(Prepared, PlatformParts), AssembleError> {
    let governance = Arc::new(Governance::new(settings.mode));
    let slot = Arc::new(PolicySlot::default());
    let in_charge =
        Named { policy: settings.policy.clone(), settings: settings.policy_settings.clone() };
    let assembled = in_charge.assemble(settings.seed)?;
    let shadow = settings.shadow.as_deref().map(|name| named(name, &settings)).transpose()?;
    let (needs, by_weight) = (assembled.needs(), assembled.by_weight);
    let Loops { calls, tick, chain } = loops(assembled, shadow, &governance, &[]);
    let control = ControlLoop::new(tick, chain);
    let calls = SwitchedCalls::new(calls, Arc::clone(&slot));
    let parts = PlatformParts { calls, needs, by_weight };
    Ok((Prepared { control, governance, slot, settings, in_charge }, parts))
}

/// The policy called `name`, as a shadow.
pub(super) fn named(name: &str, settings: &SupervisorSettings) -> Result<Assembled, AssembleError> {
    assemble(name, &settings.policy_settings, Seed::new(settings.seed).stream("policy"))
}

/// Both loops of a policy.
pub(super) struct Loops {
    pub(super) calls: CallLoop,
    pub(super) tick: Box<dyn Policy>,
    pub(super) chain: SafeguardChain,
}

/// Puts a policy behind its safeguards and behind the orders of users. It learns from `experience` first, so that it does
/// not begin as if it had never seen these functions.
pub(super) fn loops(
    mut assembled: Assembled,
    shadow: Option<Assembled>,
    governance: &Arc<Governance>,
    experience: &[FinishedCall],
) -> Loops {
    for call in experience {
        // A policy that panics here will do so in charge, where it is caught, counted and quarantined.
        let _ = catch(|| assembled.call.learn(&call.outcome));
    }
    assembled.call_safeguards.push(Box::new(CallRule::new(Arc::clone(governance))));
    let tick = assembled.tick.take().unwrap_or_else(|| Box::new(LeaveAlone));
    let chain = std::mem::take(&mut assembled.tick_safeguards);
    let chain = chain.followed_by(Box::new(TickRule::new(Arc::clone(governance))));
    let calls = assembled.call_loop();
    let calls = match shadow {
        Some(shadow) => calls.with_shadow(shadow.call),
        None => calls,
    };
    Loops { calls, tick, chain }
}

/// The tick policy of a policy that only sizes calls.
struct LeaveAlone;

impl Policy for LeaveAlone {
    fn name(&self) -> &str {
        "leave-alone"
    }

    fn decide(&mut self, _seen: &Observation) -> Result<Decision, PolicyError> {
        Ok(Decision::default())
    }
}
