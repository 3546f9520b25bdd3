//! From a lower to an upper number.

use serde::Serialize;

/// A closed range of a number. Written as `[low, high]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(into = "[f64; 2]")]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// The least and the largest of `values`; of none, from infinity down to minus infinity.
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let none = Self { low: f64::INFINITY, high: f64::NEG_INFINITY };
        values.fold(none, |Self { low, high }, value| Self {
            low: low.min(value),
            high: high.max(value),
        })
    }
}

impl From<Interval> for [f64; 2] {
    fn from(Interval { low, high }: Interval) -> Self {
        [low, high]
    }
}

#[test]
fn it_spans_all_values_and_is_written_as_a_pair() {
    let interval = Interval::of([3.0, 1.0, 2.5].into_iter());
    assert_eq!(interval, Interval { low: 1.0, high: 3.0 });
    assert_eq!(serde_json::to_string(&interval).unwrap(), "[1.0,3.0]");
}
