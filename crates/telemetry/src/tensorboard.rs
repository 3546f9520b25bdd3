//! Event files for TensorBoard, written without its libraries.
//!
//! A file is a sequence of records, each framed and checked:
//!
//! ```text
//! length u64 | masked crc of the length u32 | bytes | masked crc of the bytes u32      little-endian
//! masked crc = rotate right(crc32c, 15) + 0xa282ead8
//! ```
//!
//! The bytes are a protobuf message `Event { 1: wall_time double, 2: step int64, 3: file_version string,
//! 5: summary }` with `Summary { 1: repeated value { 1: tag string, 2: simple_value float } }`. The first
//! record carries the version and no summary.

use std::io::{self, Write};

/// Writes scalars over steps.
#[derive(Debug)]
pub struct EventWriter<W: Write> {
    to: W,
}

impl<W: Write> EventWriter<W> {
    /// Begins a file. `wall_time` is in seconds since 1970.
    pub fn new(to: W, wall_time: f64) -> io::Result<Self> {
        let mut writer = Self { to };
        let mut event = Vec::new();
        put_double(&mut event, 1, wall_time);
        put_bytes(&mut event, 3, b"brain.Event:2");
        writer.record(&event)?;
        Ok(writer)
    }

    /// Writes the values of one step, by their tags.
    pub fn scalars<'a>(
        &mut self,
        step: u64,
        wall_time: f64,
        values: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> io::Result<()> {
        let mut summary = Vec::new();
        for (tag, value) in values {
            let mut one = Vec::new();
            put_bytes(&mut one, 1, tag.as_bytes());
            #[expect(clippy::cast_possible_truncation, reason = "the format has single precision")]
            put_float(&mut one, 2, value as f32);
            put_bytes(&mut summary, 1, &one);
        }
        let mut event = Vec::new();
        put_double(&mut event, 1, wall_time);
        put_key(&mut event, 2, 0);
        put_varint(&mut event, step);
        put_bytes(&mut event, 5, &summary);
        self.record(&event)?;
        self.to.flush()
    }

    fn record(&mut self, bytes: &[u8]) -> io::Result<()> {
        let length = (bytes.len() as u64).to_le_bytes();
        self.to.write_all(&length)?;
        self.to.write_all(&masked(crc32c(&length)).to_le_bytes())?;
        self.to.write_all(bytes)?;
        self.to.write_all(&masked(crc32c(bytes)).to_le_bytes())
    }
}

fn put_key(out: &mut Vec<u8>, field: u8, wire: u8) {
    out.push(field << 3 | wire);
}

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

fn put_double(out: &mut Vec<u8>, field: u8, number: f64) {
    put_key(out, field, 1);
    out.extend(number.to_le_bytes());
}

fn put_float(out: &mut Vec<u8>, field: u8, number: f32) {
    put_key(out, field, 5);
    out.extend(number.to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    put_key(out, field, 2);
    put_varint(out, bytes.len() as u64);
    out.extend(bytes);
}

/// A checksum of checksums would be weak, so the format stores them turned and shifted.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), bit-reversed polynomial 0x82f63b78.
fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    let step = |crc: u32, byte: &u8| TABLE[usize::from(crc.to_le_bytes()[0] ^ byte)] ^ (crc >> 8);
    !bytes.iter().fold(u32::MAX, step)
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "below 256")]
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_published_one() {
        // The check value of CRC-32C, and the 32 zero bytes of RFC 3720, B.4.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    }

    /// Takes a file apart with a bitwise checksum of its own and returns the records.
    fn records(mut file: &[u8]) -> Vec<Vec<u8>> {
        let check = |bytes: &[u8]| {
            let mut crc = u32::MAX;
            for byte in bytes {
                crc ^= u32::from(*byte);
                for _ in 0..8 {
                    crc = (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
                }
            }
            (!crc).rotate_right(15).wrapping_add(0xa282_ead8)
        };
        let mut records = Vec::new();
        while !file.is_empty() {
            let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
            assert_eq!(file[8..12], check(&file[..8]).to_le_bytes());
            let bytes = &file[12..12 + length];
            assert_eq!(file[12 + length..16 + length], check(bytes).to_le_bytes());
            records.push(bytes.to_vec());
            file = &file[16 + length..];
        }
        records
    }

    #[test]
    fn a_file_reads_back_field_by_field() {
        let mut file = Vec::new();
        let mut writer = EventWriter::new(&mut file, 2.0).unwrap();
        writer.scalars(300, 3.0, [("reward", 1.5), ("kl", -0.25)]).unwrap();
        let records = records(&file);
        assert_eq!(records.len(), 2);
        assert_eq!(records[0][..9], [&[0x09][..], &2.0_f64.to_le_bytes()].concat());
        assert_eq!(records[0][9..], [&[0x1a, 13][..], b"brain.Event:2"].concat());
        // 300 = 0b10_0101100: two groups of seven bits.
        let head = [&[0x09][..], &3.0_f64.to_le_bytes(), &[0x10, 0xac, 0x02]].concat();
        assert_eq!(records[1][..12], head);
        let value = |tag: &str, number: f32| {
            let tag_length = u8::try_from(tag.len()).unwrap();
            let one =
                [&[0x0a, tag_length][..], tag.as_bytes(), &[0x15], &number.to_le_bytes()].concat();
            [&[0x0a, u8::try_from(one.len()).unwrap()][..], &one].concat()
        };
        let summary = [value("reward", 1.5), value("kl", -0.25)].concat();
        let tail = [&[0x2a, u8::try_from(summary.len()).unwrap()][..], &summary].concat();
        assert_eq!(records[1][12..], tail);
    }
}
