//! Fetches a picture, makes thumbnails of it and writes them as PNG files.
//!
//! Pixels are averaged over the area that they cover in the thumbnail, first along rows, then along columns.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Value, json};
use windfall_core::{Allocation, Duration};

use crate::applications::splitting::split;
use crate::applications::waiting::fetch;
use crate::builtin::{Builtin, Invocation};
use crate::failure::Failure;
use crate::input::Input;

pub(crate) const IMAGE_RESIZE: Builtin = Builtin {
    name: "image-resize",
    published_as: Some("ip"),
    summary: "Fetches a picture and makes thumbnails; memory grows with its area.",
    reservation: Allocation::new(2000, 256),
    timeout: Duration::from_secs(60),
    // 3 bytes a pixel, 4:3, and four times as much while it is scaled: 2000 pixels wide needs 40 MB.
    input: Some(Input { parameter: "width", unit: "pixels", default: 2_000, most: 20_000 }),
    threads: 2,
    uses_store: true,
    body: run,
};

const WIDTHS: [usize; 3] = [1024, 512, 200];
const CHANNELS: usize = 3;

struct Picture {
    width: usize,
    height: usize,
    /// Red, green and blue of every pixel, row by row.
    samples: Vec<u8>,
}

fn run(call: &Invocation) -> Result<Value, Failure> {
    let width = call.size as usize;
    let picture = photograph(width, (width * 3 / 4).max(1), call.threads);
    // As a JPEG file it has about a tenth of the bytes.
    fetch(picture.samples.len() / 10);
    let mut thumbnails = Vec::new();
    for wanted in WIDTHS.iter().filter(|wanted| **wanted <= width) {
        let height = (picture.height * wanted / width).max(1);
        let small = resize(&picture, *wanted, height, call.threads);
        let file = png(&small).map_err(|why| Failure::new(format!("writing a PNG: {why}")))?;
        thumbnails.push(json!({
            "width": wanted,
            "height": height,
            "bytes": file.len(),
            "digest": crc32fast::hash(&small.samples),
        }));
    }
    Ok(json!({ "width": width, "height": picture.height, "thumbnails": thumbnails }))
}

/// Rings and stripes with some grain: neither flat nor noise, like a photograph.
fn photograph(width: usize, height: usize, threads: usize) -> Picture {
    let rows = split(height, threads, |range| {
        let mut samples = Vec::with_capacity(range.len() * width * CHANNELS);
        for y in range {
            for x in 0..width {
                let ring = (x * x + y * y) / 4096;
                let grain = (x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(40_503)) >> 7;
                samples.extend([
                    (ring + grain % 16) as u8,
                    (x / 3 + y / 5) as u8,
                    (ring / 3) as u8,
                ]);
            }
        }
        samples
    });
    Picture { width, height, samples: rows.concat() }
}

fn resize(picture: &Picture, width: usize, height: usize, threads: usize) -> Picture {
    let columns = coverage(picture.width, width);
    let narrow = split(picture.height, threads, |range| {
        let mut sums = Vec::with_capacity(range.len() * width * CHANNELS);
        for row in range {
            let row =
                &picture.samples[row * picture.width * CHANNELS..][..picture.width * CHANNELS];
            for Span { first, weights } in &columns {
                for channel in 0..CHANNELS {
                    let samples = row[first * CHANNELS + channel..].iter().step_by(CHANNELS);
                    sums.push(samples.zip(weights).map(|(s, weight)| f32::from(*s) * weight).sum());
                }
            }
        }
        sums
    });
    let narrow: Vec<f32> = narrow.concat();
    let rows = coverage(picture.height, height);
    let stride = width * CHANNELS;
    let samples = split(height, threads, |range| {
        let mut samples = Vec::with_capacity(range.len() * stride);
        for Span { first, weights } in &rows[range] {
            let mut sums = vec![0.5_f32; stride];
            for (row, weight) in narrow[first * stride..].chunks_exact(stride).zip(weights) {
                for (sum, sample) in sums.iter_mut().zip(row) {
                    *sum += sample * weight;
                }
            }
            // 0.5 was there from the beginning, so that cutting off rounds.
            samples.extend(sums.iter().map(|sum| *sum as u8));
        }
        samples
    });
    Picture { width, height, samples: samples.concat() }
}

/// Which pixels a smaller one covers, and how much of each.
struct Span {
    first: usize,
    weights: Vec<f32>,
}

/// 5 pixels made 2: the first covers pixels 0 and 1 whole and half of pixel 2.
fn coverage(from: usize, to: usize) -> Vec<Span> {
    let scale = from as f32 / to as f32;
    (0..to)
        .map(|place| {
            let (begin, end) = (place as f32 * scale, (place + 1) as f32 * scale);
            let first = (begin as usize).min(from - 1);
            let last = ((end.ceil() as usize).max(first + 1)).min(from);
            let overlap = |pixel: usize| {
                (end.min((pixel + 1) as f32) - begin.max(pixel as f32)).max(0.0) / scale
            };
            Span { first, weights: (first..last).map(overlap).collect() }
        })
        .collect()
}

fn png(picture: &Picture) -> std::io::Result<Vec<u8>> {
    let mut compressed = ZlibEncoder::new(Vec::new(), Compression::default());
    for row in picture.samples.chunks(picture.width * CHANNELS) {
        // Each row begins with its filter; 1 stores differences to the pixel on the left.
        let mut filtered = vec![1];
        filtered.extend(row.iter().enumerate().map(|(place, sample)| {
            let left = place.checked_sub(CHANNELS).map_or(0, |left| row[left]);
            sample.wrapping_sub(left)
        }));
        compressed.write_all(&filtered)?;
    }
    let mut header = Vec::new();
    header.extend((picture.width as u32).to_be_bytes());
    header.extend((picture.height as u32).to_be_bytes());
    // 8 bits, true colour, and the only methods there are.
    header.extend([8, 2, 0, 0, 0]);
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in [(b"IHDR", header), (b"IDAT", compressed.finish()?), (b"IEND", Vec::new())]
    {
        file.extend((data.len() as u32).to_be_bytes());
        let start = file.len();
        file.extend(kind);
        file.extend(data);
        let checksum = crc32fast::hash(&file[start..]);
        file.extend(checksum.to_be_bytes());
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_picture_stays_flat() {
        let flat = Picture { width: 37, height: 23, samples: vec![200; 37 * 23 * CHANNELS] };
        let small = resize(&flat, 10, 7, 2);
        assert_eq!(small.samples, vec![200; 10 * 7 * CHANNELS]);
    }

    #[test]
    fn halving_averages_four_pixels() {
        let grey = [10, 30, 50, 70].map(|level| [level; CHANNELS]).concat();
        let small = resize(&Picture { width: 2, height: 2, samples: grey }, 1, 1, 1);
        assert_eq!(small.samples, [40; CHANNELS]);
    }

    #[test]
    fn areas_are_shared_in_proportion() {
        let spans = coverage(5, 2);
        assert_eq!((spans[0].first, &spans[0].weights[..]), (0, &[0.4, 0.4, 0.2][..]));
        assert_eq!((spans[1].first, &spans[1].weights[..]), (2, &[0.2, 0.4, 0.4][..]));
    }

    #[test]
    fn files_have_the_structure_and_checksum_of_a_png() {
        let file = png(&photograph(4, 3, 1)).unwrap();
        assert_eq!(&file[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(&file[12..24], b"IHDR\0\0\0\x04\0\0\0\x03");
        // The end of every PNG file there is.
        assert_eq!(&file[file.len() - 8..], b"IEND\xae\x42\x60\x82");
    }
}
