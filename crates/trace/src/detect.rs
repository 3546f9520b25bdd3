//! Detects the kind of trace at a path, by the first line of its files and never by their names.
//!
//! Names only determine which tables belong together: the part of a file name that remains after removing words
//! such as `invocations` and `percentiles` (`d01`, `1000fn`) must be equal.

use std::fs::{self, File};
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use crate::error::{TraceError, shortened};
use crate::native;
use crate::table::{read_failed, unpacked};

/// Bytes read to detect a file's kind; the longest header of a known format has about 10 kB.
const PROBE_BYTES: u64 = 64 << 10;

/// The kinds of traces that can be read, with the files they consist of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceKind {
    /// Azure Functions 2019: counts per minute and percentiles.
    Azure2019 {
        /// Calls per minute.
        invocations: PathBuf,
        /// Percentiles of run time.
        durations: PathBuf,
        /// Percentiles of memory.
        memory: PathBuf,
    },
    /// Azure Functions 2021: single calls.
    Azure2021 {
        /// The table of calls.
        calls: PathBuf,
    },
    /// Huawei: requests per 5 minutes.
    Huawei {
        /// The table of requests.
        requests: PathBuf,
    },
    /// Windfall's own format.
    Native {
        /// The file.
        file: PathBuf,
    },
}

/// Result of [`detect`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detected {
    /// The kind of trace.
    pub kind: TraceKind,
    /// Other files that were found and are not used.
    pub notices: Vec<String>,
}

impl Detected {
    /// Describes the detected trace in one sentence.
    pub fn describe(&self) -> String {
        match &self.kind {
            TraceKind::Azure2019 { invocations, durations, memory } => format!(
                "Azure Functions 2019: calls per minute in {}, run times in {}, memory in {}",
                invocations.display(),
                durations.display(),
                memory.display(),
            ),
            TraceKind::Azure2021 { calls } => {
                format!("Azure Functions 2021: single calls in {}", calls.display())
            }
            TraceKind::Huawei { requests } => {
                format!("Huawei: requests per bin in {}", requests.display())
            }
            TraceKind::Native { file } => format!("Windfall trace {}", file.display()),
        }
    }
}

/// What one file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// Calls per minute of Azure 2019.
    Invocations,
    /// Percentiles of run time of Azure 2019.
    Durations,
    /// Percentiles of memory of Azure 2019.
    Memory,
    /// Single calls of Azure 2021.
    Calls,
    /// Requests per bin of Huawei.
    Requests,
    /// Windfall's own format.
    Native,
}

/// Detects the trace at `path`, a file or a directory.
pub fn detect(path: &Path) -> Result<Detected, TraceError> {
    let unreadable =
        |source| TraceError::Unreadable { file: path.display().to_string().into(), source };
    if !fs::metadata(path).map_err(unreadable)?.is_dir() {
        return detect_file(path);
    }
    let Contents { known: mut found, failed } = kinds_in(path)?;
    // Companions of an invocation table are not separate traces.
    found.retain(|(_, kind)| !matches!(kind, FileKind::Durations | FileKind::Memory));
    let Some((first, _)) = found.first() else {
        if let Some((_, error)) = failed.into_iter().next() {
            return Err(error);
        }
        let reason = "no file in this directory has the header of a known trace";
        return Err(TraceError::Unknown {
            path: path.display().to_string().into(),
            reason: reason.into(),
        });
    };
    let mut detected = detect_file(first)?;
    if found.len() > 1 {
        let others: Vec<String> =
            found[1..].iter().map(|(path, _)| path.display().to_string()).collect();
        let notice = format!(
            "{} more traces in the same directory; pass the path of one to read it: {}",
            others.len(),
            others.join(", ")
        );
        detected.notices.push(notice);
    }
    Ok(detected)
}

fn detect_file(path: &Path) -> Result<Detected, TraceError> {
    let unknown = |reason: String| TraceError::Unknown {
        path: path.display().to_string().into(),
        reason: reason.into(),
    };
    let kind = match probe(path)? {
        Ok(FileKind::Invocations) => with_companions(path)?,
        Ok(FileKind::Calls) => TraceKind::Azure2021 { calls: path.to_owned() },
        Ok(FileKind::Requests) => TraceKind::Huawei { requests: path.to_owned() },
        Ok(FileKind::Native) => TraceKind::Native { file: path.to_owned() },
        Ok(FileKind::Durations | FileKind::Memory) => {
            let reason = "a table without calls; pass the invocation table or the directory";
            return Err(unknown(reason.to_owned()));
        }
        Err(begins) if begins.is_empty() => {
            return Err(TraceError::Empty { file: path.display().to_string().into() });
        }
        Err(begins) => return Err(unknown(format!("its header begins `{begins}`"))),
    };
    Ok(Detected { kind, notices: Vec::new() })
}

