//! Parsers for strings as in Go's library: `strconv` and `time.ParseDuration`. Values of a ConfigMap are strings, and
//! Knative accepts exactly these.
//!
//! ```text
//!  bool      1 t T true True TRUE, 0 f F false False FALSE
//!  duration  signs, decimals and units h m s ms us ns in a row: 1h30m, 1.5s, 0
//! ```
//!
//! `1m30s` is 90 s; `90` is an error, because only `0` may omit the unit.

/// `strconv.ParseBool`.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "True" | "TRUE" => Some(true),
        "0" | "f" | "F" | "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// `strconv.ParseFloat` without hexadecimal floats; NaN and numbers out of range are rejected.
pub(super) fn float(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    let is_written_so = text.to_ascii_lowercase().contains("inf");
    (!value.is_nan() && (value.is_finite() || is_written_so)).then_some(value)
}

/// `strconv.ParseInt` in base 10 with 32 bits.
pub(super) fn int32(text: &str) -> Option<i32> {
    text.parse().ok()
}

/// `time.ParseDuration`, in nanoseconds.
pub(super) fn duration_nanos(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total = 0_i64;
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        total = total.checked_add(part_nanos(number, unit_nanos(unit)?)?)?;
        rest = tail;
        if rest.is_empty() {
            return Some(sign * total);
        }
    }
}

fn unit_nanos(unit: &str) -> Option<i64> {
    Some(match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// A decimal number of a unit, truncated to nanoseconds.
fn part_nanos(number: &str, unit: i64) -> Option<i64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + part.len() == 0 || part.contains('.') {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // More digits than these are far below a nanosecond.
    let part = &part[..part.len().min(17)];
    let fraction: f64 = if part.is_empty() { 0.0 } else { format!("0.{part}").parse().ok()? };
    whole.checked_mul(unit)?.checked_add((fraction * unit as f64) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_as_in_go() {
        const SECOND: i64 = 1_000_000_000;
        let cases = [
            ("0", Some(0)),
            ("60s", Some(60 * SECOND)),
            ("1m30s", Some(90 * SECOND)),
            ("1.5s", Some(SECOND + SECOND / 2)),
            (".5m", Some(30 * SECOND)),
            ("-3ms", Some(-3_000_000)),
            ("1h0m0s", Some(3600 * SECOND)),
            ("90", None),
            ("", None),
            ("s", None),
            ("1.2.3s", None),
            ("1d", None),
            ("9999999h", None),
            ("1s ", None),
        ];
        for (text, wanted) in cases {
            assert_eq!(duration_nanos(text), wanted, "{text:?}");
        }
    }

    #[test]
    fn booleans_and_numbers_are_parsed_as_in_go() {
        assert_eq!((boolean("T"), boolean("yes"), boolean("tRUE")), (Some(true), None, None));
        assert_eq!((int32("+7"), int32("7.0"), int32("2147483648")), (Some(7), None, None));
        assert_eq!((float("1e3"), float(" 1"), float("1e999")), (Some(1000.0), None, None));
        assert_eq!((float("+Inf"), float("nan")), (Some(f64::INFINITY), None));
    }
}
