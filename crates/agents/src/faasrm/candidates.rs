//! The 64 sizes among which the agent chooses: 8 of CPU times 8 of memory, one row of features each.
//!
//! ```text
//!   row (c, m) = 9 features of function and platform, the c-th CPU level, the m-th memory level
//!   place of the row = 8 c + m, both from 0
//! ```
//!
//! Rows differ in their last two numbers only, so 25 numbers say what 704 would.

use windfall_rl::categorical::Choice;

/// Levels of each resource.
pub const LEVELS: usize = 8;
/// Rows to choose from.
pub const ROWS: usize = LEVELS * LEVELS;
/// Features that all rows share.
pub const SHARED: usize = 9;
/// Numbers in a row.
pub const WIDTH: usize = SHARED + 2;

/// What the agent sees at one decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidates {
    /// Of function and platform.
    pub shared: [f32; SHARED],
    /// CPU of each level, as the network is to see it.
    pub cpu: [f32; LEVELS],
    /// Memory of each level, as the network is to see it.
    pub memory: [f32; LEVELS],
    /// CPU levels that may be chosen, one bit each, the lowest level in the lowest bit.
    pub cpu_allowed: u8,
    /// Memory levels that may be chosen.
    pub memory_allowed: u8,
}

impl Candidates {
    /// The place of the row with these levels, both counted from 0.
    pub const fn place(cpu: usize, memory: usize) -> usize {
        LEVELS * cpu + memory
    }

    /// The levels of the row at `place`, both counted from 0.
    pub const fn levels(place: usize) -> (usize, usize) {
        (place / LEVELS, place % LEVELS)
    }

    /// Whether the row at `place` may be chosen.
    pub const fn allows(&self, place: usize) -> bool {
        let (cpu, memory) = Self::levels(place);
        self.cpu_allowed >> cpu & 1 == 1 && self.memory_allowed >> memory & 1 == 1
    }

    /// How many rows may be chosen.
    pub const fn count_allowed(&self) -> usize {
        (self.cpu_allowed.count_ones() * self.memory_allowed.count_ones()) as usize
    }

    /// Appends the row at `place`.
    pub fn write_row(&self, place: usize, rows: &mut Vec<f32>) {
        let (cpu, memory) = Self::levels(place);
        rows.extend_from_slice(&self.shared);
        rows.extend([self.cpu[cpu], self.memory[memory]]);
    }

    /// Appends all rows that may be chosen and returns how many.
    pub fn write_allowed(&self, rows: &mut Vec<f32>) -> usize {
        let allowed = (0..ROWS).filter(|place| self.allows(*place));
        allowed.for_each(|place| self.write_row(place, rows));
        self.count_allowed()
    }

    /// Turns scores of the allowed rows, in their order, into probabilities of all 64.
    pub fn weigh(&self, scores: impl IntoIterator<Item = f32>, choice: &mut Choice) -> f32 {
        let mut logits = [0.0; ROWS];
        let mut allowed = [false; ROWS];
        let places = (0..ROWS).filter(|place| self.allows(*place));
        for (place, score) in places.zip(scores) {
            logits[place] = score;
            allowed[place] = true;
        }
        choice.set(&logits, &allowed)
    }
}

/// The levels from `least` to `most`, both counted from 0, as bits.
pub fn bits(least: usize, most: usize) -> u8 {
    (least..=most.min(LEVELS - 1)).fold(0, |bits, level| bits | 1 << level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_per_resource_is_a_rectangle_of_rows() {
        let seen = Candidates {
            cpu: std::array::from_fn(|level| level as f32 + 1.0),
            memory: std::array::from_fn(|level| level as f32 + 1.0),
            cpu_allowed: bits(2, 3),
            memory_allowed: bits(0, 7),
            ..Candidates::default()
        };
        assert_eq!(seen.count_allowed(), 16);
        let allowed: Vec<usize> = (0..ROWS).filter(|place| seen.allows(*place)).collect();
        assert_eq!(allowed, (16..32).collect::<Vec<_>>());
        let mut rows = Vec::new();
        assert_eq!(seen.write_allowed(&mut rows), 16);
        assert_eq!(rows.len(), 16 * WIDTH);
        assert_eq!(rows[WIDTH - 2..WIDTH], [3.0, 1.0]);
        assert_eq!(Candidates::levels(Candidates::place(5, 3)), (5, 3));
    }

    #[test]
    fn rows_that_may_not_be_chosen_have_no_weight() {
        let seen = Candidates {
            cpu_allowed: bits(7, 7),
            memory_allowed: bits(6, 7),
            ..Candidates::default()
        };
        let mut choice = Choice::new(ROWS);
        let entropy = seen.weigh([1.0, 1.0], &mut choice);
        assert!((entropy - std::f32::consts::LN_2).abs() < 1e-6);
        assert_eq!(choice.probabilities()[62..], [0.5, 0.5]);
        assert!(choice.probabilities()[..62].iter().all(|p| *p == 0.0));
    }
}
