//! Encodes a moving picture as the common formats do: the difference to the frame before, in blocks of 8 x 8, as
//! cosines, rounded, the rest compressed without loss. One thread, like the published application.

use std::f32::consts::PI;
use std::io::Write;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::{Value, json};
use windfall_core::{Allocation, Duration};

use crate::applications::waiting::fetch;
use crate::builtin::{Builtin, Invocation};
use crate::failure::Failure;
use crate::input::Input;

pub(crate) const VIDEO_ENCODE: Builtin = Builtin {
    name: "video-encode",
    published_as: Some("vp"),
    summary: "Fetches frames in pieces and encodes them; frames stay in memory.",
    reservation: Allocation::new(2000, 384),
    timeout: Duration::from_secs(60),
    // 320 x 184 bytes a frame, four copies at the end: 200 frames need 48 MB.
    input: Some(Input { parameter: "frames", unit: "frames", default: 200, most: 20_000 }),
    threads: 0,
    uses_store: true,
    body: run,
};

const WIDTH: usize = 320;
const HEIGHT: usize = 184;
const SIDE: usize = 8;
const AREA: usize = SIDE * SIDE;
/// Steps of the rounded cosines: 8 keeps about 38 dB.
const STEP: f32 = 8.0;
/// A second of film is fetched together.
const PIECE: usize = 30;

type Block = [f32; AREA];

fn run(call: &Invocation) -> Result<Value, Failure> {
    let frames = call.size as usize;
    let mut source: Vec<Vec<u8>> = Vec::with_capacity(frames);
    let mut decoded: Vec<Vec<u8>> = Vec::with_capacity(frames);
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    for number in 0..frames {
        if number % PIECE == 0 {
            fetch(WIDTH * HEIGHT);
        }
        source.push(frame(number));
        let (codes, result) = encode(&source[number], decoded.last().map(Vec::as_slice));
        encoder.write_all(&codes).map_err(|why| Failure::new(format!("compressing: {why}")))?;
        decoded.push(result);
    }
    let file = encoder.finish().map_err(|why| Failure::new(format!("compressing: {why}")))?;
    let quality = signal_to_noise(&source.concat(), &decoded.concat());
    Ok(json!({
        "frames": frames,
        "bytes": file.len(),
        "signal_to_noise_db": (quality * 100.0).round() / 100.0,
        "digest": crc32fast::hash(&file),
    }))
}

/// A disc that moves over a slowly changing background.
fn frame(number: usize) -> Vec<u8> {
    let (centre_x, centre_y) = (20 + number * 3 % (WIDTH - 40), 20 + number * 2 % (HEIGHT - 40));
    let mut samples = Vec::with_capacity(WIDTH * HEIGHT);
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            let (right, down) = (x.abs_diff(centre_x), y.abs_diff(centre_y));
            let is_inside = right * right + down * down < 18 * 18;
            let background = (x / 2 + y / 2 + number / 2) % 128 + ((x * 7) ^ (y * 13)) % 8;
            samples.push(if is_inside { 230 } else { background as u8 });
        }
    }
    samples
}

/// Codes of the differences to `before`, and what a player would show.
fn encode(source: &[u8], before: Option<&[u8]>) -> (Vec<u8>, Vec<u8>) {
    let mut codes = Vec::with_capacity(source.len());
    let mut result = vec![0; source.len()];
    for top in (0..HEIGHT).step_by(SIDE) {
        for left in (0..WIDTH).step_by(SIDE) {
            let place = |at: usize| (top + at / SIDE) * WIDTH + left + at % SIDE;
            let old = |at: usize| before.map_or(128.0, |before| f32::from(before[place(at)]));
            let difference: Block =
                std::array::from_fn(|at| f32::from(source[place(at)]) - old(at));
            let rounded = cosines(&difference).map(|value| (value / STEP).round());
            codes.extend(rounded.map(|value| value.clamp(-127.0, 127.0) as i8 as u8));
            let restored = samples(&rounded.map(|value| value.clamp(-127.0, 127.0) * STEP));
            for (at, value) in restored.iter().enumerate() {
                result[place(at)] = (old(at) + value).round().clamp(0.0, 255.0) as u8;
            }
        }
    }
    (codes, result)
}

/// `WAVES[k][n]`: the n-th sample of the k-th cosine, scaled so that the matrix is orthogonal.
static WAVES: LazyLock<[[f32; SIDE]; SIDE]> = LazyLock::new(|| {
    std::array::from_fn(|wave| {
        let scale = if wave == 0 { (1.0 / SIDE as f32).sqrt() } else { (2.0 / SIDE as f32).sqrt() };
        std::array::from_fn(|sample| {
            scale * (PI / SIDE as f32 * (sample as f32 + 0.5) * wave as f32).cos()
        })
    })
});

/// The discrete cosine transform: rows, then columns.
fn cosines(block: &Block) -> Block {
    let waves = &*WAVES;
    let mut rows = [0.0; AREA];
    for (at, sum) in rows.iter_mut().enumerate() {
        let row = &block[at / SIDE * SIDE..][..SIDE];
        *sum = row.iter().zip(&waves[at % SIDE]).map(|(sample, wave)| sample * wave).sum();
    }
    std::array::from_fn(|at| {
        (0..SIDE).map(|n| rows[n * SIDE + at % SIDE] * waves[at / SIDE][n]).sum()
    })
}

/// Its inverse.
fn samples(block: &Block) -> Block {
    let waves = &*WAVES;
    let mut columns = [0.0; AREA];
    for (at, sum) in columns.iter_mut().enumerate() {
        *sum = (0..SIDE).map(|k| block[k * SIDE + at % SIDE] * waves[k][at / SIDE]).sum();
    }
    std::array::from_fn(|at| {
        let row = &columns[at / SIDE * SIDE..][..SIDE];
        row.iter().zip(waves).map(|(value, wave)| value * wave[at % SIDE]).sum()
    })
}

/// Peak signal over mean squared error, in decibels.
fn signal_to_noise(source: &[u8], result: &[u8]) -> f64 {
    let squares = source.iter().zip(result).map(|(a, b)| f64::from(a.abs_diff(*b)).powi(2));
    let error: f64 = squares.sum::<f64>() / source.len() as f64;
    10.0 * (255.0 * 255.0 / error.max(1e-9)).log10()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_block_has_one_cosine() {
        let block = cosines(&[10.0; AREA]);
        assert!((block[0] - 80.0).abs() < 1e-4, "{}", block[0]);
        assert!(block[1..].iter().all(|value| value.abs() < 1e-4));
    }

    #[test]
    fn the_transform_can_be_undone() {
        let block: Block = std::array::from_fn(|at| (at * 37 % 64) as f32 - 30.0);
        let again = samples(&cosines(&block));
        assert!(block.iter().zip(again).all(|(a, b)| (a - b).abs() < 1e-3));
    }

    #[test]
    fn film_is_smaller_than_its_frames_and_looks_the_same() {
        let answer = VIDEO_ENCODE.run(&json!({"frames": 8})).unwrap();
        let bytes = answer["bytes"].as_u64().unwrap() as usize;
        assert!(bytes * 4 < 8 * WIDTH * HEIGHT, "{answer}");
        assert!(answer["signal_to_noise_db"].as_f64().unwrap() > 35.0, "{answer}");
    }
}
