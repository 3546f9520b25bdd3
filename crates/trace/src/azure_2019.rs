//! Azure Functions 2019: calls per minute, percentiles of run time, percentiles of memory.
//!
//! Three tables with one row per function each. The published set has them per day, with memory per
//! application; samples of it have fewer minutes, other minute numbers, memory per function, or only the
//! function's name. All of these can be read: columns are found by name.
//!
//! Each function gets the full memory of its application, because an instance loads the whole application.

use std::collections::BTreeMap;
use std::io::Read;

use windfall_core::Trigger;
use windfall_core::statistics::Interval;

use crate::demand_model::FunctionFacts;
use crate::error::{TraceError, shortened};
use crate::parameters::demand;
use crate::quantiles::Quantiles;
use crate::table::{Row, Table};

/// Maximum number of minutes in a table: 31 days.
const MAX_MINUTES: usize = 31 * 1440;
/// Maximum number of functions in a table.
const MAX_ROWS: u64 = 1_000_000;

/// Percentile columns of the duration table.
const DURATION_COLUMNS: [(f64, &str); 7] = [
    (0.0, "percentile_Average_0"),
    (0.01, "percentile_Average_1"),
    (0.25, "percentile_Average_25"),
    (0.5, "percentile_Average_50"),
    (0.75, "percentile_Average_75"),
    (0.99, "percentile_Average_99"),
    (1.0, "percentile_Average_100"),
];

/// Percentile columns of the memory table.
const MEMORY_COLUMNS: [(f64, &str); 8] = [
    (0.01, "AverageAllocatedMb_pct1"),
    (0.05, "AverageAllocatedMb_pct5"),
    (0.25, "AverageAllocatedMb_pct25"),
    (0.5, "AverageAllocatedMb_pct50"),
    (0.75, "AverageAllocatedMb_pct75"),
    (0.95, "AverageAllocatedMb_pct95"),
    (0.99, "AverageAllocatedMb_pct99"),
    (1.0, "AverageAllocatedMb_pct100"),
];

/// Identifies the function of a row. Fields without a column in the table are empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FunctionKey {
    /// The owner of the application.
    pub owner: String,
    /// The application.
    pub application: String,
    /// The function; empty in a table with one row per application.
    pub function: String,
}

/// The calls of one function.
#[derive(Clone, Debug)]
pub struct FunctionCalls {
    /// Which function.
    pub key: FunctionKey,
    /// What triggers it.
    pub trigger: Trigger,
    /// Minutes with calls, counted from the first column, and the number of calls.
    pub minutes: Vec<(u32, u32)>,
}

/// The invocation table.
#[derive(Clone, Debug)]
pub struct Invocations {
    /// Number of minutes.
    pub minutes: u32,
    /// Functions in file order.
    pub functions: Vec<FunctionCalls>,
}

/// A table of percentiles per function or per application.
#[derive(Clone, Debug)]
pub struct PercentileTable {
    file: Box<str>,
    per_application: bool,
    rows: BTreeMap<FunctionKey, Quantiles>,
}

/// Reads an invocation table.
pub fn read_invocations(reader: impl Read, file: &str) -> Result<Invocations, TraceError> {
    let mut table = Table::open(reader, file)?;
    let names = KeyColumns::find(&table)?;
    table.required("HashFunction")?;
    let trigger = table.required("Trigger")?;
    let minutes = minute_columns(&table, file)?;
    let mut functions: Vec<FunctionCalls> = Vec::new();
    let mut seen = BTreeMap::new();
    while let Some(row) = table.next_row()? {
        let key = names.key(&row);
        if seen.insert(key.clone(), row.line).is_some() {
            return Err(row.duplicate(&key.function));
        }
        check_rows(functions.len(), file)?;
        let mut calls = Vec::new();
        for (minute, column) in minutes.clone().enumerate() {
            match row.count(column)? {
                0 => {}
                count => calls.push((minute as u32, count)),
            }
        }
        let trigger = read_trigger(&row, trigger)?;
        functions.push(FunctionCalls { key, trigger, minutes: calls });
    }
    if functions.is_empty() {
        return Err(TraceError::Empty { file: file.into() });
    }
    Ok(Invocations { minutes: minutes.len() as u32, functions })
}

/// Reads a duration table, in milliseconds.
pub fn read_durations(reader: impl Read, file: &str) -> Result<PercentileTable, TraceError> {
    let limits = &demand().duration;
    read_percentiles(
        reader,
        file,
        &DURATION_COLUMNS,
        Interval { low: limits.low_ms, high: limits.high_ms },
    )
}

/// Reads a memory table, per function or per application. Its megabytes are interpreted as MiB.
pub fn read_memory(reader: impl Read, file: &str) -> Result<PercentileTable, TraceError> {
    let limits = &demand().memory;
    read_percentiles(
        reader,
        file,
        &MEMORY_COLUMNS,
        Interval { low: limits.low_mib, high: limits.high_mib },
    )
}

