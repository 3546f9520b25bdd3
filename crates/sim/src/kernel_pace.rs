//! How time passes for a call on a contended node under the kernel's CPU: at a rate that others have a say in.

use windfall_core::Timestamp;
use windfall_core::demand::Segment;

use crate::bucket::Quota;
use crate::call::Call;
use crate::cpu_model::KernelCpu;
use crate::kernel_walk::Stretch;

/// How a call that woke up on a full node comes to its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wakefulness {
    /// It has taken a core for its first slice.
    Preempts,
    /// It shares that core with what ran there before.
    SharesItsCore,
    /// It has its share of the whole node.
    Settled,
}

impl Call {
    /// Whether rounds and periods are followed one by one.
    fn follows_rounds(&self) -> bool {
        self.kernel.model().follows_rounds
    }

    /// The stretch of work under way, if it is not a long wait.
    fn stretch(&self) -> Option<Stretch> {
        if self.progress.is_done(&self.demand) {
            return None;
        }
        match self.demand.segment(self.progress.segment) {
            Segment::Idle(_) => None,
            Segment::Work { work, parallelism } => {
                Some(Stretch::new(work, u64::from(parallelism.get()), self.kernel.rounds))
            }
        }
    }

    /// What the call could use now if it had the node alone, millicores.
    pub(crate) fn wanted_on_kernel(&self) -> f64 {
        let Some(stretch) = self.stretch() else { return 0.0 };
        let quota = self.quota().filter(|quota| quota.rate < stretch.parallelism);
        if !self.follows_rounds() {
            let mean = stretch.mean_use();
            return match quota.filter(|_| self.kernel.is_drained) {
                Some(quota) => mean.min(quota.rate as f64),
                None => mean,
            };
        }
        let is_throttled = quota.is_some() && self.kernel.bucket.tokens < stretch.parallelism;
        if self.kernel.wait_left > 0 || is_throttled { 0.0 } else { stretch.parallelism as f64 }
    }

    /// Where the call stands after it woke up beside threads that weigh `other` where its own weigh `own`. Only followed
    /// where rounds are: on larger nodes some core becomes free every few milliseconds and takes over what waits.
    pub(crate) fn wakefulness(&mut self, now: Timestamp, own: f64, other: f64) -> Wakefulness {
        let KernelCpu { slice, settling, .. } = self.kernel.model();
        let (woke_at, slice) = (self.kernel.woke_at, slice.as_nanos());
        self.kernel.settles_at = 0;
        if woke_at == 0 {
            return Wakefulness::Settled;
        }
        if now.as_nanos() < woke_at + slice {
            self.kernel.settles_at = woke_at + slice;
            return Wakefulness::Preempts;
        }
        let settles_at = woke_at + settling.scaled((other / own).min(1.0)).as_nanos();
        if now.as_nanos() < settles_at {
            self.kernel.settles_at = settles_at;
            return Wakefulness::SharesItsCore;
        }
        Wakefulness::Settled
    }

    /// The call has a place of its own unless it wakes up right `now`.
    pub(crate) fn settle_before(&mut self, now: Timestamp) {
        if self.kernel.woke_at < now.as_nanos() {
            self.kernel.woke_at = 0;
        }
    }

    /// The call has work again: it wakes up on some core.
    pub(crate) fn wake(&mut self, now: u64) {
        self.kernel.woke_at = now;
    }

    /// Lets `nanos` pass until `now` at a shared `rate` (millicores), never past the next change.
    pub(crate) fn share_on_kernel(&mut self, rate: f64, nanos: u64, now: Timestamp) {
        let now = now.as_nanos();
        let quota = self.quota();
        match self.stretch() {
            None => {
                self.progress.left = self.progress.left.saturating_sub(nanos);
                self.progress.skip_empty(&self.demand);
                if self.progress.left > 0 && self.progress.segment % 2 == 1 {
                    self.wake(now);
                }
                if let Some(quota) = quota.filter(|_| !self.follows_rounds()) {
                    self.trickle(quota, nanos, 0, now);
                }
            }
            Some(stretch) if self.follows_rounds() => {
                self.share_round(stretch, rate, nanos, now);
            }
            Some(stretch) => self.share_stretch(stretch, quota, rate, nanos, now),
        }
        if let Some(quota) = quota.filter(|_| self.follows_rounds()) {
            self.throttled += self.kernel.bucket.refill(quota, now);
        }
        self.progress_at = Timestamp::from_nanos(now);
    }

