//! What outlives the process: an SQLite file in WAL mode.
//!
//! ```text
//!   control thread ──grants, orders──► own connection, committed before anything is submitted
//!        │
//!        └──calls, decisions, loans, versions──► bounded queue ──► writer thread, one transaction per quarter second
//! ```
//!
//! Grants and orders decide what a restart does, so they are on disk before they take effect. Everything else is history:
//! if the disk is full or slow it is dropped and counted, and the loop never waits for it.

mod durable;
mod earlier;
mod export;
mod records;
mod retention;
mod row;
mod schema;
mod writer;

use std::path::{Path, PathBuf};

pub use earlier::EarlierRun;
pub use export::{ExportFormat, TABLES, export};
pub(crate) use records::unix_ms;
pub use records::{Grant, Records};
pub use retention::Retention;
pub use schema::{check, vacuum};

/// Why the database cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// Fatal: the file cannot be opened or is not a database.
    #[error("{file}: {source}")]
    Open {
        /// Which file.
        file: String,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// Fatal: the file was written by a later version.
    #[error("{file} has schema {found}, this version reads up to {known}; use the newer version")]
    TooNew {
        /// Which file.
        file: String,
        /// What it has.
        found: u32,
        /// What is known here.
        known: u32,
    },
    /// Fatal: a table that is asked for does not exist.
    #[error("there is no table `{table}`; allowed is {allowed}")]
    UnknownTable {
        /// What was asked for.
        table: String,
        /// What there is.
        allowed: String,
    },
    /// Retryable: a statement failed.
    #[error("the database: {0}")]
    Statement(#[from] rusqlite::Error),
    /// Retryable: a file beside the database cannot be written.
    #[error("{file}: {source}")]
    File {
        /// Which file.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
}

impl DatabaseError {
    /// Whether the file itself is damaged, and not merely out of reach.
    pub fn is_damage(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        let (Self::Open { source, .. } | Self::Statement(source)) = self else { return false };
        matches!(source.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
    }
}

/// The database in `folder`.
pub fn file_in(folder: &Path) -> PathBuf {
    folder.join("windfall.db")
}
