//! Comma-separated tables, plain or gzipped, read one row at a time.
//!
//! The supported formats never quote a comma, so a row is split at every comma and quotes around a cell are
//! removed. A line longer than [`MAX_LINE_BYTES`] is rejected, so that a file without line ends, or a small
//! archive that decompresses to a huge one, cannot exhaust memory.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use crate::error::{TraceError, shortened};

/// Maximum length of a line; a row of 1440 minutes has about 10 kB.
const MAX_LINE_BYTES: u64 = 4 << 20;

/// Decompresses `reader` if it starts with the magic bytes of gzip.
pub(crate) fn unpacked<'a>(reader: impl Read + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    Ok(match reader.fill_buf()? {
        [0x1f, 0x8b, ..] => {
            Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(reader)))
        }
        _ => Box::new(reader),
    })
}

/// Converts an I/O error, distinguishing read errors from decompression errors.
pub(crate) fn read_failed(file: &str, source: io::Error) -> TraceError {
    match source.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            TraceError::Damaged { file: file.into(), source }
        }
        _ => TraceError::Unreadable { file: file.into(), source },
    }
}

/// A table with a header line.
pub(crate) struct Table<'a> {
    file: Box<str>,
    reader: Box<dyn BufRead + 'a>,
    header: Vec<String>,
    text: String,
    line: u64,
}

/// One row of a table.
#[derive(Clone)]
pub(crate) struct Row<'t> {
    file: &'t str,
    header: &'t [String],
    cells: Vec<&'t str>,
    /// Line number from 1, including the header.
    pub(crate) line: u64,
}

impl<'a> Table<'a> {
    /// Reads the header.
    pub(crate) fn open(reader: impl Read + 'a, file: &str) -> Result<Self, TraceError> {
        let reader = unpacked(reader).map_err(|error| read_failed(file, error))?;
        let mut table =
            Self { file: file.into(), reader, header: Vec::new(), text: String::new(), line: 0 };
        if !table.read_line()? {
            return Err(TraceError::Empty { file: file.into() });
        }
        let header = table.text.trim_start_matches('\u{feff}');
        table.header = header.split(',').map(|name| unquoted(name).to_owned()).collect();
        Ok(table)
    }

    /// Names of the columns.
    pub(crate) fn header(&self) -> &[String] {
        &self.header
    }

    /// Index of the column `name`.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|column| column == name)
    }

    /// Index of the column `name`, or an error if it is missing.
    pub(crate) fn required(&self, name: &str) -> Result<usize, TraceError> {
        self.column(name).ok_or_else(|| self.missing(name))
    }

    /// Error for a missing column `name`.
    pub(crate) fn missing(&self, name: &str) -> TraceError {
        TraceError::MissingColumn {
            file: self.file.clone(),
            column: name.into(),
            header: shortened(&self.header.join(",")),
        }
    }

    /// Reads the next row, skipping empty lines.
    pub(crate) fn next_row(&mut self) -> Result<Option<Row<'_>>, TraceError> {
        loop {
            if !self.read_line()? {
                return Ok(None);
            }
            if !self.text.is_empty() {
                break;
            }
        }
        let cells: Vec<&str> = self.text.split(',').map(unquoted).collect();
        if cells.len() != self.header.len() {
            return Err(TraceError::RowLength {
                file: self.file.clone(),
                line: self.line,
                found: cells.len(),
                expected: self.header.len(),
            });
        }
        Ok(Some(Row { file: &self.file, header: &self.header, cells, line: self.line }))
    }

    /// Reads one line without its line end into `text`. Returns `false` at the end of the file.
    fn read_line(&mut self) -> Result<bool, TraceError> {
        let mut bytes = std::mem::take(&mut self.text).into_bytes();
        bytes.clear();
        let mut limited = (&mut self.reader).take(MAX_LINE_BYTES + 1);
        let read = limited
            .read_until(b'\n', &mut bytes)
            .map_err(|error| read_failed(&self.file, error))?;
        self.line += 1;
        if read as u64 > MAX_LINE_BYTES {
            return Err(TraceError::TooLarge {
                file: self.file.clone(),
                limit: MAX_LINE_BYTES,
                what: "bytes in one line",
            });
        }
        while matches!(bytes.last(), Some(b'\n' | b'\r')) {
            bytes.pop();
        }
        self.text = String::from_utf8(bytes).map_err(|error| TraceError::BadValue {
            file: self.file.clone(),
            line: self.line,
            column: "any".into(),
            value: shortened(&String::from_utf8_lossy(error.as_bytes())),
            allowed: "UTF-8 text",
        })?;
        Ok(read > 0)
    }
}

fn unquoted(cell: &str) -> &str {
    let cell = cell.trim();
    cell.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(cell)
}

impl Row<'_> {
    /// Text of a cell.
    pub(crate) fn text(&self, column: usize) -> &str {
        self.cells[column]
    }

    /// Number in a cell: finite and not negative.
    pub(crate) fn number(&self, column: usize) -> Result<f64, TraceError> {
        match self.cells[column].parse::<f64>() {
            Ok(value) if (0.0..=1e15).contains(&value) => Ok(value),
            _ => Err(self.refused(column, "a number from 0 to 1e15")),
        }
    }

    /// Count in a cell; `3.0` is accepted as 3.
    pub(crate) fn count(&self, column: usize) -> Result<u32, TraceError> {
        let cell = self.cells[column];
        if let Ok(count) = cell.parse::<u32>() {
            return Ok(count);
        }
        match cell.parse::<f64>() {
            Ok(value) if value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value) => {
                Ok(value as u32)
            }
            _ => Err(self.refused(column, "a whole number from 0 to 4294967295")),
        }
    }

    /// Error for an invalid cell.
    pub(crate) fn refused(&self, column: usize, allowed: &'static str) -> TraceError {
        TraceError::BadValue {
            file: self.file.into(),
            line: self.line,
            column: self.header[column].as_str().into(),
            value: shortened(self.cells[column]),
            allowed,
        }
    }

    /// Error for a second row of `function`.
    pub(crate) fn duplicate(&self, function: &str) -> TraceError {
        TraceError::DuplicateFunction {
            file: self.file.into(),
            line: self.line,
            function: shortened(function),
        }
    }
}
