//! What is replayed: functions of the paper's kind and the order of their calls.

use windfall_core::{Seed, Trigger};
use windfall_rl::random::Draw;
use windfall_trace::freyr_sample::SampledFunction;

use super::function_model::FunctionModel;

/// Where calls come from, for every heading under which their results stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The authors' sample of Azure Functions 2019.
    Azure2019,
    /// Made up here, because the sample is not at hand.
    Generated,
}

impl Origin {
    /// A few words for headings.
    pub fn label(self) -> &'static str {
        match self {
            Self::Azure2019 => "the authors' sample of Azure Functions 2019",
            Self::Generated => "GENERATED calls, not the authors' sample",
        }
    }
}

/// Functions and their calls in the order in which the paper's simulator takes them: minute by minute,
/// inside a minute function by function.
#[derive(Clone, Debug)]
pub struct Calls {
    /// The functions.
    pub functions: Vec<FunctionModel>,
    /// Step and function of each call. A minute of the trace is a step, which the simulator calls a second.
    pub events: Vec<(u32, u32)>,
}

impl Calls {
    /// The calls of `sample` with the ideal sizes that the authors drew.
    pub fn new(sample: &[SampledFunction], ideal_memory_capped: bool) -> Self {
        let model = |function: &SampledFunction| {
            FunctionModel::new(function, function.ideal_mb, ideal_memory_capped)
        };
        Self::ordered(sample.iter().map(model).collect(), sample.iter())
    }

    /// Another workload by the authors' recipe: `count` functions drawn from `sample`, each with an ideal
    /// size drawn from its own percentiles.
    pub fn resampled(sample: &[SampledFunction], count: usize, seed: Seed) -> Self {
        let mut draw = Draw::new(seed.stream("faasrm/resample"));
        let drawn: Vec<&SampledFunction> =
            (0..count).map(|_| &sample[draw.below(sample.len())]).collect();
        let mut model = |function: &&SampledFunction| {
            let ideal = function.memory_mb[draw.below(function.memory_mb.len())];
            FunctionModel::new(function, ideal, true)
        };
        let models = drawn.iter().map(&mut model).collect();
        Self::ordered(models, drawn.into_iter())
    }

    fn ordered<'a>(
        functions: Vec<FunctionModel>,
        rows: impl Iterator<Item = &'a SampledFunction>,
    ) -> Self {
        let mut events = Vec::new();
        for (place, row) in rows.enumerate() {
            for (minute, count) in &row.minutes {
                events.extend(std::iter::repeat_n((*minute, place as u32), *count as usize));
            }
        }
        // Stable and by minute and place: inside a minute functions keep their order.
        events.sort_unstable();
        Self { functions, events }
    }

    /// Mean seconds of a call at its user's size.
    pub fn mean_baseline(&self) -> f64 {
        let seconds =
            |(_, function): &(u32, u32)| u64::from(self.functions[*function as usize].baseline());
        self.events.iter().map(seconds).sum::<u64>() as f64 / self.events.len().max(1) as f64
    }
}

/// A sample of the same shape as the authors', for machines without it: sizes and run times are drawn from
/// wide distributions by hand, and resemble no real function.
pub fn generated_sample(functions: usize, seed: Seed) -> Vec<SampledFunction> {
    let mut draw = Draw::new(seed.stream("faasrm/generated"));
    let triggers = [Trigger::Timer, Trigger::Timer, Trigger::Http, Trigger::Queue];
    (0..functions)
        .map(|place| {
            let allocated_mb = 64.0 + 120.0 * (0.6 * draw.normal()).exp();
            // A tail like the trace's: half of the functions run for under a second, few for minutes.
            let shortest_ms = 200.0 * (1.6 * draw.normal()).exp();
            let longest_ms = (shortest_ms * (1.0 + 6.0 * draw.unit() * draw.unit())).min(500_000.0);
            let spread = 0.1 + 0.6 * draw.unit() * draw.unit();
            let memory_mb = [-1.2, -0.9, -0.4, 0.0, 0.4, 0.9, 1.3, 1.8]
                .map(|step: f64| (allocated_mb * (spread * step).exp()).round());
            let ideal_mb = memory_mb[draw.below(8)];
            let calls = (24.0 * (1.3 * draw.normal()).exp()).clamp(10.0, 991.0) as usize;
            let mut minutes = [0_u32; 60];
            (0..calls).for_each(|_| minutes[draw.below(60)] += 1);
            let busy = (0..60).zip(minutes).filter(|(_, count)| *count > 0);
            SampledFunction {
                name: place.to_string(),
                trigger: triggers[draw.below(triggers.len())],
                minutes: busy.collect(),
                allocated_mb: allocated_mb.round(),
                memory_mb,
                ideal_mb,
                shortest_ms,
                longest_ms,
                minimum_ms: shortest_ms * draw.unit(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_come_minute_by_minute_and_function_by_function() {
        let mut sample = generated_sample(2, Seed::new(1));
        sample[0].minutes = vec![(0, 1), (1, 2)];
        sample[1].minutes = vec![(0, 2)];
        let calls = Calls::new(&sample, true);
        assert_eq!(calls.events, [(0, 0), (0, 1), (0, 1), (1, 0), (1, 0)]);
    }

    #[test]
    fn a_generated_sample_follows_its_seed() {
        let calls = |seed| Calls::new(&generated_sample(50, Seed::new(seed)), true);
        assert_eq!(calls(1).events, calls(1).events);
        assert_ne!(calls(1).events, calls(2).events);
        assert!(calls(1).functions.iter().any(|f| f.ideal_cpu > f.user.cpu));
    }
}
