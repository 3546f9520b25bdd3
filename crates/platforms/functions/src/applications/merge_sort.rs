//! Merge sort of pseudo-random numbers: every thread sorts a part, then parts are merged two by two.

use rand::Rng;
use serde_json::{Value, json};
use windfall_core::{Allocation, Duration, Seed};

use crate::applications::splitting::split;
use crate::builtin::{Builtin, Invocation};
use crate::failure::Failure;
use crate::input::Input;

pub(crate) const MERGE_SORT: Builtin = Builtin {
    name: "merge-sort",
    published_as: Some("ms"),
    summary: "Merge sort of numbers; memory grows with them.",
    reservation: Allocation::new(1000, 128),
    timeout: Duration::from_secs(60),
    // Up to seven copies of 8 bytes each while parts are merged: a million numbers need 56 MB.
    input: Some(Input {
        parameter: "thousand_numbers",
        unit: "thousand numbers",
        default: 1_000,
        most: 1_000_000,
    }),
    threads: 6,
    uses_store: false,
    body: run,
};

fn run(call: &Invocation) -> Result<Value, Failure> {
    let mut generator = Seed::new(u64::from(call.size)).stream("merge-sort").generator();
    let numbers: Vec<u64> = (0..call.size as usize * 1000).map(|_| generator.next_u64()).collect();
    let sorted = sort_in_parts(&numbers, call.threads);
    let middle = sorted[sorted.len() / 2];
    Ok(json!({
        "numbers": sorted.len(),
        "sorted": sorted.is_sorted(),
        "smallest": sorted[0],
        "median": middle,
        "largest": sorted[sorted.len() - 1],
    }))
}

fn sort_in_parts(numbers: &[u64], threads: usize) -> Vec<u64> {
    let mut parts = split(numbers.len(), threads, |range| merge_sort(&numbers[range]));
    while parts.len() > 1 {
        let pairs = parts.len().div_ceil(2);
        let merged = split(pairs, pairs.min(threads), |range| {
            let pair = |index: usize| {
                let right = parts.get(2 * index + 1).map_or(&[][..], Vec::as_slice);
                merge(&parts[2 * index], right)
            };
            range.map(pair).collect::<Vec<_>>()
        });
        parts = merged.into_iter().flatten().collect();
    }
    parts.pop().unwrap_or_default()
}

/// Bottom up, with one buffer: runs of 32 by insertion, then of 64, 128 and so on.
fn merge_sort(numbers: &[u64]) -> Vec<u64> {
    const RUN: usize = 32;
    let mut sorted = numbers.to_vec();
    for run in sorted.chunks_mut(RUN) {
        insertion_sort(run);
    }
    let mut buffer = vec![0; sorted.len()];
    let mut width = RUN;
    while width < sorted.len() {
        for (from, to) in sorted.chunks(2 * width).zip(buffer.chunks_mut(2 * width)) {
            let (left, right) = from.split_at(width.min(from.len()));
            merge_into(left, right, to);
        }
        std::mem::swap(&mut sorted, &mut buffer);
        width *= 2;
    }
    sorted
}

fn insertion_sort(run: &mut [u64]) {
    for end in 1..run.len() {
        let mut place = end;
        while place > 0 && run[place - 1] > run[place] {
            run.swap(place - 1, place);
            place -= 1;
        }
    }
}

fn merge(left: &[u64], right: &[u64]) -> Vec<u64> {
    let mut merged = vec![0; left.len() + right.len()];
    merge_into(left, right, &mut merged);
    merged
}

fn merge_into<'a>(mut left: &'a [u64], mut right: &'a [u64], merged: &mut [u64]) {
    for place in merged {
        let takes_left = match (left.first(), right.first()) {
            (Some(a), Some(b)) => a <= b,
            (left, _) => left.is_some(),
        };
        let side = if takes_left { &mut left } else { &mut right };
        *place = side[0];
        *side = &side[1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sorts_as_the_standard_library_does() {
        let mut generator = Seed::new(1).generator();
        for length in [0, 1, 2, 31, 32, 33, 100, 1000, 4097] {
            let numbers: Vec<u64> = (0..length).map(|_| generator.next_u64() % 1000).collect();
            let mut expected = numbers.clone();
            expected.sort_unstable();
            for threads in [1, 2, 3, 8] {
                assert_eq!(sort_in_parts(&numbers, threads), expected, "{length} {threads}");
            }
        }
    }

    #[test]
    fn the_answer_tells_what_was_sorted() {
        let answer = MERGE_SORT.run(&json!({"thousand_numbers": 3})).unwrap();
        assert_eq!((&answer["numbers"], &answer["sorted"]), (&json!(3000), &json!(true)));
    }
}
