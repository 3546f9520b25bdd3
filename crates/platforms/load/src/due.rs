//! One call of a schedule.

use windfall_core::Duration;

/// When a call is due, and at which target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Due {
    /// Time since the beginning.
    pub at: Duration,
    /// Place of the target in the list of targets.
    pub target: u32,
    /// What the trace says about the call.
    pub placeholders: Placeholders,
}

/// Numbers that can stand in a body, as `{number}`, `{run_ms}`, `{memory_mib}` and `{input}`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Placeholders {
    /// Place of the call in the schedule, from 0.
    pub number: u64,
    /// Run time at the size its user reserves, ms; 0 without a trace.
    pub run_ms: u64,
    /// Peak of its memory, MiB; 0 without a trace.
    pub memory_mib: u32,
    /// Its input size; 0 where the trace has none.
    pub input: f32,
}

impl Placeholders {
    /// `body` with every placeholder replaced.
    pub(crate) fn fill(&self, body: &str) -> String {
        body.replace("{number}", &self.number.to_string())
            .replace("{run_ms}", &self.run_ms.to_string())
            .replace("{memory_mib}", &self.memory_mib.to_string())
            .replace("{input}", &self.input.to_string())
    }

    /// Whether `body` has a placeholder at all.
    pub(crate) fn are_in(body: &str) -> bool {
        ["{number}", "{run_ms}", "{memory_mib}", "{input}"].iter().any(|name| body.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_filled_per_call() {
        let call = Placeholders { number: 7, run_ms: 120, memory_mib: 64, input: 2.5 };
        let body =
            r#"{"sleep":{run_ms},"bloat":{memory_mib},"n":{number},"size":{input},"other":{}}"#;
        assert_eq!(call.fill(body), r#"{"sleep":120,"bloat":64,"n":7,"size":2.5,"other":{}}"#);
        assert!(Placeholders::are_in(body) && !Placeholders::are_in("{\"a\":{}}"));
    }
}
