//! Gaps of a function's levels, extracted from recorded calls, for fitting and evaluation.

use windfall_core::{Duration, Timestamp};

use super::gap_bins::{BINS, bin_of};
use crate::level_track::{LevelTimes, LevelTrack};

/// An interval in which a level was not needed. For level 0 it includes the preceding need.
///
/// ```text
///   level 0   need ████████ released ......... next need       from = need
///   others    need ████████ released ......... next need       from = released
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelGap {
    /// The level: 0 is the first instance.
    pub level: usize,
    /// Start of the gap: at the need for level 0, at the release for other levels.
    pub from: Timestamp,
    /// When the instance became idle.
    pub released: Timestamp,
    /// When the level was needed again, or when the data ended.
    pub until: Timestamp,
    /// Whether the gap is censored by the end of the data.
    pub is_cut: bool,
}

impl LevelGap {
    /// Number of bins for the length; the last one holds all gaps longer than four hours.
    pub const BINS: usize = BINS;

    /// All gaps of one function until `end`, from the arrival and run time of its calls: in order of their ends, censored
    /// gaps last. Calls start without a wait, so the gaps do not depend on a policy.
    pub fn all_of(calls: &[(Timestamp, Duration)], end: Timestamp) -> Vec<Self> {
        let mut steps: Vec<(Timestamp, bool)> =
            calls.iter().flat_map(|&(at, run)| [(at, true), (at + run, false)]).collect();
        steps.sort_unstable();
        let (mut track, mut present) = (LevelTrack::default(), 0usize);
        let mut gaps = Vec::new();
        for (at, comes) in steps.into_iter().take_while(|(at, _)| *at <= end) {
            present = if comes { present + 1 } else { present.saturating_sub(1) };
            let ending = track.needed()..present.min(track.levels.len());
            gaps.extend(ending.map(|level| Self::of(level, track.levels[level], at, false)));
            track.step(at, present, &mut |_| {});
        }
        let idle = track.levels.iter().enumerate().filter(|(_, times)| !times.is_needed);
        gaps.extend(idle.map(|(level, times)| Self::of(level, *times, end, true)));
        gaps
    }

    fn of(level: usize, times: LevelTimes, until: Timestamp, is_cut: bool) -> Self {
        let released = times.released_at;
        let from = if level == 0 { times.needed_at } else { released };
        Self { level, from, released, until, is_cut }
    }

    /// Length in seconds.
    pub fn seconds(&self) -> f64 {
        self.until.since(self.from).as_secs_f64()
    }

    /// The bin of its length.
    pub fn bin(&self) -> usize {
        bin_of(self.seconds())
    }
}

#[test]
fn gaps_end_with_a_need_or_with_the_data() {
    let (second, run) = (Timestamp::from_secs, Duration::from_secs);
    // Level 1 is needed from 2 to 5 s and from 61 to 62 s, level 0 from 0 to 8 s and from 60 to 62 s.
    let calls = [(0, 8), (2, 3), (60, 2), (61, 1)].map(|(at, long)| (second(at), run(long)));
    let gaps = LevelGap::all_of(&calls, second(100));
    let summary: Vec<_> =
        gaps.iter().map(|gap| (gap.level, gap.seconds().round(), gap.is_cut)).collect();
    assert_eq!(summary, [(0, 60.0, false), (1, 56.0, false), (0, 40.0, true), (1, 38.0, true)]);
    assert_eq!(gaps[0].released, second(8), "level 0 becomes idle after the start of its gap");
    assert_eq!(gaps[1].released, gaps[1].from);
}
