//! A learner on top of the queueing rule: the rule says how many instances, the learner corrects.
//!
//! ```text
//!   instances = what the rule decides, one more, or one fewer          CPU, memory: one step up, down, or as they are
//! ```
//!
//! A correction of instances lasts for a tick, one of size until it is taken back. The rule knows nothing of sizes,
//! so these are the learner's own: of 192 MiB that a user reserves for a peak of 105 the rule always holds all, one step
//! less is worth 0.15 x (0.82 - 0.55) = 0.04 per tick, 8 per episode.

use windfall_core::Decision;
use windfall_gym::World;
use windfall_gym::classic::{goal_of, own_target};
use windfall_gym::moves::{CPU_STEP, Deployment, MEMORY_STEP, Move, Moves, Range};

/// Numbers that show the learner what its rule decides.
pub(super) const RULE: usize = 2;

/// Writes the rule's number of instances, and how far it is from what stands; nothing into an empty row.
pub(super) fn write_rule(world: &World, agent: usize, proposed: &Decision, out: &mut [f32]) {
    let now = world.deployment(agent);
    let goal = goal_of(&own_target(proposed, agent), now);
    let most = f64::from(world.settings().range.instances.1);
    let off = f64::from(goal.instances) - f64::from(now.instances);
    for (out, value) in out.iter_mut().zip([f64::from(goal.instances) / most, off / most]) {
        *out = value as f32;
    }
}

/// The rule's decision with a correction, within the range.
pub(super) fn corrected(step: Move, now: Deployment, goal: Deployment, range: Range) -> Deployment {
    let turn = |value: u32, steps: i32, size: u32, (least, most): (u32, u32)| {
        let new = i64::from(value) + i64::from(steps) * i64::from(size);
        new.clamp(i64::from(least), i64::from(most)) as u32
    };
    Deployment {
        instances: turn(goal.instances, step.instances, 1, range.instances),
        cpu: turn(now.cpu, step.cpu, CPU_STEP, range.cpu),
        memory: turn(now.memory, step.memory, MEMORY_STEP, range.memory),
    }
}

/// Sizes must stay in their range, memory above what calls were seen with; instances are clamped.
pub(super) fn write_mask(moves: &Moves, world: &World, agent: usize, allowed: &mut [bool]) {
    let (deployment, range) = (world.deployment(agent), world.settings().range);
    let floor = world.memory_floor(agent);
    for (step, allowed) in moves.list().iter().zip(allowed) {
        let sizes = Move { instances: 0, ..*step };
        *allowed = sizes.apply(deployment, range).is_some() && step.keeps_memory(deployment, floor);
    }
}

/// A deployment that does not reverse the last change: the rule does not know what that costs.
pub(super) fn steady(world: &World, agent: usize, deployment: Deployment) -> Deployment {
    let now = world.deployment(agent);
    let goes = deployment.instances.cmp(&now.instances) as i32;
    if goes * world.turned(agent) < 0 {
        Deployment { instances: now.instances, ..deployment }
    } else {
        deployment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correction_is_added_to_the_rules_decision_and_stays_in_range() {
        let (now, range) = (Deployment { instances: 2, cpu: 1024, memory: 192 }, Range::default());
        let goal = Deployment { instances: 5, ..now };
        let hold = corrected(Move::default(), now, goal, range);
        assert_eq!(hold, goal);
        let less = Move { memory: -1, ..Move::default() };
        assert_eq!(corrected(less, now, goal, range), Deployment { memory: 128, ..goal });
        let more = Move { instances: 1, ..Move::default() };
        let top = Deployment { instances: 10, ..now };
        assert_eq!(corrected(more, now, top, range).instances, 10);
    }
}
