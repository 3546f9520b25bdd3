//! Azure Functions 2021: one row per call with its end and its run time.
//!
//! Rows are sorted by end, but arrivals are needed in order of start, and a call can run longer than the
//! trace. So all calls are kept in memory and sorted, 24 bytes each. The published trace of 2 million calls
//! needs 48 MB; a file with more than [`MAX_CALLS`] calls is rejected.

use std::collections::BTreeMap;
use std::io::Read;

use crate::error::TraceError;
use crate::table::Table;

/// Maximum number of calls in a file: 1.2 GB in memory.
pub const MAX_CALLS: u64 = 50_000_000;

/// One call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call {
    /// Start in nanoseconds after the earliest start.
    pub start_ns: u64,
    /// Run time in nanoseconds.
    pub run_ns: u64,
    /// Index in the list of functions.
    pub function: u32,
}

/// The table of calls.
#[derive(Clone, Debug)]
pub struct Invocations {
    /// Application and name of each function, in order of their first rows.
    pub functions: Vec<(String, String)>,
    /// Calls in order of start.
    pub calls: Vec<Call>,
}

/// Reads a table of calls and sorts it by start.
pub fn read_invocations(reader: impl Read, file: &str) -> Result<Invocations, TraceError> {
    let mut table = Table::open(reader, file)?;
    let application = table.required("app")?;
    let function = table.required("func")?;
    let end = table.required("end_timestamp")?;
    let duration = table.required("duration")?;
    let mut places: BTreeMap<(String, String), u32> = BTreeMap::new();
    let mut functions = Vec::new();
    let mut rows: Vec<(f64, f64, u32)> = Vec::new();
    while let Some(row) = table.next_row()? {
        if rows.len() as u64 >= MAX_CALLS {
            return Err(TraceError::TooLarge {
                file: file.into(),
                limit: MAX_CALLS,
                what: "calls",
            });
        }
        let key = (row.text(application).to_owned(), row.text(function).to_owned());
        let place = *places.entry(key).or_insert_with_key(|key| {
            functions.push(key.clone());
            functions.len() as u32 - 1
        });
        let seconds = |column: usize| match row.number(column)? {
            // A century fits into 64 bits of nanoseconds.
            value if value <= 3e9 => Ok(value),
            _ => Err(row.refused(column, "seconds from 0 to 3e9")),
        };
        let (end, run) = (seconds(end)?, seconds(duration)?);
        rows.push((end - run, run, place));
    }
    if rows.is_empty() {
        return Err(TraceError::Empty { file: file.into() });
    }
    // A stable sort, so that calls with equal starts keep their file order.
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let origin = rows[0].0.min(0.0);
    let nanos = |seconds: f64| (seconds * 1e9).round() as u64;
    let calls = rows.into_iter().map(|(start, run, function)| Call {
        start_ns: nanos(start - origin),
        run_ns: nanos(run),
        function,
    });
    Ok(Invocations { functions, calls: calls.collect() })
}
