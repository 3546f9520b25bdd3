//! `tanh`, `exp` and `ln` in plain arithmetic, so that loops over them become vector instructions and give
//! the same bits on every machine. The library versions are exact to half a unit in the last place and
//! cost four times a whole PPO update.
//!
//! | function | error against `f64`, at most | on |
//! | -------- | ---------------------------- | -- |
//! | [`tanh`] | 4e-7 absolute                | all numbers |
//! | [`exp`]  | 2e-7 relative                | -87 to 88; clamped outside |
//! | [`ln`]   | 2e-7 absolute plus relative  | normal positive numbers |

/// Hyperbolic tangent: a rational function of degree 13 over 6, after Eigen's.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    // Beyond this the quotient rounds to one. `clamp` keeps NaN, so a broken network shows.
    let x = x.clamp(-7.905_311, 7.905_311);
    let square = x * x;
    let mut above = -2.760_768_5e-16_f32;
    for coefficient in [
        2.000_188e-13,
        -8.604_672e-11,
        5.122_297_3e-8,
        1.485_722_4e-5,
        6.372_619e-4,
        4.893_524_6e-3,
    ] {
        above = above * square + coefficient;
    }
    let mut below = 1.198_258_4e-6_f32;
    for coefficient in [1.185_347_1e-4, 2.268_434_7e-3, 4.893_525e-3] {
        below = below * square + coefficient;
    }
    x * above / below
}

/// Exponential function: `x = n ln 2 + r`, a polynomial of degree 6 in `r`, and `n` into the exponent.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    /// Adding and subtracting 1.5 * 2^23 rounds to the nearest integer without a library call.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 88.0);
    let n = (x * std::f32::consts::LOG2_E + ROUND) - ROUND;
    // ln 2 in two parts, the first with so few digits that its product with `n` is exact.
    let r = x - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let mut sum = 1.987_569_1e-4_f32;
    for coefficient in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5, 1.0, 1.0] {
        sum = sum * r + coefficient;
    }
    #[expect(clippy::cast_possible_truncation, reason = "n lies between -126 and 127")]
    #[expect(clippy::cast_sign_loss, reason = "n + 127 is at least one")]
    let power = f32::from_bits(((n as i32 + 127) as u32) << 23);
    sum * power
}

/// Natural logarithm: `x = 2^e m` with `m` around one, and a polynomial of degree 8 in `m - 1`, after
/// Cephes'.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    // Shifting by the bits of sqrt(1/2) makes the mantissa run from sqrt(1/2) to sqrt(2).
    const HALF_ROOT: u32 = 0x3f35_04f3;
    let shifted = x.to_bits().wrapping_sub(HALF_ROOT);
    let exponent = shifted.cast_signed() >> 23;
    #[expect(clippy::cast_precision_loss, reason = "an exponent has eight bits")]
    let e = exponent as f32;
    let z = f32::from_bits((shifted & 0x007f_ffff).wrapping_add(HALF_ROOT)) - 1.0;
    let mut sum = 7.037_683_6e-2_f32;
    for coefficient in [
        -1.151_461e-1,
        1.167_699_9e-1,
        -1.242_014_1e-1,
        1.424_932_3e-1,
        -1.666_805_8e-1,
        2.000_071_5e-1,
        -2.499_999_4e-1,
        3.333_333e-1,
    ] {
        sum = sum * z + coefficient;
    }
    let square = z * z;
    // ln 2 in two parts, as in `exp`.
    sum * z * square - e * 2.121_944_4e-4 - 0.5 * square + z + e * 0.693_359_4
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points() -> impl Iterator<Item = f32> {
        (-200_000..=200_000).map(|i| i as f32 * 1e-4)
    }

    #[test]
    fn tanh_keeps_its_bound() {
        let worst = points().map(|x| (f64::from(tanh(x)) - f64::from(x).tanh()).abs());
        assert!(worst.fold(0.0, f64::max) <= 4e-7);
        assert_eq!(tanh(0.0), 0.0);
        assert_eq!(tanh(f32::MAX), tanh(9.0));
        assert!(tanh(f32::NAN).is_nan());
    }

    #[test]
    fn exp_keeps_its_bound() {
        let worst = points().chain((-86..=87).map(|x| x as f32)).map(|x| {
            let exact = f64::from(x).exp();
            (f64::from(exp(x)) - exact).abs() / exact
        });
        let worst = worst.fold(0.0, f64::max);
        assert!(worst <= 2e-7, "{worst}");
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(-1e9) < 2e-38);
    }

    #[test]
    fn ln_keeps_its_bound() {
        let points = (1..=200_000).map(|i| i as f32 * 1e-3).chain([1e-30, 1e30, f32::MIN_POSITIVE]);
        for x in points {
            let exact = f64::from(x).ln();
            let miss = (f64::from(ln(x)) - exact).abs();
            assert!(miss <= 2e-7 * (1.0 + exact.abs()), "{x}: {miss}");
        }
        assert_eq!(ln(1.0), 0.0);
    }
}
