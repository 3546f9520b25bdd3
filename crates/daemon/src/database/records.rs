//! The control thread's side of the database.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, Transaction, params};
use windfall_core::{Allocation, CallRecord, FunctionProfile, Timestamp};

use super::retention::Retention;
use super::row::{Row, write_function};
use super::writer::{self, WriterState};
use super::{DatabaseError, schema};
use crate::governance::Hold;
use crate::learning::Version;
use crate::live::TapeEntry;

/// Rows that may wait for the writer: eight seconds at 2,000 a second.
const QUEUE: usize = 16_384;

/// A size that was granted instead of the user's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The name of the function.
    pub function: String,
    /// Millicores.
    pub cpu: u32,
    /// MiB.
    pub memory: u32,
}

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

/// Where the manager writes; nowhere, if it keeps no database.
#[derive(Default)]
pub struct Records {
    open: Option<Open>,
    names: Vec<String>,
    problem: Option<String>,
}

struct Open {
    file: PathBuf,
    connection: Connection,
    rows: SyncSender<Row>,
    state: Arc<WriterState>,
    writer: Option<JoinHandle<()>>,
    earlier: Option<EarlierRun>,
    began_ms: i64,
}

impl Records {
    /// Nothing is written: for tests and short runs.
    pub fn nowhere() -> Self {
        Self::default()
    }

    /// Opens `file`, reads what an earlier run has left, and starts the writer.
    pub fn open(file: &Path, retention: Retention) -> Result<Self, DatabaseError> {
        let connection = schema::open(file)?;
        let earlier = read_earlier(&connection)?;
        set(&connection, "closed", "0")?;
        let (rows, queue) = sync_channel(QUEUE);
        let state = Arc::new(WriterState::default());
        let writer = writer::start(file.to_owned(), queue, Arc::clone(&state), retention)
            .map_err(|source| DatabaseError::File { file: file.display().to_string(), source })?;
        let open = Open {
            file: file.to_owned(),
            connection,
            rows,
            state,
            writer: Some(writer),
            earlier,
            began_ms: unix_ms(),
        };
        Ok(Self { open: Some(open), ..Self::default() })
    }

    /// The file, if there is one.
    pub fn file(&self) -> Option<&Path> {
        self.open.as_ref().map(|open| open.file.as_path())
    }

    /// What an earlier run has left; once.
    pub fn earlier_run(&mut self) -> Option<EarlierRun> {
        self.open.as_mut()?.earlier.take()
    }

    /// What is wrong, if anything is.
    pub fn problem(&self) -> Option<String> {
        let open = self.open.as_ref()?;
        let of_writer = open.state.problem.lock().map_or(None, |problem| problem.clone());
        of_writer.or_else(|| self.problem.clone())
    }

