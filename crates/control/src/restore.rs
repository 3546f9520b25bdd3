//! The fallback of last resort: what the user asked for.

use windfall_core::{Decision, Observation, Policy, PolicyError, Setting, Target};

/// Gives every function its own reservation back and leaves the instances alone.
///
/// It cannot fail, needs no history, and never takes capacity from a function that serves.
#[derive(Clone, Copy, Debug, Default)]
pub struct RestoreReservations;

impl Policy for RestoreReservations {
    fn name(&self) -> &str {
        "restore-reservations"
    }

    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError> {
        let targets = seen
            .functions
            .iter()
            .filter(|view| view.allocation != view.reservation)
            .map(|view| Target {
                cpu_cores: Setting::Set(view.reservation.cpu.cores()),
                memory_mib: Setting::Set(view.reservation.memory.mib()),
                ..Target::keep(view.function)
            })
            .collect();
        Ok(Decision { targets, reason: "restore what users reserved".to_owned() })
    }
}
