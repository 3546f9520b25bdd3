//! Generalised advantage estimation (Schulman et al., 2016).

/// How a step ended, with the value that follows it, so that forgetting to bootstrap does not compile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepEnd {
    /// The episode goes on to a state of this value.
    Continues {
        /// Value of the next state.
        next_value: f32,
    },
    /// The task ended; nothing of value follows.
    Terminated,
    /// We stopped watching; value does follow.
    Truncated {
        /// Value of the last state.
        final_value: f32,
    },
}

/// A step as advantages see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValuedStep {
    /// What the step paid.
    pub reward: f32,
    /// What its state was thought to be worth.
    pub value: f32,
    /// What came after.
    pub end: StepEnd,
}

/// Writes the advantage of each of consecutive `steps`.
///
/// ```text
/// delta_t = r_t + discount V(s_t+1) - V(s_t)          V(s_t+1) = 0 after termination
/// A_t     = delta_t + discount lambda A_t+1           A_t+1 = 0 after either end
/// ```
///
/// `lambda` 1 gives the discounted return minus the value, 0 the one-step error.
pub fn advantages(steps: &[ValuedStep], discount: f32, lambda: f32, out: &mut [f32]) {
    let mut later = 0.0;
    for (step, out) in steps.iter().zip(out).rev() {
        let (next_value, chain) = match step.end {
            StepEnd::Continues { next_value } => (next_value, later),
            StepEnd::Terminated => (0.0, 0.0),
            StepEnd::Truncated { final_value } => (final_value, 0.0),
        };
        later = step.reward + discount * next_value - step.value + discount * lambda * chain;
        *out = later;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(steps: &[ValuedStep], discount: f32, lambda: f32) -> Vec<f32> {
        let mut out = vec![0.0; steps.len()];
        advantages(steps, discount, lambda, &mut out);
        out
    }

    fn step(reward: f32, value: f32, end: StepEnd) -> ValuedStep {
        ValuedStep { reward, value, end }
    }

    #[test]
    fn truncation_bootstraps_and_termination_does_not() {
        let ended = of(&[step(1.0, 0.0, StepEnd::Terminated)], 0.5, 1.0);
        let cut = of(&[step(1.0, 0.0, StepEnd::Truncated { final_value: 4.0 })], 0.5, 1.0);
        assert_eq!(ended, [1.0]);
        assert_eq!(cut, [3.0]); // 1 + 0.5 * 4
    }

    #[test]
    fn three_steps_worked_by_hand() {
        let steps = [
            step(1.0, 2.0, StepEnd::Continues { next_value: 4.0 }),
            step(0.0, 4.0, StepEnd::Continues { next_value: 2.0 }),
            step(3.0, 2.0, StepEnd::Terminated),
        ];
        // Errors: 1 + 2 - 2 = 1; 0 + 1 - 4 = -3; 3 - 2 = 1. Each later one counts 0.5 * 0.5 = 0.25.
        assert_eq!(of(&steps, 0.5, 0.5), [1.0 - 0.75 + 0.0625, -3.0 + 0.25, 1.0]);
        // With lambda 1 the return minus the value: 1 + 0.25 * 3 - 2.
        assert_eq!(of(&steps, 0.5, 1.0)[0], -0.25);
        assert_eq!(of(&steps, 0.5, 0.0), [1.0, -3.0, 1.0]);
    }

    #[test]
    fn nothing_flows_from_one_episode_into_the_one_before() {
        let cut = StepEnd::Truncated { final_value: 0.0 };
        let steps = [step(1.0, 0.0, cut), step(100.0, 0.0, StepEnd::Terminated)];
        assert_eq!(of(&steps, 1.0, 1.0), [1.0, 100.0]);
    }
}
