//! What a stage of a chain needs: its service law, its tail, and the fewest cores for an objective.

use windfall_gym::moves::CPU_STEP;
use windfall_policy::erlang_c;

/// A stage's service law, known or estimated: `run(c) = fixed + work / min(c, parallelism)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StageLaw {
    /// Core-seconds of a call on average.
    pub(super) work: f64,
    /// Seconds a call takes whatever its CPU.
    pub(super) fixed: f64,
    /// Deviation of the logarithm of the work.
    pub(super) spread: f64,
    /// Cores a call can use.
    pub(super) parallelism: f64,
}

/// Instances and their CPU in millicores.
pub(super) type Staff = (u32, u32);

/// As much as a stage can have.
pub(super) const MOST: Staff = (10, 8 * CPU_STEP);

impl StageLaw {
    /// The 99th percentile with `count` instances of `cores` at `rate`; endless if they are overrun.
    pub(super) fn p99(&self, count: u32, cores: f64, rate: f64) -> f64 {
        let cores = cores.min(self.parallelism);
        let mean = self.fixed + self.work / cores;
        let load = rate * mean;
        if load >= f64::from(count) {
            return f64::INFINITY;
        }
        let late = erlang_c(count, load);
        let wait =
            if late > 0.01 { mean / (f64::from(count) - load) * (late / 0.01).ln() } else { 0.0 };
        // The spread is one of work around its mean.
        let tail = (2.33 * self.spread - 0.5 * self.spread * self.spread).exp();
        self.fixed + self.work * tail / cores + wait
    }

    /// The fewest cores that keep the 99th percentile at or below `objective` seconds.
    pub(super) fn staff(&self, objective: f64, rate: f64) -> Option<Staff> {
        let mut best: Option<Staff> = None;
        for step in 2..=MOST.1 / CPU_STEP {
            let cpu = step * CPU_STEP;
            let fits = |count: &u32| self.p99(*count, f64::from(cpu) * 1e-3, rate) <= objective;
            if let Some(count) = (1..=MOST.0).find(fits)
                && best.is_none_or(|staff| count * cpu < cores(staff))
            {
                best = Some((count, cpu));
            }
        }
        best
    }
}

fn cores((count, cpu): Staff) -> u32 {
    count * cpu
}

/// Parts of the objective are multiples of one in so many.
const PARTS: usize = 40;

/// Where no split holds the objective it is stretched, so that what there is goes where it is needed.
const STRETCHES: [f64; 6] = [1.0, 1.25, 1.6, 2.0, 3.0, 6.0];

/// Instances and CPU of every stage at its rate: the split of `objective` with the fewest cores together.
pub(super) fn best_split(laws: &[StageLaw; 3], rates: [f64; 3], objective: f64) -> [Staff; 3] {
    let stretched = |stretch: &f64| cheapest(laws, rates, objective * stretch);
    STRETCHES.iter().find_map(stretched).unwrap_or([MOST; 3])
}

fn cheapest(laws: &[StageLaw; 3], rates: [f64; 3], objective: f64) -> Option<[Staff; 3]> {
    let part = |parts: usize| objective * parts as f64 / PARTS as f64;
    let tables: [Vec<Option<Staff>>; 3] = std::array::from_fn(|stage| {
        (0..=PARTS).map(|parts| laws[stage].staff(part(parts), rates[stage])).collect()
    });
    let mut best: Option<(u32, [Staff; 3])> = None;
    for first in 1..PARTS - 1 {
        for second in 1..PARTS - first {
            let third = PARTS - first - second;
            if let (Some(a), Some(b), Some(c)) =
                (tables[0][first], tables[1][second], tables[2][third])
            {
                let total = cores(a) + cores(b) + cores(c);
                if best.is_none_or(|(least, _)| total < least) {
                    best = Some((total, [a, b, c]));
                }
            }
        }
    }
    best.map(|(_, staffs)| staffs)
}

/// The same with a third of the objective for everyone.
pub(super) fn equal_split(laws: &[StageLaw; 3], rates: [f64; 3], objective: f64) -> [Staff; 3] {
    std::array::from_fn(|stage| {
        let third = |stretch: &f64| laws[stage].staff(stretch * objective / 3.0, rates[stage]);
        STRETCHES.iter().find_map(third).unwrap_or(MOST)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGE: StageLaw = StageLaw { work: 0.6, fixed: 0.15, spread: 0.2, parallelism: 1.0 };

    #[test]
    fn a_looser_objective_never_takes_more_cores() {
        let held = |objective| STAGE.staff(objective, 2.0).map(cores);
        assert_eq!(held(0.5), None);
        let (tight, loose) = (held(1.2).unwrap(), held(3.0).unwrap());
        assert!(loose < tight, "{loose} {tight}");
        // Two calls a second of 0.6 core-seconds keep 1.2 cores busy whatever the objective.
        assert!(loose > 1200);
    }

    #[test]
    fn the_best_split_is_no_worse_than_equal_parts() {
        let short = StageLaw { work: 0.06, fixed: 0.0, spread: 0.3, parallelism: 1.0 };
        let laws = [short, STAGE, STAGE];
        let held = |staffs: [Staff; 3]| -> u32 { staffs.into_iter().map(cores).sum() };
        let best = held(best_split(&laws, [2.0; 3], 4.0));
        let equal = held(equal_split(&laws, [2.0; 3], 4.0));
        assert!(best <= equal, "{best} {equal}");
    }
}
