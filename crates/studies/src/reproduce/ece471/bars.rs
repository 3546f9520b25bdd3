//! What is asked of the learners, and whether it was reached.

use std::fmt;

use windfall_papers::ece471::reproduce::{REACHED, Reproduction};

/// One thing asked.
pub(super) struct Bar {
    /// What of whom.
    pub(super) what: String,
    /// What is asked for at least.
    pub(super) least: f64,
    /// What was found.
    pub(super) found: f64,
}

impl Bar {
    pub(super) fn is_met(&self) -> bool {
        self.found >= self.least
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.is_met() { "met" } else { "MISSED" };
        write!(formatter, "{}: {:.2}, asked {:.2}: {verdict}", self.what, self.found, self.least)
    }
}

/// Learner, iterations, mean return asked for.
const ASKED: [(&str, u64, f64); 5] = [
    ("ppo", 50, 187.0),
    ("ppo", 500, REACHED),
    ("dqn", 50, 186.0),
    ("q-learning", 50, 186.0),
    ("reinforce", 300, 180.0),
];

/// The bars of those learners that were trained as long as the bar says.
pub(super) fn judge(result: &Reproduction) -> Vec<Bar> {
    let mut bars = Vec::new();
    for (name, iterations, least) in ASKED {
        let row = |row: &&_| is_row(row, name, iterations);
        let Some(row) = result.algorithms.iter().find(row) else { continue };
        let what = format!("mean of {name} after {iterations}");
        bars.push(Bar { what, least, found: row.mean });
        if (name, iterations) == ("ppo", 500) {
            bars.push(Bar {
                what: format!("worst seed of {name} after {iterations}"),
                least,
                found: row.min,
            });
            // Falling back is judged where schedules rest; what comes before is in the table.
            bars.push(Bar {
                what: format!("worst evaluation of any seed of {name} in the last half"),
                least,
                found: row.worst_late,
            });
        }
    }
    bars
}

fn is_row(
    row: &windfall_papers::ece471::reproduce::AlgorithmResult,
    name: &str,
    iterations: u64,
) -> bool {
    row.name == name && row.iterations == iterations
}
