//! What an agent can do, and when it may.
//!
//! A move is a number of steps on each knob. The published ones turn one knob by one step; the factored ones
//! turn all of them at once, instances by up to four, so that a burst does not take ten ticks to follow.
//!
//! | set | moves |
//! | --- | --- |
//! | [`Moves::course`] | hold, out, in, up, down |
//! | [`Moves::paper`] | the same and memory: more, less |
//! | [`Moves::factored`] | instances -4 -2 -1 0 1 2 4, times CPU -1 0 1, times memory -1 0 1 |

use serde::{Deserialize, Serialize};

/// The instances of a function and the size of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// Instances.
    pub instances: u32,
    /// CPU of each, millicores.
    pub cpu: u32,
    /// Memory of each, MiB.
    pub memory: u32,
}

impl Deployment {
    fn total(self) -> (i64, i64) {
        let count = i64::from(self.instances);
        (count * i64::from(self.cpu), count * i64::from(self.memory))
    }
}

/// Least and most of each knob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// Instances.
    pub instances: (u32, u32),
    /// CPU of an instance, millicores.
    pub cpu: (u32, u32),
    /// Memory of an instance, MiB.
    pub memory: (u32, u32),
}

impl Default for Range {
    /// The published ones: up to ten instances of 128 to 2048 shares; memory as users may choose it.
    fn default() -> Self {
        Self { instances: (1, 10), cpu: (128, 2048), memory: (64, 2048) }
    }
}

/// Steps on each knob.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Move {
    /// Instances.
    pub instances: i32,
    /// Times [`CPU_STEP`].
    pub cpu: i32,
    /// Times [`MEMORY_STEP`].
    pub memory: i32,
}

/// Millicores of one vertical step.
pub const CPU_STEP: u32 = 128;
/// MiB of one vertical step.
pub const MEMORY_STEP: u32 = 64;

impl Move {
    /// Whether nothing changes.
    pub fn is_hold(self) -> bool {
        self == Self::default()
    }

    fn name(self) -> String {
        let part = |steps: i32, up: &str, down: &str| match steps {
            0 => None,
            1 => Some(up.to_owned()),
            -1 => Some(down.to_owned()),
            more if more > 0 => Some(format!("{up}-{more}")),
            less => Some(format!("{down}-{}", -less)),
        };
        let parts = [
            part(self.instances, "out", "in"),
            part(self.cpu, "up", "down"),
            part(self.memory, "memory-up", "memory-down"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { "hold".to_owned() } else { parts.join("+") }
    }

    /// Whether `deployment` is left with `floor` MiB at least, or none is taken away.
    pub fn keeps_memory(self, deployment: Deployment, floor: f64) -> bool {
        let taken = i64::from(self.memory) * i64::from(MEMORY_STEP);
        taken >= 0 || (i64::from(deployment.memory) + taken) as f64 >= floor
    }

    /// Whether an agent may do this that knows of its own function alone: its `deployment` and ranges, which way its instances
    /// `turned` last, and below which memory its calls were seen to need more (`floor`).
    pub fn is_allowed(
        self,
        deployment: Deployment,
        range: Range,
        (turned, floor): (i32, f64),
    ) -> bool {
        self.is_hold()
            || (self.apply(deployment, range).is_some()
                && self.instances * turned >= 0
                && self.keeps_memory(deployment, floor))
    }

    /// What `deployment` becomes, or nothing if a knob would leave its range or an empty function be resized.
    pub fn apply(self, deployment: Deployment, range: Range) -> Option<Deployment> {
        let turn = |value: u32, steps: i32, size: u32, (least, most): (u32, u32)| {
            let new = i64::from(value) + i64::from(steps) * i64::from(size);
            let is_inside = (i64::from(least)..=i64::from(most)).contains(&new);
            if steps == 0 { Some(value) } else { is_inside.then_some(new as u32) }
        };
        if deployment.instances == 0 && (self.cpu != 0 || self.memory != 0) {
            return None;
        }
        Some(Deployment {
            instances: turn(deployment.instances, self.instances, 1, range.instances)?,
            cpu: turn(deployment.cpu, self.cpu, CPU_STEP, range.cpu)?,
            memory: turn(deployment.memory, self.memory, MEMORY_STEP, range.memory)?,
        })
    }
}

/// A set of moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moves {
    list: Vec<Move>,
}

impl Moves {
    /// The five of the course.
    pub fn course() -> Self {
        let moves = [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)];
        Self { list: moves.map(|(instances, cpu)| Move { instances, cpu, memory: 0 }).to_vec() }
    }

