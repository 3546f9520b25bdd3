//! A call under the kernel's CPU: what only this model knows of it, and how time passes for it.

use windfall_core::demand::Segment;
use windfall_core::seed::mix;
use windfall_core::{Allocation, CallDemand, Duration, Mebibytes, Timestamp};

use crate::bucket::{Bucket, Quota};
use crate::call::{Call, Pace, TimeLeft, Turn};
use crate::cpu_model::KernelCpu;
use crate::kernel_walk::{Rounds, Stretch, Walk};
use crate::progress::Progress;
use crate::simulator::Simulator;

/// Later than any end, and far enough from the largest number that a period can be added.
const NEVER: u64 = u64::MAX >> 1;
/// Steps of a walk after which a call is looked at again instead of being followed to its end: some microseconds.
const STEPS_AHEAD: u32 = 500;

/// What the model keeps per call. Everything is zero under the fluid model.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KernelState {
    /// The parameters, the same for all calls of a run; none under the fluid model.
    model: Option<KernelCpu>,
    /// Whether a part of its waiting has been moved into rounds. Most calls end without anybody asking.
    is_split: bool,
    /// The quota is used up; until some of it has come together again the call has its mean rate.
    pub(crate) is_drained: bool,
    pub(crate) rounds: Rounds,
    /// What is left of a wait inside a stretch of work, nanoseconds.
    pub(crate) wait_left: u64,
    pub(crate) bucket: Bucket,
    /// Where it will be at its next turn if nobody interferes, if that was worked out.
    ahead: Option<Ahead>,
    /// When it woke up, and until when the core where it did decides its share, nanoseconds since the run began.
    pub(crate) woke_at: u64,
    pub(crate) settles_at: u64,
    /// The grant that the operating system refused to put in force.
    pub(crate) refused: Option<Allocation>,
    /// Its demand before what a warm instance keeps was added and its waits were split up.
    demanded: Demanded,
}

/// A state that a walk came to.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    /// Where the walk began and ended, nanoseconds since the run began.
    from: u64,
    at: u64,
    progress: Progress,
    wait_left: u64,
    bucket: Bucket,
    /// Use and visible throttling on the way.
    used: u64,
    throttled: u64,
}

/// The parts of a demand that change when a call gets its place.
#[derive(Clone, Copy, Debug, Default)]
struct Demanded {
    fixed: Duration,
    memory_base: Mebibytes,
    memory_peak: Mebibytes,
}

impl KernelState {
    /// Whether the call runs under the kernel's CPU.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.model.is_some()
    }

    /// The parameters; zero under the fluid model, which asks for none.
    pub(crate) fn model(&self) -> KernelCpu {
        self.model.unwrap_or_default()
    }

    /// Begins anew for another call.
    fn reset(&mut self) {
        (self.is_split, self.is_drained) = (false, false);
        (self.rounds, self.wait_left) = (Rounds::default(), 0);
        self.bucket = Bucket::default();
        (self.ahead, self.refused) = (None, None);
        (self.woke_at, self.settles_at) = (0, 0);
    }
}

impl Simulator<'_> {
    /// Prepares a call that has just joined `instance` for the kernel's CPU.
    pub(crate) fn prepare_for_kernel(&mut self, slot: u32, instance: u32, kernel: &KernelCpu) {
        let now = self.now.as_nanos();
        let state = &self.instances[instance];
        let (resident, kept) = (state.resident, state.bucket);
        let call = &mut self.calls[slot];
        let Call { demand, kernel: state, .. } = call;
        if !state.is_on() {
            state.model = Some(*kernel);
        }
        state.reset();
        state.demanded = Demanded {
            fixed: demand.fixed,
            memory_base: demand.memory_base,
            memory_peak: demand.memory_peak,
        };
        demand.memory_base = demand.memory_base.max(resident);
        demand.memory_peak = demand.memory_peak.max(resident);
        let Some(quota) = call.quota() else { return };
        call.kernel.bucket = if kept.refill_at == 0 {
            // The kernel begins the periods of a new group at a random moment, so that they interleave.
            let first = mix(now.wrapping_add(u64::from(slot) << 40)) % quota.period;
            Bucket::full(quota, now + first + 1)
        } else {
            let mut bucket = kept;
            bucket.refill(quota, now);
            bucket
        };
    }
}

