//! Instances of one function over the last hour, kept only where they changed.

use std::collections::VecDeque;

use serde::Serialize;

/// Length of a step, seconds.
const STEP_SECONDS: f32 = 10.0;
/// Steps that are kept: an hour of changes.
const STEPS: usize = 360;

/// Instances and calls from a moment on, until the next step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct InstanceStep {
    /// From when, seconds since the start.
    pub at: f32,
    /// Instances that can take calls.
    pub ready: u16,
    /// The most of them that were busy.
    pub busy: u16,
    /// The most calls that waited.
    pub queued: u16,
}

/// Steps, newest last. A function that nothing happens to has one; ten thousand functions must fit into memory.
#[derive(Clone, Debug, Default)]
pub struct InstanceHistory(VecDeque<InstanceStep>);

impl InstanceHistory {
    /// All steps, oldest first.
    pub fn steps(&self) -> &VecDeque<InstanceStep> {
        &self.0
    }

    /// Takes in what was seen at `at`. Within ten seconds the latest number of instances and the largest numbers of
    /// calls count.
    pub(super) fn see(&mut self, at: f64, ready: u32, busy: u32, queued: u32) {
        let [ready, busy, queued] =
            [ready, busy, queued].map(|count| u16::try_from(count).unwrap_or(u16::MAX));
        let at = (at as f32 / STEP_SECONDS).floor() * STEP_SECONDS;
        let step = InstanceStep { at, ready, busy, queued };
        match self.0.back_mut() {
            Some(last) if last.at == step.at => {
                let (busy, queued) = (last.busy.max(step.busy), last.queued.max(step.queued));
                *last = InstanceStep { busy, queued, ..step };
            }
            Some(last) if (InstanceStep { at: last.at, ..step }) == *last => {}
            _ => super::push_bounded(&mut self.0, step, STEPS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_kept_and_a_step_has_its_peak() {
        let mut history = InstanceHistory::default();
        let seen =
            [(1.0, 2, 1), (3.0, 2, 2), (5.0, 3, 0), (12.0, 3, 2), (21.0, 3, 2), (31.0, 0, 0)];
        seen.into_iter().for_each(|(at, ready, busy)| history.see(at, ready, busy, 0));
        let steps: Vec<_> = history.steps().iter().map(|it| (it.at, it.ready, it.busy)).collect();
        assert_eq!(steps, [(0.0, 3, 2), (30.0, 0, 0)]);
    }
}
