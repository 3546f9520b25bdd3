//! What an agent observes of the others: the virtual agent's state.
//!
//! The four variants have the widths of the constants that the authors left in their code; what the four
//! global quantities are is our reading (two averaged, two added up). A fifth pools the set of the others
//! in more ways than the mean: where one neighbour is huge and nine are idle, means hide it.
//!
//! | variant | numbers |
//! | --- | --- |
//! | `global` | mean CPU utilisation, mean SLO preservation, CPU held of the cluster, instances added on balance |
//! | `global-variance` | the same and their variances over the others |
//! | `mean-field` | the mean of each of the seven features |
//! | `mean-field-actions` | the same, and the mean horizontal and vertical move |
//! | `set` | mean, largest and variance of each feature, and the row of whoever holds most CPU |
//!
//! Each has one more: the share of the others that were heard of (coverage), 1 when nobody is silent.

use serde::Serialize;

/// Features of an agent's own row.
pub const OWN: usize = 7;

/// Which auxiliary state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Auxiliary {
    /// Nothing: agents that know only themselves.
    None,
    /// Four aggregates.
    Global,
    /// Four aggregates and their variances.
    GlobalVariance,
    /// Means of the others' states.
    MeanField,
    /// Means of the others' states and moves.
    MeanFieldActions,
    /// Several poolings of the set of the others.
    Set,
}

impl Auxiliary {
    /// All kinds that carry information.
    pub const ALL: [Self; 5] =
        [Self::Global, Self::GlobalVariance, Self::MeanField, Self::MeanFieldActions, Self::Set];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Global => "global",
            Self::GlobalVariance => "global-variance",
            Self::MeanField => "mean-field",
            Self::MeanFieldActions => "mean-field-actions",
            Self::Set => "set",
        }
    }

    /// Numbers about the others that are of one kind with the agent's own, by their places in a row that
    /// begins with its own. A mean over eleven others varies a third as much as one agent does; brought to the same
    /// deviation, hours a little busier than those of the training are far out, and on validation hours they were.
    pub fn twins(self) -> Vec<(usize, usize)> {
        let pooled: &[usize] = match self {
            Self::None | Self::Global | Self::GlobalVariance => &[],
            Self::MeanField | Self::MeanFieldActions => &[0],
            // Means, largest ones and whoever holds most; variances are of another kind.
            Self::Set => &[0, 1, 3],
        };
        let places = |&pool: &usize| (0..OWN).map(move |own| (OWN * (1 + pool) + own, own));
        pooled.iter().flat_map(places).collect()
    }

    /// Numbers it adds to a row, coverage included.
    pub fn width(self) -> usize {
        match self {
            Self::None => 0,
            Self::Global => 5,
            Self::GlobalVariance => 9,
            Self::MeanField => OWN + 1,
            Self::MeanFieldActions => OWN + 3,
            Self::Set => 4 * OWN + 1,
        }
    }
}

/// The last report of one agent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Its row.
    pub row: [f32; OWN],
    /// Instances added by its last move.
    pub horizontal: f32,
    /// Steps of CPU and memory of its last move.
    pub vertical: f32,
    /// CPU it holds, as a share of the cluster.
    pub held: f32,
    /// Whether it counts: it is there and was heard of recently.
    pub is_live: bool,
}

/// Sums over all live agents, from which each agent's view of the others is its own share less.
#[derive(Clone, Debug, Default)]
pub struct Field {
    reports: Vec<Report>,
    live: f32,
    present: f32,
    sums: [f32; OWN + 3],
    squares: [f32; OWN + 3],
    /// Largest and second largest of each feature, and of what is held.
    largest: [(f32, f32); OWN],
    biggest: [Option<usize>; 2],
}

fn numbers(reports: &Report) -> [f32; OWN + 3] {
    let mut all = [0.0; OWN + 3];
    all[..OWN].copy_from_slice(&reports.row);
    (all[OWN], all[OWN + 1], all[OWN + 2]) = (reports.horizontal, reports.vertical, reports.held);
    all
}

impl Field {
    /// Sums the reports of up to `present` agents.
    pub fn gather(&mut self, reports: &[Report], present: usize) {
        *self = Self { reports: reports.to_vec(), present: present as f32, ..Self::default() };
        self.largest = [(f32::NEG_INFINITY, f32::NEG_INFINITY); OWN];
        for (agent, one) in reports.iter().enumerate().filter(|(_, one)| one.is_live) {
            self.live += 1.0;
            for (place, value) in numbers(one).into_iter().enumerate() {
                self.sums[place] += value;
                self.squares[place] += value * value;
            }
            for (top, value) in self.largest.iter_mut().zip(one.row) {
                if value > top.0 {
                    *top = (value, top.0);
                } else if value > top.1 {
                    top.1 = value;
                }
            }
            let holds = |other: Option<usize>| other.map_or(-1.0, |other| reports[other].held);
            if one.held > holds(self.biggest[0]) {
                self.biggest = [Some(agent), self.biggest[0]];
            } else if one.held > holds(self.biggest[1]) {
                self.biggest[1] = Some(agent);
            }
        }
    }

