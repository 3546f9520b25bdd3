//! Draws a DNA sequence as a line: two steps per base, up for a 1 and down for a 0 of its code in the 2bit format
//! (T 00, C 01, A 10, G 11). The line is written out as text, point by point.

use std::fmt::Write;

use rand::Rng;
use serde_json::{Value, json};
use windfall_core::{Allocation, Duration, Seed};

use crate::applications::splitting::split;
use crate::applications::waiting::fetch;
use crate::builtin::{Builtin, Invocation};
use crate::failure::Failure;
use crate::input::Input;

pub(crate) const DNA_VISUALISATION: Builtin = Builtin {
    name: "dna-visualisation",
    published_as: Some("dv"),
    summary: "Fetches a DNA sequence and draws it as a line; memory grows with it.",
    reservation: Allocation::new(2000, 384),
    timeout: Duration::from_secs(60),
    // 1 byte per base, 16 for its two points, about 30 for their text: 1 Mbase needs 47 MB.
    input: Some(Input { parameter: "kilobases", unit: "kilobases", default: 1_000, most: 200_000 }),
    threads: 4,
    uses_store: true,
    body: run,
};

/// A point of the line: position in half bases, and height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Vertex {
    half_bases: u32,
    height: i32,
}

/// Bases whose text is written together: the text does not depend on the number of threads.
const BLOCK: usize = 10_000;

fn run(call: &Invocation) -> Result<Value, Failure> {
    let bases = call.size as usize * 1000;
    // A packed sequence has two bits per base.
    fetch(bases / 4);
    let line = walk(&sequence(bases));
    let blocks: Vec<&[Vertex]> = line.chunks(BLOCK).collect();
    let parts =
        split(blocks.len(), call.threads, |range| blocks[range].iter().map(|b| path(b)).collect());
    let parts: Vec<Vec<String>> = parts;
    let mut digest = crc32fast::Hasher::new();
    let mut bytes = 0;
    for text in parts.iter().flatten() {
        digest.update(text.as_bytes());
        bytes += text.len();
    }
    let highest = line.iter().map(|vertex| vertex.height).max();
    let lowest = line.iter().map(|vertex| vertex.height).min();
    Ok(json!({
        "bases": bases,
        "highest": highest,
        "lowest": lowest,
        "bytes": bytes,
        "digest": digest.finalize(),
    }))
}

fn sequence(bases: usize) -> Vec<u8> {
    let mut generator = Seed::new(bases as u64).stream("dna").generator();
    let mut sequence = Vec::with_capacity(bases);
    while sequence.len() < bases {
        let bits = generator.next_u64();
        let left = (bases - sequence.len()).min(32);
        sequence.extend((0..left).map(|base| b"TCAG"[(bits >> (2 * base)) as usize & 3]));
    }
    sequence
}

fn walk(sequence: &[u8]) -> Vec<Vertex> {
    let mut line = Vec::with_capacity(2 * sequence.len() + 1);
    let mut at = Vertex { half_bases: 0, height: 0 };
    line.push(at);
    for base in sequence {
        let steps = match base {
            b'A' => [1, -1],
            b'C' => [-1, 1],
            b'G' => [1, 1],
            _ => [-1, -1],
        };
        for step in steps {
            at = Vertex { half_bases: at.half_bases + 1, height: at.height + step };
            line.push(at);
        }
    }
    line
}

/// The points as text, e.g. `0.5,1 1,0 `.
fn path(line: &[Vertex]) -> String {
    let mut text = String::with_capacity(line.len() * 14);
    for Vertex { half_bases, height } in line {
        let half = if half_bases % 2 == 1 { ".5" } else { "" };
        let _ = write!(text, "{}{half},{height} ", half_bases / 2);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_bases_draw_the_known_line() {
        let heights: Vec<i32> = walk(b"ATGC").iter().map(|vertex| vertex.height).collect();
        assert_eq!(heights, [0, 1, 0, -1, -2, -1, 0, -1, 0]);
        assert_eq!(path(&walk(b"AT")), "0,0 0.5,1 1,0 1.5,-1 2,-2 ");
    }

    #[test]
    fn sequences_are_repeatable_and_have_all_bases() {
        let sequence = sequence(1001);
        assert_eq!(sequence.len(), 1001);
        assert!(b"TCAG".iter().all(|base| sequence.contains(base)));
        assert_eq!(sequence, super::sequence(1001));
    }
}
