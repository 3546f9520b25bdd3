//! Shabari: sizes each call by its input, with one cost-sensitive classifier for CPU and one for memory per
//! function.
//!
//! ```text
//!   classes   CPU 0.125 x 2^(k/4) cores, k = 0..24      memory 32 x 2^(k/4) MiB, k = 0..40
//!   cost      right class 0;  each class above: 1 (unused);  each class below: `under`, for CPU scaled by
//!             1 + the throttled share of the run
//! ```
//!
//! Reserved 4 cores, the classifier predicts the lowest cost at 1.19 cores for this input: the call gets 1.19
//! cores. If it was throttled for a tenth of its run, the right class was at least one higher, and each class
//! below it costs 1.1 x `under`.
//!
//! Calls get the user's size until a classifier has seen enough of them.

use serde::{Deserialize, Serialize};
use windfall_core::{CallDecision, CallOutcome, CallPolicy, CallView, FunctionId, PolicyError};

use crate::cost_classifier::CostClassifier;
use crate::per_function::PerFunction;

const CPU_CLASSES: usize = 25;
const MEMORY_CLASSES: usize = 41;
const LEAST_CORES: f64 = 0.125;
const LEAST_MIB: f64 = 32.0;
/// Classes per doubling.
const PER_DOUBLING: f64 = 4.0;

/// Settings of [`Shabari`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShabariSettings {
    /// Calls at the user's CPU before the CPU classifier is used.
    pub cpu_warm_calls: u32,
    /// Calls at the user's memory before the memory classifier is used.
    pub memory_warm_calls: u32,
    /// Cost of one CPU class too low, relative to one class too high.
    pub cpu_under: f64,
    /// Cost of one memory class too low, where the call is killed, relative to one class too high.
    pub memory_under: f64,
    /// Factor by which each new call reduces the weight of earlier ones.
    pub forgetting: f64,
}

impl Default for ShabariSettings {
    fn default() -> Self {
        Self {
            cpu_warm_calls: 5,
            memory_warm_calls: 20,
            cpu_under: 100.0,
            memory_under: 400.0,
            forgetting: 0.9995,
        }
    }
}

#[derive(Clone, Debug)]
struct Agents {
    cpu: CostClassifier,
    memory: CostClassifier,
    /// Lowest memory class that is still possible after killed calls.
    memory_floor: usize,
}

/// Sizes by input, learned online.
#[derive(Clone, Debug, Default)]
pub struct Shabari {
    settings: ShabariSettings,
    functions: PerFunction<Option<Agents>>,
}

impl Shabari {
    /// Creates a policy without history.
    pub fn new(settings: ShabariSettings) -> Self {
        Self { settings, functions: PerFunction::default() }
    }

    fn agents(&mut self, function: FunctionId) -> &mut Agents {
        let forgetting = self.settings.forgetting;
        self.functions.state(function).get_or_insert_with(|| Agents {
            cpu: CostClassifier::new(CPU_CLASSES, forgetting),
            memory: CostClassifier::new(MEMORY_CLASSES, forgetting),
            memory_floor: 0,
        })
    }
}

/// The smallest class that holds `amount`.
fn class_of(amount: f64, least: f64, classes: usize) -> usize {
    let class = (PER_DOUBLING * (amount / least).max(1.0).log2() - 1e-9).ceil();
    (class as usize).min(classes - 1)
}

fn size_of(class: usize, least: f64) -> f64 {
    least * (class as f64 / PER_DOUBLING).exp2()
}

fn log_input(input: Option<f32>) -> Option<f64> {
    input.map(f64::from).filter(|input| *input > 0.0 && input.is_finite()).map(f64::ln)
}

/// Cost of every class if `right` was the right one.
fn cost(right: usize, under: f64) -> impl Fn(usize) -> f64 {
    move |class| {
        let off = class as f64 - right as f64;
        if off >= 0.0 { off } else { -off * under }
    }
}

