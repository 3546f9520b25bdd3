//! The published table beside ours.
//!
//! | policy | published | recomputed here, to be met |
//! | --- | --- | --- |
//! | fixed | 1.00, 121 s | 1.000, 121 s |
//! | greedy, step 2 (as coded) | 1.49, 76 s | 1.459, 76 s |
//! | greedy, step 1 (as stated) | - | 0.761, 17 s |
//! | ensure (as coded) | 0.91, 48 s | 0.905, 48 s |
//! | safeguard, random choice | - | 0.760, 15 s |
//! | safeguard, top of the range | - | 0.760, 15 s |
//! | oracle | - | 0.750, 13 s |
//! | faasrm | 0.76, 15 s | |
//!
//! The authors' checkpoint was not published, so the last row is an agent trained here with their settings.

use serde::Serialize;
use windfall_core::Seed;
use windfall_core::statistics::{self, Interval};
use windfall_rl::parallel::Workers;
use windfall_trace::freyr_sample::SampledFunction;

use super::baselines::{Ensure, EnsureDefects, Fixed, Greedy, Oracle};
use super::calls::Calls;
use super::paper_agent::{Episode, PaperAgent, Training, TrainingSettings, train};
use super::quirks::Quirks;
use super::replay::{EndedCall, Replay, Summary};
use super::safeguard::SafeguardOnly;
use super::simulator::{Sizer, replay};

/// Points of each distribution.
const POINTS: usize = 120;

/// What the paper reports of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Mean RFET.
    pub rfet: f64,
    /// Seconds within which 98 % of calls end.
    pub p98_s: f64,
}

/// One row of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Which policy.
    pub policy: &'static str,
    /// Mean RFET, mean over seeds.
    pub rfet_mean: f64,
    /// Seconds within which 98 % of calls end, mean over seeds.
    pub p98_s: f64,
    /// What the paper says, if it says anything.
    pub published: Option<Score>,
    /// Lowest and highest mean RFET over seeds.
    pub rfet_range: Interval,
    /// Fewest and most seconds over seeds.
    pub p98_range: Interval,
    /// One run in full: that of the first seed.
    pub summary: Summary,
    /// Distribution of run times of that run: seconds, share of calls.
    pub seconds_cdf: Vec<(f64, f64)>,
    /// Distribution of its RFET.
    pub rfet_cdf: Vec<(f64, f64)>,
}

/// What learning added over a random choice in the safeguard's range; positive is better.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Added {
    /// Mean RFET of random less that of the agent, mean over seeds.
    pub rfet: f64,
    /// Seconds of the 98th percentile, likewise.
    pub p98_s: f64,
    /// The most that any choice could add to random: down to the oracle.
    pub rfet_possible: f64,
}

/// The whole reproduction.
#[derive(Clone, Debug)]
pub struct Reproduction {
    /// The table.
    pub rows: Vec<Row>,
    /// How the agent of each seed learned.
    pub curves: Vec<(u64, Vec<Episode>)>,
    /// What learning added.
    pub added: Added,
    /// Calls replayed.
    pub calls: u64,
    /// Mean seconds at the users' sizes.
    pub mean_baseline: f64,
}

impl Reproduction {
    /// The row of `policy`.
    pub fn row(&self, policy: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.policy == policy)
    }
}

/// Replays `sample` with every policy, random ones once per seed, and trains an agent for each seed. `progress`
/// hears of every episode.
pub fn reproduce(
    sample: &[SampledFunction],
    seeds: &[u64],
    training: &TrainingSettings,
    workers: &Workers,
    progress: &mut dyn FnMut(&Episode),
) -> Reproduction {
    let calls = Calls::new(sample, Quirks::FAITHFUL.ideal_memory_capped);
    let play = |sizer: &mut dyn Sizer| replay(&calls, &Quirks::FAITHFUL, sizer);
    let once = |policy, published, sizer: &mut dyn Sizer| row(policy, published, &[play(sizer)]);
    let random: Vec<Replay> =
        seeds.iter().map(|seed| play(&mut SafeguardOnly::random(Seed::new(*seed)))).collect();
    let mut curves = Vec::new();
    let mut learned = Vec::new();
    for seed in seeds {
        let from = Seed::new(*seed);
        let Training { agent, curve } = train(sample, training, from, workers, progress);
        learned.push(play(&mut PaperAgent::new(agent, from)));
        curves.push((*seed, curve));
    }
    let best = oracle(&calls);
    let rows = vec![
        once("fixed", Some(Score { rfet: 1.0, p98_s: 121.0 }), &mut Fixed),
        once("greedy-2", Some(Score { rfet: 1.49, p98_s: 76.0 }), &mut Greedy { step: 2 }),
        once("greedy-1", None, &mut Greedy { step: 1 }),
        once(
            "ensure",
            Some(Score { rfet: 0.91, p98_s: 48.0 }),
            &mut Ensure::new(EnsureDefects::AS_CODED),
        ),
        once("safeguard-top", None, &mut SafeguardOnly::top()),
        once("safeguard-bottom", None, &mut SafeguardOnly::bottom()),
        row("safeguard-random", None, &random),
        row("faasrm", Some(Score { rfet: 0.76, p98_s: 15.0 }), &learned),
        row("oracle", None, std::slice::from_ref(&best)),
    ];
    let added = added(&random, &learned, &best);
    let (count, mean_baseline) = (calls.events.len() as u64, calls.mean_baseline());
    Reproduction { rows, curves, added, calls: count, mean_baseline }
}

/// Every call at its ideal from the first on: its choices are in time, and no call is lost.
fn oracle(calls: &Calls) -> Replay {
    let in_time =
        Quirks { choice_one_call_late: false, last_call_is_lost: false, ..Quirks::FAITHFUL };
    replay(calls, &in_time, &mut Oracle)
}

fn row(policy: &'static str, published: Option<Score>, replays: &[Replay]) -> Row {
    let summaries: Vec<Summary> = replays.iter().map(Replay::summary).collect();
    let rfets: Vec<f64> = summaries.iter().map(|summary| summary.rfet_mean).collect();
    let seconds: Vec<f64> = summaries.iter().map(|summary| summary.p98_s).collect();
    let cdf = |value: fn(&EndedCall) -> f64| {
        replays.first().map(|replay| replay.cdf(value, POINTS)).unwrap_or_default()
    };
    Row {
        policy,
        rfet_mean: mean(&rfets),
        p98_s: mean(&seconds),
        published,
        rfet_range: Interval::covering(&rfets),
        p98_range: Interval::covering(&seconds),
        seconds_cdf: cdf(|call| f64::from(call.seconds)),
        rfet_cdf: cdf(EndedCall::rfet),
        summary: summaries.into_iter().next().unwrap_or_default(),
    }
}

fn added(random: &[Replay], learned: &[Replay], best: &Replay) -> Added {
    let scores = |replays: &[Replay]| {
        let summaries: Vec<Summary> = replays.iter().map(Replay::summary).collect();
        let rfets: Vec<f64> = summaries.iter().map(|summary| summary.rfet_mean).collect();
        let seconds: Vec<f64> = summaries.iter().map(|summary| summary.p98_s).collect();
        Score { rfet: mean(&rfets), p98_s: mean(&seconds) }
    };
    let (random, learned, best) =
        (scores(random), scores(learned), scores(std::slice::from_ref(best)));
    Added {
        rfet: random.rfet - learned.rfet,
        p98_s: random.p98_s - learned.p98_s,
        rfet_possible: random.rfet - best.rfet,
    }
}

fn mean(values: &[f64]) -> f64 {
    statistics::mean(values).unwrap_or(0.0)
}
