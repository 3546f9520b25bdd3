//! The loop's own connection: what a restart depends on is committed before it takes effect, or kept until it can be.
//!
//! A disk that is full, read-only or gone is a state to report and not an end: the connection is opened again, at most
//! once a second, and orders that could not be written are written then.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, Transaction};

use super::{DatabaseError, schema};

/// How often a connection that failed is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Orders that wait for the disk at most; the oldest are given up first.
const MOST_WAITING: usize = 1000;

/// A write that can be tried again.
type Write = Box<dyn Fn(&Transaction<'_>) -> rusqlite::Result<()> + Send>;

/// The connection, or what is wrong with it.
pub(super) struct Durable {
    file: PathBuf,
    connection: Option<Connection>,
    failed_at: Option<Instant>,
    problem: Option<String>,
    waiting: VecDeque<Write>,
}

impl Durable {
    /// Opens `file`. Only a file of a later version is an error; anything else is a problem that may pass.
    pub(super) fn open(file: &Path) -> Result<Self, DatabaseError> {
        let mut durable = Self {
            file: file.to_owned(),
            connection: None,
            failed_at: None,
            problem: None,
            waiting: VecDeque::new(),
        };
        match schema::open(file) {
            Ok(connection) => durable.connection = Some(connection),
            Err(error @ DatabaseError::TooNew { .. }) => return Err(error),
            Err(error) => durable.fail(error.to_string()),
        }
        Ok(durable)
    }

    /// What is wrong, if anything is.
    pub(super) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Reads with whatever connection there is; a file that cannot be written is opened for reading alone.
    pub(super) fn read<T>(
        &self,
        read: impl Fn(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        match &self.connection {
            Some(connection) => read(connection),
            None => read(&read_only(&self.file)?),
        }
    }

    /// Commits `write`, or says why not.
    pub(super) fn now(
        &mut self,
        write: impl Fn(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), String> {
        let done = self.attempt(&write);
        match &done {
            Ok(()) => (self.problem, self.failed_at) = (None, None),
            Err(problem) => self.fail(problem.clone()),
        }
        done
    }

    /// Commits `write`, as soon as it can be.
    pub(super) fn eventually(
        &mut self,
        write: impl Fn(&Transaction<'_>) -> rusqlite::Result<()> + Send + 'static,
    ) {
        if self.waiting.len() == MOST_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Box::new(write));
        self.write_waiting();
    }

    /// Tries again after a failure, if it is time to.
    pub(super) fn tend(&mut self) {
        if self.problem.is_some() || !self.waiting.is_empty() {
            self.write_waiting();
        }
    }

    fn write_waiting(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        let all = |to: &Transaction<'_>| {
            waiting.iter().try_for_each(|write| write(to))?;
            // Something is always written: a transaction without a change would prove nothing about the disk.
            schema::set(to, "closed", "0")
        };
        if self.now(all).is_err() {
            self.waiting = waiting;
        }
    }

    fn attempt(
        &mut self,
        write: &dyn Fn(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), String> {
        if let (Some(failed_at), Some(problem)) = (self.failed_at, &self.problem)
            && failed_at.elapsed() < AGAIN_AFTER
        {
            return Err(problem.clone());
        }
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(schema::open(&self.file).map_err(|error| error.to_string())?),
        };
        let mut all = || -> rusqlite::Result<()> {
            let transaction = connection.transaction()?;
            write(&transaction)?;
            transaction.commit()
        };
        all().map_err(|error| error.to_string())
    }

    fn fail(&mut self, problem: String) {
        // A file that was read-only when it was opened stays so for this connection.
        self.connection = None;
        if self.problem.as_ref() != Some(&problem) {
            tracing::warn!(file = %self.file.display(), problem, "the database takes nothing");
        }
        let is_new = self.failed_at.is_none_or(|at| at.elapsed() >= AGAIN_AFTER);
        if is_new {
            self.failed_at = Some(Instant::now());
        }
        self.problem = Some(problem);
    }
}

/// A connection for reading alone. Without its log beside it, a file on a read-only disk can only be read as it is.
fn read_only(file: &Path) -> rusqlite::Result<Connection> {
    let open = |name: &str| {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(name, flags)?;
        connection
            .query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get::<_, i64>(0))?;
        Ok(connection)
    };
    let name =
        file.display().to_string().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    open(&format!("file:{name}"))
        .or_else(|_: rusqlite::Error| open(&format!("file:{name}?immutable=1")))
}