impl CallPolicy for Shabari {
    fn name(&self) -> &str {
        "shabari"
    }

    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        let settings = self.settings;
        let x = log_input(call.input);
        let agents = self.agents(call.function);
        let user = call.reservation;
        let (mut cpu_cores, mut memory_mib) = (user.cpu.cores(), user.memory.mib());
        if agents.cpu.seen() >= settings.cpu_warm_calls {
            let cores = size_of(agents.cpu.choose(x), LEAST_CORES);
            cpu_cores = cores.min(call.ceiling.cpu.cores());
        }
        if agents.memory.seen() >= settings.memory_warm_calls {
            let class = agents.memory.choose(x).max(agents.memory_floor);
            memory_mib = size_of(class, LEAST_MIB).min(user.memory.mib());
        }
        let why = "the cheapest class for its input";
        Ok(CallDecision { cpu_cores, memory_mib, ..CallDecision::exactly(user, why) })
    }

    fn learn(&mut self, outcome: &CallOutcome) {
        let settings = self.settings;
        let x = log_input(outcome.input);
        let agents = self.agents(outcome.function);
        if outcome.was_killed {
            let limit = class_of(outcome.last_grant.memory.mib(), LEAST_MIB, MEMORY_CLASSES);
            agents.memory_floor = agents.memory_floor.max(limit + 1).min(MEMORY_CLASSES - 1);
            return;
        }
        let run = outcome.run().as_secs_f64().max(1e-9);
        let late = outcome.throttled.as_secs_f64() / run;
        let peak = outcome.cpu_peak_cores;
        if peak.is_finite() && peak > 0.0 {
            let grant = outcome.last_grant.cpu.cores();
            let mut right = class_of(peak, LEAST_CORES, CPU_CLASSES);
            if late > 0.01 {
                // The call was throttled: at least one class more, two if it was throttled for more than
                // half of its run.
                let held = class_of(grant, LEAST_CORES, CPU_CLASSES);
                right = (right.max(held) + 1 + usize::from(late > 0.5)).min(CPU_CLASSES - 1);
            }
            agents.cpu.learn(x, cost(right, settings.cpu_under * (1.0 + late)));
        }
        let memory = outcome.memory_peak_mib;
        if memory.is_finite() && memory > 0.0 {
            let right = class_of(memory, LEAST_MIB, MEMORY_CLASSES);
            agents.memory.learn(x, cost(right, settings.memory_under));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_platform::{FakePlatform, one_core_second};
    use windfall_core::{Allocation, CallDemand, Mebibytes, MilliCpu};

    #[test]
    fn classes_are_quarters_of_a_doubling() {
        assert_eq!(class_of(0.125, LEAST_CORES, CPU_CLASSES), 0);
        assert_eq!(class_of(1.0, LEAST_CORES, CPU_CLASSES), 12);
        assert_eq!(class_of(1.1, LEAST_CORES, CPU_CLASSES), 13);
        assert!((size_of(13, LEAST_CORES) - 1.189).abs() < 1e-3);
        assert_eq!(class_of(1e9, LEAST_CORES, CPU_CLASSES), CPU_CLASSES - 1);
    }

    #[test]
    fn the_users_size_first_then_what_the_input_needs() {
        let mut platform =
            FakePlatform::new(Allocation::new(4000, 2048), Allocation::new(8000, 4096));
        let mut shabari = Shabari::default();
        let demand = |large: bool| CallDemand {
            parallelism: MilliCpu::new(if large { 2400 } else { 700 }),
            memory_base: Mebibytes::new(50),
            memory_peak: Mebibytes::new(if large { 900 } else { 120 }),
            input: Some(if large { 1000.0 } else { 10.0 }),
            ..one_core_second()
        };
        for n in 0..200 {
            let call = platform.call(&mut shabari, demand(n % 2 == 0));
            if n < 5 {
                assert_eq!(call.first_grant, Allocation::new(4000, 2048));
            }
        }
        let small = platform.call(&mut shabari, demand(false)).first_grant;
        let large = platform.call(&mut shabari, demand(true)).first_grant;
        assert!(small.cpu.cores() >= 0.7 && small.cpu.cores() < 1.3, "{small}");
        assert!(large.cpu.cores() >= 2.4 && large.cpu.cores() < 3.6, "{large}");
        assert!(small.memory.mib() < 400.0 && large.memory.mib() >= 900.0, "{small} {large}");
    }
}
