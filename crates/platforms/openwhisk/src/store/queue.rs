//! What waits for the writer: a list behind a lock, swapped out as a whole, and permits that bound its bytes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, oneshot};

use super::{Pending, Record, StoreError};
use crate::name::{EntityName, FullName};

type Done = oneshot::Sender<Result<(), StoreError>>;

/// One thing to write.
#[derive(Debug)]
pub(super) enum Write {
    Put {
        name: FullName,
        body: Vec<u8>,
        done: Done,
    },
    Remove {
        name: FullName,
        done: Done,
    },
    Key {
        namespace: EntityName,
        key: String,
        done: Done,
    },
    Accepted {
        pending: Vec<Pending>,
        done: Done,
    },
    Finished(Record),
    /// Nothing; answered when everything before it is committed.
    Barrier {
        done: Done,
    },
}

impl Write {
    /// Whether someone waits for it, so that the writer must not gather more first.
    fn is_awaited(&self) -> bool {
        !matches!(self, Self::Finished(_))
    }

    /// Whether it has to survive a power cut once it is answered.
    pub(super) fn is_durable(&self) -> bool {
        !matches!(self, Self::Finished(_) | Self::Barrier { .. })
    }

    /// Permits it takes: one per KiB, at least one.
    fn weight(&self) -> usize {
        let bytes = match self {
            Self::Finished(record) => record.json.len(),
            Self::Accepted { pending, .. } => {
                pending.iter().map(|one| one.record.json.len() + one.parameters.len()).sum()
            }
            Self::Put { body, .. } => body.len(),
            Self::Remove { .. } | Self::Key { .. } | Self::Barrier { .. } => return 0,
        };
        1 + bytes / 1024
    }
}

/// How long the writer gathers records nobody waits for. A transaction costs about as much as ten records in it, so at
/// 15,000 calls a second 20 ms turn 15,000 transactions into 50.
const GATHER: Duration = Duration::from_millis(20);
/// As many are enough for one transaction.
const BATCH: usize = 1024;

#[derive(Debug, Default)]
struct Waiting {
    writes: Vec<Write>,
    is_awaited: bool,
    is_closed: bool,
}

#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    room: Semaphore,
    capacity: usize,
    dropped: AtomicU64,
}

impl Queue {
    pub(super) fn new(bytes: usize) -> Self {
        let capacity = (bytes / 1024).max(1);
        Self {
            waiting: Mutex::default(),
            changed: Condvar::new(),
            room: Semaphore::new(capacity),
            capacity,
            dropped: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing below can panic with the lock held, and a list is whole at any time.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn permits(&self, write: &Write) -> u32 {
        u32::try_from(write.weight().min(self.capacity)).unwrap_or(u32::MAX)
    }

    /// Waits until there is room for `write` and takes it. The writer gives it back.
    pub(super) async fn room_for(&self, write: &Write) {
        if let Ok(permit) = self.room.acquire_many(self.permits(write)).await {
            permit.forget();
        }
    }

    /// Adds to the list; the caller has room for it.
    pub(super) fn push(&self, write: Write) {
        let mut waiting = self.lock();
        if waiting.is_closed {
            return;
        }
        let wakes = waiting.writes.is_empty()
            || (write.is_awaited() && !waiting.is_awaited)
            || waiting.writes.len() + 1 == BATCH;
        waiting.is_awaited |= write.is_awaited();
        waiting.writes.push(write);
        drop(waiting);
        if wakes {
            self.changed.notify_one();
        }
    }

    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Blocks until there is something worth a transaction and moves it into `batch`, which is empty. Returns whether
    /// more can come.
    pub(super) fn take(&self, batch: &mut Vec<Write>) -> bool {
        let mut waiting = self.lock();
        while waiting.writes.is_empty() && !waiting.is_closed {
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let until = Instant::now() + GATHER;
        while waiting.writes.len() < BATCH && !waiting.is_awaited && !waiting.is_closed {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let (again, _) =
                self.changed.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner);
            waiting = again;
        }
        std::mem::swap(&mut waiting.writes, batch);
        waiting.is_awaited = false;
        !waiting.is_closed || !batch.is_empty()
    }

    /// Gives the room of written things back.
    pub(super) fn release(&self, batch: &[Write]) {
        self.room.add_permits(batch.iter().map(|write| self.permits(write) as usize).sum());
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn drop_records(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }
}