    /// Rows of history that were not written.
    pub fn dropped(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.state.dropped.load(Ordering::Relaxed))
    }

    /// Rows of history that were written.
    pub fn written(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.state.written.load(Ordering::Relaxed))
    }

    /// Functions that were written down in this run.
    pub fn functions_known(&self) -> usize {
        self.names.len()
    }

    /// Writes functions down; the first one is number `first`.
    pub fn functions(&mut self, first: usize, functions: &[FunctionProfile]) {
        self.names.truncate(first);
        self.names.extend(functions.iter().map(|function| function.name.clone()));
        self.commit(|transaction| {
            functions.iter().try_for_each(|one| write_function(transaction, unix_ms(), one))
        });
    }

    /// A call has ended at `now`.
    pub fn call(&self, now: Timestamp, call: &CallRecord) {
        let function = || self.names.get(call.function.index()).cloned().unwrap_or_default();
        self.queue(|open| Row::Call {
            at_ms: open.at_ms(now.as_secs_f64()),
            function: function(),
            call: Box::new(call.clone()),
        });
    }

    /// Something is on the tape.
    pub fn decision(&self, entry: &TapeEntry) {
        let function = || entry.function.and_then(|place| self.names.get(place as usize)).cloned();
        self.queue(|open| Row::Decision {
            at_ms: open.at_ms(entry.at),
            function: function(),
            entry: Box::new(entry.clone()),
        });
    }

    /// A version of the policy was offered.
    pub fn version(&self, version: &Version) {
        self.queue(|open| Row::Version {
            at_ms: open.at_ms(version.at),
            version: Box::new(version.clone()),
        });
    }

    fn queue(&self, row: impl FnOnce(&Open) -> Row) {
        if let Some(open) = &self.open
            && let Err(TrySendError::Full(_)) = open.rows.try_send(row(open))
        {
            open.state.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// An order was given and answered.
    pub fn audit(&mut self, by: &str, what: &str, answer: &str) {
        self.commit(|to| {
            let sql = "INSERT INTO audit (at_ms, by, what, answer) VALUES (?1,?2,?3,?4)";
            to.prepare_cached(sql)?.execute(params![unix_ms(), by, what, answer]).map(|_| ())
        });
    }

    /// A setting of the manager.
    pub fn setting(&mut self, name: &str, value: &str) {
        self.commit(|to| set(to, name, value));
    }

    /// An order about a function.
    pub fn hold(&mut self, function: &str, hold: Option<Hold>) {
        self.commit(|to| {
            let (kind, size) = match hold {
                None => {
                    to.execute("DELETE FROM holds WHERE function = ?1", [function])?;
                    return Ok(());
                }
                Some(Hold::Paused) => ("paused", None),
                Some(Hold::Pinned { size }) => ("pinned", Some(size)),
            };
            let (cpu, memory) = (size.map(|it| it.cpu.get()), size.map(|it| it.memory.get()));
            let sql = "INSERT OR REPLACE INTO holds VALUES (?1,?2,?3,?4)";
            to.execute(sql, params![function, kind, cpu, memory]).map(|_| ())
        });
    }

    /// An objective that a user has set or taken back.
    pub fn objective(&mut self, function: &str, target_ms: Option<f64>) {
        self.commit(|to| match target_ms {
            Some(target) => {
                let sql = "INSERT OR REPLACE INTO objectives VALUES (?1,?2,0.99)";
                to.execute(sql, params![function, target]).map(|_| ())
            }
            None => {
                to.execute("DELETE FROM objectives WHERE function = ?1", [function]).map(|_| ())
            }
        });
    }

    /// Writes down what is about to be granted. When this returns without an error it is on disk.
    pub fn grant(&mut self, grants: &[Grant]) -> Result<(), String> {
        self.commit(|to| {
            let mut insert =
                to.prepare_cached("INSERT OR REPLACE INTO grants VALUES (?1,?2,?3,?4)")?;
            for Grant { function, cpu, memory } in grants {
                insert.execute(params![function, cpu, memory, unix_ms()])?;
            }
            Ok(())
        });
        match &self.problem {
            Some(problem) => Err(problem.clone()),
            None => Ok(()),
        }
    }

    /// These functions were seen at their own size.
    pub fn forget_grants(&mut self, functions: &[&str]) {
        self.commit(|to| {
            let mut delete = to.prepare_cached("DELETE FROM grants WHERE function = ?1")?;
            functions.iter().try_for_each(|name| delete.execute([name]).map(|_| ()))
        });
    }

    /// One transaction on the loop's own connection. A failure is kept as the problem until the next success.
    fn commit(&mut self, write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>) {
        let Some(open) = &mut self.open else { return };
        let connection = &mut open.connection;
        let all = || -> rusqlite::Result<()> {
            let transaction = connection.transaction()?;
            write(&transaction)?;
            transaction.commit()
        };
        self.problem = all().err().map(|error| error.to_string());
    }

    /// Waits until everything queued so far is on disk.
    pub fn flush(&self) {
        if let Some(open) = &self.open {
            let (done, wait) = sync_channel(1);
            if open.rows.send(Row::Flush(done)).is_ok() {
                // A disk that does not take it must not keep the manager from stopping.
                let _ = wait.recv_timeout(Duration::from_secs(5));
            }
        }
    }

    /// Closes the database; `is_whole` says that every function has its own allocation.
    pub fn close(&mut self, is_whole: bool) {
        self.flush();
        if is_whole {
            self.commit(|to| to.execute("DELETE FROM grants", []).map(|_| ()));
        }
        self.setting("closed", "1");
        if let Some(Open { rows, writer, connection, .. }) = self.open.take() {
            drop((rows, connection));
            if let Some(writer) = writer {
                // The thread ends with the queue; a panic in it was an error of ours and leaves the file as it is.
                let _ = writer.join();
            }
        }
    }
}

impl Open {
    fn at_ms(&self, seconds_since_start: f64) -> i64 {
        self.began_ms + (seconds_since_start * 1e3) as i64
    }
}

/// Milliseconds since 1970 by the system's clock; for labels only, nothing is timed by it.
pub(crate) fn unix_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

fn set(to: &Connection, name: &str, value: &str) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO settings VALUES (?1,?2)";
    to.execute(sql, params![name, value]).map(|_| ())
}

/// What the file remembers; nothing if it is new.
fn read_earlier(connection: &Connection) -> rusqlite::Result<Option<EarlierRun>> {
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
        holds: read_holds(connection)?,
        objectives: read_pairs(connection, "SELECT function, target_ms FROM objectives")?,
        grants: read_grants(connection)?,
    }))
}

fn read_pairs(connection: &Connection, sql: &str) -> rusqlite::Result<BTreeMap<String, f64>> {
    let mut statement = connection.prepare(sql)?;
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn read_grants(connection: &Connection) -> rusqlite::Result<Vec<Grant>> {
    let mut statement = connection.prepare("SELECT function, millicpu, mib FROM grants")?;
    let grant = |row: &rusqlite::Row<'_>| {
        Ok(Grant { function: row.get(0)?, cpu: row.get(1)?, memory: row.get(2)? })
    };
    statement.query_map([], grant)?.collect()
}

fn read_holds(connection: &Connection) -> rusqlite::Result<BTreeMap<String, Hold>> {
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
