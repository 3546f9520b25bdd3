//! Entities and activation records in one SQLite file.
//!
//! ```text
//!  calls ──► queue (bounded by bytes) ──► writer thread ──► one transaction per batch ──► WAL
//!  reads ──► barrier, then a connection of their own; WAL readers never block the writer
//! ```
//!
//! What has to survive a power cut before anyone is answered (entities, keys, accepted calls) is committed with
//! `synchronous=FULL`. Records of calls that were answered already are committed with `NORMAL`: they survive a killed
//! process, and a power cut may take the last of them but never leaves half of one.

mod queue;
mod reader;
mod schema;
mod writer;

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::activation_id::ActivationId;
use crate::entity::Entity;
use crate::identity::{Identity, Key};
use crate::name::{EntityName, FullName};
use queue::{Queue, Write};
use reader::Readers;
pub(crate) use reader::RecordFilter;

/// How long records are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// The most records.
    pub records: u64,
    /// The oldest record.
    pub age: Duration,
}

impl Default for Retention {
    /// 100,000 records, a week.
    fn default() -> Self {
        Self { records: 100_000, age: Duration::from_hours(7 * 24) }
    }
}

/// What can be chosen about the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// How long records are kept.
    pub retention: Retention,
    /// Bytes of records that may wait for the writer before calls wait for it.
    pub queue_bytes: usize,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self { retention: Retention::default(), queue_bytes: 64 << 20 }
    }
}

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Fatal: the file cannot be read or written.
    #[error("{path}: {source}", path = .path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite reports.
        source: rusqlite::Error,
    },
    /// Fatal: the file cannot be opened at all.
    #[error("{path}: {source}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system reports.
        source: std::io::Error,
    },
    /// Fatal: another process has the store open.
    #[error("{path} is in use by another process", path = .0.display())]
    InUse(PathBuf),
    /// Fatal: the file is damaged.
    #[error("{path} is damaged: {what}", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first problem.
        what: String,
    },
    /// Fatal: a newer version wrote the file.
    #[error("{path} has schema {found}; this version reads up to {known}", path = .path.display())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// What the file has.
        found: i64,
        /// What this version knows.
        known: i64,
    },
    /// Fatal: the system has no random numbers for a key.
    #[error("no random numbers for a key: {0}")]
    Random(#[from] getrandom::Error),
    /// Retryable: the disk refused a write.
    #[error("a write failed: {0}")]
    Refused(String),
    /// Fatal: the store is being closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// What to do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::InUse(_) => {
                Some("end the other process, or give this one a data folder of its own")
            }
            Self::Damaged { .. } => {
                Some("move the file away to begin with an empty store, or restore a copy of it")
            }
            Self::TooNew { .. } => {
                Some("use the newer version of windfall, or another data folder")
            }
            Self::File { .. } | Self::Sqlite { .. } | Self::Refused(_) => {
                Some("check that the folder exists, can be written and has room")
            }
            Self::Random(_) | Self::Closed => None,
        }
    }
}

/// One activation as the store keeps it.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) id: ActivationId,
    /// The namespace of the caller.
    pub(crate) namespace: EntityName,
    /// `name` or `package/name` of what was called.
    pub(crate) path: Box<str>,
    /// Milliseconds since 1970.
    pub(crate) start: u64,
    pub(crate) status: u8,
    /// The whole record in JSON, as clients get it.
    pub(crate) json: Bytes,
}

/// An accepted call as the store keeps it until it ends.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    /// The record it has if it never ends.
    pub(crate) record: Record,
    /// What it is called with, so that it can be begun again after a crash.
    pub(crate) parameters: Bytes,
}

/// A call that an earlier process had accepted and not ended.
#[derive(Debug)]
pub(crate) struct Unfinished {
    pub(crate) id: ActivationId,
    /// The namespace of the caller.
    pub(crate) namespace: EntityName,
    /// `name` or `package/name` of what was called.
    pub(crate) path: String,
    pub(crate) parameters: Bytes,
}

/// The records and entities of one platform. Cheap to clone; when the last clone is dropped, everything is written and
/// the writer thread ends.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    queue: Arc<Queue>,
    readers: Readers,
    writer: Option<JoinHandle<()>>,
    /// Held as long as the store is open, so that no second process takes our running calls for lost ones.
    _lock: File,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has nothing left to write.
            let _ = writer.join();
        }
    }
}

