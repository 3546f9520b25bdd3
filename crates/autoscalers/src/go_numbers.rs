//! Number conversions as in Go on amd64, where Rust would saturate. The recorded autoscalers ran there, and they
//! treat a proposal beyond 2^31 pods as negative.

/// `int32(value)`: truncates toward zero; a value out of range becomes the smallest number.
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

/// `math.Pow(base, exponent)` for a base above 0: squares the mantissa for each bit of the exponent, which does not
/// always give the number nearest to the true power.
pub(crate) fn power(base: f64, exponent: u32) -> f64 {
    let (mut mantissa, mut scale) = (base, 0_i32);
    while mantissa >= 1.0 {
        (mantissa, scale) = (mantissa / 2.0, scale + 1);
    }
    while mantissa > 0.0 && mantissa < 0.5 {
        (mantissa, scale) = (mantissa * 2.0, scale - 1);
    }
    let (mut result, mut result_scale) = (1.0_f64, 0_i32);
    let mut bits = exponent;
    while bits != 0 {
        if bits & 1 == 1 {
            result *= mantissa;
            result_scale += scale;
        }
        mantissa *= mantissa;
        scale *= 2;
        if mantissa < 0.5 {
            mantissa += mantissa;
            scale -= 1;
        }
        bits >>= 1;
    }
    // Powers of two are exact, so this only changes the exponent.
    result * f64::from(result_scale).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_become_the_smallest_number() {
        assert_eq!((int32(2.9), int32(-2.9)), (2, -2));
        assert_eq!(int32(2_147_483_647.5), i32::MAX);
        for value in [2_147_483_648.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            assert_eq!(int32(value), i32::MIN, "{value}");
        }
        assert_eq!(int64(1e18), 1_000_000_000_000_000_000);
        assert_eq!((int64(1e19), int64(f64::NAN)), (i64::MIN, i64::MIN));
    }

    #[test]
    fn powers_of_bases_on_both_sides_of_one() {
        assert_eq!(power(0.5, 10), 1.0 / 1024.0);
        assert_eq!(power(0.1, 0), 1.0);
        assert!((power(0.8, 59) / 0.8_f64.powi(59) - 1.0).abs() < 1e-14);
        assert!((power(1.05, 175) / 1.05_f64.powi(175) - 1.0).abs() < 1e-13);
    }
}
