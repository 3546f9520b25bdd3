//! Gzipped comma-separated tables with quoted cells, read into memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// A table in memory.
pub(crate) struct Table {
    name: String,
    columns: BTreeMap<String, usize>,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    /// Reads `set/file` below `data`.
    pub(crate) fn read(data: &Path, set: &str, file: &str) -> Result<Self, String> {
        let path = data.join(set).join(file);
        let name = path.display().to_string();
        let input = File::open(&path).map_err(|error| format!("{name}: {error}"))?;
        let mut lines = BufReader::new(MultiGzDecoder::new(input)).lines();
        let mut next = || lines.next().transpose().map_err(|error| format!("{name}: {error}"));
        let header = cells(&next()?.ok_or(format!("{name}: is empty"))?);
        let columns = header.iter().cloned().enumerate().map(|(i, column)| (column, i)).collect();
        let mut rows = Vec::new();
        while let Some(line) = next()? {
            rows.push(cells(&line));
        }
        Ok(Self { name, columns, header, rows })
    }

    /// Index of a column.
    pub(crate) fn column(&self, name: &str) -> Result<usize, String> {
        let place = self.columns.get(name).copied();
        place.ok_or_else(|| format!("{}: no column {name}", self.name))
    }
}

/// Number in a cell; NaN for an empty one.
pub(crate) fn value(cell: &str) -> f64 {
    cell.parse().unwrap_or(f64::NAN)
}

/// Splits a line at commas outside of quotes; two quotes inside of quotes are one.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cells.last_mut().expect("begins with one cell").push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            letter => cells.last_mut().expect("begins with one cell").push(letter),
        }
    }
    cells
}
