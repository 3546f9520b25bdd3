//! How often the functions of a shared cluster are called.
//!
//! | workload | each function |
//! | --- | --- |
//! | `azure` | hours of the generator fitted to Azure's functions, by the minute, a quarter of their ups and downs; parts for training, validation and test |
//! | `steady` | Poisson at a constant rate |
//! | `diurnal` | a day in ten minutes: between 0.4 and 1.6 of the mean, phases drawn |
//! | `bursty` | 0.5 of the mean, and 3 times the mean for 20 to 60 s about every two minutes |
//! | `flash-crowd` | 0.7 of the mean; once, within 10 s, five times that, halved every minute |
//! | `sparse` | a tenth of the calls, and half of the minutes without any |
//! | `chain` | every third function is called as in `azure`; its answers call the next, theirs the one after |
//!
//! Rates are such that together the functions keep `load` of the cores busy on average, each in proportion to a weight
//! of its own between 0.5 and 1.5, whatever their number: 5 functions and 110 bring the same machines the same work. No
//! function has more than four calls running on average, so that twice as many find ten instances.

use std::f64::consts::TAU;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windfall_core::{CallDemand, Seed};
use windfall_rl::Split;
use windfall_rl::random::Draw;

use super::LOAD;
use crate::pattern::Patterns;
use crate::profile::{ServiceProfile, TWELVE};

/// The shape of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// As Azure's functions are called.
    Azure,
    /// A constant rate.
    Steady,
    /// Waves.
    Diurnal,
    /// Short bursts.
    Bursty,
    /// One large crowd.
    FlashCrowd,
    /// Few calls.
    Sparse,
    /// Functions that call functions.
    Chain,
}

impl Workload {
    /// The six that learners and rules are compared on.
    pub const SIX: [Self; 6] =
        [Self::Steady, Self::Diurnal, Self::Bursty, Self::FlashCrowd, Self::Sparse, Self::Chain];

    /// Mean load of the cores at which it is played.
    pub fn load(self) -> f64 {
        if self == Self::Azure { LOAD } else { BURST_LOAD }
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Azure => "azure",
            Self::Steady => "steady",
            Self::Diurnal => "diurnal",
            Self::Bursty => "bursty",
            Self::FlashCrowd => "flash-crowd",
            Self::Sparse => "sparse",
            Self::Chain => "chain",
        }
    }
}

/// Seconds for which a rate stays the same.
pub const SLOT: f64 = 10.0;
/// Slots that are drawn; an episode of 200 ticks with its warm-up has 101.
const SLOTS: usize = 140;
/// Share of an Azure function's ups and downs that is left. With all of them twelve functions overload the nodes at a mean
/// load of 0.7 for minutes, whoever decides, and below that nobody is in anybody's way. So this is not Azure's load but
/// one whose bursts were cut until the gate could be passed.
const SWING: f64 = 0.25;
/// Load of the cores in workloads whose bursts are their point: all of them have room for their mean twice.
const BURST_LOAD: f64 = 0.5;
/// The most calls that run on average.
const BUSIEST: f64 = 4.0;

/// One function of a shared cluster.
#[derive(Clone, Debug)]
pub struct FunctionLoad {
    /// What its calls need.
    pub profile: ServiceProfile,
    /// Calls per second on average; 0 for one that only other functions call.
    pub rate: f64,
    /// The function that its answers call.
    pub next: Option<usize>,
    /// From the first call of its chain to its own answer, milliseconds; nothing for one whose answer goes on.
    pub objective_ms: Option<f64>,
    factors: Arc<[f32]>,
}

impl FunctionLoad {
    /// Calls per second from outside at `second`.
    pub fn rate_at(&self, second: f64) -> f64 {
        let slot = (second / SLOT) as usize;
        self.rate * f64::from(self.factors[slot % self.factors.len()])
    }
}

/// The calls of one function from outside, in order. They depend on nothing that anybody decides, so that a simulated
/// cluster and a real one can be called alike.
#[derive(Clone, Debug)]
pub struct CallStream {
    next: f64,
    draw: Draw,
}

impl CallStream {
    /// The stream of function number `index` of an episode.
    pub fn new(load: &FunctionLoad, episode: Seed, index: usize) -> Self {
        let seed = episode.stream("shared-world").stream("calls").member(index as u64);
        let mut stream = Self { next: 0.0, draw: Draw::new(seed) };
        stream.draw_next(load, 0.0);
        stream
    }

