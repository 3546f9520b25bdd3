//! Logarithmic bins for the lengths of gaps: [0, 1 s), then 1.5 % wide up to four hours, and a tail.
//!
//! A timer of 60 s with a jitter of 0.2 s falls into one bin (59.4 to 60.3 s); one of an hour into a bin of
//! 54 s. Finer bins would need more gaps to learn, coarser ones would blur the timer.

/// Four hours: all longer gaps share one bin.
pub(crate) const HORIZON_SECONDS: f64 = 14_400.0;
/// Ratio between the widths of neighbouring bins.
const RATIO: f64 = 1.015;
/// Bins up to the horizon, and one for everything beyond.
pub(crate) const BINS: usize = 646;
/// The bin of gaps beyond the horizon.
pub(crate) const TAIL: usize = BINS - 1;

/// Returns the bin of a gap of this length.
pub(crate) fn bin_of(seconds: f64) -> usize {
    if seconds < 1.0 || seconds.is_nan() {
        return 0;
    }
    if seconds >= HORIZON_SECONDS {
        return TAIL;
    }
    ((seconds.ln() / RATIO.ln()) as usize + 1).min(TAIL - 1)
}

/// Lower end of a bin, seconds.
pub(crate) fn start_of(bin: usize) -> f64 {
    match bin {
        0 => 0.0,
        TAIL => HORIZON_SECONDS,
        _ => RATIO.powi(bin as i32 - 1),
    }
}

/// Widths of all bins except the tail, seconds.
pub(crate) fn widths() -> Vec<f32> {
    (0..TAIL).map(|bin| (start_of(bin + 1) - start_of(bin)) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bin_holds_its_middle_and_they_cover_the_horizon() {
        let widths = widths();
        assert!(widths.iter().all(|width| *width > 0.0), "{widths:?}");
        for (bin, width) in widths[..TAIL].iter().enumerate() {
            let middle = start_of(bin) + 0.5 * f64::from(*width);
            assert_eq!(bin_of(middle), bin, "{middle}");
        }
        let total: f64 = widths.iter().map(|width| f64::from(*width)).sum();
        assert!((total - HORIZON_SECONDS).abs() < 0.1, "{total}");
        assert_eq!((bin_of(0.0), bin_of(1e9), bin_of(f64::NAN)), (0, TAIL, 0));
    }
}
