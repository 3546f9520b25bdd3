//! Kubernetes quantities: `100m`, `1.5Gi`, `2e3`.
//!
//! ```text
//!  1.5Gi = 15 · 10^-1 · 2^30        0.3 = 3 · 10^-1        250m = 250 · 10^-3
//! ```
//!
//! Stored as digits and a power of ten, because upstream multiplies these to get a float: 0.3 is
//! 3 · 0.1 = 0.30000000000000004 there, which can affect a comparison with a tolerance.

use std::str::FromStr;

/// An exact decimal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    digits: i128,
    exponent: i32,
}

/// A string that is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a quantity; allowed are numbers such as 2, 0.5, 100m, 1.5Gi or 1e3")]
pub struct QuantityError {
    /// The string.
    pub text: String,
}

/// Maximum number of digits before a suffix; more than a 64-bit number has.
const DIGITS_LIMIT: usize = 24;

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        parse(text).ok_or_else(|| QuantityError { text: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<Quantity> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + part.len() == 0 || number.len() > DIGITS_LIMIT || part.contains('.') {
        return None;
    }
    let mut digits = sign * format!("{whole}{part}").parse::<i128>().ok()?;
    let mut exponent = -(part.len() as i32);
    match scale(suffix)? {
        Scale::Ten(power) => exponent += power,
        Scale::Two(power) => digits = digits.checked_mul(1_i128 << power)?,
    }
    Some(Quantity { digits, exponent })
}

enum Scale {
    Ten(i32),
    Two(u32),
}

fn scale(suffix: &str) -> Option<Scale> {
    Some(match suffix {
        "" => Scale::Ten(0),
        "n" => Scale::Ten(-9),
        "u" => Scale::Ten(-6),
        "m" => Scale::Ten(-3),
        "k" => Scale::Ten(3),
        "M" => Scale::Ten(6),
        "G" => Scale::Ten(9),
        "T" => Scale::Ten(12),
        "P" => Scale::Ten(15),
        "E" => Scale::Ten(18),
        "Ki" => Scale::Two(10),
        "Mi" => Scale::Two(20),
        "Gi" => Scale::Two(30),
        "Ti" => Scale::Two(40),
        "Pi" => Scale::Two(50),
        "Ei" => Scale::Two(60),
        _ => {
            let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            Scale::Ten(Some(power).filter(|power| (-30..=30).contains(power))?)
        }
    })
}

impl Quantity {
    /// Value in units of 10^`power`, rounded away from zero as upstream; `None` if it does not fit.
    fn scaled(self, power: i32) -> Option<i64> {
        let shift = self.exponent - power;
        let factor = 10_i128.checked_pow(shift.unsigned_abs())?;
        let value = if shift >= 0 {
            self.digits.checked_mul(factor)?
        } else {
            let left_over = (self.digits % factor).signum();
            self.digits / factor + left_over
        };
        i64::try_from(value).ok()
    }

    /// Thousandths, rounded up.
    pub fn milli(self) -> Option<i64> {
        self.scaled(-3)
    }

    /// Whole units, rounded up.
    pub fn whole(self) -> Option<i64> {
        self.scaled(0)
    }

    /// Digits times a power of ten, in floating point.
    pub fn approximate(self) -> f64 {
        let base = self.digits as f64;
        if self.exponent == 0 {
            return base;
        }
        // Parsing the power is exact, computing it may not be.
        let power: f64 = format!("1e{}", self.exponent).parse().unwrap_or(f64::NAN);
        base * power
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(text: &str) -> Quantity {
        text.parse().unwrap()
    }

    #[test]
    fn suffixes_scale_by_ten_or_two() {
        assert_eq!(quantity("1.5Gi").whole(), Some(1_610_612_736));
        assert_eq!(quantity("250m").milli(), Some(250));
        assert_eq!(quantity("2k").whole(), Some(2000));
        assert_eq!(quantity("1e3").whole(), Some(1000));
        assert_eq!(quantity("3E").whole(), Some(3_000_000_000_000_000_000));
        assert_eq!(quantity("-.5").milli(), Some(-500));
        assert_eq!(quantity("20E").whole(), None);
    }

    #[test]
    fn remainders_are_rounded_up() {
        assert_eq!(quantity("1u").milli(), Some(1));
        assert_eq!(quantity("100m").whole(), Some(1));
        assert_eq!(quantity("1.0001").milli(), Some(1001));
    }

    #[test]
    fn real_numbers_are_digits_times_a_power_of_ten() {
        assert_eq!(quantity("0.3").approximate(), 0.300_000_000_000_000_04);
        assert_eq!(quantity("300m").approximate(), 0.3);
        assert_eq!(quantity("0.05").approximate(), 0.05);
        assert_eq!(quantity("2").approximate(), 2.0);
    }

    #[test]
    fn invalid_quantities_are_named_in_the_error() {
        for text in ["", "-", ".", "1.2.3", "1 Gi", "Gi", "1x", "1e", "1e99", "\u{0663}", "1e+-2"] {
            assert!(text.parse::<Quantity>().is_err(), "{text:?}");
        }
        let error = "ten".parse::<Quantity>().unwrap_err().to_string();
        assert!(error.starts_with("\"ten\" is not a quantity"));
    }
}
