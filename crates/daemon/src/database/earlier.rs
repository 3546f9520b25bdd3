//! What an earlier run has left in the file.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension};
use windfall_core::Allocation;

use super::Grant;
use crate::governance::Hold;
use crate::supervisor::Named;

/// What an earlier run has left.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EarlierRun {
    /// Whether it was stopped, and not killed.
    pub was_closed: bool,
    /// Its mode.
    pub mode: Option<String>,
    /// Whether the kill switch was on.
    pub is_killed: bool,
    /// Orders about functions, by name.
    pub holds: BTreeMap<String, Hold>,
    /// Objectives set by users, milliseconds, by name.
    pub objectives: BTreeMap<String, f64>,
    /// Sizes that were granted and not confirmed back.
    pub grants: Vec<Grant>,
}

/// What the file remembers; nothing if it is new.
pub(super) fn read(connection: &Connection) -> rusqlite::Result<Option<EarlierRun>> {
    let mut statement = connection.prepare("SELECT name, value FROM settings")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let settings: BTreeMap<String, String> = rows.collect::<Result<_, _>>()?;
    if settings.is_empty() {
        return Ok(None);
    }
    let is_on = |name: &str| settings.get(name).is_some_and(|value| value == "1");
    Ok(Some(EarlierRun {
        was_closed: is_on("closed"),
        mode: settings.get("mode").cloned(),
        is_killed: is_on("killed"),
        holds: holds(connection)?,
        objectives: objectives(connection)?,
        grants: grants(connection)?,
    }))
}

/// The version of the last checkpoint; nothing if there is none or its settings cannot be read any more.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<Option<Named>> {
    let sql = "SELECT policy, content FROM checkpoints ORDER BY id DESC LIMIT 1";
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get::<_, String>(1)?));
    let found: Option<(String, String)> = connection.query_row(sql, [], row).optional()?;
    Ok(found.and_then(|(policy, content)| {
        Some(Named { policy, settings: toml::from_str(&content).ok()? })
    }))
}

fn objectives(connection: &Connection) -> rusqlite::Result<BTreeMap<String, f64>> {
    let mut statement = connection.prepare("SELECT function, target_ms FROM objectives")?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn grants(connection: &Connection) -> rusqlite::Result<Vec<Grant>> {
    let mut statement = connection.prepare("SELECT function, millicpu, mib FROM grants")?;
    let grant = |row: &rusqlite::Row<'_>| {
        Ok(Grant { function: row.get(0)?, cpu: row.get(1)?, memory: row.get(2)? })
    };
    statement.query_map([], grant)?.collect()
}

fn holds(connection: &Connection) -> rusqlite::Result<BTreeMap<String, Hold>> {
    let mut statement = connection.prepare("SELECT function, kind, millicpu, mib FROM holds")?;
    let hold = |row: &rusqlite::Row<'_>| {
        let kind: String = row.get(1)?;
        let hold = if kind == "pinned" {
            Hold::Pinned { size: Allocation::new(row.get(2)?, row.get(3)?) }
        } else {
            Hold::Paused
        };
        Ok((row.get(0)?, hold))
    };
    statement.query_map([], hold)?.collect()
}
