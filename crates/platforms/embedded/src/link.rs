//! The way to one instance: its connections and its output.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::http_client::{ClientError, Connection};
use crate::logs::Output;

/// The way to one instance. Shared by the agent and the tasks of its calls.
#[derive(Debug)]
pub(crate) struct Link {
    address: SocketAddr,
    /// Connections that no call uses.
    connections: Mutex<Vec<Connection>>,
    pub(crate) output: tokio::sync::Mutex<Option<Output>>,
    /// Calls that run.
    running: AtomicU32,
    /// Whether two ever ran at the same time.
    pub(crate) is_shared: AtomicBool,
}

/// A call that runs in an instance, until it is dropped.
pub(crate) struct RunningCall<'a>(&'a AtomicU32);

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Link {
    /// A way without connections yet. Call it inside the runtime that reads the output.
    pub(crate) fn new(address: SocketAddr, output: Option<(OwnedFd, OwnedFd)>) -> Self {
        let output = output.and_then(|(stdout, stderr)| Output::new(stdout, stderr).ok());
        Self {
            address,
            connections: Mutex::new(Vec::new()),
            output: tokio::sync::Mutex::new(output),
            running: AtomicU32::new(0),
            is_shared: AtomicBool::new(false),
        }
    }

    /// A call begins to run.
    pub(crate) fn begin_call(&self) -> RunningCall<'_> {
        if self.running.fetch_add(1, Ordering::Relaxed) > 0 {
            self.is_shared.store(true, Ordering::Relaxed);
        }
        RunningCall(&self.running)
    }

    fn connections(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that is there, or a new one.
    pub(crate) async fn connection(&self) -> Result<Connection, ClientError> {
        let kept = self.connections().pop();
        match kept {
            Some(connection) => Ok(connection),
            None => Connection::open(self.address).await,
        }
    }

    /// Keeps a connection for the next call.
    pub(crate) fn keep(&self, connection: Connection) {
        self.connections().push(connection);
    }

    /// Closes what no call uses: the instance is about to end.
    pub(crate) fn close(&self) {
        self.connections().clear();
    }
}