    /// The five and two of memory.
    pub fn paper() -> Self {
        let mut moves = Self::course();
        moves.list.extend([1, -1].map(|memory| Move { memory, ..Move::default() }));
        moves
    }

    /// Larger moves of all knobs together; the first is to hold.
    pub fn factored() -> Self {
        let mut list = Vec::new();
        for instances in [0, 1, 2, 4, -1, -2, -4] {
            for cpu in [0, 1, -1] {
                for memory in [0, 1, -1] {
                    list.push(Move { instances, cpu, memory });
                }
            }
        }
        Self { list }
    }

    /// Any moves; the first should be to hold.
    pub fn of(list: Vec<Move>) -> Self {
        Self { list }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// The moves, in order.
    pub fn list(&self) -> &[Move] {
        &self.list
    }

    /// Their names, in order.
    pub fn names(&self) -> Vec<String> {
        self.list.iter().map(|step| step.name()).collect()
    }

    /// Which moves a function with `deployment` may make when the cluster has `room` (millicores, MiB) left.
    pub fn write_allowed(
        &self,
        deployment: Deployment,
        range: Range,
        room: (i64, i64),
        allowed: &mut [bool],
    ) {
        let held = deployment.total();
        for (step, allowed) in self.list.iter().zip(allowed) {
            *allowed = step.is_hold()
                || step.apply(deployment, range).is_some_and(|new| {
                    let (cpu, memory) = new.total();
                    (cpu <= held.0 || cpu - held.0 <= room.0)
                        && (memory <= held.1 || memory - held.1 <= room.1)
                });
        }
    }

    /// The allowed move that comes nearest to `goal`, instances first; among equals the first.
    pub fn towards(
        &self,
        deployment: Deployment,
        goal: Deployment,
        range: Range,
        allowed: &[bool],
    ) -> usize {
        let distance = |place: &usize| {
            let new = self.list[*place].apply(deployment, range).unwrap_or(deployment);
            let instances = i64::from(new.instances.abs_diff(goal.instances));
            let cpu = i64::from(new.cpu.abs_diff(goal.cpu) / (CPU_STEP / 4));
            let memory = i64::from(new.memory.abs_diff(goal.memory) / (MEMORY_STEP / 2));
            1000 * instances + 10 * cpu + memory
        };
        (0..self.list.len()).filter(|&place| allowed[place]).min_by_key(distance).unwrap_or(0)
    }

    /// The move that led from one deployment to another; hold if none of the set did.
    pub fn between(&self, from: Deployment, to: Deployment, range: Range) -> usize {
        self.list.iter().position(|step| step.apply(from, range) == Some(to)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Deployment = Deployment { instances: 1, cpu: 128, memory: 64 };

    #[test]
    fn names_say_what_moves_do() {
        assert_eq!(Moves::course().names(), ["hold", "out", "in", "up", "down"]);
        assert_eq!(Moves::paper().names()[5..], ["memory-up", "memory-down"]);
        assert_eq!(Moves::factored().count(), 63);
        assert!(Moves::factored().names().contains(&"out-4+down+memory-up".to_owned()));
    }

    #[test]
    fn what_is_illegal_is_not_allowed() {
        let (moves, mut allowed) = (Moves::course(), [false; 5]);
        let range = Range { instances: (0, 10), ..Range::default() };
        moves.write_allowed(HERE, range, (10_000, 10_000), &mut allowed);
        assert_eq!(allowed, [true, true, true, true, false]);
        let nothing = Deployment { instances: 0, ..HERE };
        moves.write_allowed(nothing, range, (10_000, 10_000), &mut allowed);
        assert_eq!(allowed, [true, true, false, false, false]);
        // No room for another instance, but for a step of CPU.
        moves.write_allowed(Deployment { cpu: 1024, ..HERE }, range, (200, 200), &mut allowed);
        assert_eq!(allowed, [true, false, true, true, true]);
    }

    #[test]
    fn a_goal_is_approached_step_by_step() {
        let (moves, range) = (Moves::course(), Range::default());
        let goal = Deployment { instances: 3, cpu: 256, memory: 64 };
        let mut deployment = HERE;
        let mut path = Vec::new();
        for _ in 0..4 {
            let step = moves.towards(deployment, goal, range, &[true; 5]);
            path.push(moves.names()[step].clone());
            deployment = moves.list()[step].apply(deployment, range).unwrap();
        }
        assert_eq!(path, ["out", "out", "up", "hold"]);
        assert_eq!(moves.between(HERE, Deployment { instances: 2, ..HERE }, range), 1);
    }
}