/// Finds the duration and memory tables that belong to an invocation table.
fn with_companions(invocations: &Path) -> Result<TraceKind, TraceError> {
    let directory = match invocations.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let Contents { known, mut failed } = kinds_in(directory)?;
    let wanted = tag(invocations);
    let mut companion = |kind: FileKind, table: &'static str| {
        let found = known.iter().find(|(path, other)| *other == kind && tag(path) == wanted);
        if let Some((path, _)) = found {
            return Ok(path.clone());
        }
        // If a file of the same set cannot be read, the table is more likely truncated than missing.
        let truncated = failed.iter().position(|(path, _)| tag(path) == wanted);
        Err(match truncated {
            Some(place) => failed.swap_remove(place).1,
            None => TraceError::MissingTable {
                directory: directory.display().to_string().into(),
                table,
                called_in: invocations.display().to_string().into(),
            },
        })
    };
    Ok(TraceKind::Azure2019 {
        invocations: invocations.to_owned(),
        durations: companion(FileKind::Durations, "duration")?,
        memory: companion(FileKind::Memory, "memory")?,
    })
}

/// Files of a directory in order of their names, without those of unknown kind.
struct Contents {
    known: Vec<(PathBuf, FileKind)>,
    /// Files that could not be read: irrelevant unless a required table is missing.
    failed: Vec<(PathBuf, TraceError)>,
}

fn kinds_in(directory: &Path) -> Result<Contents, TraceError> {
    let unreadable =
        |source| TraceError::Unreadable { file: directory.display().to_string().into(), source };
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    let mut contents = Contents { known: Vec::new(), failed: Vec::new() };
    for path in paths {
        match probe(&path) {
            Ok(Ok(kind)) => contents.known.push((path, kind)),
            Ok(Err(_)) => {}
            Err(error) => contents.failed.push((path, error)),
        }
    }
    Ok(contents)
}

/// Detects a file's kind by its first line, or returns that line if it is unknown.
fn probe(path: &Path) -> Result<Result<FileKind, Box<str>>, TraceError> {
    let name = path.display().to_string();
    let file = File::open(path)
        .map_err(|source| TraceError::Unreadable { file: name.as_str().into(), source })?;
    detect_table(file, &name)
}

/// Tells what a file called `name` is by its beginning, or else returns the beginning.
pub fn detect_table(file: impl Read, name: &str) -> Result<Result<FileKind, Box<str>>, TraceError> {
    let reader = unpacked(file).map_err(|source| read_failed(name, source))?;
    let mut line = Vec::new();
    let mut reader = reader.take(PROBE_BYTES);
    reader.read_until(b'\n', &mut line).map_err(|source| read_failed(name, source))?;
    Ok(kind_of(&line).ok_or_else(|| shortened(String::from_utf8_lossy(&line).trim())))
}

fn kind_of(line: &[u8]) -> Option<FileKind> {
    if line.starts_with(&native::MAGIC) {
        return Some(FileKind::Native);
    }
    let line = String::from_utf8_lossy(line);
    let columns: Vec<&str> = line
        .trim_start_matches('\u{feff}')
        .trim()
        .split(',')
        .map(|c| c.trim_matches('"'))
        .collect();
    let has = |name: &str| columns.contains(&name);
    if has("Trigger") && has("HashFunction") {
        Some(FileKind::Invocations)
    } else if has("percentile_Average_50") && has("HashFunction") {
        Some(FileKind::Durations)
    } else if has("AverageAllocatedMb_pct50") && (has("HashFunction") || has("HashApp")) {
        Some(FileKind::Memory)
    } else if has("func") && has("end_timestamp") {
        Some(FileKind::Calls)
    } else if columns[0] == "date" && columns.get(1).is_some_and(|name| name.contains("---")) {
        Some(FileKind::Requests)
    } else {
        None
    }
}

/// Part of a file name without the words for its kind.
fn tag(path: &Path) -> String {
    const KIND_WORDS: [&str; 14] = [
        "invocation",
        "invocations",
        "duration",
        "durations",
        "memory",
        "per",
        "function",
        "functions",
        "app",
        "percentiles",
        "md",
        "anon",
        "csv",
        "gz",
    ];
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase());
    let name = name.unwrap_or_default();
    let words = name.split(['_', '.', '-']).filter(|word| !KIND_WORDS.contains(word));
    words.collect::<Vec<_>>().join("_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_one_set_have_the_same_tag() {
        for (invocations, durations, memory) in [
            (
                "invocations_per_function_md.anon.d01.csv",
                "function_durations_percentiles.anon.d01.csv",
                "app_memory_percentiles.anon.d01.csv",
            ),
            ("invocation_1000fn.csv.gz", "duration_1000fn.csv.gz", "memory_1000fn.csv"),
            ("invocations.csv.gz", "durations.csv", "memory.csv.gz"),
        ] {
            assert_eq!(tag(Path::new(invocations)), tag(Path::new(durations)));
            assert_eq!(tag(Path::new(invocations)), tag(Path::new(memory)));
        }
        assert_ne!(tag(Path::new("memory.d01.csv")), tag(Path::new("memory.d02.csv")));
    }
}
