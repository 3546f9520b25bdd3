//! The thread that writes history. It takes what is queued, writes it in one transaction, and applies the retention
//! bounds; a disk that does not take it is tried again, and rows that wait too long are dropped by the queue.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::retention::Retention;
use super::row::Row;
use super::schema;

/// Rows in one transaction at most.
const BATCH: usize = 4096;
/// How long rows are collected before they are written.
const EVERY: Duration = Duration::from_millis(250);
/// How often the retention bounds are applied.
const TIDY_EVERY: Duration = Duration::from_secs(60);

/// What the writer reports to the loop.
#[derive(Default)]
pub(super) struct WriterState {
    pub(super) problem: Mutex<Option<String>>,
    pub(super) dropped: AtomicU64,
    pub(super) written: AtomicU64,
}

impl WriterState {
    pub(super) fn set_problem(&self, problem: Option<String>) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }
}

/// Starts the thread that writes what comes through `rows` to `file`. It ends when the other end is dropped.
pub(super) fn start(
    file: PathBuf,
    rows: Receiver<Row>,
    state: Arc<WriterState>,
    retention: Retention,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("database".to_owned()).spawn(move || {
        let mut writer =
            Writer { file, state, retention, connection: None, tidied: Instant::now() };
        writer.run(&rows);
    })
}

struct Writer {
    file: PathBuf,
    state: Arc<WriterState>,
    retention: Retention,
    connection: Option<Connection>,
    tidied: Instant,
}

impl Writer {
    fn run(&mut self, rows: &Receiver<Row>) {
        let mut batch = Vec::new();
        loop {
            let is_over = collect(rows, &mut batch);
            self.flush(&mut batch);
            if is_over {
                return;
            }
        }
    }

    /// Writes `batch` or drops it with a count.
    fn flush(&mut self, batch: &mut Vec<Row>) {
        let rows = batch.iter().filter(|row| !matches!(row, Row::Flush(_))).count() as u64;
        if rows > 0 || self.tidied.elapsed() > TIDY_EVERY {
            match self.write(batch) {
                Ok(()) => {
                    self.state.written.fetch_add(rows, Ordering::Relaxed);
                    self.state.set_problem(None);
                }
                Err(error) => {
                    // A new connection next time: the file may have been replaced or the disk made room.
                    self.connection = None;
                    self.state.dropped.fetch_add(rows, Ordering::Relaxed);
                    self.state.set_problem(Some(error));
                    std::thread::sleep(EVERY);
                }
            }
        }
        for row in batch.drain(..) {
            if let Row::Flush(done) = row {
                answer(&done);
            }
        }
    }

    fn write(&mut self, batch: &[Row]) -> Result<(), String> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(schema::open(&self.file).map_err(|error| error.to_string())?),
        };
        let mut all = || -> rusqlite::Result<()> {
            let transaction = connection.transaction()?;
            for row in batch {
                row.write(&transaction)?;
            }
            transaction.commit()?;
            if self.tidied.elapsed() > TIDY_EVERY {
                self.tidied = Instant::now();
                self.retention.apply(connection)?;
            }
            Ok(())
        };
        all().map_err(|error| error.to_string())
    }
}

fn answer(done: &SyncSender<()>) {
    // Whoever waited may have given up.
    let _ = done.try_send(());
}

/// Collects what is queued for a moment; true when nobody can send any more.
fn collect(rows: &Receiver<Row>, into: &mut Vec<Row>) -> bool {
    let until = Instant::now() + EVERY;
    while into.len() < BATCH {
        match rows.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(row) => {
                let is_flush = matches!(row, Row::Flush(_));
                into.push(row);
                if is_flush {
                    return false;
                }
            }
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => return true,
        }
    }
    false
}