    /// A stretch whose waits count by their mean.
    fn share_stretch(
        &mut self,
        stretch: Stretch,
        quota: Option<Quota>,
        rate: f64,
        nanos: u64,
        now: u64,
    ) {
        self.kernel.wait_left = 0;
        self.count_delay(nanos, rate, stretch.mean_use());
        let done = self.work_at(rate, nanos, self.progress.left);
        if let Some(quota) = quota.filter(|quota| quota.rate < stretch.parallelism) {
            let missing = 1.0 - rate / stretch.mean_use().max(1.0);
            if self.kernel.is_drained && missing > 0.0 {
                self.throttled += (nanos as f64 * missing) as u64;
            }
            self.trickle(quota, nanos, done, now);
        }
        if self.progress.left == 0 {
            self.progress.skip_empty(&self.demand);
        }
    }

    /// Keeps a bucket whose periods count by their mean.
    fn trickle(&mut self, quota: Quota, nanos: u64, spent: u64, now: u64) {
        let bucket = &mut self.kernel.bucket;
        bucket.trickle(quota, nanos, spent);
        bucket.end_periods(quota, now);
        // Less than a microsecond is left by rounding alone.
        if bucket.tokens < 1000 * quota.rate {
            self.kernel.is_drained = true;
        } else if bucket.tokens > quota.per_period() / 2 {
            self.kernel.is_drained = false;
        }
    }

    /// A round or a wait between two, each followed to its end.
    fn share_round(&mut self, stretch: Stretch, rate: f64, nanos: u64, now: u64) {
        if self.kernel.wait_left > 0 {
            self.kernel.wait_left = self.kernel.wait_left.saturating_sub(nanos);
            if self.kernel.wait_left == 0 {
                self.wake(now);
            }
        } else if rate > 0.0 {
            let round_left = stretch.left_in_round(self.progress.left);
            self.count_delay(nanos, rate, stretch.parallelism as f64);
            let done = self.work_at(rate, nanos, round_left);
            self.kernel.bucket.tokens = self.kernel.bucket.tokens.saturating_sub(done);
            if done == round_left {
                self.kernel.wait_left = stretch.wait_after(self.progress.left);
            }
        } else {
            self.kernel.bucket.throttled += nanos;
            self.count_throttled_delay(nanos);
        }
        if self.kernel.wait_left == 0 && self.progress.left == 0 {
            self.progress.skip_empty(&self.demand);
        }
    }

    /// Works off what `nanos` at `rate` amount to, at most `most`; returns how much that is.
    fn work_at(&mut self, rate: f64, nanos: u64, most: u64) -> u64 {
        let mut done = ((nanos as f64 * rate).round() as u64).min(most);
        // Less than a nanosecond of work is left by rounding alone.
        if ((most - done) as f64) < rate {
            done = most;
        }
        self.progress.left -= done;
        self.count_use(done, 0, rate as u32);
        done
    }

    /// Nanoseconds until the call itself changes what it wants, at a shared `rate`.
    pub(crate) fn until_change_on_kernel(&self, rate: f64) -> u64 {
        let Some(stretch) = self.stretch() else { return self.progress.left };
        let now = self.progress_at.as_nanos();
        let (kernel, quota, follows_rounds) = (&self.kernel, self.quota(), self.follows_rounds());
        let quota = quota.filter(|quota| quota.rate < stretch.parallelism);
        if follows_rounds && kernel.wait_left > 0 {
            return kernel.wait_left;
        }
        let at_rate = |work: u64, rate: f64| {
            if rate > 0.0 { (work as f64 / rate).ceil() as u64 } else { u64::MAX }
        };
        let settled = kernel.settles_at.saturating_sub(now);
        let mut next = if settled > 0 { settled } else { u64::MAX };
        if follows_rounds {
            next = next.min(at_rate(stretch.left_in_round(self.progress.left), rate));
            if quota.is_some() {
                let refill = kernel.bucket.refill_at.saturating_sub(now).max(1);
                let is_throttled = kernel.bucket.tokens < stretch.parallelism;
                let drained =
                    if is_throttled { u64::MAX } else { at_rate(kernel.bucket.tokens, rate) };
                next = next.min(refill).min(drained);
            }
        } else {
            next = next.min(at_rate(self.progress.left, rate));
            if let Some(quota) = quota.filter(|_| !kernel.is_drained) {
                next = next.min(at_rate(kernel.bucket.tokens, rate - quota.rate as f64));
            }
        }
        next
    }
}
