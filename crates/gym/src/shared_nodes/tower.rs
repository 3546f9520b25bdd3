//! Autothrottle's tower: every minute a bandit chooses how much the captains may throttle (Wang et al., NSDI 2024).
//!
//! ```text
//!   groups   functions in two, by k-means on the CPU they use
//!   arms     one target per group out of nine: 81
//!   cost     p99 <= objective:  (cores allowed - least) / (most - least)
//!            else               2 + (p99 - least) / (most - least)          least and most of either kind apart
//!   model    median cost per arm and bin of calls per second, resampled 10,000 times, one hidden layer of 3, from scratch
//!   choice   the arm of least cost; with 0.1 (0.5 in the warm-up) one of its at most four neighbours instead
//! ```
//!
//! The objective of a minute is that the 99th percentile of latency over objective, of all calls together, is at most 1:
//! here every function has an objective of its own, there one application had one.

use windfall_core::Seed;
use windfall_core::statistics::{median, nearest_rank};
use windfall_rl::random::Draw;

use super::captains::Captains;
use super::world::SharedWorld;

/// Shares of throttled periods to choose from.
pub const TARGETS: [f64; 9] = [0.0, 0.02, 0.04, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3];
const SIDE: usize = TARGETS.len();
/// Ticks between two choices: a minute.
const EVERY: u64 = 12;
const BINS: f64 = 20.0;
const RESAMPLED: usize = 10_000;
/// Minutes of the warm-up.
const WARM_UP: usize = 60;
const HIDDEN: usize = 3;

/// What a minute brought.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Minute {
    arm: usize,
    calls: f64,
    cores: f64,
    /// p99 of latency over objective.
    slowness: f64,
}

/// The bandit with all it has seen.
#[derive(Clone, Debug)]
pub struct Tower {
    minutes: Vec<Minute>,
    model: Model,
    draw: Draw,
    arm: usize,
    used: Vec<f64>,
    calls: f64,
    cores: f64,
    ticks: u64,
}

impl Tower {
    /// One that knows nothing.
    pub fn new(seed: Seed) -> Self {
        Self {
            minutes: Vec::new(),
            model: Model::default(),
            draw: Draw::new(seed.stream("tower")),
            // Both groups at 0.1.
            arm: 4 * SIDE + 4,
            used: Vec::new(),
            calls: 0.0,
            cores: 0.0,
            ticks: 0,
        }
    }

    /// Puts captains into a fresh world.
    pub fn begin(&mut self, world: &mut SharedWorld) {
        let count = world.count();
        self.used = vec![0.0; count];
        (self.calls, self.cores, self.ticks) = (0.0, 0.0, 0);
        world.cap(Captains::new(count, TARGETS[self.arm % SIDE], world.range()));
    }

    /// A tick has passed; at the end of a minute the captains get new targets.
    pub fn tick(&mut self, world: &mut SharedWorld) {
        for (used, view) in self.used.iter_mut().zip(&world.seen().functions) {
            *used += view.cpu_used_cores;
            self.calls += f64::from(view.arrivals);
        }
        let count = world.count();
        if let Some(captains) = world.captains_mut() {
            self.cores += (0..count).map(|function| captains.quota(function)).sum::<f64>();
        }
        self.ticks += 1;
        if !self.ticks.is_multiple_of(EVERY) {
            return;
        }
        let mut slowness = world.take_slowness();
        slowness.sort_by(f32::total_cmp);
        let calls = self.calls / 60.0;
        self.minutes.push(Minute {
            arm: self.arm,
            calls,
            cores: self.cores / EVERY as f64,
            slowness: nearest_rank(&slowness, 0.99).map_or(0.0, f64::from),
        });
        (self.calls, self.cores) = (0.0, 0.0);
        self.model = Model::fitted(&self.samples(), &mut self.draw);
        self.arm = self.chosen(calls);
        let large = larger_group(&self.used);
        if let Some(captains) = world.captains_mut() {
            for (function, is_large) in large.into_iter().enumerate() {
                let place = if is_large { self.arm / SIDE } else { self.arm % SIDE };
                captains.aim(function, TARGETS[place]);
            }
        }
    }

    /// Costs by arm and calls per second: the median of each bin.
    fn samples(&self) -> Vec<(usize, f64, f64)> {
        let range = |values: &dyn Fn(&Minute) -> Option<f64>| {
            let all = self.minutes.iter().filter_map(values);
            all.fold((f64::MAX, f64::MIN), |(low, high), it| (low.min(it), high.max(it)))
        };
        let met = range(&|one| (one.slowness <= 1.0).then_some(one.cores));
        let missed = range(&|one| (one.slowness > 1.0).then_some(one.slowness));
        let part = |value: f64, (low, high): (f64, f64)| {
            if high > low { (value - low) / (high - low) } else { 0.0 }
        };
        let busiest = self.minutes.iter().map(|one| one.calls).fold(1e-9, f64::max);
        let mut binned: std::collections::BTreeMap<(usize, u64), Vec<f64>> = Default::default();
        for one in &self.minutes {
            let cost = if one.slowness <= 1.0 {
                part(one.cores, met)
            } else {
                2.0 + part(one.slowness, missed)
            };
            let bin = (BINS * one.calls / busiest) as u64;
            binned.entry((one.arm, bin)).or_default().push(cost);
        }
        let sample = |((arm, bin), costs): ((usize, u64), Vec<f64>)| {
            (arm, bin as f64 / BINS, median(&costs).unwrap_or(0.0))
        };
        binned.into_iter().map(sample).collect()
    }

