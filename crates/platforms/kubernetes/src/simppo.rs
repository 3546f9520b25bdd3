//! SIMPPO's agents as a multidimensional pod autoscaler: one agent per workload turns its replicas and the size of its pods, one
//! step of one of them per tick, and sees the other workloads of the same policy as one virtual agent.
//!
//! The network is the one that decides for all functions in `windfall/MultiScaling-v1`, trained in simulation
//! (`cargo run --release -p windfall-papers --example simppo_network`). Agents need to know how well their objective is met,
//! so a workload without `goals.latency` is left alone. The network knows ticks of five seconds: `--interval 5`.

use std::path::Path;
use std::sync::{Arc, Mutex};

use windfall_core::{Decision, FunctionId, Observation, Policy, PolicyError};
use windfall_papers::simppo::deployed::{Agents, KIND, Objective, Range};
use windfall_registry::checkpoint_policy::is_checkpoint;
use windfall_rl::{Checkpoint, CheckpointError};

use crate::guard::{Guard, Guards, lock};

/// The name of the policy with the network that is built in.
pub const SIMPPO: &str = "simppo";
/// That network.
const NETWORK: &[u8] = include_bytes!("../params/simppo.safetensors");

/// The policy.
pub struct Simppo {
    guards: Arc<Mutex<Guards>>,
    agents: Agents,
}

impl Simppo {
    /// The agents that `policy` names, by the name or by a checkpoint of their kind; nothing if it names something else.
    pub fn named(
        policy: &str,
        guards: &Arc<Mutex<Guards>>,
    ) -> Option<Result<Self, CheckpointError>> {
        let checkpoint = if policy == SIMPPO {
            Checkpoint::from_bytes(NETWORK)
        } else if is_checkpoint(policy) {
            // A file that cannot be read is named by whoever looks at all other kinds.
            Ok(Checkpoint::open(Path::new(policy)).ok().filter(is_of_agents)?)
        } else {
            return None;
        };
        let agents = checkpoint.and_then(|checkpoint| Agents::from_checkpoint(&checkpoint));
        Some(agents.map(|agents| Self { guards: Arc::clone(guards), agents }))
    }
}

fn is_of_agents(checkpoint: &Checkpoint) -> bool {
    checkpoint.header.environment.id == KIND
}

/// What a workload should achieve and its user allows; nothing without a latency goal, or before any latency was measured.
fn objective(guard: &Guard) -> Option<Objective> {
    let goal = guard.goals.latency.as_ref()?;
    let bound = |least: u32, most: u32| (least, most.max(least));
    let training = Range::default();
    Some(Objective {
        latency: windfall_core::Duration::from_millis(u64::from(goal.milliseconds.max(1))),
        measured: guard.latency,
        per_second: guard.per_second.unwrap_or(0.0),
        range: Range {
            instances: bound(guard.replicas.0, guard.replicas.1.min(training.instances.1)),
            cpu: bound(guard.least.cpu.get(), guard.most.cpu.get().min(training.cpu.1)),
            memory: bound(guard.least.memory.get(), guard.most.memory.get().min(training.memory.1)),
        },
    })
}

impl Policy for Simppo {
    fn name(&self) -> &str {
        SIMPPO
    }

    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError> {
        let guards = lock(&self.guards);
        let objective_of = |function: FunctionId| guards.get(function).and_then(objective);
        let has_goal = |function| objective_of(function).is_some();
        let without = seen.functions.iter().filter(|view| !has_goal(view.function)).count();
        let targets = self.agents.decide(seen, objective_of);
        let mut reason = format!("{} of {} agents move", targets.len(), seen.functions.len());
        if without > 0 {
            reason += &format!("; {without} workloads have no goals.latency and are left alone");
        }
        Ok(Decision { targets, reason })
    }
}