impl Store {
    /// Opens or creates the file, checks it, brings it to the current schema, and turns calls that were accepted, never
    /// ended and cannot be begun again into records with status 3.
    pub fn open(path: &Path, settings: StoreSettings) -> Result<Self, StoreError> {
        let lock = lock(path)?;
        let connection = schema::open(path)?;
        let queue = Arc::new(Queue::new(settings.queue_bytes));
        let readers = Readers::new(path);
        let writer = writer::spawn(connection, Arc::clone(&queue), settings.retention)
            .map_err(|source| StoreError::File { path: path.to_owned(), source })?;
        let inner =
            Inner { path: path.to_owned(), queue, readers, writer: Some(writer), _lock: lock };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Records that were given up because the disk refused them again and again.
    pub fn dropped(&self) -> u64 {
        self.inner.queue.dropped()
    }

    /// The caller who owns `namespace`; its key is made and kept when it is asked for the first time. Blocks until it
    /// is on disk: for the start of a program, not for a request.
    pub fn identity(&self, namespace: &EntityName) -> Result<Identity, StoreError> {
        let known = self.inner.readers.read(|connection| schema::key_of(connection, namespace))?;
        let key = match known.map(|text| text.parse::<Key>()) {
            Some(Ok(key)) => key,
            Some(Err(bad)) => {
                let what = format!("the key of {namespace}: {bad}");
                return Err(StoreError::Damaged { path: self.inner.path.clone(), what });
            }
            None => {
                let key = Key::generate()?;
                self.set_key(namespace, &key)?;
                key
            }
        };
        Ok(Identity { namespace: namespace.clone(), key })
    }

    /// Replaces the key of a namespace. Blocks until it is on disk.
    pub fn set_key(&self, namespace: &EntityName, key: &Key) -> Result<(), StoreError> {
        let (done, wait) = oneshot::channel();
        let key = key.to_string();
        self.inner.queue.push(Write::Key { namespace: namespace.clone(), key, done });
        wait.blocking_recv().unwrap_or(Err(StoreError::Closed))
    }

    /// All entities. Blocks: for the start.
    pub(crate) fn entities(&self) -> Result<Vec<Entity>, StoreError> {
        let bodies = self.inner.readers.read(schema::entities)?;
        let parse = |(name, body): (String, Vec<u8>)| {
            serde_json::from_slice(&body).map_err(|why| StoreError::Damaged {
                path: self.inner.path.clone(),
                what: format!("the entity {name}: {why}"),
            })
        };
        bodies.into_iter().map(parse).collect()
    }

    /// Writes an entity; it is on disk when this returns.
    pub(crate) async fn put(&self, entity: &Entity) -> Result<(), StoreError> {
        let body =
            serde_json::to_vec(entity).map_err(|why| StoreError::Refused(why.to_string()))?;
        let (done, wait) = oneshot::channel();
        self.push(Write::Put { name: entity.name().clone(), body, done }).await;
        wait.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Takes an entity out.
    pub(crate) async fn remove(&self, name: &FullName) -> Result<(), StoreError> {
        let (done, wait) = oneshot::channel();
        self.push(Write::Remove { name: name.clone(), done }).await;
        wait.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Calls that an earlier process had accepted and not ended. Blocks: for the start.
    pub(crate) fn unfinished(&self) -> Result<Vec<Unfinished>, StoreError> {
        let rows = self.inner.readers.read(schema::unfinished)?;
        let named = |row: schema::UnfinishedRow| {
            // A namespace that is no name was written by nobody here; the call is lost with the next start.
            let namespace = EntityName::new(&row.namespace).ok()?;
            let id = ActivationId::from_bytes(row.id);
            Some(Unfinished { id, namespace, path: row.path, parameters: row.parameters.into() })
        };
        Ok(rows.into_iter().filter_map(named).collect())
    }

    /// Notes accepted calls. They are on disk when this returns, each with the record it will have if this process
    /// ends before the call does and no later one can begin it again. A call that ended in the meantime keeps its record.
    pub(crate) async fn accept(&self, pending: Vec<Pending>) -> Result<(), StoreError> {
        let (done, wait) = oneshot::channel();
        self.push(Write::Accepted { pending, done }).await;
        wait.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Queues the record of a call that ended. Waits only if the queue is full.
    pub(crate) async fn finish(&self, record: Record) {
        self.push(Write::Finished(record)).await;
    }

    async fn push(&self, write: Write) {
        self.inner.queue.room_for(&write).await;
        self.inner.queue.push(write);
    }

    /// Returns when everything that was queued before is committed.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let (done, wait) = oneshot::channel();
        self.inner.queue.push(Write::Barrier { done });
        wait.await.unwrap_or(Err(StoreError::Closed))
    }

    /// The record of an activation that has ended.
    pub(crate) async fn record(
        &self,
        namespace: &EntityName,
        id: ActivationId,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let namespace = namespace.clone();
        self.read(move |connection| reader::record(connection, &namespace, id)).await
    }

    /// Records of ended activations, newest first.
    pub(crate) async fn records(&self, filter: RecordFilter) -> Result<Vec<Vec<u8>>, StoreError> {
        self.read(move |connection| reader::records(connection, &filter)).await
    }

    /// How many records `filter` would find without its limit.
    pub(crate) async fn count(&self, filter: RecordFilter) -> Result<u64, StoreError> {
        self.read(move |connection| reader::count(connection, &filter)).await
    }

    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.flush().await?;
        let inner = Arc::clone(&self.inner);
        let read = tokio::task::spawn_blocking(move || inner.readers.read(query));
        read.await.unwrap_or(Err(StoreError::Closed))
    }
}

fn lock(path: &Path) -> Result<File, StoreError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".lock");
    let at = PathBuf::from(beside);
    let failed = |source| StoreError::File { path: at.clone(), source };
    let file =
        OpenOptions::new().write(true).create(true).truncate(false).open(&at).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse(path.to_owned())),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

#[cfg(test)]
mod tests;
