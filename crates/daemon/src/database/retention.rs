//! Bounds of what is kept.

use rusqlite::Connection;

/// The most rows of each table of history. The oldest go first.
///
/// A call takes about 150 bytes: a million of them are 150 MB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Calls.
    pub calls: u64,
    /// Decisions.
    pub decisions: u64,
    /// Loans, versions, audit lines, each.
    pub others: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { calls: 1_000_000, decisions: 1_000_000, others: 200_000 }
    }
}

impl Retention {
    /// Deletes what is beyond the bounds. Numbers rise with time, so the newest number says where to cut.
    pub(super) fn apply(&self, connection: &Connection) -> rusqlite::Result<()> {
        let bounds = [
            ("calls", self.calls),
            ("decisions", self.decisions),
            ("loans", self.others),
            ("policy_versions", self.others),
            ("checkpoints", self.others),
            ("audit", self.others),
        ];
        for (table, most) in bounds {
            let sql = format!(
                "DELETE FROM {table} WHERE id <= (SELECT coalesce(max(id), 0) FROM {table}) - ?1"
            );
            connection.execute(&sql, [most as i64])?;
        }
        Ok(())
    }
}