    /// Mean and variance of number `place` over the live agents but `me`.
    fn others(&self, me: usize, place: usize) -> (f32, f32) {
        let own = &self.reports[me];
        let (is_in, value) = (own.is_live, numbers(own)[place]);
        let share = |all: f32, mine: f32| if is_in { all - mine } else { all };
        let count = if is_in { self.live - 1.0 } else { self.live };
        if count < 1.0 {
            return (0.0, 0.0);
        }
        let mean = share(self.sums[place], value) / count;
        let square = share(self.squares[place], value * value) / count;
        (mean, (square - mean * mean).max(0.0))
    }

    /// Writes what agent `me` observes.
    pub fn write(&self, kind: Auxiliary, me: usize, out: &mut [f32]) {
        let [slo, cpu, horizontal, vertical, held] = [0, 1, OWN, OWN + 1, OWN + 2];
        if kind == Auxiliary::None {
            return;
        }
        let own_live = if self.reports[me].is_live { 1.0 } else { 0.0 };
        let count = (self.live - own_live).max(0.0);
        let of = |place| self.others(me, place);
        let mut place = 0;
        let mut put = |value: f32| {
            out[place] = value;
            place += 1;
        };
        match kind {
            Auxiliary::None => {}
            Auxiliary::Global | Auxiliary::GlobalVariance => {
                put(of(cpu).0);
                put(of(slo).0);
                put(of(held).0 * count);
                put(of(horizontal).0 * count / 10.0);
                if kind == Auxiliary::GlobalVariance {
                    [cpu, slo, held, horizontal].into_iter().for_each(|place| put(of(place).1));
                }
            }
            Auxiliary::MeanField => (0..OWN).for_each(|place| put(of(place).0)),
            Auxiliary::MeanFieldActions => {
                (0..OWN).chain([horizontal, vertical]).for_each(|place| put(of(place).0));
            }
            Auxiliary::Set => {
                (0..OWN).for_each(|place| put(of(place).0));
                (0..OWN).for_each(|place| put(self.largest_other(me, place)));
                (0..OWN).for_each(|place| put(of(place).1));
                let biggest = self.biggest.iter().flatten().find(|&&agent| agent != me);
                let row = biggest.map_or([0.0; OWN], |&agent| self.reports[agent].row);
                row.into_iter().for_each(&mut put);
            }
        }
        put(if self.present > 1.0 { count / (self.present - 1.0) } else { 1.0 });
    }

    fn largest_other(&self, me: usize, place: usize) -> f32 {
        let (first, second) = self.largest[place];
        let own = &self.reports[me];
        let top = if own.is_live && own.row[place] >= first { second } else { first };
        if top.is_finite() { top } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reports(slo: f32, cpu: f32, held: f32) -> Report {
        let mut row = [0.0; OWN];
        (row[0], row[1]) = (slo, cpu);
        Report { row, held, horizontal: 1.0, vertical: 0.0, is_live: true }
    }

    fn written(kind: Auxiliary, all: &[Report], me: usize) -> Vec<f32> {
        let mut field = Field::default();
        field.gather(all, all.len());
        let mut out = vec![f32::NAN; kind.width()];
        field.write(kind, me, &mut out);
        out
    }

    #[test]
    fn the_others_by_hand() {
        let all = [reports(1.0, 0.2, 0.1), reports(0.5, 0.4, 0.3), reports(0.7, 0.8, 0.2)];
        let global = written(Auxiliary::Global, &all, 0);
        let expected = [0.6, 0.6, 0.5, 0.2, 1.0];
        assert!(global.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{global:?}");
        let variance = written(Auxiliary::GlobalVariance, &all, 0);
        assert!((variance[4] - 0.04).abs() < 1e-6, "{variance:?}");
        let set = written(Auxiliary::Set, &all, 1);
        // Of agents 0 and 2: largest utilisation 0.8, and agent 2 holds more.
        assert!((set[OWN + 1] - 0.8).abs() < 1e-6 && (set[3 * OWN] - 0.7).abs() < 1e-6);
    }

    #[test]
    fn order_does_not_matter_and_every_number_is_written() {
        let all = [reports(1.0, 0.2, 0.1), reports(0.5, 0.4, 0.3), reports(0.7, 0.8, 0.2)];
        let swapped = [all[0], all[2], all[1]];
        for kind in Auxiliary::ALL {
            let (a, b) = (written(kind, &all, 0), written(kind, &swapped, 0));
            assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-6), "{kind:?}");
            assert!(a.iter().all(|value| value.is_finite()), "{kind:?}: {a:?}");
        }
    }

    #[test]
    fn the_silent_are_left_out_and_lower_the_coverage() {
        let mut all = [reports(1.0, 0.2, 0.1), reports(0.5, 0.4, 0.3), reports(0.7, 0.8, 0.2)];
        all[1].is_live = false;
        let field = written(Auxiliary::MeanField, &all, 0);
        assert!((field[0] - 0.7).abs() < 1e-6);
        assert_eq!(field[OWN], 0.5);
    }
}
