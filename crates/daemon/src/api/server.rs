//! The listener: HTTP/1.1 with bounds on headers, time and connections.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::DefaultBodyLimit;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use super::guard::note_refusal;
use super::{ApiState, router};
use crate::health::State;
use crate::service::Service;

/// A request body is at most this long; the largest one that makes sense has parameters of a function.
const LONGEST_BODY: usize = 256 * 1024;
/// Headers of a request in bytes, and how many.
const LONGEST_HEAD: usize = 32 * 1024;
const MOST_HEADERS: usize = 64;
/// A client that has not sent its headers by then is disconnected.
const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// Connections at the same time.
const MOST_CONNECTIONS: usize = 512;

/// Why the API cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}; another program may use the port, see --listen")]
pub struct ServerError {
    address: SocketAddr,
    source: std::io::Error,
}

/// The API in threads of its own.
pub struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Server {
    /// Listens on `address` and serves `service`; changes need `token`.
    pub fn start(
        address: SocketAddr,
        service: &Service,
        token: String,
        database: Option<PathBuf>,
    ) -> Result<Self, ServerError> {
        let failed = |source| ServerError { address, source };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("api")
            .enable_all()
            .build()
            .map_err(failed)?;
        let listener = runtime.block_on(TcpListener::bind(address)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (stop, stopped) = watch::channel(false);
        let state = ApiState::new(service, address, token, database);
        runtime.spawn(serve(listener, state, stopped));
        Ok(Self { address, stop, runtime: Some(runtime) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The other end is gone only if the server has ended.
        let _ = self.stop.send(true);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Serves on `listener` until `stop` says so.
pub async fn serve(listener: TcpListener, state: Arc<ApiState>, mut stop: watch::Receiver<bool>) {
    tokio::spawn(log_health(Arc::clone(&state), stop.clone()));
    let app = router(Arc::clone(&state)).layer(DefaultBodyLimit::max(LONGEST_BODY));
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => return,
        };
        let Ok((stream, _)) = accepted else {
            // Out of file descriptors: those in use come back.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let (app, state) = (TowerToHyperService::new(app.clone()), Arc::clone(&state));
        tokio::spawn(async move {
            let has_asked = AtomicBool::new(false);
            let answer = service_fn(|request| {
                has_asked.store(true, Ordering::Relaxed);
                app.call(request)
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_WITHIN)
                .max_buf_size(LONGEST_HEAD)
                .max_headers(MOST_HEADERS)
                .serve_connection(TokioIo::new(stream), answer);
            // A client that breaks off, or keeps a connection for later, is its own concern. One that sends nonsense, or
            // no request at all, is worth a line.
            if let Err(error) = connection.await
                && (error.is_parse() || (error.is_timeout() && !has_asked.load(Ordering::Relaxed)))
            {
                note_refusal(&state, "a connection", &error.to_string(), false);
            }
            drop(place);
        });
    }
}

/// Logs every change of the health. It runs beside the loop, so that a loop that hangs is logged too.
async fn log_health(state: Arc<ApiState>, mut stop: watch::Receiver<bool>) {
    let mut known = State::Ok;
    loop {
        let second = tokio::time::sleep(Duration::from_secs(1));
        tokio::select! {
            () = second => {}
            _ = stop.changed() => return,
        }
        let report = state.live().health.report(state.clock.now(), state.settings.tick);
        if std::mem::replace(&mut known, report.state) == report.state {
            continue;
        }
        let wrong = report.checks.iter().filter(|check| check.state != State::Ok);
        let wrong: Vec<String> = wrong.map(|it| format!("{}: {}", it.name, it.detail)).collect();
        let wrong = wrong.join("; ");
        match report.state {
            State::Ok => tracing::info!("healthy again"),
            State::Degraded => tracing::warn!(wrong, "degraded"),
            State::Failing => tracing::error!(wrong, "failing"),
        }
    }
}
