//! Reading beside the writer, on connections that cannot write.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};

use super::StoreError;
use super::schema::BUSY;
use crate::activation_id::ActivationId;
use crate::name::EntityName;

/// Connections that nobody uses at the moment. As many exist as there were reads at the same time.
#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

/// The most connections that are kept.
const KEPT: usize = 4;

impl Readers {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), idle: Mutex::default() }
    }

    /// Runs a query; blocks.
    pub(super) fn read<T>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let failed = |source| StoreError::Sqlite { path: self.path.clone(), source };
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let connection = match kept {
            Some(connection) => connection,
            None => self.connect().map_err(failed)?,
        };
        let found = query(&connection).map_err(failed)?;
        let mut idle = idle();
        if idle.len() < KEPT {
            idle.push(connection);
        }
        Ok(found)
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(BUSY)?;
        Ok(connection)
    }
}

/// Which records are wanted.
#[derive(Clone, Debug)]
pub(crate) struct RecordFilter {
    pub(crate) namespace: EntityName,
    /// `name` or `package/name`.
    pub(crate) path: Option<String>,
    /// Started no earlier, in milliseconds since 1970.
    pub(crate) since: Option<u64>,
    /// Started no later.
    pub(crate) upto: Option<u64>,
    pub(crate) skip: u32,
    pub(crate) limit: u32,
}

impl RecordFilter {
    /// Bounds that SQLite can hold: its integers are signed.
    fn bounds(&self) -> (i64, i64) {
        let signed = |millis: u64| i64::try_from(millis).unwrap_or(i64::MAX);
        (self.since.map_or(0, signed), self.upto.map_or(i64::MAX, signed))
    }

    /// `path = ?` only if there is one, so that SQLite picks the index that fits.
    fn condition(&self) -> &'static str {
        match self.path {
            Some(_) => {
                "namespace = ?1 AND start BETWEEN ?2 AND ?3 AND path = ?4 AND status IS NOT NULL"
            }
            None => {
                "namespace = ?1 AND start BETWEEN ?2 AND ?3 AND ?4 IS NULL AND status IS NOT NULL"
            }
        }
    }
}

fn json(row: &Row<'_>) -> rusqlite::Result<Vec<u8>> {
    row.get(0)
}

pub(super) fn record(
    connection: &Connection,
    namespace: &EntityName,
    id: ActivationId,
) -> rusqlite::Result<Option<Vec<u8>>> {
    connection
        .prepare_cached(
            "SELECT record FROM activations WHERE id = ?1 AND namespace = ?2 AND status IS NOT NULL",
        )?
        .query_row(params![id.as_bytes(), namespace.as_str()], json)
        .optional()
}

pub(super) fn records(
    connection: &Connection,
    filter: &RecordFilter,
) -> rusqlite::Result<Vec<Vec<u8>>> {
    let (since, upto) = filter.bounds();
    let query = format!(
        "SELECT record FROM activations WHERE {} ORDER BY start DESC, sequence DESC LIMIT ?5 OFFSET ?6",
        filter.condition()
    );
    let mut query = connection.prepare_cached(&query)?;
    let values =
        params![filter.namespace.as_str(), since, upto, filter.path, filter.limit, filter.skip];
    let rows = query.query_map(values, json)?;
    rows.collect()
}

pub(super) fn count(connection: &Connection, filter: &RecordFilter) -> rusqlite::Result<u64> {
    let (since, upto) = filter.bounds();
    let query = format!("SELECT count(*) FROM activations WHERE {}", filter.condition());
    let values = params![filter.namespace.as_str(), since, upto, filter.path];
    let count: i64 = connection.prepare_cached(&query)?.query_row(values, |row| row.get(0))?;
    Ok(u64::try_from(count).unwrap_or_default())
}
