//! The tables, and how a file of any age becomes one of today.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};

use super::StoreError;
use crate::name::EntityName;

/// What turns schema N into N + 1. Entries are never changed, only added.
///
/// A pending activation has no status; its record is already the one it will have if it is lost.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE callers (namespace TEXT PRIMARY KEY, key TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE entities (
        namespace TEXT NOT NULL, path TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (namespace, path)
    ) STRICT;
    CREATE TABLE activations (
        sequence INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        namespace TEXT NOT NULL,
        path TEXT NOT NULL,
        start INTEGER NOT NULL,
        status INTEGER,
        record BLOB NOT NULL
    ) STRICT;
    CREATE INDEX activations_by_start ON activations (namespace, start);
    CREATE INDEX activations_by_path ON activations (namespace, path, start);
    CREATE INDEX activations_pending ON activations (sequence) WHERE status IS NULL;
", "
    ALTER TABLE activations ADD COLUMN parameters BLOB;
    ALTER TABLE activations ADD COLUMN begun INTEGER NOT NULL DEFAULT 1;
"];

/// An accepted call is begun at most so often: one that takes the platform down with it must not do so for ever.
const MOST_BEGUN: i64 = 5;

/// The status of a call that was lost.
const LOST: i64 = 3;

/// How long one connection waits for another's lock. The writer is alone and readers take none, so this is for
/// checkpoints and for people who look into the file.
pub(super) const BUSY: Duration = Duration::from_secs(5);

/// Opens the file for writing, checks it, migrates it and settles lost calls.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    let failed = |source| match source {
        rusqlite::Error::SqliteFailure(error, text)
            if matches!(
                error.code,
                rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt
            ) =>
        {
            let what = text.unwrap_or_else(|| error.to_string());
            StoreError::Damaged { path: path.to_owned(), what }
        }
        source => StoreError::Sqlite { path: path.to_owned(), source },
    };
    let mut connection = Connection::open(path).map_err(failed)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    let what = check(&connection).map_err(failed)?;
    if what != "ok" {
        return Err(StoreError::Damaged { path: path.to_owned(), what });
    }
    prepare(&connection).map_err(failed)?;
    let found = version(&connection).map_err(failed)?;
    let known = MIGRATIONS.len() as i64;
    if found > known {
        return Err(StoreError::TooNew { path: path.to_owned(), found, known });
    }
    migrate(&mut connection, found).map_err(failed)?;
    Ok(connection)
}

fn check(connection: &Connection) -> rusqlite::Result<String> {
    connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    // 16 MiB of pages: the ends of all indices stay in memory.
    connection.pragma_update(None, "cache_size", -16_384)?;
    // A checkpoint every 4,000 pages (16 MiB) instead of 1,000: fewer stops at 15,000 records a second.
    connection.pragma_update(None, "wal_autocheckpoint", 4_000)
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// All missing steps and the lost calls in one transaction: a crash in between leaves the file as it was. Accepted calls
/// whose parameters are known are not lost: they are begun once more.
fn migrate(connection: &mut Connection, found: i64) -> rusqlite::Result<()> {
    let step = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or_default()) {
        step.execute_batch(migration)?;
    }
    step.pragma_update(None, "user_version", MIGRATIONS.len() as i64)?;
    step.execute(
        "UPDATE activations SET status = ?1, parameters = NULL
         WHERE status IS NULL AND (parameters IS NULL OR begun >= ?2)",
        [LOST, MOST_BEGUN],
    )?;
    step.execute("UPDATE activations SET begun = begun + 1 WHERE status IS NULL", [])?;
    step.commit()
}

pub(super) fn key_of(
    connection: &Connection,
    namespace: &EntityName,
) -> rusqlite::Result<Option<String>> {
    connection
        .query_row("SELECT key FROM callers WHERE namespace = ?1", [namespace.as_str()], |row| {
            row.get(0)
        })
        .optional()
}

/// The name of each entity, for messages, and its body.
pub(super) fn entities(connection: &Connection) -> rusqlite::Result<Vec<(String, Vec<u8>)>> {
    let mut query = connection.prepare(
        "SELECT '/' || namespace || '/' || path, body FROM entities ORDER BY namespace, path",
    )?;
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Accepted calls that have not ended: id, namespace, path and parameters, oldest first.
pub(super) fn unfinished(connection: &Connection) -> rusqlite::Result<Vec<UnfinishedRow>> {
    let mut query = connection.prepare(
        "SELECT id, namespace, path, parameters FROM activations
         WHERE status IS NULL AND parameters IS NOT NULL ORDER BY sequence",
    )?;
    let rows = query.query_map([], |row| {
        Ok(UnfinishedRow {
            id: row.get(0)?,
            namespace: row.get(1)?,
            path: row.get(2)?,
            parameters: row.get(3)?,
        })
    })?;
    rows.collect()
}

/// An accepted call that has not ended, as the file has it.
pub(super) struct UnfinishedRow {
    pub(super) id: [u8; 16],
    pub(super) namespace: String,
    pub(super) path: String,
    pub(super) parameters: Vec<u8>,
}
