//! The control thread's side of the database.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::params;
use windfall_core::{CallRecord, FunctionProfile, Timestamp};

use super::durable::Durable;
use super::earlier::{self, EarlierRun};
use super::retention::Retention;
use super::row::{Row, write_function};
use super::writer::{self, WriterState};
use super::{DatabaseError, schema};
use crate::governance::Hold;
use crate::learning::Version;
use crate::live::TapeEntry;
use crate::supervisor::Named;

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

/// Where the manager writes; nowhere, if it keeps no database.
#[derive(Default)]
pub struct Records {
    open: Option<Open>,
    names: Vec<String>,
}

struct Open {
    durable: Durable,
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

    /// Opens `file`, reads what an earlier run has left, and starts the writer. A file that cannot be written now is
    /// reported as a problem and tried again, so that a full disk does not keep a manager from starting.
    pub fn open(file: &Path, retention: Retention) -> Result<Self, DatabaseError> {
        let mut durable = Durable::open(file)?;
        let earlier = durable.read(earlier::read).unwrap_or_default();
        durable.eventually(|to| schema::set(to, "closed", "0"));
        let (rows, queue) = sync_channel(QUEUE);
        let state = Arc::new(WriterState::default());
        let writer = writer::start(file.to_owned(), queue, Arc::clone(&state), retention)
            .map_err(|source| DatabaseError::File { file: file.display().to_string(), source })?;
        let open =
            Open { durable, rows, state, writer: Some(writer), earlier, began_ms: unix_ms() };
        Ok(Self { open: Some(open), ..Self::default() })
    }

    /// What an earlier run has left; once.
    pub fn earlier_run(&mut self) -> Option<EarlierRun> {
        self.open.as_mut()?.earlier.take()
    }

    /// What is wrong, if anything is.
    pub fn problem(&self) -> Option<String> {
        let open = self.open.as_ref()?;
        let of_writer = open.state.problem.lock().map_or(None, |problem| problem.clone());
        of_writer.or_else(|| open.durable.problem().map(str::to_owned))
    }

    /// The last version of the policy that was kept, in this run or an earlier one.
    pub fn version_kept(&self) -> Option<Named> {
        self.open.as_ref()?.durable.read(earlier::version).ok()?
    }

    /// Keeps the version that is in charge for the next start, unless it is the one that is kept already.
    pub fn checkpoint(&mut self, version: &Named) {
        if self.version_kept().as_ref() == Some(version) {
            return;
        }
        let policy = version.policy.clone();
        let content = toml::to_string(&version.settings).unwrap_or_default();
        self.eventually(move |to| {
            let sql = "INSERT INTO checkpoints (at_ms, policy, content) VALUES (?1,?2,?3)";
            to.execute(sql, params![unix_ms(), policy, content]).map(|_| ())
        });
    }

    /// Tries again what the disk did not take, if it is time to.
    pub fn tend(&mut self) {
        if let Some(open) = &mut self.open {
            open.durable.tend();
        }
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
        let functions = functions.to_vec();
        self.eventually(move |to| {
            functions.iter().try_for_each(|one| write_function(to, unix_ms(), one))
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
        let (by, what, answer) = (by.to_owned(), what.to_owned(), answer.to_owned());
        let at_ms = unix_ms();
        self.eventually(move |to| {
            let sql = "INSERT INTO audit (at_ms, by, what, answer) VALUES (?1,?2,?3,?4)";
            to.prepare_cached(sql)?.execute(params![at_ms, by, what, answer]).map(|_| ())
        });
    }

    /// A setting of the manager.
    pub fn setting(&mut self, name: &str, value: &str) {
        let (name, value) = (name.to_owned(), value.to_owned());
        self.eventually(move |to| schema::set(to, &name, &value));
    }

    /// An order about a function.
    pub fn hold(&mut self, function: &str, hold: Option<Hold>) {
        let function = function.to_owned();
        self.eventually(move |to| {
            let (kind, size) = match hold {
                None => {
                    to.execute("DELETE FROM holds WHERE function = ?1", [&function])?;
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
        let function = function.to_owned();
        self.eventually(move |to| match target_ms {
            Some(target) => {
                let sql = "INSERT OR REPLACE INTO objectives VALUES (?1,?2,0.99)";
                to.execute(sql, params![function, target]).map(|_| ())
            }
            None => {
                to.execute("DELETE FROM objectives WHERE function = ?1", [&function]).map(|_| ())
            }
        });
    }

    /// Writes down what is about to be granted. When this returns without an error it is on disk.
    pub fn grant(&mut self, grants: &[Grant]) -> Result<(), String> {
        let Some(open) = &mut self.open else { return Ok(()) };
        open.durable.now(|to| {
            let mut insert =
                to.prepare_cached("INSERT OR REPLACE INTO grants VALUES (?1,?2,?3,?4)")?;
            for Grant { function, cpu, memory } in grants {
                insert.execute(params![function, cpu, memory, unix_ms()])?;
            }
            Ok(())
        })
    }

    /// These functions were seen at their own size.
    pub fn forget_grants(&mut self, functions: &[&str]) {
        let Some(open) = &mut self.open else { return };
        // What stays on record is restored once more after a restart, which does no harm.
        let _ = open.durable.now(|to| {
            let mut delete = to.prepare_cached("DELETE FROM grants WHERE function = ?1")?;
            functions.iter().try_for_each(|name| delete.execute([name]).map(|_| ()))
        });
    }

    fn eventually(
        &mut self,
        write: impl Fn(&rusqlite::Transaction<'_>) -> rusqlite::Result<()> + Send + 'static,
    ) {
        if let Some(open) = &mut self.open {
            open.durable.eventually(write);
        }
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
        if let Some(Open { rows, writer, mut durable, .. }) = self.open.take() {
            // A disk that takes nothing keeps what it has: the next start takes it up.
            let _ = durable.now(|to| {
                if is_whole {
                    to.execute("DELETE FROM grants", [])?;
                }
                schema::set(to, "closed", "1")
            });
            drop((rows, durable));
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
