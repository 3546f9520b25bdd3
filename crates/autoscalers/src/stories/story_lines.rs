//! Reads stories from a stream of JSON lines, plain or gzip, detected by the first two bytes.

use std::io::{BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use serde::de::DeserializeOwned;

use super::report::StoryError;

/// Maximum length of a line; the longest recorded story has less than a megabyte.
const LINE_LIMIT: u64 = 64 << 20;

/// Passes every story of `source` to `each`, with its line number.
pub(super) fn for_each_story<Story: DeserializeOwned>(
    source: impl Read,
    mut each: impl FnMut(u64, Story) -> Result<(), StoryError>,
) -> Result<(), StoryError> {
    let mut source = BufReader::new(source);
    let head = source.fill_buf().map_err(|error| StoryError::at(1, error))?;
    let mut lines: Box<dyn BufRead + '_> = if head.starts_with(&[0x1f, 0x8b]) {
        Box::new(BufReader::new(MultiGzDecoder::new(source)))
    } else {
        Box::new(source)
    };
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = (&mut lines)
            .take(LINE_LIMIT)
            .read_until(b'\n', &mut line)
            .map_err(|error| StoryError::at(number, format!("cannot be read: {error}")))?;
        if read == 0 {
            break;
        }
        if read as u64 == LINE_LIMIT {
            let problem = format!("is longer than the allowed {LINE_LIMIT} bytes");
            return Err(StoryError::at(number, problem));
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let story = serde_json::from_slice(&line).map_err(|error| {
            StoryError::at(number, format!("is not a story of this kind: {error}"))
        })?;
        each(number, story)?;
    }
    Ok(())
}
