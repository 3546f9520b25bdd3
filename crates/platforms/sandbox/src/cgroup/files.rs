//! Files of a group, opened once. A read or write through a kept descriptor takes about 1 µs, with open and close 9 µs.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::error::SandboxError;

/// Longest content that is read: `memory.stat` of cgroup v2 has about 2 KiB.
const LONGEST: usize = 8 * 1024;

/// A file of a group that is read or written again and again.
#[derive(Debug)]
pub(crate) struct GroupFile(File);

impl GroupFile {
    /// Opens `path` for reading, and for writing where the file allows it.
    pub(crate) fn open(path: &Path) -> Result<Self, SandboxError> {
        let open = |write| {
            OpenOptions::new().read(true).write(write).custom_flags(libc::O_CLOEXEC).open(path)
        };
        open(true).or_else(|_| open(false)).map(Self).map_err(SandboxError::file("open", path))
    }

    /// The same, nothing if the kernel does not have the file.
    pub(crate) fn open_if_there(path: &Path) -> Option<Self> {
        Self::open(path).ok()
    }

    /// Writes a whole value.
    pub(crate) fn write(&self, value: &str) -> io::Result<()> {
        self.0.write_at(value.as_bytes(), 0).map(drop)
    }

    /// Reads the content and hands it to `parse`.
    pub(crate) fn read<T>(&self, parse: impl FnOnce(&str) -> T) -> io::Result<T> {
        let mut content = [0_u8; LONGEST];
        let length = self.0.read_at(&mut content, 0)?;
        Ok(parse(std::str::from_utf8(&content[..length]).unwrap_or_default()))
    }

    /// Reads a single number; 0 if it is none.
    pub(crate) fn number(&self) -> io::Result<u64> {
        self.read(|content| content.trim().parse().unwrap_or(0))
    }
}

/// The number behind `key` in lines of "key number"; 0 without such a line.
pub(crate) fn value_of(content: &str, key: &str) -> u64 {
    let mut values = content.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    values.next().and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

/// Microseconds in which some task waited, and in which all that could run did, from the lines of a pressure file.
pub(crate) fn total_waits(content: &str) -> [u64; 2] {
    ["some", "full"].map(|kind| {
        let line = content.lines().find(|line| line.starts_with(kind)).unwrap_or_default();
        line.rsplit_once("total=").and_then(|(_, total)| total.trim().parse().ok()).unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_matched_as_a_whole() {
        let content = "nr_periods 53\nnr_throttled 52\nnr_throttled_more 9\nthrottled_time 77\n";
        assert_eq!(value_of(content, "nr_throttled"), 52);
        assert_eq!(value_of(content, "throttled_time"), 77);
        assert_eq!(value_of(content, "burst_time"), 0);
    }

    #[test]
    fn pressure_is_the_total_of_each_line() {
        let content =
            "some avg10=22.61 avg60=4.0 avg300=1.0 total=123456\nfull avg10=0.00 total=9\n";
        assert_eq!(total_waits(content), [123_456, 9]);
        assert_eq!(total_waits(""), [0, 0]);
    }
}
