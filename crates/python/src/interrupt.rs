//! Long calls that Ctrl-C can stop.
//!
//! Python handles signals on its main thread, between two of its own instructions. So the work runs on another
//! thread, and the one that called waits for it and asks Python every 50 ms whether there is a signal.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;

use crate::faults::panicked;

const BETWEEN_CHECKS: Duration = Duration::from_millis(50);

/// Does `work` without Python's lock. A signal sets `stop`, which the work must heed, and becomes the result.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    what: &str,
    stop: &AtomicBool,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let (result, interrupted) = py.detach(|| {
        std::thread::scope(|scope| {
            let (done, waiting) = channel();
            let worker = scope.spawn(move || {
                let result = catch_unwind(AssertUnwindSafe(work));
                // Whoever waits may have given up on the message; it then joins the thread.
                let _ = done.send(());
                result
            });
            let mut interrupted = None;
            while waiting.recv_timeout(BETWEEN_CHECKS) == Err(RecvTimeoutError::Timeout) {
                if interrupted.is_none()
                    && let Err(signal) = Python::attach(|py| py.check_signals())
                {
                    stop.store(true, Ordering::Relaxed);
                    interrupted = Some(signal);
                }
            }
            (worker.join(), interrupted)
        })
    });
    if let Some(signal) = interrupted {
        return Err(signal);
    }
    result.flatten().map_err(|panic| panicked(what, panic.as_ref()))
}
