//! Tables as files for other programs.

use std::io::Write;
use std::path::Path;

use rusqlite::types::ValueRef;

use super::{DatabaseError, schema};

/// Tables that can be exported.
pub const TABLES: [&str; 11] = [
    "functions",
    "objectives",
    "holds",
    "grants",
    "settings",
    "decisions",
    "calls",
    "loans",
    "policy_versions",
    "checkpoints",
    "audit",
];

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// One line per row, quoted as RFC 4180 says.
    Csv,
    /// One JSON object per line.
    JsonLines,
}

/// Writes `table` of the database to `out`; the number of rows.
pub fn export(
    file: &Path,
    table: &str,
    format: ExportFormat,
    out: &mut dyn Write,
) -> Result<u64, DatabaseError> {
    if !TABLES.contains(&table) {
        let allowed = TABLES.join(", ");
        return Err(DatabaseError::UnknownTable { table: table.to_owned(), allowed });
    }
    let failed = |source| DatabaseError::File { file: "the export".to_owned(), source };
    let connection = schema::open(file)?;
    let mut statement = connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1"))?;
    let names: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
    if format == ExportFormat::Csv {
        writeln!(out, "{}", names.join(",")).map_err(failed)?;
    }
    let mut rows = statement.query([])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let values = (0..names.len()).map(|place| row.get_ref(place)).collect::<Result<_, _>>()?;
        writeln!(out, "{}", line(&names, values, format)).map_err(failed)?;
        count += 1;
    }
    Ok(count)
}

fn line(names: &[String], values: Vec<ValueRef<'_>>, format: ExportFormat) -> String {
    match format {
        ExportFormat::Csv => values.into_iter().map(csv).collect::<Vec<_>>().join(","),
        ExportFormat::JsonLines => {
            let pairs = names.iter().cloned().zip(values.into_iter().map(json));
            serde_json::Value::Object(pairs.collect()).to_string()
        }
    }
}

fn csv(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) | ValueRef::Blob(text) => {
            let text = String::from_utf8_lossy(text);
            if text.contains(['"', ',', '\n', '\r']) {
                format!("\"{}\"", text.replace('"', "\"\""))
            } else {
                text.into_owned()
            }
        }
    }
}

fn json(value: ValueRef<'_>) -> serde_json::Value {
    match value {
        ValueRef::Null => serde_json::Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) | ValueRef::Blob(text) => String::from_utf8_lossy(text).into(),
    }
}
