//! A policy without any reason to what it does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windfall_core::{Decision, Observation, Policy, PolicyError, Setting, Target};

use crate::dice::Dice;

/// Sets random sizes and numbers of instances, and fails now and then, until it is silenced.
pub(crate) struct Whims {
    dice: Dice,
    is_silent: Arc<AtomicBool>,
}

impl Whims {
    pub(crate) fn new(story: u64, is_silent: &Arc<AtomicBool>) -> Self {
        Self { dice: Dice::new(story ^ 0x5eed), is_silent: Arc::clone(is_silent) }
    }

    fn setting(&mut self, percent: u64, low: f64, high: f64) -> Setting<f64> {
        let value = self.dice.between(low, high);
        if self.dice.chance(percent) { Setting::Set(value) } else { Setting::Keep }
    }
}

impl Policy for Whims {
    fn name(&self) -> &str {
        "whims"
    }

    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError> {
        if self.is_silent.load(Ordering::Relaxed) {
            return Ok(Decision::default());
        }
        if self.dice.chance(3) {
            return Err(PolicyError { policy: "whims".into(), problem: "not today".into() });
        }
        let mut targets = Vec::new();
        for view in &seen.functions {
            let (cores, mib) = (view.reservation.cpu.cores(), view.reservation.memory.mib());
            targets.push(Target {
                instances: self.setting(40, 0.0, 6.0),
                cpu_cores: self.setting(60, 0.1 * cores, 2.0 * cores),
                memory_mib: self.setting(40, 0.2 * mib, 2.0 * mib),
                ..Target::keep(view.function)
            });
        }
        Ok(Decision { targets, reason: "a whim".to_owned() })
    }
}
