//! Gaps of all levels of all functions, with what is known of them when they begin.

use std::collections::BTreeMap;

use windfall_core::{Duration, FunctionProfile, Seed, Timestamp, Workload};
use windfall_policy::{GapStakes, GapTrial, LevelGap};

/// Features from the history of a level: three gaps, how many of them there are, median, least and spread, number of gaps,
/// regular or not, and the level.
pub(crate) const HISTORY: usize = 11;
const TRIGGERS: usize = 7;
/// Features from its surroundings: the trigger, the last call of a sibling, and the minute of the hour.
const CONTEXT: usize = TRIGGERS + 4;
/// Numbers that a network is given.
pub(crate) const INPUTS: usize = HISTORY + CONTEXT;
/// The logarithm of four hours, so that gaps become numbers up to about one.
const LONG: f32 = 9.6;
/// The gaps of a level count as so many at most, because a few functions with thousands of short gaps would be most of
/// what is learned. J was lower with 50 than with 300.
const MOST_OF_LEVEL: f32 = 50.0;

/// A gap and what was known when it began.
#[derive(Clone, Debug)]
pub(crate) struct KnownGap {
    pub(crate) gap: LevelGap,
    /// First those of its history, then those of its surroundings.
    pub(crate) inputs: [f32; INPUTS],
    /// How much it counts in training.
    pub(crate) weight: f32,
}

/// One function with all its gaps, in order of their ends.
#[derive(Clone, Debug)]
pub(crate) struct FunctionGaps {
    pub(crate) application: String,
    pub(crate) calls: Vec<(Timestamp, Duration)>,
    pub(crate) gaps: Vec<KnownGap>,
    pub(crate) stakes: GapStakes,
    pub(crate) horizon: Timestamp,
}

impl FunctionGaps {
    /// In which half its application is.
    pub(crate) fn half(&self) -> usize {
        usize::from(Seed::new(1).stream(&self.application).get().is_multiple_of(2))
    }

    /// Whether its application belongs to the fifth of a half that decides when to stop training.
    pub(crate) fn is_for_stopping(&self) -> bool {
        Seed::new(2).stream(&self.application).get().is_multiple_of(5)
    }
}

/// All functions of a workload that are called at all.
pub(crate) fn all_gaps(workload: &mut dyn Workload) -> Vec<FunctionGaps> {
    let profiles = workload.functions().to_vec();
    let mut calls: Vec<Vec<(Timestamp, Duration)>> = vec![Vec::new(); profiles.len()];
    while let Some(call) = workload.next_arrival() {
        let place = call.function.index();
        let run = call.demand.run_time(profiles[place].reservation.cpu);
        calls[place].push((call.at, run));
    }
    let mut by_application: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, profile) in profiles.iter().enumerate() {
        by_application.entry(&profile.application).or_default().push(place);
    }
    let horizon = workload.horizon();
    let called = (0..profiles.len()).filter(|place| !calls[*place].is_empty());
    called
        .map(|place| {
            let profile = &profiles[place];
            let siblings = &by_application[profile.application.as_str()];
            let siblings = siblings.iter().filter(|other| **other != place);
            let mut others: Vec<Timestamp> =
                siblings.flat_map(|other| calls[*other].iter().map(|(at, _)| *at)).collect();
            others.sort_unstable();
            FunctionGaps {
                application: profile.application.clone(),
                gaps: known_gaps(profile, &calls[place], &others, horizon),
                stakes: stakes(profile, &calls[place], horizon),
                calls: calls[place].clone(),
                horizon,
            }
        })
        .collect()
}

/// Rate and run time are means over all of the function's calls: the policy learns them, and here they are the same for
/// whoever is judged.
fn stakes(
    profile: &FunctionProfile,
    calls: &[(Timestamp, Duration)],
    horizon: Timestamp,
) -> GapStakes {
    let run: f64 = calls.iter().map(|(_, run)| run.as_secs_f64()).sum();
    GapStakes {
        memory_mib: profile.reservation.memory.mib(),
        cold_start_seconds: profile.cold_start.median.as_secs_f64(),
        run_seconds: run / calls.len() as f64,
        calls_per_second: calls.len() as f64 / horizon.as_secs_f64(),
    }
}

/// The gaps of one function; `others` are the moments of its siblings' calls, in order.
fn known_gaps(
    profile: &FunctionProfile,
    calls: &[(Timestamp, Duration)],
    others: &[Timestamp],
    horizon: Timestamp,
) -> Vec<KnownGap> {
    let mut levels: Vec<GapTrial> = Vec::new();
    let mut known = Vec::new();
    for gap in LevelGap::all_of(calls, horizon) {
        while levels.len() <= gap.level {
            levels.push(GapTrial::new(levels.len()));
        }
        let mut inputs = [0.0; INPUTS];
        tell_history(&levels[gap.level], gap.level, &mut inputs[..HISTORY]);
        tell_context(profile, others, gap.from, &mut inputs[HISTORY..]);
        known.push(KnownGap { gap, inputs, weight: 1.0 });
        levels[gap.level].see(&gap);
    }
    for known in &mut known {
        known.weight = (MOST_OF_LEVEL / levels[known.gap.level].seen() as f32).min(1.0);
    }
    known
}

fn scaled_log(seconds: f32) -> f32 {
    seconds.max(0.5).ln() / LONG
}

fn tell_history(level: &GapTrial, number: usize, into: &mut [f32]) {
    let recent = level.recent();
    for (place, gap) in recent.iter().rev().take(3).enumerate() {
        into[place] = scaled_log(*gap);
    }
    into[3] = recent.len().min(3) as f32 / 3.0;
    let mut sorted = recent.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    if let [least, .., most] | [least @ most] = sorted[..] {
        into[4] = scaled_log(sorted[sorted.len() / 2]);
        into[5] = scaled_log(least);
        into[6] = scaled_log(most) - scaled_log(least);
    }
    into[7] = (1.0 + level.seen() as f32).ln() / LONG;
    into[8] = f32::from(u8::from(level.is_regular()));
    into[9] = f32::from(u8::from(number > 0));
    into[10] = (1.0 + number as f32).ln() / 3.0;
}

fn tell_context(profile: &FunctionProfile, others: &[Timestamp], now: Timestamp, into: &mut [f32]) {
    into[profile.trigger as usize] = 1.0;
    let called = others.partition_point(|at| *at <= now);
    if let Some(last) = called.checked_sub(1) {
        into[TRIGGERS] = 1.0;
        into[TRIGGERS + 1] = scaled_log(now.since(others[last]).as_secs_f64() as f32);
    }
    let turn = (now.as_secs_f64() / 3600.0).fract() * std::f64::consts::TAU;
    (into[TRIGGERS + 2], into[TRIGGERS + 3]) = (turn.sin() as f32, turn.cos() as f32);
}
