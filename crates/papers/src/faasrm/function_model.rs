//! How the paper's simulator thinks a function behaves: eight levels of each resource, and a run time that
//! falls in a straight line until the size is "ideal".
//!
//! ```text
//!   duration(c, m) = int( min + 2/3 (max - min) fc + 1/3 (max - min) fm ) + 1     seconds
//!   fc = (ideal_cpu - c) / (ideal_cpu - 1)      below the ideal, else 0
//!   fm = (ideal_mb - 64 m) / (ideal_mb - 64)    below the ideal, else 0
//! ```
//!
//! A worked function: run times from 1 to 10 s, ideal at 4 cores and 256 MB, the user reserves 2 and 2.
//! `fc` = 2/3, `fm` = 128/192 = 2/3, so the baseline is int(1 + 9 x 2/3) + 1 = 8 s, and 2 s at its ideal.

use windfall_core::Trigger;
use windfall_trace::freyr_sample::SampledFunction;

/// Highest level of each resource.
pub const TOP: u32 = 8;
/// MB in a memory level.
pub const LEVEL_MB: u32 = 64;

/// Sizes in levels: cores, and multiples of 64 MB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    /// Cores.
    pub cpu: u32,
    /// Memory levels.
    pub memory: u32,
}

impl Levels {
    /// The same level of both.
    pub const fn both(level: u32) -> Self {
        Self { cpu: level, memory: level }
    }
}

/// A function in the paper's simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionModel {
    /// What the user reserves.
    pub user: Levels,
    /// Cores beyond which more do not help.
    pub ideal_cpu: u32,
    /// MB beyond which more does not help.
    pub ideal_mb: u32,
    /// Run time at the ideal, less one second.
    pub shortest: u32,
    /// Run time at one level of each, less one second.
    pub longest: u32,
    /// Ticks before the run begins, not part of any measure.
    pub cold_start: u32,
    /// A run is cut off here.
    pub timeout: u32,
}

impl FunctionModel {
    /// The authors' reading of a row. With `capped` the ideal memory is at most the largest size there is.
    pub fn new(function: &SampledFunction, ideal_mb: f64, capped: bool) -> Self {
        let level = |mb: f64| ((mb / f64::from(LEVEL_MB)) as u32).clamp(1, TOP);
        let seconds = |ms: f64| (ms / 1000.0) as u32 + 1;
        let most = if capped { TOP * LEVEL_MB } else { u32::MAX };
        Self {
            user: Levels::both(level(function.allocated_mb)),
            ideal_cpu: level(ideal_mb),
            ideal_mb: (ideal_mb as u32).clamp(1, most),
            shortest: seconds(function.shortest_ms),
            longest: seconds(function.longest_ms),
            cold_start: seconds(function.minimum_ms),
            timeout: if function.trigger == Trigger::Http { 230 } else { 600 },
        }
    }

    /// Seconds that a call runs at this size, never beyond the timeout.
    pub fn duration(&self, size: Levels) -> u32 {
        let spread = f64::from(self.longest) - f64::from(self.shortest);
        let cpu = if size.cpu >= self.ideal_cpu {
            0.0
        } else {
            f64::from(self.ideal_cpu - size.cpu) / f64::from(self.ideal_cpu - 1)
        };
        let mb = size.memory * LEVEL_MB;
        let memory = if mb >= self.ideal_mb {
            0.0
        } else {
            f64::from(self.ideal_mb - mb) / (f64::from(self.ideal_mb) - f64::from(LEVEL_MB))
        };
        let run = f64::from(self.shortest) + spread * 2.0 / 3.0 * cpu + spread / 3.0 * memory;
        (run as u32 + 1).min(self.timeout)
    }

    /// Seconds at the user's size.
    pub fn baseline(&self) -> u32 {
        self.duration(self.user)
    }

    /// The smallest size at which it runs fastest.
    pub fn ideal(&self) -> Levels {
        Levels { cpu: self.ideal_cpu, memory: self.ideal_mb.div_ceil(LEVEL_MB).min(TOP) }
    }

    /// What a call of this size is seen to use at most. Memory counts in begun levels: 100 MB are two.
    pub fn peak(&self, size: Levels) -> Levels {
        Levels {
            cpu: size.cpu.min(self.ideal_cpu),
            memory: size.memory.min(self.ideal_mb / LEVEL_MB + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKED: FunctionModel = FunctionModel {
        user: Levels::both(2),
        ideal_cpu: 4,
        ideal_mb: 256,
        shortest: 1,
        longest: 10,
        cold_start: 1,
        timeout: 600,
    };

    #[test]
    fn the_worked_function() {
        assert_eq!(WORKED.baseline(), 8);
        assert_eq!(WORKED.duration(Levels::both(1)), 11);
        assert_eq!(WORKED.duration(Levels::both(4)), 2);
        assert_eq!(WORKED.duration(WORKED.ideal()), 2);
        // CPU alone takes away two thirds of the spread: int(1 + 9 x 1/3 x 2/3) + 1 = 4.
        assert_eq!(WORKED.duration(Levels { cpu: 4, memory: 2 }), 4);
    }

    #[test]
    fn a_peak_is_censored_by_the_size() {
        assert_eq!(WORKED.peak(Levels::both(2)), Levels::both(2));
        assert_eq!(WORKED.peak(Levels::both(8)), Levels { cpu: 4, memory: 5 });
        let small = FunctionModel { ideal_mb: 100, ..WORKED };
        assert_eq!(small.peak(Levels::both(8)).memory, 2);
    }

    #[test]
    fn a_run_ends_at_its_timeout() {
        let slow = FunctionModel { longest: 1000, timeout: 230, ..WORKED };
        assert_eq!(slow.duration(Levels::both(1)), 230);
    }
}
