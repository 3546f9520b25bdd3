//! Sources of workloads: the generator, or a path whose kind is detected.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use windfall_core::{Seed, Workload};

use crate::assemble::{Tables, open_azure_2019, open_azure_2021, open_huawei};
use crate::azure_like::{AzureLikeSettings, open_azure_like};
use crate::detect::{TraceKind, detect};
use crate::error::TraceError;
use crate::minute_counts::Caps;
use crate::native::NativeWorkload;
use crate::options::{Fold, ReadOptions};

/// Source of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Source {
    /// Generated with parameters fitted to Azure's functions of 2019.
    AzureLike(AzureLikeSettings),
    /// Read from a file or a directory.
    File {
        /// Path of the file or directory.
        path: PathBuf,
        /// Options for reading it.
        #[serde(default)]
        options: ReadOptions,
    },
}

/// A workload, and notices from reading it.
pub struct Opened {
    /// The workload.
    pub workload: Box<dyn Workload + Send>,
    /// What was detected, and how irregularities were handled; one sentence each.
    pub notices: Vec<String>,
}

impl Source {
    /// Opens the workload.
    pub fn open(&self, seed: Seed) -> Result<Box<dyn Workload + Send>, TraceError> {
        self.open_with_notices(seed).map(|opened| opened.workload)
    }

    /// Opens the workload and returns notices from reading it.
    pub fn open_with_notices(&self, seed: Seed) -> Result<Opened, TraceError> {
        match self {
            Self::AzureLike(settings) => {
                let workload = open_azure_like(settings, seed)?;
                Ok(Opened { workload: Box::new(workload), notices: Vec::new() })
            }
            Self::File { path, options } => open_file(path, options, seed),
        }
    }

    /// Describes the workload in one line.
    pub fn describe(&self) -> String {
        match self {
            Self::AzureLike(settings) => settings.describe(),
            Self::File { path, options } => {
                let mut text = path.display().to_string();
                if let Some((from, to)) = options.window_minutes {
                    text += &format!(", minutes {from} to {to}");
                }
                if let Some(stretch) = options.overlay_minutes {
                    text += &format!(", laid over each other every {stretch} minutes");
                }
                if let Some(functions) = options.max_functions {
                    text += &format!(", first {functions} functions");
                }
                if options.without_busiest {
                    text += ", without the busiest function";
                }
                if options.without_sleepers {
                    text += ", without functions that sleep";
                }
                match options.fold {
                    Some(Fold::Train) => text += ", functions of the training half",
                    Some(Fold::Test) => text += ", functions of the test half",
                    None => {}
                }
                if let Some(caps) = options.caps {
                    let Caps { busy, busy_in_a_minute, .. } = caps;
                    text += &format!(
                        ", functions capped at {busy} busy (any minute {busy_in_a_minute})"
                    );
                }
                text
            }
        }
    }
}

fn open_file(path: &Path, options: &ReadOptions, seed: Seed) -> Result<Opened, TraceError> {
    options.check()?;
    let detected = detect(path)?;
    let mut notices = vec![detected.describe()];
    notices.extend(detected.notices.iter().cloned());
    options.check_for(&detected.kind, path)?;
    let workload: Box<dyn Workload + Send> = match &detected.kind {
        TraceKind::Azure2019 { invocations, durations, memory } => {
            let tables = Tables { invocations, durations, memory };
            open_azure_2019(&tables, options, seed, &mut notices)?
        }
        TraceKind::Azure2021 { calls } => Box::new(open_azure_2021(calls, options, seed)?),
        TraceKind::Huawei { requests } => open_huawei(requests, options, seed, &mut notices)?,
        TraceKind::Native { file } => Box::new(NativeWorkload::open_with(file, options)?),
    };
    Ok(Opened { workload, notices })
}
