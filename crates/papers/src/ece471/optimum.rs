//! What can be achieved at best, with and without a memory of the last action.

use windfall_core::statistics;

use super::rewards::{Conduct, Design};
use super::table::faithful;
use super::{HORIZON, MOST_CONTAINERS, RATES};

const COUNTS: usize = MOST_CONTAINERS as usize + 1;

/// Moves that matter: in, hold, out. Vertical moves are holds.
const MOVES: [i32; 3] = [-1, 0, 1];

/// The exact optimum: mean over all rates of the best 200-step episode.
pub fn exact() -> f64 {
    mean(at_rate)
}

/// The optimum at one rate, by backward induction over (containers, last direction):
///
/// ```text
/// V_0 = 0        V_k(n, d) = max over m of  pay(n + m, reversal of d by m) + V_k-1(n + m, m)
/// ```
pub fn at_rate(rate: u32) -> f64 {
    let mut values = [[0.0; 3]; COUNTS];
    for _ in 0..HORIZON {
        let mut next = values;
        for (n, row) in next.iter_mut().enumerate() {
            for (last, value) in MOVES.into_iter().zip(row) {
                let best = MOVES.iter().filter_map(|m| {
                    let (after, pay) = outcome(n, last, *m, rate)?;
                    Some(pay + values[after][direction(*m)])
                });
                // An illegal move pays less than any hold and leaves everything as it is.
                *value = best.fold(f64::NEG_INFINITY, f64::max);
            }
        }
        values = next;
    }
    values[4][direction(1)]
}

/// The best policy that sees containers and rate only and always does the same in the same state.
///
/// The state then moves along one path into a rest or a circle, so all policies are tried: as far as
/// they differ on the way from four containers.
pub fn memoryless() -> f64 {
    mean(|rate| {
        let mut policy = [None; COUNTS];
        follow(&mut policy, 4, 1, HORIZON, rate)
    })
}

/// The best return from here, trying every move in states that have none yet.
fn follow(policy: &mut [Option<i32>; COUNTS], n: usize, last: i32, left: u32, rate: u32) -> f64 {
    if left == 0 {
        return 0.0;
    }
    if let Some(m) = policy[n] {
        return match outcome(n, last, m, rate) {
            Some((after, pay)) => pay + follow(policy, after, m, left - 1, rate),
            None => f64::NEG_INFINITY,
        };
    }
    let mut best = f64::NEG_INFINITY;
    for m in MOVES {
        if let Some((after, pay)) = outcome(n, last, m, rate) {
            policy[n] = Some(m);
            best = best.max(pay + follow(policy, after, m, left - 1, rate));
        }
    }
    policy[n] = None;
    best
}

fn mean(of_rate: impl Fn(u32) -> f64) -> f64 {
    statistics::mean(RATES.map(of_rate)).unwrap_or(0.0)
}

/// Containers after a move and what it pays; nothing if it is illegal.
fn outcome(n: usize, last: i32, m: i32, rate: u32) -> Option<(usize, f64)> {
    let after = n.checked_add_signed(m as isize).filter(|after| *after < COUNTS)?;
    let abandoned = after == 0;
    let conduct = Conduct { illegal: false, reversal: m * last < 0, abandoned };
    let row = faithful(u32::try_from(after).ok()?, rate);
    Some((after, Design::Authors.pay(row, conduct)))
}

fn direction(m: i32) -> usize {
    usize::try_from(m + 1).expect("moves are -1, 0 and 1")
}

#[test]
fn the_optimum_of_each_rate_is_that_of_the_reference() {
    let two = |score: f64| (score * 100.0).round() / 100.0;
    assert_eq!(
        RATES.map(|rate| two(at_rate(rate))).collect::<Vec<_>>(),
        [179.62, 179.83, 199.75, 193.27, 190.0, 200.0, 186.64, 192.67]
    );
}
