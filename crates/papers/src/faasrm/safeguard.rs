//! FaaSRM's safeguard as its simulator has it: which levels the next call may get, CPU and memory apart.
//!
//! ```text
//!   nothing finished yet                               {user}
//!   peak <= 0.9 user, peak >= 0.9 of what it had       {user}                       a spike
//!   peak <= 0.9 user                                   [highest peak + 1 .. user]
//!   peak >  0.9 user                                   [highest peak + 1 .. 8]
//! ```
//!
//! `peak` is that of the most recently started call that has finished. A function whose user was right
//! (peak = user) counts as short and may get eight cores for nothing.

use windfall_core::Seed;
use windfall_rl::random::Draw;

use super::function_model::{Levels, TOP};
use super::simulator::{Choice, Seen, Sizer};

/// From which share of a size on use counts as close to it.
const THRESHOLD: f64 = 0.9;

/// Least and most of each resource, and whether one of them is a safeguard call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Least.
    pub least: Levels,
    /// Most.
    pub most: Levels,
    /// Whether at least one resource is set to the user's size to be safe.
    pub is_safeguarded: bool,
}

/// What the next call may get.
pub fn range(seen: &Seen<'_>) -> Range {
    let user = seen.function.user;
    let Some(latest) = seen.history.latest() else {
        return Range { least: user, most: user, is_safeguarded: true };
    };
    let highest = seen.history.highest();
    let cpu = one(latest.peak.cpu, latest.size.cpu, user.cpu, highest.cpu);
    let memory = one(latest.peak.memory, latest.size.memory, user.memory, highest.memory);
    Range {
        least: Levels { cpu: cpu.0, memory: memory.0 },
        most: Levels { cpu: cpu.1, memory: memory.1 },
        is_safeguarded: cpu.2 || memory.2,
    }
}

fn one(peak: u32, had: u32, user: u32, highest: u32) -> (u32, u32, bool) {
    let share = |of: u32| f64::from(peak) / f64::from(of);
    if share(user) > THRESHOLD {
        ((highest + 1).min(TOP), TOP, false)
    } else if share(had) >= THRESHOLD {
        (user, user, true)
    } else {
        ((highest + 1).min(user), user, false)
    }
}

/// What is taken from the range.
#[derive(Clone, Debug)]
enum Taken {
    Top,
    Bottom,
    Random(Draw),
}

/// The safeguard with no learning at all.
#[derive(Clone, Debug)]
pub struct SafeguardOnly(Taken);

impl SafeguardOnly {
    /// Always the most.
    pub fn top() -> Self {
        Self(Taken::Top)
    }

    /// Always the least.
    pub fn bottom() -> Self {
        Self(Taken::Bottom)
    }

    /// Uniform, CPU and memory apart.
    pub fn random(seed: Seed) -> Self {
        Self(Taken::Random(Draw::new(seed.stream("faasrm/safeguard-random"))))
    }
}

impl Sizer for SafeguardOnly {
    fn choose(&mut self, seen: &Seen<'_>) -> Choice {
        let Range { least, most, is_safeguarded } = range(seen);
        let size = match &mut self.0 {
            Taken::Top => most,
            Taken::Bottom => least,
            Taken::Random(draw) => {
                let mut pick =
                    |least: u32, most: u32| least + draw.below((most - least + 1) as usize) as u32;
                Levels { cpu: pick(least.cpu, most.cpu), memory: pick(least.memory, most.memory) }
            }
        };
        Choice { size: Some(size), is_safeguarded }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_cases() {
        assert_eq!(one(1, 4, 4, 1), (2, 4, false), "over-provisioned");
        assert_eq!(one(2, 2, 4, 2), (4, 4, true), "a spike");
        assert_eq!(one(4, 4, 4, 4), (5, 8, false), "exactly sized counts as short");
        assert_eq!(one(8, 8, 8, 8), (8, 8, false), "there is nothing above the top");
        assert_eq!(one(3, 4, 4, 4), (4, 4, false), "one peak of 4 is never forgotten");
    }
}
