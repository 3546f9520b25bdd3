//! Tables, and how a file is opened, checked and made smaller.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use super::DatabaseError;

/// The version of the tables below.
const VERSION: u32 = 1;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS functions (
  name TEXT PRIMARY KEY, application TEXT NOT NULL, runtime TEXT NOT NULL,
  reserved_millicpu INTEGER NOT NULL, reserved_mib INTEGER NOT NULL, first_seen_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objectives (
  function TEXT PRIMARY KEY, target_ms REAL NOT NULL, share REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS holds (
  function TEXT PRIMARY KEY, kind TEXT NOT NULL, millicpu INTEGER, mib INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS grants (
  function TEXT PRIMARY KEY, millicpu INTEGER NOT NULL, mib INTEGER NOT NULL, at_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS settings (
  name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS decisions (
  id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, kind TEXT NOT NULL, function TEXT, call INTEGER,
  seen TEXT NOT NULL, decided TEXT NOT NULL, amended TEXT NOT NULL, done TEXT NOT NULL, outcome TEXT NOT NULL,
  trip INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS calls (
  id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, call INTEGER NOT NULL, function TEXT NOT NULL, node INTEGER NOT NULL,
  ended TEXT NOT NULL, latency_ms REAL NOT NULL, run_ms REAL NOT NULL, cold_start_ms REAL NOT NULL,
  reserved_millicpu INTEGER NOT NULL, reserved_mib INTEGER NOT NULL, first_millicpu INTEGER NOT NULL,
  first_mib INTEGER NOT NULL, lowest_millicpu INTEGER NOT NULL, highest_millicpu INTEGER NOT NULL,
  held_core_s REAL NOT NULL, used_core_s REAL NOT NULL, changes INTEGER NOT NULL, trips INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS loans (
  id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, call INTEGER NOT NULL, function TEXT NOT NULL, node INTEGER NOT NULL,
  lent_millicpu INTEGER NOT NULL, for_ms REAL NOT NULL);
CREATE TABLE IF NOT EXISTS policy_versions (
  id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, number INTEGER NOT NULL, policy TEXT NOT NULL,
  settings TEXT NOT NULL, origin TEXT NOT NULL, fate TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS checkpoints (
  id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, policy TEXT NOT NULL, content TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS audit (
  id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, by TEXT NOT NULL, what TEXT NOT NULL, answer TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS calls_by_function ON calls (function, id);
CREATE INDEX IF NOT EXISTS decisions_by_function ON decisions (function, id);
";

/// Opens a file for reading and writing, with its tables.
pub(super) fn open(file: &Path) -> Result<Connection, DatabaseError> {
    let name = || file.display().to_string();
    let opened = || -> rusqlite::Result<Connection> {
        let connection = Connection::open(file)?;
        connection.busy_timeout(Duration::from_secs(2))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        // Survives a killed process; after a power cut the last moments may be missing, never the file.
        connection.pragma_update(None, "synchronous", "normal")?;
        Ok(connection)
    };
    let connection = opened().map_err(|source| DatabaseError::Open { file: name(), source })?;
    let found: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > VERSION {
        return Err(DatabaseError::TooNew { file: name(), found, known: VERSION });
    }
    if found < VERSION {
        connection.execute_batch(TABLES)?;
        connection.pragma_update(None, "user_version", VERSION)?;
    }
    Ok(connection)
}

/// Checks the whole file; one sentence for each problem, none if it is intact.
pub fn check(file: &Path) -> Result<Vec<String>, DatabaseError> {
    let connection = open(file)?;
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    let found = statement.query_map([], |row| row.get::<_, String>(0))?;
    let found = found.collect::<Result<Vec<_>, _>>()?;
    Ok(found.into_iter().filter(|line| line != "ok").collect())
}

/// Gives space of deleted rows back; the size before and after, bytes.
pub fn vacuum(file: &Path) -> Result<(u64, u64), DatabaseError> {
    let size = || std::fs::metadata(file).map_or(0, |metadata| metadata.len());
    let connection = open(file)?;
    let before = size();
    connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")?;
    Ok((before, size()))
}

/// A setting of the manager.
pub(super) fn set(to: &Connection, name: &str, value: &str) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO settings VALUES (?1,?2)";
    to.execute(sql, [name, value]).map(|_| ())
}
