//! What the API allows: kinds, bounds of limits, sizes, throttles.

use std::time::Duration;

/// Everything that can be chosen about the API.
#[derive(Clone, Debug)]
pub struct ApiSettings {
    /// Runtimes that actions may name.
    pub kinds: Vec<Kind>,
    /// What users may ask for.
    pub bounds: Bounds,
    /// How often a namespace may call; nothing means as often as it can.
    pub throttle: Throttle,
    /// The longest a blocking call waits before it is answered with 202.
    pub longest_blocking: Duration,
    /// The longest a call may wait for an instance: [`Call::deadline`](crate::Call::deadline).
    pub longest_wait: Duration,
    /// The longest body with parameters, in bytes; also the longest result.
    pub largest_parameters: usize,
    /// The largest code, in bytes.
    pub largest_code: usize,
}

/// One runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name: `python:3`. An action may also ask for `python:default`.
    pub name: String,
    /// Whether `family:default` means this one.
    pub is_default: bool,
    /// Other names for it: `python:3.11`.
    pub aliases: Vec<String>,
}

/// Smallest and largest of each limit, and OpenWhisk's defaults beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The shortest timeout, 100 ms.
    pub shortest_timeout: Duration,
    /// The longest timeout, 5 minutes.
    pub longest_timeout: Duration,
    /// The smallest memory in MiB, 128.
    pub smallest_memory: u32,
    /// The largest memory in MiB, 512.
    pub largest_memory: u32,
    /// The longest log in MiB, 10.
    pub longest_log: u32,
    /// The most calls in one instance at a time. OpenWhisk's default is 1; ours 200.
    pub most_concurrency: u32,
    /// The most instances of one action.
    pub most_instances: u32,
    /// The most actions in a sequence, 50.
    pub longest_sequence: usize,
}

/// Calls a namespace may make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttle {
    /// Calls of actions per minute.
    pub invocations_per_minute: Option<u32>,
    /// Calls that have not ended.
    pub concurrent_invocations: Option<u32>,
    /// Triggers per minute.
    pub fires_per_minute: Option<u32>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            shortest_timeout: Duration::from_millis(100),
            longest_timeout: Duration::from_mins(5),
            smallest_memory: 128,
            largest_memory: 512,
            longest_log: 10,
            most_concurrency: 200,
            most_instances: 1000,
            longest_sequence: 50,
        }
    }
}

impl Default for ApiSettings {
    fn default() -> Self {
        Self {
            kinds: Vec::new(),
            bounds: Bounds::default(),
            throttle: Throttle::default(),
            longest_blocking: Duration::from_mins(1),
            longest_wait: Duration::from_mins(5),
            largest_parameters: 1 << 20,
            largest_code: 48 << 20,
        }
    }
}

impl Kind {
    /// A runtime that is its family's default.
    pub fn default_of_family(name: impl Into<String>) -> Self {
        Self { name: name.into(), is_default: true, aliases: Vec::new() }
    }

    /// `python` of `python:3`.
    pub fn family(&self) -> &str {
        self.name.split(':').next().unwrap_or_default()
    }

    /// Whether an action that asks for `wanted` gets this one.
    pub fn answers_to(&self, wanted: &str) -> bool {
        let is_default =
            || wanted.strip_suffix(":default") == Some(self.family()) || wanted == self.family();
        self.name == wanted
            || self.aliases.iter().any(|alias| alias == wanted)
            || (self.is_default && is_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_has_a_default() {
        let python =
            Kind { aliases: vec!["python:3.11".into()], ..Kind::default_of_family("python:3") };
        for wanted in ["python:3", "python:default", "python", "python:3.11"] {
            assert!(python.answers_to(wanted), "{wanted}");
        }
        assert!(!python.answers_to("python:2") && !python.answers_to("nodejs:default"));
    }
}
