//! A policy by its name as what decides on a real platform.

use windfall_control::ControlLoop;
use windfall_core::{CallControl, Seed};
use windfall_registry::{PolicySettings, assemble, call_safeguard};
use windfall_studies::capacity::contestants::Contestant;

use crate::error::ExperimentError;

/// What decides about calls, and at ticks.
pub(crate) type Control = (Box<dyn CallControl>, Option<ControlLoop>);

/// A fresh policy with everything that is set around it.
pub(crate) fn control_of(contestant: &Contestant, seed: u64) -> Result<Control, ExperimentError> {
    let policy = contestant.policy.as_str();
    let table = contestant.settings.iter().map(|table| (policy.to_owned(), table.clone()));
    let settings: PolicySettings = table.collect();
    let mut assembled = assemble(policy, &settings, Seed::new(seed).stream("policy"))?;
    if assembled.foresight {
        return Err(ExperimentError::Foresight(policy.to_owned()));
    }
    let rules = contestant.call_safeguards.iter().filter_map(|name| call_safeguard(name));
    assembled.call_safeguards.extend(rules);
    let safeguards = std::mem::take(&mut assembled.tick_safeguards);
    let is_of_use = !assembled.ticks_resize_only;
    let ticks = assembled.tick.take().filter(|_| is_of_use);
    let ticks = ticks.map(|tick| ControlLoop::new(tick, safeguards));
    Ok((Box::new(assembled.call_loop()), ticks))
}
