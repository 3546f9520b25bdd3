//! Identifiers of activations: 32 hexadecimal digits, in order of time.
//!
//! ```text
//!  0196 3f2a 91c4   0007   9a31 55e0 8c1b 42d7
//!  milliseconds     count  random
//! ```
//!
//! Identifiers that grow with time are added at the end of the store's index, where the page is in memory already;
//! random ones would touch a random page for every record.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Names one activation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActivationId([u8; 16]);

/// A text that is no activation id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an activation id; allowed are 32 hexadecimal digits")]
pub struct BadActivationId(String);

impl ActivationId {
    /// From its bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The 32 digits without an allocation.
    pub(crate) fn digits(self) -> [u8; 32] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 32];
        for (place, byte) in self.0.iter().enumerate() {
            text[2 * place] = DIGITS[usize::from(byte >> 4)];
            text[2 * place + 1] = DIGITS[usize::from(byte & 15)];
        }
        text
    }
}

/// Makes identifiers that no other process makes: the random part differs from start to start, the count from call to
/// call.
#[derive(Debug)]
pub struct ActivationIds {
    count: AtomicU64,
    random: u64,
}

impl ActivationIds {
    /// A new series.
    ///
    /// # Errors
    /// If the system has no random numbers to give.
    pub fn new() -> Result<Self, getrandom::Error> {
        Ok(Self { count: AtomicU64::new(0), random: getrandom::u64()? })
    }

    /// The next identifier, for a call that arrived at `now`.
    pub fn next(&self, now: SystemTime) -> ActivationId {
        let millis = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        // The count is whole in the last eight bytes, mixed with the random part so that neighbours look unlike.
        let mixed = (count.wrapping_mul(0x9e37_79b9_7f4a_7c15)) ^ self.random;
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
        bytes[6..8].copy_from_slice(&(count as u16).to_be_bytes());
        bytes[8..].copy_from_slice(&mixed.to_be_bytes());
        ActivationId(bytes)
    }
}

impl fmt::Display for ActivationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.digits()).unwrap_or_default())
    }
}

impl fmt::Debug for ActivationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ActivationId {
    type Err = BadActivationId;
    fn from_str(text: &str) -> Result<Self, BadActivationId> {
        let bad = || BadActivationId(text.chars().take(64).collect());
        let digits: Vec<u8> = text
            .chars()
            .map(|digit| digit.to_digit(16).and_then(|value| u8::try_from(value).ok()))
            .collect::<Option<_>>()
            .ok_or_else(bad)?;
        let bytes: Vec<u8> =
            digits.chunks(2).map(|pair| pair[0] << 4 | pair[pair.len() - 1]).collect();
        let is_whole = digits.len() == 32;
        <[u8; 16]>::try_from(bytes).ok().filter(|_| is_whole).map(Self).ok_or_else(bad)
    }
}

impl Serialize for ActivationId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ActivationId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::time::Duration;

    #[test]
    fn identifiers_differ_and_grow_with_time() {
        let ids = ActivationIds::new().unwrap();
        let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let same_moment: BTreeSet<_> = (0..100_000).map(|_| ids.next(now)).collect();
        assert_eq!(same_moment.len(), 100_000);
        assert!(ids.next(now + Duration::from_millis(1)) > *same_moment.last().unwrap());
    }

    #[test]
    fn the_text_comes_back_as_the_same_identifier() {
        let id = ActivationId::from_bytes(
            *b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\xff",
        );
        assert_eq!(id.to_string(), "000102030405060708090a0b0c0d0eff");
        assert_eq!(id.to_string().parse(), Ok(id));
        for bad in ["", "00", &"0".repeat(31), &"0".repeat(33), &"g".repeat(32), &"ä".repeat(16)] {
            assert!(bad.parse::<ActivationId>().is_err(), "{bad}");
        }
    }
}