    /// When the next call comes, if it does before `until`. What it needs has to be drawn before the one after it.
    pub fn next_before(&self, until: f64) -> Option<f64> {
        (self.next < until).then_some(self.next)
    }

    /// What a call needs.
    pub fn demand(&mut self, load: &FunctionLoad) -> CallDemand {
        load.profile.draw(&mut self.draw)
    }

    /// The call after the one at `from`. A Poisson stream with a constant rate in each slot: a draw beyond the slot is
    /// repeated from its end, which is exact because the stream has no memory.
    pub fn draw_next(&mut self, load: &FunctionLoad, from: f64) {
        let mut at = from;
        for _ in 0..10_000 {
            let end = ((at / SLOT).floor() + 1.0) * SLOT;
            let rate = load.rate_at(at);
            if rate > 0.0 {
                let gap = -(1.0 - self.draw.unit()).ln() / rate;
                if at + gap < end {
                    self.next = at + gap;
                    return;
                }
            }
            at = end;
        }
        self.next = f64::INFINITY;
    }
}

/// Whose functions and which hours.
#[derive(Clone, Copy, Debug)]
pub struct LoadPlan {
    /// The shape.
    pub workload: Workload,
    /// Which part.
    pub split: Split,
    /// Share of `cores` that is busy on average.
    pub load: f64,
    /// Of all nodes.
    pub cores: f64,
    /// Decides which functions the numbers mean.
    pub seed: Seed,
    /// Decides the hours.
    pub episode: Seed,
}

impl LoadPlan {
    /// The loads of `functions`, by number. Of a part of them each has the load it has among `among` functions.
    pub fn functions(&self, functions: &[u64], among: &[u64]) -> Vec<FunctionLoad> {
        let weights: f64 = among.iter().map(|&number| self.weight(number)).sum();
        let make = |&number: &u64| {
            let cores = self.load * self.cores * self.weight(number) / weights;
            self.function(number, cores)
        };
        let mut all: Vec<FunctionLoad> = functions.iter().map(make).collect();
        if self.workload == Workload::Chain {
            link(&mut all);
        }
        all
    }

    fn own(&self, number: u64) -> Draw {
        Draw::new(self.seed.stream("shared-functions").member(number))
    }

    fn weight(&self, number: u64) -> f64 {
        0.5 + self.own(number).unit()
    }

    fn function(&self, number: u64, cores: f64) -> FunctionLoad {
        let profile = TWELVE[(number % TWELVE.len() as u64) as usize];
        let rate = (cores / profile.mean_work()).min(BUSIEST / profile.mean_run(1.0));
        let rate = if self.workload == Workload::Sparse { 0.1 * rate } else { rate };
        let factors = self.factors(number);
        FunctionLoad { profile, rate, next: None, objective_ms: Some(profile.slo_ms), factors }
    }

    /// Factors of the mean, slot by slot. Parts differ in their seeds, and for Azure in functions and hours too.
    fn factors(&self, number: u64) -> Arc<[f32]> {
        let mut draw = Draw::new(self.episode.stream("shared-hours").member(number));
        match self.workload {
            Workload::Azure | Workload::Chain => self.azure(number),
            Workload::Steady => Arc::from(vec![1.0; 1]),
            Workload::Diurnal => {
                let phase = draw.unit();
                let wave = |slot: usize| 1.0 + 0.6 * (TAU * (slot as f64 / 60.0 + phase)).sin();
                (0..SLOTS).map(|slot| wave(slot) as f32).collect()
            }
            Workload::Bursty => bursts(&mut draw),
            Workload::FlashCrowd => {
                let start = 20 + draw.below(50);
                let crowd = |slot: usize| match slot.checked_sub(start) {
                    None => 0.7,
                    Some(after) => 0.7 + 2.8 * 0.5f64.powf(after as f64 / 6.0),
                };
                (0..SLOTS).map(|slot| crowd(slot) as f32).collect()
            }
            Workload::Sparse => {
                let mut minutes = (0..SLOTS.div_ceil(6)).map(|_| draw.below(2) * 2);
                let mut now = 0;
                let mut factor = |slot: usize| {
                    if slot.is_multiple_of(6) {
                        now = minutes.next().unwrap_or(0);
                    }
                    now as f32
                };
                (0..SLOTS).map(&mut factor).collect()
            }
        }
    }

