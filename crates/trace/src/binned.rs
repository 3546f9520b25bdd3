//! Turns counts per time bin into arrivals: one bin at a time is placed, sorted and emitted.
//!
//! Each arrival of a bin is packed into one word, with the time in the upper bits and the function in the
//! lower ones, so that sorting moves eight bytes per call. The demand of a call is drawn only when it is
//! emitted. A bin with more than [`SLICE_CALLS`] calls is placed slice by slice, so that memory depends
//! neither on the length of the trace nor on its rate.
//!
//! ```text
//!   counts of a bin ─► place in slice ─► sort ─► pop (time | function) ─► draw demand
//! ```

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use windfall_core::{
    Arrival, Duration, FunctionId, FunctionProfile, Seed, Timestamp, Trigger, Workload,
};

use crate::bucket_sort::BucketSort;
use crate::demand_model::{CallModel, FunctionFacts, ModelledFunction, model_function};
use crate::gusts::Gusts;

/// Calls per slice that are placed and sorted together: 1 MiB of words.
const SLICE_CALLS: u64 = 1 << 17;
/// Bits of a packed arrival that hold the function.
const FUNCTION_BITS: u32 = 26;
/// Maximum number of functions in a binned workload.
pub(crate) const MAX_FUNCTIONS: u64 = 1 << FUNCTION_BITS;

/// Where inside its bin a call arrives; traces with counts per minute do not record it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Uniformly at random; timers at a fixed phase, evenly spaced, with a jitter of about 0.2 s.
    #[default]
    Uniform,
    /// In clusters of 7.5 calls on average within 0.3 s; all calls of a timer within 0.5 s.
    Bursty,
    /// By a rate that varies within the minute and has occasional spikes; timers as in `Bursty`.
    Gusty,
}

/// The calls of one function in one bin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BinCount {
    /// Index in the list of functions.
    pub(crate) function: u32,
    pub(crate) calls: u64,
}

/// A source of counts per bin.
pub(crate) trait Counts: Send {
    /// Length of a bin, at most 2^38 ns: an offset must fit above the function.
    fn bin(&self) -> Duration;

    /// Number of bins.
    fn bins(&self) -> u32;

    /// Puts the counts of bin `index` into `counts`, except for functions without calls. Bins are requested in
    /// order. Returns the calls of the bin before any function was filtered out, because slices must not depend
    /// on the filter.
    fn fill(&mut self, index: u32, draws: &mut [Function], counts: &mut Vec<BinCount>) -> u64;

    /// Restarts after all functions were redrawn.
    fn restart(&mut self, seed: Seed, draws: &[Function]);
}

/// A function in the hot loop.
pub(crate) struct Function {
    pub(crate) model: CallModel,
    demand: Xoshiro256PlusPlus,
    /// Generator for counts and times.
    pub(crate) arrivals: Xoshiro256PlusPlus,
    is_timer: bool,
    /// Where in the bin a timer fires, as a share.
    phase: f32,
    /// State of its varying rate.
    pub(crate) gusts: Gusts,
}

/// A workload made from counts per bin.
pub(crate) struct Binned<C> {
    facts: Vec<FunctionFacts>,
    counts: C,
    placement: Placement,
    profiles: Vec<FunctionProfile>,
    functions: Vec<Function>,
    /// Counts of the current bin, and each function's rounding offset over its slices.
    bin: Vec<BinCount>,
    offsets: Vec<f32>,
    next_bin: u32,
    slice: u64,
    slices: u64,
    /// Packed arrivals of the current slice, latest first.
    packed: Vec<u64>,
    sort: BucketSort,
    bin_start: Timestamp,
}

impl<C: Counts> Binned<C> {
    pub(crate) fn new(
        facts: Vec<FunctionFacts>,
        counts: C,
        placement: Placement,
        seed: Seed,
    ) -> Self {
        let mut workload = Self {
            facts,
            counts,
            placement,
            profiles: Vec::new(),
            functions: Vec::new(),
            bin: Vec::new(),
            offsets: Vec::new(),
            next_bin: 0,
            slice: 0,
            slices: 0,
            packed: Vec::new(),
            sort: BucketSort::default(),
            bin_start: Timestamp::ZERO,
        };
        workload.restart(seed);
        workload
    }

    /// Counts per bin of every function, without placing or drawing any call.
    pub(crate) fn counts_per_bin(mut self) -> Vec<Vec<u64>> {
        let bins = self.counts.bins();
        let mut rows = vec![vec![0; bins as usize]; self.functions.len()];
        for bin in 0..bins {
            self.bin.clear();
            self.counts.fill(bin, &mut self.functions, &mut self.bin);
            for count in &self.bin {
                rows[count.function as usize][bin as usize] = count.calls;
            }
        }
        rows
    }

    /// Places the next slice, opening the next bin if necessary. Returns `false` at the end.
    fn advance(&mut self) -> bool {
        if self.slice == self.slices {
            if self.next_bin == self.counts.bins() {
                return false;
            }
            self.open_bin();
        }
        let bin = u128::from(self.counts.bin().as_nanos());
        let edge = |slice: u64| (bin * u128::from(slice) / u128::from(self.slices)) as u64;
        let start = edge(self.slice);
        let end = edge(self.slice + 1).max(start + 1);
        for (count, &offset) in self.bin.iter().zip(&self.offsets) {
            let calls = calls_in_slice(count.calls, offset, self.slice, self.slices);
            let mut place =
                Place { function: count.function, start, end, packed: &mut self.packed };
            place.calls(&mut self.functions[count.function as usize], self.placement, calls);
        }
        let (low, high) =
            (start << FUNCTION_BITS, (end - 1) << FUNCTION_BITS | (MAX_FUNCTIONS - 1));
        self.sort.largest_first(&mut self.packed, low, high);
        self.slice += 1;
        true
    }

