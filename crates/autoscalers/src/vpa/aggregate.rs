//! State of a container: its samples by revision, and the memory window of each instance.
//!
//! ```text
//!  cpu sample ─────────────► weight 0.1 at its time
//!  memory sample ─► window ─► only the peak of each interval, weight 1, at the window's *end*
//!                      │      a higher value within the window replaces the peak
//!  out of memory ──────┘      counts as a sample of max(used + 100 MiB, used · 1.2)
//! ```
//!
//! Interval one day, first memory sample 300 MB at 10:00: the window ends at 10:00 tomorrow, and 300 MB
//! count there. 400 MB at 11:00 replace the 300 MB. An out-of-memory kill at 12:00 with
//! a request of 350 MB: used = max(350, 400) MB, needed = max(400 MB + 104.9 MB, 480 MB) = 504.9 MB.

use super::amounts::{Resources, amount, scale};
use super::buckets::BucketLayout;
use super::checkpoint::Checkpoint;
use super::histogram::DecayingHistogram;
use super::settings::{ContainerPolicy, RecommenderSettings};

/// Weight of every CPU sample.
const CPU_SAMPLE_WEIGHT: f64 = 0.1;

/// Samples of all containers of one name in one revision. Times are Unix seconds.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// CPU in cores.
    pub cpu: DecayingHistogram,
    /// Memory peaks in bytes.
    pub memory: DecayingHistogram,
    /// Time of the first CPU sample.
    pub first_sample: Option<i64>,
    /// Time of the last CPU sample.
    pub last_sample: Option<i64>,
    /// Number of CPU samples.
    pub samples: u64,
    created: i64,
    oom_bump_up_ratio: f64,
    oom_min_bump_up_bytes: f64,
    interval_seconds: i64,
    interval_count: i64,
}

impl Aggregate {
    /// Creates an empty aggregate at `created` with `policy`.
    pub fn new(
        settings: &RecommenderSettings,
        policy: Option<&ContainerPolicy>,
        created: i64,
    ) -> Self {
        let own = |part: fn(&ContainerPolicy) -> Option<f64>| policy.and_then(part);
        let own_seconds = |part: fn(&ContainerPolicy) -> Option<i64>| policy.and_then(part);
        let (cpu_half_life, memory_half_life) =
            (settings.cpu_histogram_half_life_seconds, settings.memory_histogram_half_life_seconds);
        Self {
            cpu: DecayingHistogram::new(BucketLayout::cpu(), cpu_half_life),
            memory: DecayingHistogram::new(BucketLayout::memory(), memory_half_life),
            first_sample: None,
            last_sample: None,
            samples: 0,
            created,
            oom_bump_up_ratio: own(|policy| policy.oom_bump_up_ratio)
                .unwrap_or(settings.oom_bump_up_ratio),
            oom_min_bump_up_bytes: own(|policy| policy.oom_min_bump_up_bytes)
                .unwrap_or(settings.oom_min_bump_up_bytes),
            interval_seconds: own_seconds(|policy| policy.memory_aggregation_interval_seconds)
                .unwrap_or(settings.memory_aggregation_interval_seconds)
                .max(1),
            interval_count: own_seconds(|policy| policy.memory_aggregation_interval_count)
                .unwrap_or(settings.memory_aggregation_interval_count),
        }
    }

    /// Merges `other` into this aggregate, which may move the reference of `other`.
    pub fn merge(&mut self, other: &mut Self) {
        self.cpu.merge(&mut other.cpu);
        self.memory.merge(&mut other.memory);
        self.first_sample = match (self.first_sample, other.first_sample) {
            (Some(ours), Some(theirs)) => Some(ours.min(theirs)),
            (ours, theirs) => ours.or(theirs),
        };
        self.last_sample = self.last_sample.max(other.last_sample);
        self.samples += other.samples;
    }

    /// Returns the checkpoint.
    pub fn save(&self) -> Checkpoint {
        Checkpoint {
            cpu: self.cpu.save(),
            memory: self.memory.save(),
            first_sample: self.first_sample,
            last_sample: self.last_sample,
            samples: self.samples,
        }
    }