impl Call {
    /// The demand that the call came with.
    pub(crate) fn plain_demand(&self) -> CallDemand {
        if !self.kernel.is_on() {
            return self.demand;
        }
        let Demanded { fixed, memory_base, memory_peak } = self.kernel.demanded;
        CallDemand { fixed, memory_base, memory_peak, ..self.demand }
    }

    /// Moves a part of the call's waiting into rounds inside its work, unless that was done before.
    pub(crate) fn split_waits(&mut self) {
        if self.kernel.is_split {
            return;
        }
        self.kernel.is_split = true;
        let (model, demand) = (self.kernel.model(), &mut self.demand);
        let cycles = u64::from(demand.cycles.max(1));
        let wait = demand.fixed.scaled(model.round_waits).as_nanos() / cycles;
        if wait == 0 || demand.work == 0 {
            self.kernel.rounds = Rounds { wait: 0, count: 1 };
            return;
        }
        demand.fixed -= Duration::from_nanos(wait * cycles);
        let work = demand.work / cycles / u64::from(demand.parallelism.get().max(1));
        let round = model.round.as_nanos().max(1);
        let count = ((work + wait + round / 2) / round).max(1);
        self.kernel.rounds = Rounds { wait, count };
    }

    /// The quota that can slow the call: none if it may use all that it can.
    #[inline]
    pub(crate) fn quota(&self) -> Option<Quota> {
        let limit = self.ceiling.limit(self.grant.cpu)?;
        if limit >= self.demand.parallelism {
            return None;
        }
        let model = self.kernel.model();
        let (rate, period) = (u64::from(limit.get().max(1)), model.period.as_nanos());
        let saved = (model.burst * (rate * period) as f64) as u64;
        Some(Quota { rate, period, saved })
    }

    /// The limit on the call's CPU is another one from `now` on: writing a quota also fills the bucket.
    pub(crate) fn limit_changed(&mut self, now: Timestamp) {
        if !self.kernel.is_on() {
            return;
        }
        if let Some(quota) = self.quota() {
            let bucket = &mut self.kernel.bucket;
            if bucket.refill_at == 0 {
                bucket.refill_at = now.as_nanos() + quota.period;
            }
            self.throttled += bucket.refill(quota, now.as_nanos());
            bucket.tokens = (bucket.tokens + quota.per_period()).min(quota.most());
        }
        self.kernel.is_drained = false;
        self.kernel.ahead = None;
    }