    fn chosen(&mut self, calls: f64) -> usize {
        let busiest = self.minutes.iter().map(|one| one.calls).fold(1e-9, f64::max);
        let cost = |arm: &usize| self.model.cost(*arm, calls / busiest);
        let best = (0..SIDE * SIDE)
            .min_by(|one, other| cost(one).total_cmp(&cost(other)))
            .unwrap_or(self.arm);
        let tries = if self.minutes.len() < WARM_UP { 0.5 } else { 0.1 };
        if self.draw.unit() >= tries {
            return best;
        }
        let (large, small) = (best / SIDE, best % SIDE);
        let mut near = Vec::new();
        near.extend(large.checked_sub(1).map(|large| large * SIDE + small));
        near.extend((large + 1 < SIDE).then_some((large + 1) * SIDE + small));
        near.extend(small.checked_sub(1).map(|small| large * SIDE + small));
        near.extend((small + 1 < SIDE).then_some(large * SIDE + small + 1));
        near[self.draw.below(near.len())]
    }
}

/// Which functions belong to the group that uses more CPU: k-means with two means.
fn larger_group(used: &[f64]) -> Vec<bool> {
    let fold = |start: f64, pick: fn(f64, f64) -> f64| used.iter().copied().fold(start, pick);
    let (mut low, mut high) = (fold(f64::MAX, f64::min), fold(f64::MIN, f64::max));
    let mut is_large = vec![false; used.len()];
    for _ in 0..20 {
        for (is_large, used) in is_large.iter_mut().zip(used) {
            *is_large = (used - high).abs() < (used - low).abs();
        }
        let mean_of = |which: bool, else_: f64| {
            let own = used.iter().zip(&is_large).filter(|(_, large)| **large == which);
            let (sum, count) =
                own.fold((0.0, 0.0), |(sum, count), (it, _)| (sum + it, count + 1.0));
            if count > 0.0 { sum / count } else { else_ }
        };
        (low, high) = (mean_of(false, low), mean_of(true, high));
    }
    is_large
}

/// One hidden layer of three over an arm of each group and the calls per second.
#[derive(Clone, Debug, Default)]
struct Model {
    large: [[f64; HIDDEN]; SIDE],
    small: [[f64; HIDDEN]; SIDE],
    calls: [f64; HIDDEN],
    bias: [f64; HIDDEN],
    out: [f64; HIDDEN],
    level: f64,
}

impl Model {
    fn hidden(&self, arm: usize, calls: f64) -> [f64; HIDDEN] {
        let (large, small) = (&self.large[arm / SIDE], &self.small[arm % SIDE]);
        let unit = |i: usize| (large[i] + small[i] + self.calls[i] * calls + self.bias[i]).tanh();
        [unit(0), unit(1), unit(2)]
    }

    fn cost(&self, arm: usize, calls: f64) -> f64 {
        let hidden = self.hidden(arm, calls);
        self.level + hidden.iter().zip(self.out).map(|(unit, weight)| unit * weight).sum::<f64>()
    }

    /// Squared error, one pass over samples drawn with replacement.
    fn fitted(samples: &[(usize, f64, f64)], draw: &mut Draw) -> Self {
        let mut model = Self::default();
        let mut small = || 0.3 * draw.normal();
        let rows = model.large.iter_mut().chain(model.small.iter_mut()).flatten();
        rows.chain(&mut model.calls)
            .chain(&mut model.bias)
            .chain(&mut model.out)
            .for_each(|weight| *weight = small());
        for place in 0..RESAMPLED {
            let (arm, calls, cost) = samples[draw.below(samples.len())];
            let rate = 0.1 * (1.0 - place as f64 / RESAMPLED as f64);
            let hidden = model.hidden(arm, calls);
            let error = model.cost(arm, calls) - cost;
            model.level -= rate * error;
            for (unit, value) in hidden.into_iter().enumerate() {
                let inner = rate * error * model.out[unit] * (1.0 - value * value);
                model.out[unit] -= rate * error * value;
                model.large[arm / SIDE][unit] -= inner;
                model.small[arm % SIDE][unit] -= inner;
                model.calls[unit] -= inner * calls;
                model.bias[unit] -= inner;
            }
        }
        model
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_split_where_use_is_far_apart() {
        assert_eq!(larger_group(&[0.1, 3.0, 0.2, 2.5]), [false, true, false, true]);
    }

    #[test]
    fn a_cheap_arm_is_found_in_its_samples() {
        let mut draw = Draw::new(Seed::new(1));
        let cost =
            |arm: usize| ((arm / SIDE) as f64 - 6.0).abs() / 9.0 + (arm % SIDE) as f64 / 18.0;
        let samples: Vec<(usize, f64, f64)> = (0..81).map(|arm| (arm, 0.5, cost(arm))).collect();
        let model = Model::fitted(&samples, &mut draw);
        let best =
            (0..81).min_by(|a, b| model.cost(*a, 0.5).total_cmp(&model.cost(*b, 0.5))).unwrap();
        assert!(cost(best) < 0.25, "arm {best} costs {}", cost(best));
    }
}
