//! Searches that ended before a measurement was cut off, so that the same measurement goes on from there.
//!
//! A search is known by everything that its result depends on but the program itself: whoever changes a policy measures
//! in another folder, or removes what was kept.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::measure::{CLASSES, FunctionService};
use super::search::{Measured, Tried};

/// What a search was about.
pub(super) struct SearchName<'a> {
    /// The world's name, for people who look into the folder.
    pub(super) world: &'a str,
    /// The policy as tables call it.
    pub(super) policy: &'a str,
    /// CPU that may be claimed for each core.
    pub(super) over_commit: f64,
    /// The seed.
    pub(super) seed: u64,
    /// Every setting, as text.
    pub(super) settings: String,
}

impl SearchName<'_> {
    /// A name that can be a file's: `trace-weights-2-1-0a1b2c3d`.
    pub(super) fn text(&self) -> String {
        let Self { world, policy, over_commit, seed, settings } = self;
        let mut name = format!("{world}-{policy}-{over_commit}-{seed}");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        name = name.replace(|c: char| !is_plain(c), "_");
        let _ = write!(name, "-{:08x}", crc32fast::hash(settings.as_bytes()));
        name
    }
}

/// Calls and slow calls by class, violations, kills, the longest wait.
type KeptFunction = ([u32; CLASSES], [u32; CLASSES], u32, u32, f32);

/// One load that was tried, each function as a short row of numbers.
#[derive(Serialize, Deserialize)]
struct KeptLoad {
    load: f64,
    functions: Vec<KeptFunction>,
}

/// What a search found, as text; `null` where it was given up.
pub(super) fn to_text(measured: Option<&[Measured]>) -> String {
    let row = |one: &FunctionService| {
        let FunctionService { calls, slow, violations, kills, longest_wait } = *one;
        (calls, slow, violations, kills, longest_wait)
    };
    let load = |tried: &Measured| KeptLoad {
        load: tried.load,
        functions: tried.result.iter().map(row).collect(),
    };
    let loads: Option<Vec<KeptLoad>> = measured.map(|loads| loads.iter().map(load).collect());
    serde_json::to_string(&loads).unwrap_or_default()
}

/// What [`to_text`] wrote; nothing if it was not written by it, so that the search is made again.
pub(super) fn from_text(text: &str) -> Option<Option<Vec<Measured>>> {
    let loads: Option<Vec<KeptLoad>> = serde_json::from_str(text).ok()?;
    let function = |(calls, slow, violations, kills, longest_wait)| FunctionService {
        calls,
        slow,
        violations,
        kills,
        longest_wait,
    };
    let load = |KeptLoad { load, functions }| Tried {
        load,
        result: functions.into_iter().map(function).collect(),
    };
    Some(loads.map(|loads| loads.into_iter().map(load).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_comes_back_and_a_file_cut_off_is_no_search() {
        let some = FunctionService {
            calls: [5, 0, 1, 0],
            slow: [1, 0, 0, 0],
            violations: 2,
            kills: 0,
            longest_wait: 0.1,
        };
        let measured = vec![Tried { load: 1.1, result: vec![some, FunctionService::default()] }];
        let text = to_text(Some(&measured));
        assert_eq!(from_text(&text), Some(Some(measured)));
        assert_eq!(from_text(&to_text(None)), Some(None), "given up");
        assert_eq!(from_text(&text[..20]), None);
    }

    #[test]
    fn names_are_files_and_change_with_every_setting() {
        let name = |settings: &str| {
            let policy = "histogram, trimming";
            let settings = settings.to_owned();
            SearchName { world: "trace", policy, over_commit: 1.5, seed: 3, settings }.text()
        };
        assert!(name("a").starts_with("trace-histogram__trimming-1.5-3-"), "{}", name("a"));
        assert_ne!(name("a"), name("b"));
    }
}
