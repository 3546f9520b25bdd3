//! The tick loop in wall time.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use windfall_control::ControlLoop;

use crate::platform::EmbeddedPlatform;

/// A thread that ticks until it is dropped.
pub(super) struct Ticker {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    pub(super) fn start(
        mut ticks: ControlLoop,
        mut platform: EmbeddedPlatform,
        every: Duration,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = channel::<()>();
        let clock = platform.agent().clock();
        let thread = std::thread::Builder::new().name("windfall-ticks".to_owned());
        let thread = thread.spawn(move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                ticks.tick(clock.now(), &mut platform);
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A loop that panicked has nothing left to decide.
            let _ = thread.join();
        }
    }
}