    fn open_bin(&mut self) {
        self.bin.clear();
        let total = self.counts.fill(self.next_bin, &mut self.functions, &mut self.bin);
        self.slice = 0;
        self.slices = total.div_ceil(SLICE_CALLS).max(1);
        self.offsets.clear();
        for count in &self.bin {
            let function = &mut self.functions[count.function as usize];
            // With a single slice nothing is rounded, so nothing is drawn.
            let offset = match (self.slices, function.is_timer) {
                (1, _) => 0.0,
                (_, true) => function.phase,
                (_, false) => function.arrivals.random(),
            };
            self.offsets.push(offset);
        }
        self.bin_start = Timestamp::ZERO + self.counts.bin() * u64::from(self.next_bin);
        self.next_bin += 1;
    }
}

/// An even share of `calls`; the shares of all slices add up to `calls`.
fn calls_in_slice(calls: u64, offset: f32, slice: u64, slices: u64) -> u64 {
    if slices == 1 {
        return calls;
    }
    let upto = |slice: u64| {
        let whole = u128::from(calls) * u128::from(slice);
        let shifted = whole as f64 / slices as f64 + f64::from(offset);
        if slice == slices { calls } else { (shifted as u64).min(calls) }
    };
    upto(slice + 1).saturating_sub(upto(slice))
}

/// An interval of a bin to be filled with calls.
struct Place<'a> {
    function: u32,
    start: u64,
    end: u64,
    packed: &'a mut Vec<u64>,
}

impl Place<'_> {
    fn calls(&mut self, function: &mut Function, placement: Placement, calls: u64) {
        if calls == 0 {
            return;
        }
        let rng = &mut function.arrivals;
        match (placement, function.is_timer) {
            (Placement::Uniform, false) => {
                for _ in 0..calls {
                    let offset = self.anywhere(rng);
                    self.push(offset);
                }
            }
            (Placement::Uniform, true) => {
                let gap = (self.end - self.start) as f64 / calls as f64;
                for k in 0..calls {
                    let jitter = rng.sample::<f32, _>(StandardNormal).abs() * 0.2e9;
                    let even = (k as f64 + f64::from(function.phase)) * gap;
                    self.push(self.start + (even + f64::from(jitter)) as u64);
                }
            }
            (Placement::Bursty, false) => self.clusters(rng, calls),
            (Placement::Gusty, false) => {
                let span = (self.start, self.end);
                function.gusts.place(rng, span, calls, |offset| self.push(offset));
            }
            (Placement::Bursty | Placement::Gusty, true) => {
                let length = (self.end - self.start) as f64;
                let fires = self.start + (f64::from(function.phase) * length) as u64;
                for _ in 0..calls {
                    self.push(fires + rng.random_range(0..500_000_000));
                }
            }
        }
    }

    /// Clusters of geometric size: the next call stays in the cluster with probability 1 - 1/7.5.
    fn clusters(&mut self, rng: &mut Xoshiro256PlusPlus, calls: u64) {
        let mut centre = self.anywhere(rng);
        for _ in 0..calls {
            self.push(centre + rng.random_range(0..300_000_000));
            if rng.random::<f32>() < 1.0 / 7.5 {
                centre = self.anywhere(rng);
            }
        }
    }

    fn anywhere(&self, rng: &mut impl Rng) -> u64 {
        // The upper half of a 64 x 64 bit product: uniform without a division or a loop.
        let length = u128::from(self.end - self.start);
        self.start + ((u128::from(rng.next_u64()) * length) >> 64) as u64
    }

    fn push(&mut self, offset: u64) {
        let offset = offset.min(self.end - 1);
        self.packed.push(offset << FUNCTION_BITS | u64::from(self.function));
    }
}

impl<C: Counts> Workload for Binned<C> {
    fn functions(&self) -> &[FunctionProfile] {
        &self.profiles
    }

    fn horizon(&self) -> Timestamp {
        Timestamp::ZERO + self.counts.bin() * u64::from(self.counts.bins())
    }

    #[inline(always)]
    fn next_arrival(&mut self) -> Option<Arrival> {
        let packed = loop {
            match self.packed.pop() {
                Some(packed) => break packed,
                None if self.advance() => {}
                None => return None,
            }
        };
        let index = (packed & (MAX_FUNCTIONS - 1)) as u32;
        let function = &mut self.functions[index as usize];
        Some(Arrival {
            at: self.bin_start + Duration::from_nanos(packed >> FUNCTION_BITS),
            function: FunctionId(index),
            demand: function.model.draw(&mut function.demand),
        })
    }

    fn restart(&mut self, seed: Seed) {
        self.profiles.clear();
        self.functions.clear();
        for facts in &self.facts {
            let ModelledFunction { profile, model, demand } = model_function(facts, seed);
            self.profiles.push(profile);
            let mut arrivals = seed.stream("arrivals").member(facts.member).generator();
            let phase = arrivals.random();
            let is_timer = facts.trigger == Trigger::Timer;
            let gusts = Gusts::default();
            self.functions.push(Function { model, demand, arrivals, is_timer, phase, gusts });
        }
        self.counts.restart(seed, &self.functions);
        self.packed.clear();
        (self.next_bin, self.slice, self.slices) = (0, 0, 0);
    }
}
