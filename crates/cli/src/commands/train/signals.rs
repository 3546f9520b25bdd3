//! Ctrl-C and a polite request to end: finish the iteration, save, stop. A second one ends at once, which
//! loses the iteration and nothing else, because files are whole or not there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

/// Whether somebody has asked to stop.
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(super) fn is_asked_for(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Listens from now on.
pub(super) fn watch() -> anyhow::Result<Stop> {
    let asked = Arc::new(AtomicBool::new(false));
    let own = Arc::clone(&asked);
    ctrlc::set_handler(move || {
        if own.swap(true, Ordering::Relaxed) {
            // 128 + SIGINT, as shells expect of a program that was interrupted.
            std::process::exit(130);
        }
        eprintln!("\nstopping after this iteration; once more to stop at once");
    })
    .context("Ctrl-C cannot be listened for")?;
    Ok(Stop(asked))
}
