//! What a function's calls have shown so far, in constant time and space per function.

use super::function_model::Levels;

/// A finished call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Its place among all calls, in order of their starts.
    pub order: u32,
    /// What it had.
    pub size: Levels,
    /// What it used at most.
    pub peak: Levels,
    /// How long it ran.
    pub seconds: u32,
}

/// One function's past.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The most recently started calls that have finished, latest last; at most three.
    recent: Vec<Finished>,
    /// Highest peak ever; FaaSRM's simulator never forgets one.
    highest: Levels,
    finished: u64,
    seconds: u64,
    cpu_peaks: u64,
    memory_peaks: u64,
    arrived: u64,
    last_arrival: Option<u32>,
    gaps: (u64, u64),
}

impl History {
    /// A call has come.
    pub(super) fn arrived(&mut self, second: u32) {
        self.arrived += 1;
        if let Some(before) = self.last_arrival.replace(second) {
            // Gaps of zero are left out: calls of one step do not count.
            let gap = u64::from(second - before);
            self.gaps = (self.gaps.0 + u64::from(gap > 0), self.gaps.1 + gap);
        }
    }

    /// A call has ended.
    pub(super) fn ended(&mut self, order: u32, size: Levels, peak: Levels, seconds: u32) {
        let place = self.recent.partition_point(|other| other.order < order);
        self.recent.insert(place, Finished { order, size, peak, seconds });
        if self.recent.len() > 3 {
            self.recent.remove(0);
        }
        self.highest.cpu = self.highest.cpu.max(peak.cpu);
        self.highest.memory = self.highest.memory.max(peak.memory);
        self.finished += 1;
        self.seconds += u64::from(seconds);
        self.cpu_peaks += u64::from(peak.cpu);
        self.memory_peaks += u64::from(peak.memory);
    }

    /// The most recently started call that has finished.
    pub fn latest(&self) -> Option<&Finished> {
        self.recent.last()
    }

    /// At most three of them, latest last.
    pub fn recent(&self) -> &[Finished] {
        &self.recent
    }

    /// The highest peak of any call.
    pub fn highest(&self) -> Levels {
        self.highest
    }

    /// Mean run time in seconds; 0 before the first.
    pub fn mean_seconds(&self) -> f64 {
        mean(self.seconds, self.finished)
    }

    /// Mean peak of CPU and of memory, in levels; 0 before the first.
    pub fn mean_peaks(&self) -> MeanPeaks {
        MeanPeaks {
            cpu: mean(self.cpu_peaks, self.finished),
            memory: mean(self.memory_peaks, self.finished),
        }
    }

    /// Mean of the gaps between arrivals that are not zero; 0 if there are none.
    pub fn mean_gap(&self) -> f64 {
        mean(self.gaps.1, self.gaps.0)
    }

    /// Arrivals for each step that has passed; 0 in the first.
    pub fn rate(&self, second: u32) -> f64 {
        mean(self.arrived, u64::from(second))
    }
}

/// Mean peaks of finished calls, in levels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanPeaks {
    /// Of CPU.
    pub cpu: f64,
    /// Of memory.
    pub memory: f64,
}

fn mean(sum: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum as f64 / count as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_is_the_one_that_started_last() {
        let mut history = History::default();
        for order in [5, 9, 7, 6] {
            history.ended(order, Levels::both(2), Levels { cpu: 1, memory: 2 }, order);
        }
        let orders: Vec<u32> = history.recent().iter().map(|call| call.order).collect();
        assert_eq!(orders, [6, 7, 9]);
        assert_eq!(history.latest().map(|call| call.seconds), Some(9));
        assert_eq!(history.mean_seconds(), 27.0 / 4.0);
        assert_eq!(history.mean_peaks(), MeanPeaks { cpu: 1.0, memory: 2.0 });
    }

    #[test]
    fn gaps_of_zero_do_not_count() {
        let mut history = History::default();
        [3, 3, 5, 5, 9].into_iter().for_each(|second| history.arrived(second));
        assert_eq!((history.mean_gap(), history.rate(10), history.rate(0)), (3.0, 0.5, 0.0));
    }
}
