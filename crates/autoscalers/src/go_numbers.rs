//! Numbers as Go on amd64 converts them, where Rust would saturate. The recorded autoscalers ran there, and
//! a proposal beyond 2^31 pods is a negative one to them.

/// `int32(value)`: cut off toward zero; what does not fit becomes the smallest number.
pub(crate) fn int32(value: f64) -> i32 {
    let cut = value.trunc();
    if cut >= f64::from(i32::MIN) && cut <= f64::from(i32::MAX) { cut as i32 } else { i32::MIN }
}

/// `int64(value)`: the same with 64 bits.
pub(crate) fn int64(value: f64) -> i64 {
    // 2^63 itself does not fit; the largest float below it does.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) { value as i64 } else { i64::MIN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_becomes_the_smallest_number() {
        assert_eq!((int32(2.9), int32(-2.9)), (2, -2));
        assert_eq!(int32(2_147_483_647.5), i32::MAX);
        for value in [2_147_483_648.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            assert_eq!(int32(value), i32::MIN, "{value}");
        }
        assert_eq!(int64(1e18), 1_000_000_000_000_000_000);
        assert_eq!((int64(1e19), int64(f64::NAN)), (i64::MIN, i64::MIN));
    }
}
