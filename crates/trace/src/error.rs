//! What can be wrong with a trace, said so that a person can mend it.

use std::io;

/// Why a trace was refused. Everything here is fatal: nothing of the trace is used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// Fatal: the operating system would not hand over the bytes.
    #[error("{file}: cannot be read: {source}")]
    Unreadable {
        /// Which file or directory.
        file: Box<str>,
        /// What the system says.
        source: io::Error,
    },
    /// Fatal: the operating system would not take the bytes.
    #[error("the trace cannot be written: {source}")]
    Unwritable {
        /// What the system says.
        source: io::Error,
    },
    /// Fatal: compressed data that ends early or does not unpack.
    #[error("{file}: the compressed data is cut short or damaged: {source}")]
    Damaged {
        /// Which file.
        file: Box<str>,
        /// What the unpacker says.
        source: io::Error,
    },
    /// Fatal: no header, or a header and nothing below it.
    #[error("{file}: holds no rows")]
    Empty {
        /// Which file.
        file: Box<str>,
    },
    /// Fatal: a column that the format requires is not there.
    #[error("{file}: column `{column}` is missing; the header begins `{header}`")]
    MissingColumn {
        /// Which file.
        file: Box<str>,
        /// The column looked for.
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
    /// Fatal: a cell whose content cannot be what the column is for.
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
        /// What would have been right.
        allowed: &'static str,
    },
    /// Fatal: two rows or columns for one function.
    #[error("{file} line {line}: function `{function}` appears for the second time")]
    DuplicateFunction {
        /// Which file.
        file: Box<str>,
        /// Where it appears again.
        line: u64,
        /// Which function.
        function: Box<str>,
    },
    /// Fatal: time goes back, or leaps.
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
    /// Fatal: a function is called but another table of the trace does not know it.
    #[error("{file}: has no row for function `{function}`, which is called in {called_in}")]
    MissingFunction {
        /// The file without the row.
        file: Box<str>,
        /// Which function.
        function: Box<str>,
        /// The file with its calls.
        called_in: Box<str>,
    },
    /// Fatal: a table that belongs to the trace is not in its directory.
    #[error("{directory}: no {table} table belongs to {called_in}")]
    MissingTable {
        /// Where it was looked for.
        directory: Box<str>,
        /// Which of the tables.
        table: &'static str,
        /// The table it should accompany.
        called_in: Box<str>,
    },
    /// Fatal: neither name nor content is one of the known formats.
    #[error("{path}: not a trace: {reason}")]
    Unknown {
        /// Which file or directory.
        path: Box<str>,
        /// What was found instead.
        reason: Box<str>,
    },
    /// Fatal: larger than this reader is willing to hold.
    #[error("{file}: more than {limit} {what}")]
    TooLarge {
        /// Which file.
        file: Box<str>,
        /// The largest number accepted.
        limit: u64,
        /// Of what.
        what: &'static str,
    },
    /// Fatal: a native trace that is foreign, newer, cut short or corrupt.
    #[error("{file}: {reason}")]
    Native {
        /// Which file.
        file: Box<str>,
        /// What is wrong, and where.
        reason: Box<str>,
    },
    /// Fatal: a setting outside of what makes sense.
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
    #[error("{file}: the option {option} has no effect here, it works on {works_on}")]
    IdleOption {
        /// Which file or directory.
        file: Box<str>,
        /// Which option.
        option: &'static str,
        /// The kinds of traces it is for.
        works_on: &'static str,
    },
    /// Fatal: after all filters no function is left.
    #[error("{file}: no function is left after the options were applied")]
    NothingLeft {
        /// Which file.
        file: Box<str>,
    },
}

impl TraceError {
    /// What to do about it, where there is something to say.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unreadable { .. } | Self::Unwritable { .. } => {
                Some("check the path, its permissions and the free space")
            }
            Self::Damaged { .. } => Some("fetch the file again; it was not transferred completely"),
            Self::Empty { .. } => Some("check that the right file was given"),
            Self::MissingColumn { .. } | Self::Unknown { .. } => Some(
                "known are Azure Functions 2019 and 2021, Huawei 5-minute tables and Windfall's own format",
            ),
            Self::RowLength { .. } => Some("the file is cut short or was edited by hand"),
            Self::BadValue { .. } => Some("mend the cell, or fetch the file again"),
            Self::DuplicateFunction { .. } => Some("keep one of the two"),
            Self::OutOfOrder { .. } => Some("sort the file by time"),
            Self::MissingFunction { .. } => {
                Some("set skip_incomplete to leave out functions that not all tables know")
            }
            Self::MissingTable { .. } => {
                Some("keep the invocation, duration and memory tables in one directory")
            }
            Self::TooLarge { .. } => Some("split the trace, or take a sample of it"),
            Self::Native { .. } => Some("write the trace again with `windfall trace convert`"),
            Self::BadSetting { .. } => None,
            Self::IdleOption { .. } => Some("leave the option out"),
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
