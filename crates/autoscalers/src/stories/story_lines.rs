//! Stories out of a stream: JSON lines, plain or gzip, told apart by their first two bytes.

use std::io::{BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use serde::de::DeserializeOwned;

use super::report::StoryError;

/// Longest line that is read; the longest recorded story has less than a megabyte.
const LINE_LIMIT: u64 = 64 << 20;

/// Hands every story of `source` to `each`, with the number of its line.
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
            let problem = format!("is longer than {LINE_LIMIT} bytes, which no story is");
            return Err(StoryError::at(number, problem));
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let story = serde_json::from_slice(&line)
            .map_err(|error| StoryError::at(number, format!("is not such a story: {error}")))?;
        each(number, story)?;
    }
    Ok(())
}
