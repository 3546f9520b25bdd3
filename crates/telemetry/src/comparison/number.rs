//! Numbers as a person would write them: three digits that matter, and a unit that keeps them short.

/// Three digits that matter: `0.0123`, `1.23`, `123`, `12.3k`, `1.23M`.
pub fn short(value: f64) -> String {
    let size = value.abs();
    match () {
        () if !value.is_finite() => "n/a".to_owned(),
        () if size == 0.0 => "0".to_owned(),
        () if size >= 999_500_000.0 => digits(value / 1e9) + "G",
        () if size >= 999_500.0 => digits(value / 1e6) + "M",
        () if size >= 9_999.5 => digits(value / 1e3) + "k",
        () => digits(value),
    }
}

/// A share in percent: `0`, `0.012`, `1.23`, `45.6`.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    match () {
        () if !value.is_finite() => "n/a".to_owned(),
        () if value == 0.0 => "0".to_owned(),
        () if value.abs() < 0.001 => "<.001".to_owned(),
        () if value.abs() < 0.1 => format!("{value:.3}"),
        () if value.abs() < 10.0 => format!("{value:.2}"),
        () => format!("{value:.1}"),
    }
}

/// `1 seed`, `2 seeds`.
pub fn plural(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.9995 => format!("{value:.2}"),
        size if size >= 0.001 => format!("{value:.3}"),
        _ => format!("{value:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_matter() {
        let cases = [
            (0.0, "0"),
            (0.01234, "0.012"),
            (0.99, "0.990"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (1234.0, "1234"),
            (12_345.0, "12.3k"),
            (1_234_567.0, "1.23M"),
            (2.5e9, "2.50G"),
            (0.000_012, "1.2e-5"),
            (f64::NAN, "n/a"),
            (-3.0, "-3.00"),
        ];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn shares_are_percent() {
        assert_eq!(percent(0.0), "0");
        assert_eq!(percent(0.1234), "12.3");
        assert_eq!(percent(0.01234), "1.23");
        assert_eq!(percent(0.000_000_1), "<.001");
    }
}
