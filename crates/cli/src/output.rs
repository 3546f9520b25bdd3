//! Files that are whole or not there, and errors that help.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use windfall_load::LoadError;
use windfall_rl::CheckpointError;
use windfall_scenario::RunError;
use windfall_scenario::sweep::SweepError;
use windfall_studies::reproduce::ReproduceError;
use windfall_telemetry::JournalError;
use windfall_telemetry::explain::ExplainError;
use windfall_trace::TraceError;

use crate::commands::functions::FnError;

/// Creates a directory with everything above it.
pub(crate) fn directory(path: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(path).with_context(|| format!("{}: cannot be created", path.display()))
}

/// Writes `text` to a file beside `path` and moves it there: what is there is never half of it.
pub(crate) fn write_whole(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut file = WholeFile::create(path)?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.commit())
        .with_context(|| format!("{}: cannot be written", path.display()))
}

/// A file that appears under its name only when it is complete.
pub(crate) struct WholeFile {
    to: Option<BufWriter<File>>,
    unfinished: PathBuf,
    finished: PathBuf,
}

impl WholeFile {
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".unfinished");
        let unfinished = PathBuf::from(unfinished);
        let file = File::create(&unfinished)
            .with_context(|| format!("{}: cannot be written", unfinished.display()))?;
        let to = Some(BufWriter::with_capacity(1 << 16, file));
        Ok(Self { to, unfinished, finished: path.to_owned() })
    }

    pub(crate) fn commit(&mut self) -> io::Result<()> {
        if let Some(mut to) = self.to.take() {
            to.flush()?;
            fs::rename(&self.unfinished, &self.finished)?;
        }
        Ok(())
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            Some(to) => to.write(bytes),
            None => Err(io::Error::other("the file is already complete")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if self.to.take().is_some() {
            // Given up half-way: nothing half-written stays behind. If even that fails there is
            // nobody left to inform.
            let _ = fs::remove_file(&self.unfinished);
        }
    }
}

/// The command as it was typed, for reports and journals.
pub(crate) fn command_line() -> String {
    let quoted = |word: String| {
        if word.is_empty() || word.contains(|letter: char| letter.is_whitespace()) {
            format!("'{word}'")
        } else {
            word
        }
    };
    let words: Vec<String> = std::env::args().skip(1).map(quoted).collect();
    format!("windfall {}", words.join(" "))
}

/// Tells what went wrong, and what to do where there is something to say.
pub(crate) fn print_error(error: &anyhow::Error) {
    let mut message = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Some messages quote their cause already.
        if !message.contains(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    eprintln!("error: {message}");
    if let Some(hint) = error.chain().find_map(hint) {
        eprintln!("\nhint: {hint}");
    }
}

fn hint(cause: &(dyn Error + 'static)) -> Option<&'static str> {
    if let Some(error) = cause.downcast_ref::<TraceError>() {
        error.hint()
    } else if let Some(error) = cause.downcast_ref::<LoadError>() {
        error.hint()
    } else if let Some(error) = cause.downcast_ref::<RunError>() {
        error.hint()
    } else if let Some(error) = cause.downcast_ref::<SweepError>() {
        error.hint()
    } else if let Some(error) = cause.downcast_ref::<ReproduceError>() {
        error.hint()
    } else if let Some(error) = cause.downcast_ref::<CheckpointError>() {
        Some(error.hint())
    } else if let Some(error) = cause.downcast_ref::<FnError>() {
        error.hint()
    } else if let Some(ExplainError::Journal(error)) = cause.downcast_ref() {
        error.hint()
    } else {
        cause.downcast_ref::<JournalError>().and_then(JournalError::hint)
    }
}

/// Whether a reader of our output, such as `head`, has gone away.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// Prints data; a reader that has gone away is not an error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// Prints data as JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&serde_json::to_string_pretty(value)?)
}
