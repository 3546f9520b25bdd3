//! The paper's baselines as its authors coded them.

use super::function_model::{Levels, TOP};
use super::simulator::{Choice, Seen, Sizer};

/// Always the user's size.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fixed;

impl Sizer for Fixed {
    fn choose(&mut self, _: &Seen<'_>) -> Choice {
        Choice::NONE
    }
}

/// From the last finished call, per resource: up to 90 % used, a step down; else a step up. No safeguard.
/// The paper says steps of 1; its code has 2.
#[derive(Clone, Copy, Debug)]
pub struct Greedy {
    /// Levels of a step.
    pub step: u32,
}

impl Sizer for Greedy {
    fn choose(&mut self, seen: &Seen<'_>) -> Choice {
        let Some(latest) = seen.history.latest() else { return Choice::of(seen.function.user) };
        let next = |peak: u32, size: u32| {
            let is_unused = f64::from(peak) / f64::from(size) <= 0.9;
            if is_unused {
                size.saturating_sub(self.step).max(1)
            } else {
                (size + self.step).min(TOP)
            }
        };
        Choice::of(Levels {
            cpu: next(latest.peak.cpu, latest.size.cpu),
            memory: next(latest.peak.memory, latest.size.memory),
        })
    }
}

/// The ideal size from the first call on, which nobody can know: as fast as can be, and not a core more.
#[derive(Clone, Copy, Debug, Default)]
pub struct Oracle;

impl Sizer for Oracle {
    fn choose(&mut self, seen: &Seen<'_>) -> Choice {
        Choice::of(seen.function.ideal())
    }
}

/// What is wrong with ENSURE as coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnsureDefects {
    /// One counter of decisions for all functions, by a wrong loop variable.
    pub one_counter_for_all: bool,
    /// Between updates the last action is applied to whichever function comes next.
    pub action_is_applied_again: bool,
    /// The mean of the window is the sum over three, even of one call.
    pub window_is_always_three: bool,
    /// "Late" is judged against the true shortest run time, which nobody can know; else against the
    /// baseline.
    pub knows_the_shortest_run: bool,
}

impl EnsureDefects {
    /// As coded.
    pub const AS_CODED: Self = Self {
        one_counter_for_all: true,
        action_is_applied_again: true,
        window_is_always_three: true,
        knows_the_shortest_run: true,
    };
}

/// ENSURE: every few decisions, a step of CPU up if the last three calls were late and cores are free, a
/// step down if none are free. Memory stays the user's.
#[derive(Clone, Debug)]
pub struct Ensure {
    defects: EnsureDefects,
    /// Decisions since the last update; by function only if they do not share one.
    counters: Vec<u32>,
    action: Option<u32>,
}

impl Ensure {
    /// ENSURE with these defects.
    pub fn new(defects: EnsureDefects) -> Self {
        Self { defects, counters: Vec::new(), action: None }
    }

    /// The CPU that an update settles on; nothing for no change.
    fn update(&self, seen: &Seen<'_>, step: u32) -> Option<u32> {
        let recent = seen.history.recent();
        let latest = seen.history.latest()?;
        if seen.free_cpu <= i64::from(step) {
            return Some(latest.size.cpu.saturating_sub(step).max(1));
        }
        let count = if self.defects.window_is_always_three { 3 } else { recent.len() };
        let mean = recent.iter().map(|call| f64::from(call.seconds)).sum::<f64>() / count as f64;
        let reference = if self.defects.knows_the_shortest_run {
            seen.function.shortest
        } else {
            seen.function.baseline()
        };
        (mean / f64::from(reference) >= 1.10).then(|| (latest.size.cpu + step).min(TOP))
    }

    fn counter(&mut self, place: usize) -> &mut u32 {
        let place = if self.defects.one_counter_for_all { 0 } else { place };
        if place >= self.counters.len() {
            self.counters.resize(place + 1, 0);
        }
        &mut self.counters[place]
    }
}

impl Sizer for Ensure {
    fn choose(&mut self, seen: &Seen<'_>) -> Choice {
        // Long functions are changed rarely and a little, short ones often and more.
        let (due, step) = if seen.history.mean_seconds() > 5.0 { (5, 1) } else { (3, 2) };
        let counter = self.counter(seen.place);
        if *counter >= due {
            *counter = 0;
            self.action = self.update(seen, step);
        } else {
            *counter += 1;
            if !self.defects.action_is_applied_again {
                self.action = None;
            }
        }
        let memory = seen.function.user.memory;
        self.action.map_or(Choice::NONE, |cpu| Choice::of(Levels { cpu, memory }))
    }
}
