//! A learner on top of the queueing rule: the rule says how many instances, the learner corrects.
//!
//! ```text
//!   instances = what the rule wishes, one more, or one fewer          CPU, memory: one step up, down, or as they are
//! ```
//!
//! A correction of instances lasts for a tick, one of size until it is taken back. The rule knows nothing of sizes,
//! so these are the learner's own: of 192 MiB that a user reserves for a peak of 105 the rule holds all for ever, one step
//! less is worth 0.15 x (0.82 - 0.55) = 0.04 per tick, 8 per episode.

use windfall_core::Decision;
use windfall_gym::World;
use windfall_gym::classic::{goal_of, own_target};
use windfall_gym::moves::{CPU_STEP, MEMORY_STEP, Move, Moves, Range, Wish};

/// Numbers that tell the learner what its rule wishes.
pub(super) const RULE: usize = 2;

/// Writes the rule's number of instances, and how far it is from what stands; nothing into an empty row.
pub(super) fn write_rule(world: &World, agent: usize, wished: &Decision, out: &mut [f32]) {
    let now = world.wish(agent);
    let goal = goal_of(&own_target(wished, agent), now);
    let most = f64::from(world.settings().range.instances.1);
    let off = f64::from(goal.instances) - f64::from(now.instances);
    for (out, value) in out.iter_mut().zip([f64::from(goal.instances) / most, off / most]) {
        *out = value as f32;
    }
}

/// The rule's wish with a correction, within the range.
pub(super) fn corrected(step: Move, now: Wish, goal: Wish, range: Range) -> Wish {
    let turn = |value: u32, steps: i32, size: u32, (least, most): (u32, u32)| {
        let new = i64::from(value) + i64::from(steps) * i64::from(size);
        new.clamp(i64::from(least), i64::from(most)) as u32
    };
    Wish {
        instances: turn(goal.instances, step.instances, 1, range.instances),
        cpu: turn(now.cpu, step.cpu, CPU_STEP, range.cpu),
        memory: turn(now.memory, step.memory, MEMORY_STEP, range.memory),
    }
}

/// Sizes must stay in their range, memory above what calls were seen with; instances are clamped.
pub(super) fn write_mask(moves: &Moves, world: &World, agent: usize, allowed: &mut [bool]) {
    let (wish, range) = (world.wish(agent), world.settings().range);
    let floor = world.memory_floor(agent);
    for (step, allowed) in moves.list().iter().zip(allowed) {
        let sizes = Move { instances: 0, ..*step };
        *allowed = sizes.apply(wish, range).is_some() && step.keeps_memory(wish, floor);
    }
}

/// A wish that does not turn back at once: the rule does not know what that costs.
pub(super) fn steady(world: &World, agent: usize, wish: Wish) -> Wish {
    let now = world.wish(agent);
    let goes = wish.instances.cmp(&now.instances) as i32;
    if goes * world.turned(agent) < 0 { Wish { instances: now.instances, ..wish } } else { wish }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correction_is_put_on_the_rules_wish_and_stays_in_range() {
        let (now, range) = (Wish { instances: 2, cpu: 1024, memory: 192 }, Range::default());
        let goal = Wish { instances: 5, ..now };
        let hold = corrected(Move::default(), now, goal, range);
        assert_eq!(hold, goal);
        let less = Move { memory: -1, ..Move::default() };
        assert_eq!(corrected(less, now, goal, range), Wish { memory: 128, ..goal });
        let more = Move { instances: 1, ..Move::default() };
        let top = Wish { instances: 10, ..now };
        assert_eq!(corrected(more, now, top, range).instances, 10);
    }
}
