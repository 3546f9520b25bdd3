//! The cluster over time, in at most 480 points. When they are used up, neighbours are merged in pairs
//! and from then on each point covers twice the time; averages are weighted by it.

use serde::{Deserialize, Serialize};
use windfall_core::IntervalRecord;

/// As many as fit side by side on a wide screen and still show a spike.
pub const MOST_POINTS: usize = 480;

/// Averages of the cluster over successive stretches of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeSeries {
    points: Vec<IntervalRecord>,
    /// How many records make a point.
    #[serde(default)]
    per_point: u64,
    /// How many records the last point holds.
    #[serde(default)]
    in_last: u64,
}

impl TimeSeries {
    /// Adds the next stretch of time.
    pub fn push(&mut self, interval: &IntervalRecord) {
        if self.per_point == 0 {
            self.per_point = 1;
        }
        match self.points.last_mut() {
            Some(last) if self.in_last < self.per_point => {
                *last = merged(last, interval);
                self.in_last += 1;
            }
            _ => {
                if self.points.len() == MOST_POINTS {
                    self.points = self.points.chunks(2).map(merged_pair).collect();
                    self.per_point *= 2;
                }
                self.points.push(*interval);
                self.in_last = 1;
            }
        }
    }

    /// The stretches, in order.
    pub fn points(&self) -> &[IntervalRecord] {
        &self.points
    }
}

fn merged_pair(pair: &[IntervalRecord]) -> IntervalRecord {
    match pair {
        [a, b] => merged(a, b),
        [one] => *one,
        _ => IntervalRecord::default(),
    }
}

fn merged(a: &IntervalRecord, b: &IntervalRecord) -> IntervalRecord {
    let (first, second) =
        (a.until.since(a.from).as_secs_f64(), b.until.since(b.from).as_secs_f64());
    let weight = if first + second > 0.0 { second / (first + second) } else { 0.5 };
    let mean = |x: f64, y: f64| x + (y - x) * weight;
    IntervalRecord {
        from: a.from,
        until: b.until,
        capacity_cores: mean(a.capacity_cores, b.capacity_cores),
        demand_cores: mean(a.demand_cores, b.demand_cores),
        granted_cores: mean(a.granted_cores, b.granted_cores),
        starting_cores: mean(a.starting_cores, b.starting_cores),
        held_back_cores: mean(a.held_back_cores, b.held_back_cores),
        used_cores: mean(a.used_cores, b.used_cores),
        harvested_cores: mean(a.harvested_cores, b.harvested_cores),
        lent_cores: mean(a.lent_cores, b.lent_cores),
        granted_mib: mean(a.granted_mib, b.granted_mib),
        idle_mib: mean(a.idle_mib, b.idle_mib),
        running: mean(a.running, b.running),
        waiting: mean(a.waiting, b.waiting),
        instances: mean(a.instances, b.instances),
        arrivals: a.arrivals + b.arrivals,
        instance_changes: a.instance_changes + b.instance_changes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_core::Timestamp;

    fn stretch(at: u64, used: f64) -> IntervalRecord {
        IntervalRecord {
            from: Timestamp::from_secs(at),
            until: Timestamp::from_secs(at + 1),
            used_cores: used,
            arrivals: 1,
            ..IntervalRecord::default()
        }
    }

    #[test]
    fn few_stretches_are_kept_as_they_came() {
        let mut series = TimeSeries::default();
        (0..480).for_each(|at| series.push(&stretch(at, at as f64)));
        assert_eq!(series.points().len(), 480);
        assert_eq!(series.points()[479], stretch(479, 479.0));
    }

    #[test]
    fn many_stretches_are_merged_and_nothing_is_lost() {
        let mut series = TimeSeries::default();
        (0..100_000).for_each(|at| series.push(&stretch(at, (at % 2) as f64)));
        let points = series.points();
        assert!(points.len() <= MOST_POINTS && points.len() > MOST_POINTS / 3);
        assert_eq!(points.iter().map(|p| p.arrivals).sum::<u64>(), 100_000);
        assert!(points.windows(2).all(|pair| pair[0].until == pair[1].from));
        let whole: f64 =
            points.iter().map(|p| p.used_cores * p.until.since(p.from).as_secs_f64()).sum();
        assert!((whole - 50_000.0).abs() < 1e-6, "{whole}");
    }
}
