//! Classification by the k nearest neighbours, by brute force.

use rand::Rng;
use serde_json::{Value, json};
use windfall_core::{Allocation, Duration, Seed};

use crate::applications::splitting::split;
use crate::builtin::{Builtin, Invocation};
use crate::failure::Failure;
use crate::input::Input;

pub(crate) const NEAREST_NEIGHBOURS: Builtin = Builtin {
    name: "nearest-neighbours",
    published_as: Some("knn"),
    summary: "Classifies 100 points by their nearest neighbours among many.",
    reservation: Allocation::new(2000, 256),
    timeout: Duration::from_secs(60),
    // 32 coordinates of 4 bytes: 200,000 points need 26 MB.
    input: Some(Input { parameter: "points", unit: "points", default: 200_000, most: 4_000_000 }),
    threads: 6,
    uses_store: true,
    body: run,
};

const COORDINATES: usize = 32;
const CLASSES: usize = 10;
const QUERIES: usize = 100;
const NEIGHBOURS: usize = 5;

type Point = [f32; COORDINATES];

fn run(call: &Invocation) -> Result<Value, Failure> {
    let mut generator = Seed::new(7).stream("nearest-neighbours").generator();
    let mut point = |class: usize| -> Point {
        // Classes lie 1 apart in every coordinate, their points within 0.45 of the middle.
        std::array::from_fn(|_| {
            class as f32 + (generator.next_u32() as f32 / u32::MAX as f32 - 0.5) * 0.9
        })
    };
    let known: Vec<Point> = (0..call.size as usize).map(|index| point(index % CLASSES)).collect();
    let queries: Vec<Point> = (0..QUERIES).map(|index| point(index % CLASSES)).collect();
    let classes = split(QUERIES, call.threads, |range| {
        range.map(|query| classify(&known, &queries[query])).collect::<Vec<_>>()
    });
    let classes = classes.into_iter().flatten();
    let right = classes.enumerate().filter(|(query, class)| query % CLASSES == *class).count();
    Ok(json!({ "points": known.len(), "queries": QUERIES, "right": right }))
}

/// The commonest class among the nearest; the smaller one if two are equally common.
fn classify(known: &[Point], query: &Point) -> usize {
    let mut nearest = [(f32::INFINITY, 0); NEIGHBOURS];
    for (index, point) in known.iter().enumerate() {
        let distance = squared_distance(point, query);
        if distance < nearest[NEIGHBOURS - 1].0 {
            let place = nearest.partition_point(|(other, _)| *other <= distance);
            nearest[place..].rotate_right(1);
            nearest[place] = (distance, index % CLASSES);
        }
    }
    let mut votes = [0; CLASSES];
    for (_, class) in nearest.iter().filter(|(distance, _)| distance.is_finite()) {
        votes[*class] += 1;
    }
    let most = votes.iter().copied().max().unwrap_or(0);
    votes.iter().position(|count| *count == most).unwrap_or(0)
}

fn squared_distance(a: &Point, b: &Point) -> f32 {
    let mut lanes = [0.0; 8];
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        for lane in 0..8 {
            lanes[lane] += (a[lane] - b[lane]) * (a[lane] - b[lane]);
        }
    }
    lanes.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_that_are_apart_are_distinguished() {
        let answer = NEAREST_NEIGHBOURS.run(&json!({"points": 500})).unwrap();
        assert_eq!(answer, json!({"points": 500, "queries": 100, "right": 100}));
    }

    #[test]
    fn distances_are_squared_sums() {
        let mut a = [0.0; COORDINATES];
        let b = [0.0; COORDINATES];
        (a[0], a[31]) = (3.0, 4.0);
        assert_eq!(squared_distance(&a, &b), 25.0);
    }
}
