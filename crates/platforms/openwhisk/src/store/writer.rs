//! The one thread that writes.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::queue::{Queue, Write};
use super::{Pending, Record, Retention, StoreError};

/// Pauses before a refused batch is tried again; then its records are given up.
const RETRIES: [Duration; 4] = [
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_secs(1),
];

/// Old records are looked for after so many new ones, or after so long.
const TIDY_RECORDS: u64 = 1_000;
const TIDY_TIME: Duration = Duration::from_mins(1);
/// At least so many may be removed at a time; twice as many as came in, if that is more, so that a store that is too
/// full gets smaller under any load.
const TIDY_CHUNK: u64 = 2_048;

pub(super) fn spawn(
    connection: Connection,
    queue: Arc<Queue>,
    retention: Retention,
) -> io::Result<JoinHandle<()>> {
    let writer = Writer {
        connection,
        retention,
        is_durable: true,
        untidied: TIDY_RECORDS,
        tidied: Instant::now(),
    };
    thread::Builder::new().name("windfall-store".to_owned()).spawn(move || writer.run(&queue))
}

struct Writer {
    connection: Connection,
    retention: Retention,
    /// Whether the connection is at `synchronous=FULL`.
    is_durable: bool,
    /// Records since the last look for old ones.
    untidied: u64,
    tidied: Instant,
}

impl Writer {
    fn run(mut self, queue: &Queue) {
        let mut batch = Vec::new();
        while queue.take(&mut batch) {
            let outcome = self.write_with_retries(&batch);
            if outcome.is_err() {
                let records = batch.iter().filter(|write| matches!(write, Write::Finished(_)));
                queue.drop_records(records.count() as u64);
            }
            queue.release(&batch);
            for write in batch.drain(..) {
                answer(write, &outcome);
            }
            self.tidy();
        }
        // Everything is committed already; this only spares the next start the reading of the log.
        let _ = self.connection.pragma_update(None, "wal_checkpoint", "TRUNCATE");
    }

    fn write_with_retries(&mut self, batch: &[Write]) -> rusqlite::Result<()> {
        for pause in RETRIES {
            match self.write(batch) {
                Err(_) => thread::sleep(pause),
                done => return done,
            }
        }
        self.write(batch)
    }

    fn write(&mut self, batch: &[Write]) -> rusqlite::Result<()> {
        let is_durable = batch.iter().any(Write::is_durable);
        if is_durable != self.is_durable {
            let level = if is_durable { "FULL" } else { "NORMAL" };
            self.connection.pragma_update(None, "synchronous", level)?;
            self.is_durable = is_durable;
        }
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for write in batch {
            self.untidied += apply(&transaction, write)?;
        }
        transaction.commit()
    }

    /// Removes what is too old or too much. A failure is not the caller's: it is tried again with the next batch.
    fn tidy(&mut self) {
        if self.untidied < TIDY_RECORDS && self.tidied.elapsed() < TIDY_TIME {
            return;
        }
        let chunk = TIDY_CHUNK.max(2 * self.untidied);
        self.untidied = 0;
        self.tidied = Instant::now();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let oldest = now.saturating_sub(self.retention.age).as_millis() as i64;
        let records = i64::try_from(self.retention.records).unwrap_or(i64::MAX);
        // `sequence` grows with every record, so the first rows are the oldest ones.
        let removed = self.connection.execute(
            "DELETE FROM activations WHERE status IS NOT NULL AND sequence IN (
                 SELECT sequence FROM (SELECT sequence, start FROM activations ORDER BY sequence LIMIT ?1)
                 WHERE start < ?2 OR sequence <= (SELECT max(sequence) FROM activations) - ?3)",
            params![chunk as i64, oldest, records],
        );
        if removed.is_ok_and(|rows| rows as u64 == chunk) {
            self.untidied = TIDY_RECORDS;
        }
    }
}

/// Carries one write out and returns how many records it added.
fn apply(to: &Transaction<'_>, write: &Write) -> rusqlite::Result<u64> {
    match write {
        Write::Put { name, body, .. } => {
            to.prepare_cached(
                "INSERT INTO entities (namespace, path, body) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET body = excluded.body",
            )?
            .execute(params![name.namespace().as_str(), name.path(), body])?;
            Ok(0)
        }
        Write::Remove { name, .. } => {
            to.prepare_cached("DELETE FROM entities WHERE namespace = ?1 AND path = ?2")?
                .execute(params![name.namespace().as_str(), name.path()])?;
            Ok(0)
        }
        Write::Key { namespace, key, .. } => {
            to.prepare_cached(
                "INSERT INTO callers (namespace, key) VALUES (?1, ?2)
                 ON CONFLICT DO UPDATE SET key = excluded.key",
            )?
            .execute(params![namespace.as_str(), key])?;
            Ok(0)
        }
        Write::Accepted { pending, .. } => {
            pending.iter().try_for_each(|one| accept(to, one))?;
            Ok(pending.len() as u64)
        }
        Write::Finished(record) => finish(to, record),
        Write::Barrier { .. } => Ok(0),
    }
}

/// A pending row, unless the call has ended already.
fn accept(to: &Transaction<'_>, Pending { record, parameters }: &Pending) -> rusqlite::Result<()> {
    to.prepare_cached(
        "INSERT INTO activations (id, namespace, path, start, record, parameters)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
    )?
    .execute(params![
        record.id.as_bytes(),
        record.namespace.as_str(),
        record.path,
        record.start as i64,
        &record.json[..],
        &parameters[..],
    ])
    .map(drop)
}

fn finish(to: &Transaction<'_>, record: &Record) -> rusqlite::Result<u64> {
    to.prepare_cached(
        "INSERT INTO activations (id, namespace, path, start, status, record)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (id) DO UPDATE SET
             start = excluded.start, status = excluded.status, record = excluded.record,
             parameters = NULL",
    )?
    .execute(params![
        record.id.as_bytes(),
        record.namespace.as_str(),
        record.path,
        record.start as i64,
        record.status,
        &record.json[..],
    ])?;
    Ok(1)
}

fn answer(write: Write, outcome: &rusqlite::Result<()>) {
    let done = match write {
        Write::Put { done, .. }
        | Write::Remove { done, .. }
        | Write::Key { done, .. }
        | Write::Accepted { done, .. }
        | Write::Barrier { done } => done,
        Write::Finished(_) => return,
    };
    let outcome =
        outcome.as_ref().map(|&()| ()).map_err(|why| StoreError::Refused(why.to_string()));
    // Whoever asked may have gone away.
    let _ = done.send(outcome);
}