fn read_percentiles(
    reader: impl Read,
    file: &str,
    wanted: &[(f64, &str)],
    allowed: Interval,
) -> Result<PercentileTable, TraceError> {
    let mut table = Table::open(reader, file)?;
    let names = KeyColumns::find(&table)?;
    let mut columns = Vec::new();
    for &(probability, name) in wanted {
        columns.push((probability, table.required(name)?));
    }
    let mut rows = BTreeMap::new();
    while let Some(row) = table.next_row()? {
        check_rows(rows.len(), file)?;
        let mut points = Vec::with_capacity(columns.len());
        for &(probability, column) in &columns {
            points.push((probability, row.number(column)?));
        }
        let key = names.key(&row);
        if rows.insert(key, Quantiles::new(points, allowed.low, allowed.high)).is_some() {
            let key = names.key(&row);
            let name = if names.function.is_some() { &key.function } else { &key.application };
            return Err(row.duplicate(name));
        }
    }
    if rows.is_empty() {
        return Err(TraceError::Empty { file: file.into() });
    }
    Ok(PercentileTable { file: file.into(), per_application: names.function.is_none(), rows })
}

/// Joins the three tables. A function that is missing from one of them is an error, or is skipped.
pub(crate) fn join(
    invocations: &Invocations,
    called_in: &str,
    tables: (&PercentileTable, &PercentileTable),
    skip_incomplete: bool,
) -> Result<Vec<Option<FunctionFacts>>, TraceError> {
    let (durations, memory) = tables;
    let mut names = BTreeMap::new();
    for calls in &invocations.functions {
        *names.entry(calls.key.function.as_str()).or_insert(0) += 1;
    }
    let facts = invocations.functions.iter().enumerate().map(|(member, calls)| {
        let found = (durations.find(&calls.key, called_in), memory.find(&calls.key, called_in));
        let (duration_ms, memory_mib) = match found {
            (Ok(duration), Ok(memory)) => (duration, memory),
            _ if skip_incomplete => return Ok(None),
            (Err(error), _) | (_, Err(error)) => return Err(error),
        };
        let key = &calls.key;
        // Functions of different applications may share a name; then the full key is used as the name.
        let name = match names[key.function.as_str()] {
            1 => key.function.clone(),
            _ => format!("{}/{}/{}", key.owner, key.application, key.function),
        };
        let application = if key.application.is_empty() { &name } else { &key.application };
        Ok(Some(FunctionFacts {
            member: member as u64,
            application: application.clone(),
            name,
            trigger: calls.trigger,
            duration_ms: Some(duration_ms.clone()),
            memory_mib: Some(memory_mib.clone()),
            reservation: None,
        }))
    });
    facts.collect()
}

impl PercentileTable {
    /// Number of rows: functions or applications.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the table has no rows; a table that was read has at least one.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn find(&self, key: &FunctionKey, called_in: &str) -> Result<&Quantiles, TraceError> {
        let found = if self.per_application {
            self.rows.get(&FunctionKey { function: String::new(), ..key.clone() })
        } else {
            self.rows.get(key)
        };
        found.ok_or_else(|| TraceError::MissingFunction {
            file: self.file.clone(),
            function: shortened(&key.function),
            called_in: called_in.into(),
        })
    }
}

/// The columns that identify the function of a row.
struct KeyColumns {
    owner: Option<usize>,
    application: Option<usize>,
    function: Option<usize>,
}

impl KeyColumns {
    fn find(table: &Table<'_>) -> Result<Self, TraceError> {
        let columns = Self {
            owner: table.column("HashOwner"),
            application: table.column("HashApp"),
            function: table.column("HashFunction"),
        };
        if columns.function.is_none() && columns.application.is_none() {
            return Err(table.missing("HashFunction"));
        }
        Ok(columns)
    }

    fn key(&self, row: &Row<'_>) -> FunctionKey {
        let text = |column: Option<usize>| column.map_or("", |column| row.text(column)).to_owned();
        FunctionKey {
            owner: text(self.owner),
            application: text(self.application),
            function: text(self.function),
        }
    }
}

/// Finds the columns named by minutes; they must be the last ones and consecutive.
fn minute_columns(table: &Table<'_>, file: &str) -> Result<std::ops::Range<usize>, TraceError> {
    let header = table.header();
    let number = |column: &String| column.parse::<u32>().ok();
    let first = header.iter().position(|column| number(column).is_some());
    let first = first.ok_or_else(|| table.missing("1"))?;
    for (place, column) in header.iter().enumerate().skip(first + 1) {
        let previous = &header[place - 1];
        if number(column) != number(previous).and_then(|minute| minute.checked_add(1)) {
            return Err(TraceError::OutOfOrder {
                file: file.into(),
                line: 1,
                value: shortened(column),
                previous: shortened(previous),
                rule: "minute columns must follow each other",
            });
        }
    }
    if header.len() - first > MAX_MINUTES {
        return Err(TraceError::TooLarge {
            file: file.into(),
            limit: MAX_MINUTES as u64,
            what: "minutes",
        });
    }
    Ok(first..header.len())
}

fn check_rows(rows: usize, file: &str) -> Result<(), TraceError> {
    if rows as u64 >= MAX_ROWS {
        return Err(TraceError::TooLarge { file: file.into(), limit: MAX_ROWS, what: "functions" });
    }
    Ok(())
}

fn read_trigger(row: &Row<'_>, column: usize) -> Result<Trigger, TraceError> {
    Ok(match row.text(column) {
        "http" => Trigger::Http,
        "timer" => Trigger::Timer,
        "queue" => Trigger::Queue,
        "orchestration" => Trigger::Orchestration,
        "event" => Trigger::Event,
        "storage" => Trigger::Storage,
        "others" | "other" | "" => Trigger::Other,
        _ => {
            let known = "http, timer, queue, orchestration, event, storage or others";
            return Err(row.refused(column, known));
        }
    })
}