    fn azure(&self, number: u64) -> Arc<[f32]> {
        let mut own = self.own(number);
        own.unit();
        let index = own.below(1 << 20) as u64;
        let minute = self.episode.stream("minutes").member(number).get() >> 1;
        let (pattern, from) = Patterns::generated().pick(self.split, index, minute);
        let own = |slot: usize| pattern.factor(from + slot / 6);
        let mean = (0..SLOTS).map(own).sum::<f64>() / SLOTS as f64;
        let even = |slot: usize| {
            if mean > 0.0 { 1.0 + SWING * (own(slot) / mean - 1.0) } else { 1.0 }
        };
        (0..SLOTS).map(|slot| even(slot) as f32).collect()
    }
}

fn bursts(draw: &mut Draw) -> Arc<[f32]> {
    let mut factors = Vec::with_capacity(SLOTS);
    while factors.len() < SLOTS {
        let (calm, burst) = (5 + draw.below(12), 2 + draw.below(5));
        factors.extend(std::iter::repeat_n(0.5, calm));
        factors.extend(std::iter::repeat_n(3.0, burst));
    }
    // Not every function begins with a calm time.
    let turn = draw.below(SLOTS);
    factors.truncate(SLOTS);
    factors.rotate_left(turn);
    Arc::from(factors)
}

/// Functions in threes: the first is called from outside as often as keeps the three as busy as they were to be.
fn link(all: &mut [FunctionLoad]) {
    let count = all.len();
    for first in (0..count).step_by(3) {
        let last = (first + 2).min(count - 1);
        let three = &mut all[first..=last];
        let cores: f64 = three.iter().map(|one| one.rate * one.profile.mean_work()).sum();
        let work: f64 = three.iter().map(|one| one.profile.mean_work()).sum();
        let slowest = three.iter().map(|one| one.profile.mean_run(1.0)).fold(0.0, f64::max);
        let rate = (cores / work).min(BUSIEST / slowest);
        let objective: f64 = three.iter().map(|one| one.profile.slo_ms).sum();
        for (place, one) in three.iter_mut().enumerate() {
            let is_last = first + place == last;
            one.rate = if place == 0 { rate } else { 0.0 };
            one.next = (!is_last).then_some(first + place + 1);
            one.objective_ms = is_last.then_some(objective);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(workload: Workload) -> LoadPlan {
        LoadPlan {
            workload,
            split: Split::Training,
            load: 0.5,
            cores: 16.0,
            seed: Seed::new(1),
            episode: Seed::new(2),
        }
    }

    #[test]
    fn many_functions_bring_the_work_that_few_bring() {
        let cores = |count: u64| {
            let numbers: Vec<u64> = (0..count).collect();
            let all = plan(Workload::Azure).functions(&numbers, &numbers);
            all.iter().map(|one| one.rate * one.profile.mean_work()).sum::<f64>()
        };
        assert!((cores(40) - 8.0).abs() < 0.2, "{}", cores(40));
        assert!((cores(110) - 8.0).abs() < 0.01, "{}", cores(110));
        assert!(cores(5) <= 8.0);
    }

    #[test]
    fn every_shape_has_about_its_mean() {
        let numbers: Vec<u64> = (0..60).collect();
        for workload in Workload::SIX {
            let all = plan(workload).functions(&numbers, &numbers);
            let called: Vec<&FunctionLoad> = all.iter().filter(|one| one.rate > 0.0).collect();
            let of = |one: &&FunctionLoad| {
                (0..100).map(|slot| one.rate_at(f64::from(slot) * SLOT)).sum::<f64>()
                    / (100.0 * one.rate)
            };
            let mean = called.iter().map(of).sum::<f64>() / called.len() as f64;
            assert!((0.6..1.4).contains(&mean), "{workload:?}: {mean}");
        }
    }

    #[test]
    fn a_chain_has_one_objective_at_its_end() {
        let numbers: Vec<u64> = (0..12).collect();
        let all = plan(Workload::Chain).functions(&numbers, &numbers);
        assert_eq!(all[0].next, Some(1));
        assert_eq!((all[1].rate, all[2].next, all[1].objective_ms), (0.0, None, None));
        let sum: f64 = TWELVE[..3].iter().map(|profile| profile.slo_ms).sum();
        assert_eq!(all[2].objective_ms, Some(sum));
    }
}