    /// Restores an empty aggregate from a checkpoint.
    pub fn load(&mut self, saved: &Checkpoint) {
        self.cpu.load(&saved.cpu);
        self.memory.load(&saved.memory);
        self.first_sample = saved.first_sample;
        self.last_sample = saved.last_sample;
        self.samples = saved.samples;
    }

    /// Whether its newest sample is too old to count.
    pub(super) fn is_expired(&self, now: i64) -> bool {
        let newest = if self.samples == 0 { Some(self.created) } else { self.last_sample };
        let length = self.interval_seconds.saturating_mul(self.interval_count);
        newest.is_none_or(|newest| now - newest >= length)
    }

    fn add_cpu(&mut self, millicores: i64, at: i64) {
        self.cpu.add(millicores as f64 / 1000.0, CPU_SAMPLE_WEIGHT, at);
        self.first_sample = Some(self.first_sample.map_or(at, |first| first.min(at)));
        self.last_sample = self.last_sample.max(Some(at));
        self.samples += 1;
    }
}

/// One running container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerState {
    /// Time of its last accepted CPU sample.
    pub last_cpu: Option<i64>,
    /// End of its memory window.
    pub window_end: Option<i64>,
    last_memory: Option<i64>,
    usage_peak: i64,
    oom_peak: i64,
}

impl ContainerState {
    /// The higher of the window's two peaks, bytes.
    pub fn peak(&self) -> i64 {
        self.usage_peak.max(self.oom_peak)
    }

    /// Whether a CPU sample is accepted: not negative, and newer than the last.
    pub(super) fn accepts_cpu(&self, millicores: i64, at: i64) -> bool {
        millicores >= 0 && self.last_cpu.is_none_or(|last| at > last)
    }

    /// Adds an accepted CPU sample.
    pub(super) fn add_cpu(&mut self, aggregate: &mut Aggregate, millicores: i64, at: i64) {
        aggregate.add_cpu(millicores, at);
        self.last_cpu = Some(at);
    }

    /// Whether a memory sample is accepted: not negative, and not older than the last.
    pub(super) fn accepts_memory(&self, bytes: i64, at: i64) -> bool {
        bytes >= 0 && self.last_memory.is_none_or(|last| at >= last)
    }

    /// Adds an accepted memory sample.
    pub(super) fn add_memory(&mut self, aggregate: &mut Aggregate, bytes: i64, at: i64) {
        self.take_memory(aggregate, bytes, at, false);
    }

    /// Adds an out-of-memory kill, unless it is more than an interval older than the last sample.
    pub(super) fn add_oom(&mut self, aggregate: &mut Aggregate, requested: i64, at: i64) -> bool {
        if self.last_memory.is_some_and(|last| at < last - aggregate.interval_seconds) {
            return false;
        }
        let used = requested.max(self.usage_peak);
        let bumped = used.saturating_add(amount(aggregate.oom_min_bump_up_bytes));
        let needed = bumped.max(scale(used, aggregate.oom_bump_up_ratio));
        if needed < 0 {
            return false;
        }
        self.take_memory(aggregate, needed, at, true);
        true
    }

    fn take_memory(&mut self, aggregate: &mut Aggregate, bytes: i64, at: i64, is_oom: bool) {
        self.last_memory = Some(at);
        let mut end = self.window_end.unwrap_or(at);
        let is_peak = if at < end {
            let old = self.peak();
            // A window that began with 0 stays at 0 until its end.
            let is_higher = old != 0 && bytes > old;
            if is_higher {
                aggregate.memory.subtract(old as f64, 1.0, end);
            }
            is_higher
        } else {
            let interval = aggregate.interval_seconds;
            end += ((at - end) / interval + 1) * interval;
            self.usage_peak = 0;
            self.oom_peak = 0;
            true
        };
        self.window_end = Some(end);
        if is_peak {
            aggregate.memory.add(bytes as f64, 1.0, end);
            *(if is_oom { &mut self.oom_peak } else { &mut self.usage_peak }) = bytes;
        }
    }
}

/// Recommendation for one container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerRecommendation {
    /// Its name.
    pub container: String,
    /// `target`.
    pub target: Resources,
    /// `lowerBound`.
    pub lower_bound: Resources,
    /// `upperBound`.
    pub upper_bound: Resources,
    /// `uncappedTarget`.
    pub uncapped_target: Resources,
}