    fn walk(&self) -> Walk<'_> {
        Walk {
            demand: &self.demand,
            rounds: self.kernel.rounds,
            quota: self.quota(),
            progress: if self.is_fresh() { Progress::start(&self.demand) } else { self.progress },
            wait_left: self.kernel.wait_left,
            bucket: self.kernel.bucket,
            now: self.progress_at.as_nanos(),
            used: 0,
            throttled: 0,
        }
    }

    /// How long the call still runs at its own pace. A quota that binds in some rounds and not in others is followed for a
    /// while only: most such calls are changed again before they end.
    pub(crate) fn time_left_on_kernel(&mut self) -> TimeLeft {
        if self.is_fresh() && self.quota().is_none() {
            // Where the user reserves all that it can use, the fastest run is the baseline.
            let known = self
                .record
                .baseline
                .filter(|_| self.record.reservation.cpu >= self.demand.parallelism);
            let waits = self.kernel.rounds.wait * u64::from(self.demand.cycles.max(1));
            return TimeLeft::Known(
                known.unwrap_or_else(|| self.demand.fastest() + Duration::from_nanos(waits)),
            );
        }
        self.split_waits();
        let from = self.progress_at.as_nanos();
        let mut walk = self.walk();
        walk.pass_some(NEVER, STEPS_AHEAD);
        let Walk { progress, wait_left, bucket, used, throttled, now: at, .. } = walk;
        let is_end = progress.is_done(&self.demand);
        self.kernel.ahead = Some(Ahead { from, at, progress, wait_left, bucket, used, throttled });
        match is_end {
            true => TimeLeft::Known(Duration::from_nanos(at - from)),
            false => TimeLeft::AtLeast(Duration::from_nanos(at - from)),
        }
    }

    /// Lets time pass until `now` at the call's own pace.
    pub(crate) fn advance_on_kernel(&mut self, now: Timestamp) {
        self.split_waits();
        let from = self.progress_at.as_nanos();
        let is_there = |ahead: &Ahead| ahead.from == from && ahead.at == now.as_nanos();
        let ahead = self.kernel.ahead.take().filter(is_there).unwrap_or_else(|| {
            let mut walk = self.walk();
            walk.pass(now.as_nanos());
            let Walk { progress, wait_left, bucket, used, throttled, now: at, .. } = walk;
            Ahead { from, at, progress, wait_left, bucket, used, throttled }
        });
        let Ahead { progress, wait_left, bucket, used, throttled, .. } = ahead;
        self.progress = progress;
        self.kernel.wait_left = wait_left;
        self.kernel.bucket = bucket;
        self.count_use(used, throttled, self.demand.parallelism.get());
        if throttled > 0 {
            self.count_throttled_delay(throttled);
        }
        self.progress_at = now;
    }

    /// Counts by how much `throttled` nanoseconds set the call back against a run at its reservation.
    ///
    /// On 2 threads, work that takes 1 s takes 4 s under half a core, of which 3 are throttled, and 2 s under a reserved
    /// core: 2 of the 3 seconds count.
    pub(crate) fn count_throttled_delay(&mut self, throttled: u64) {
        let Some(quota) = self.quota() else { return };
        let per_work = |rate: f64| 1.0 / rate.max(1.0);
        let widest = f64::from(self.demand.parallelism.get());
        let reserved = f64::from(self.record.reservation.cpu.get()).min(widest);
        let limited = per_work(quota.rate as f64);
        let share = (limited - per_work(reserved)) / (limited - per_work(widest));
        self.delayed += throttled as f64 * share.max(0.0);
    }

    /// Counts by how much `nanos` at `rate` set the call back against a run at its reservation, where it could use
    /// `wanted` millicores.
    pub(crate) fn count_delay(&mut self, nanos: u64, rate: f64, wanted: f64) {
        let reserved = wanted.min(f64::from(self.record.reservation.cpu.get())).max(1.0);
        self.delayed += nanos as f64 * (1.0 - rate / reserved).max(0.0);
    }

    pub(crate) fn count_use(&mut self, used: u64, throttled: u64, rate: u32) {
        if used > 0 {
            self.peak = self.peak.max(rate);
        }
        self.record.cpu_used += used;
        self.throttled += throttled;
    }

    /// The call ends at `now`: all its work is done.
    pub(crate) fn finish_on_kernel(&mut self, now: Timestamp) {
        let is_left_alone = self.is_fresh() && self.pace == Pace::Own && self.turn == Turn::Ends;
        if !(is_left_alone && self.quota().is_none()) {
            self.catch_up(now);
        }
        if self.turn == Turn::Ends {
            self.record.cpu_used = self.demand.work;
            if self.pace == Pace::Own {
                self.peak = self.peak.max(self.demand.parallelism.get());
            }
            self.progress_at = now;
        }
    }

    /// Highest use over a window as long as a period, which is what reading a counter at such intervals shows:
    /// millicores. No counter knows how parallel the call could have been.
    pub(crate) fn windowed_peak(&self, run: Duration) -> f64 {
        let window = self.kernel.model().period.as_nanos_f64();
        let run = run.as_nanos().max(1) as f64;
        let mean = self.record.cpu_used as f64 / run;
        let limit = self
            .ceiling
            .limit(self.record.highest_grant.cpu)
            .map_or(f64::MAX, |limit| f64::from(limit.get()));
        if run <= window {
            return mean;
        }
        let mut peak: f64 = mean;
        for cycle in 0..self.demand.cycles.max(1) {
            if let Segment::Work { work, parallelism } = self.demand.segment(2 * cycle + 1) {
                let stretch = Stretch::new(work, u64::from(parallelism.get()), self.kernel.rounds);
                let mean = stretch.mean_use();
                peak = peak.max(mean * (work as f64 / mean / window).min(1.0));
            }
        }
        peak.min(limit.max(mean)).min(f64::from(self.peak))
    }
}
