//! The lower envelope of many points, and what it says between them.

/// A point of a trade: what is paid, and how bad it still is. Less is better in both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trade {
    /// Memory, instances or cores over time.
    pub paid: f64,
    /// Share of slow calls, or a slowdown.
    pub bad: f64,
}

/// The points that no other beats in both, from cheap to dear, with straight lines between their logarithms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Envelope {
    /// Paid rises, bad falls.
    pub points: Vec<Trade>,
}

impl Envelope {
    /// The envelope of `points`. Where nothing is bad at all, `least_bad` stands for it, so that there is
    /// a logarithm.
    pub fn of(points: impl IntoIterator<Item = Trade>, least_bad: f64) -> Self {
        let mut points: Vec<Trade> = points
            .into_iter()
            .map(|point| Trade { bad: point.bad.max(least_bad), ..point })
            .filter(|point| point.paid > 0.0 && point.paid.is_finite() && point.bad.is_finite())
            .collect();
        points.sort_by(|a, b| a.paid.total_cmp(&b.paid).then(a.bad.total_cmp(&b.bad)));
        let mut best = f64::INFINITY;
        points.retain(|point| {
            let is_better = point.bad < best;
            best = best.min(point.bad);
            is_better
        });
        Self { points }
    }

    /// What must be paid to be as good as `bad`; nothing if no point is.
    pub fn paid_at(&self, bad: f64) -> Option<f64> {
        let after = self.points.iter().position(|point| point.bad <= bad)?;
        let Some(before) = after.checked_sub(1) else { return Some(self.points[0].paid) };
        let (a, b) = (self.points[before], self.points[after]);
        Some(between(bad, At { x: a.bad, y: a.paid }, At { x: b.bad, y: b.paid }))
    }

    /// How bad it is at least when so much is paid; nothing if every point is dearer.
    pub fn bad_at(&self, paid: f64) -> Option<f64> {
        let before = self.points.iter().rposition(|point| point.paid <= paid)?;
        let a = self.points[before];
        let Some(&b) = self.points.get(before + 1) else { return Some(a.bad) };
        Some(between(paid, At { x: a.paid, y: a.bad }, At { x: b.paid, y: b.bad }))
    }
}

/// A point of a curve.
struct At {
    x: f64,
    y: f64,
}

/// The value at `x` on the straight line between two points in logarithms.
fn between(x: f64, from: At, to: At) -> f64 {
    if from.x == to.x {
        return to.y;
    }
    let share = (x.ln() - from.x.ln()) / (to.x.ln() - from.x.ln());
    (from.y.ln() + share * (to.y.ln() - from.y.ln())).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope() -> Envelope {
        let trade = |paid, bad| Trade { paid, bad };
        Envelope::of([trade(400.0, 0.01), trade(100.0, 0.1), trade(300.0, 0.2)], 1e-6)
    }

    #[test]
    fn what_another_beats_is_not_on_it() {
        assert_eq!(envelope().points.len(), 2);
    }

    #[test]
    fn between_two_points_logarithms_are_straight() {
        // Half way from 0.1 to 0.01 in logarithms is 0.0316; half way from 100 to 400 is 200.
        let bad = 0.1f64 * 0.1f64.sqrt();
        assert!((envelope().paid_at(bad).unwrap() - 200.0).abs() < 1e-9);
        assert!((envelope().bad_at(200.0).unwrap() - bad).abs() < 1e-9);
    }

    #[test]
    fn beyond_its_ends_it_says_what_is_known() {
        assert_eq!(envelope().paid_at(0.5), Some(100.0), "worse than the cheapest costs no less");
        assert_eq!(envelope().paid_at(0.001), None, "nobody is as good as that");
        assert_eq!(envelope().bad_at(50.0), None);
        assert_eq!(envelope().bad_at(1e6), Some(0.01));
    }
}
