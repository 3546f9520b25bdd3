//! Errors of reading and writing traces, with hints for fixing them.

use std::io;

/// Why a trace was rejected. All of these are fatal: no part of the trace is used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// Fatal: the operating system could not read the file.
    #[error("{file}: cannot be read: {source}")]
    Unreadable {
        /// Which file or directory.
        file: Box<str>,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Fatal: the operating system could not write the file.
    #[error("the trace cannot be written: {source}")]
    Unwritable {
        /// Error of the operating system.
        source: io::Error,
    },
    /// Fatal: compressed data that is truncated or does not decompress.
    #[error("{file}: the compressed data is truncated or damaged: {source}")]
    Damaged {
        /// Which file.
        file: Box<str>,
        /// Error of the decompressor.
        source: io::Error,
    },
    /// Fatal: no header, or a header without rows.
    #[error("{file}: has no rows")]
    Empty {
        /// Which file.
        file: Box<str>,
    },
    /// Fatal: a required column is missing.
    #[error("{file}: column `{column}` is missing; the header begins `{header}`")]
    MissingColumn {
        /// Which file.
        file: Box<str>,
        /// The missing column.
        column: Box<str>,
        /// The first part of the header that was found instead.
        header: Box<str>,
    },
    /// Fatal: a row with more or fewer cells than the header.
    #[error("{file} line {line}: the row has {found} cells, the header {expected}")]
    RowLength {
        /// Which file.
        file: Box<str>,
        /// Which line, counted from 1.
        line: u64,
        /// Cells in the row.
        found: usize,
        /// Cells in the header.
        expected: usize,
    },
    /// Fatal: a cell with an invalid value.
    #[error("{file} line {line}, column `{column}`: found `{value}`, allowed is {allowed}")]
    BadValue {
        /// Which file.
        file: Box<str>,
        /// Which line, counted from 1.
        line: u64,
        /// Which column.
        column: Box<str>,
        /// What was found, shortened.
        value: Box<str>,
        /// What is allowed.
        allowed: &'static str,
    },
    /// Fatal: two rows or columns for one function.
    #[error("{file} line {line}: function `{function}` appears twice")]
    DuplicateFunction {
        /// Which file.
        file: Box<str>,
        /// Where it appears again.
        line: u64,
        /// Which function.
        function: Box<str>,
    },
    /// Fatal: times that are not in order or not evenly spaced.
    #[error("{file} line {line}: `{value}` after `{previous}`; {rule}")]
    OutOfOrder {
        /// Which file.
        file: Box<str>,
        /// Which line, or which record of a native trace.
        line: u64,
        /// The time found.
        value: Box<str>,
        /// The time before it.
        previous: Box<str>,
        /// What order is required.
        rule: &'static str,
    },
    /// Fatal: a function that is called has no row in another table of the trace.
    #[error("{file}: has no row for function `{function}`, which is called in {called_in}")]
    MissingFunction {
        /// The file without the row.
        file: Box<str>,
        /// Which function.
        function: Box<str>,
        /// The file with its calls.
        called_in: Box<str>,
    },
    /// Fatal: a table of the trace is not in its directory.
    #[error("{directory}: no {table} table belongs to {called_in}")]
    MissingTable {
        /// The directory that was searched.
        directory: Box<str>,
        /// Which of the tables.
        table: &'static str,
        /// The table it should accompany.
        called_in: Box<str>,
    },
    /// Fatal: the content is not in a known format.
    #[error("{path}: not a trace: {reason}")]
    Unknown {
        /// Which file or directory.
        path: Box<str>,
        /// What was found instead.
        reason: Box<str>,
    },
    /// Fatal: larger than the reader's limit.
    #[error("{file}: more than {limit} {what}")]
    TooLarge {
        /// Which file.
        file: Box<str>,
        /// The largest number accepted.
        limit: u64,
        /// Of what.
        what: &'static str,
    },
    /// Fatal: not a native trace, or one that is newer, truncated or corrupt.
    #[error("{file}: {reason}")]
    Native {
        /// Which file.
        file: Box<str>,
        /// What is wrong, and where.
        reason: Box<str>,
    },
    /// Fatal: a setting outside the allowed range.
    #[error("{setting} is {value}, allowed is {allowed}")]
    BadSetting {
        /// Which setting.
        setting: &'static str,
        /// Its value.
        value: Box<str>,
        /// What is allowed.
        allowed: &'static str,
    },
    /// Fatal: an option that would have no effect on this kind of trace.
    #[error("{file}: option {option} has no effect on this trace; it applies to {works_on}")]
    IdleOption {
        /// Which file or directory.
        file: Box<str>,
        /// Which option.
        option: &'static str,
        /// The kinds of traces it is for.
        works_on: &'static str,
    },
    /// Fatal: after all filters no function is left.
    #[error("{file}: the options leave no function")]
    NothingLeft {
        /// Which file.
        file: Box<str>,
    },
}

impl TraceError {
    /// Suggests how to fix the problem.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unreadable { .. } | Self::Unwritable { .. } => {
                Some("check the path, its permissions and the free space")
            }
            Self::Damaged { .. } => Some("download the file again; the transfer was incomplete"),
            Self::Empty { .. } => Some("check that the right file was given"),
            Self::MissingColumn { .. } | Self::Unknown { .. } => Some(
                "supported are Azure Functions 2019 and 2021, Huawei 5-minute tables and Windfall's own format",
            ),
            Self::RowLength { .. } => {
                Some("the file is truncated or was edited; download it again")
            }
            Self::BadValue { .. } => Some("correct the cell, or download the file again"),
            Self::DuplicateFunction { .. } => Some("remove one of the two"),
            Self::OutOfOrder { .. } => Some("sort the file by time"),
            Self::MissingFunction { .. } => {
                Some("set skip_incomplete to leave out functions that are missing from a table")
            }
            Self::MissingTable { .. } => {
                Some("keep the invocation, duration and memory tables in one directory")
            }
            Self::TooLarge { .. } => Some("split the trace, or sample it"),
            Self::Native { .. } => Some("write the trace again with `windfall trace convert`"),
            Self::BadSetting { .. } => None,
            Self::IdleOption { .. } => Some("remove the option"),
            Self::NothingLeft { .. } => Some("widen the window or allow more functions"),
        }
    }
}

/// At most 40 characters of `text`, for error messages.
pub(crate) fn shortened(text: &str) -> Box<str> {
    match text.char_indices().nth(40) {
        None => text.into(),
        Some((end, _)) => format!("{}…", &text[..end]).into(),
    }
}
