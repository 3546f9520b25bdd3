//! Checkpoints: everything a learner needs to go on bit for bit, in one safetensors file.
//!
//! Weights carry the names and the layout PyTorch would give them (`actor.0.weight`, `outputs x inputs`),
//! so the file opens in Python. The header is one JSON text in the file's metadata. Random generators are
//! not stored: every stream is derived anew from the seed and the number of the iteration.

mod contents;
mod decider;
mod header;
mod parts;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

pub use contents::{Contents, Normalised, Stored};
pub use header::{FORMAT, Header};

/// The key of our header in the metadata.
const KEY: &str = "windfall";

/// More than any checkpoint of ours; a file that claims more is not read to its end.
const MOST_BYTES: u64 = 1 << 30;

/// Why a checkpoint was refused or not written. All are fatal: a learner must not go on without it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// Fatal: the file could not be read or written.
    #[error("cannot {doing} checkpoint: {source}")]
    File {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Fatal: not a safetensors file, or only a part of one.
    #[error("damaged or no checkpoint: {reason}")]
    Damaged {
        /// What is wrong with it.
        reason: String,
    },
    /// Fatal: a safetensors file that somebody else wrote.
    #[error("not written by windfall: the file has no `windfall` entry in its metadata")]
    Foreign,
    /// Fatal: made for something else.
    #[error("{what} is {found}, expected {expected}")]
    Mismatch {
        /// What differs.
        what: String,
        /// What the file has.
        found: String,
        /// What is needed.
        expected: String,
    },
}

impl CheckpointError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::File { .. } => "check that the folder exists and can be written",
            Self::Damaged { .. } => {
                "use an earlier checkpoint; writing one is atomic, copying is not"
            }
            Self::Foreign => "give a file that `windfall train` has written",
            Self::Mismatch { .. } => "use it with the environment and algorithm it was trained for",
        }
    }
}

/// Numbers of one name.
#[derive(Clone, Debug, PartialEq)]
pub enum Tensor {
    /// Weights and moments, with their shape.
    F32(Vec<usize>, Vec<f32>),
    /// Statistics.
    F64(Vec<f64>),
    /// Counters and places.
    I64(Vec<i64>),
}

/// A learner at rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// What it is and where it stands.
    pub header: Header,
    /// All its numbers.
    pub tensors: BTreeMap<String, Tensor>,
}

impl Checkpoint {
    /// One without numbers yet.
    pub fn new(header: Header) -> Self {
        Self { header, tensors: BTreeMap::new() }
    }

    /// As bytes of a safetensors file; the same checkpoint always gives the same.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CheckpointError> {
        let damaged = |reason: String| CheckpointError::Damaged { reason };
        let mut parts = Vec::new();
        for (name, tensor) in &self.tensors {
            let (dtype, shape, bytes) = match tensor {
                Tensor::F32(shape, data) => (
                    Dtype::F32,
                    shape.clone(),
                    data.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>(),
                ),
                Tensor::F64(data) => (
                    Dtype::F64,
                    vec![data.len()],
                    data.iter().flat_map(|x| x.to_le_bytes()).collect(),
                ),
                Tensor::I64(data) => (
                    Dtype::I64,
                    vec![data.len()],
                    data.iter().flat_map(|x| x.to_le_bytes()).collect(),
                ),
            };
            parts.push((name, dtype, shape, bytes));
        }
        let mut views = Vec::with_capacity(parts.len());
        for (name, dtype, shape, bytes) in &parts {
            let view = TensorView::new(*dtype, shape.clone(), bytes);
            views.push((name.as_str(), view.map_err(|error| damaged(error.to_string()))?));
        }
        let header =
            serde_json::to_string(&self.header).map_err(|error| damaged(error.to_string()))?;
        // A single entry, so that its map has only one order.
        let metadata = std::iter::once((KEY.to_owned(), header)).collect();
        safetensors::serialize(views, Some(metadata)).map_err(|error| damaged(error.to_string()))
    }

    /// From the bytes of a safetensors file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let damaged = |reason: String| CheckpointError::Damaged { reason };
        let (_, metadata) =
            SafeTensors::read_metadata(bytes).map_err(|error| damaged(error.to_string()))?;
        let entries = metadata.metadata().as_ref();
        let text = entries.and_then(|map| map.get(KEY)).ok_or(CheckpointError::Foreign)?;
        let header = Header::parse(text)?;
        let file = SafeTensors::deserialize(bytes).map_err(|error| damaged(error.to_string()))?;
        let mut tensors = BTreeMap::new();
        for (name, view) in file.tensors() {
            let data = view.data();
            let tensor = match view.dtype() {
                Dtype::F32 => Tensor::F32(
                    view.shape().to_vec(),
                    words(data).map(f32::from_le_bytes).collect(),
                ),
                Dtype::F64 => Tensor::F64(words(data).map(f64::from_le_bytes).collect()),
                Dtype::I64 => Tensor::I64(words(data).map(i64::from_le_bytes).collect()),
                other => return Err(damaged(format!("`{name}` holds numbers of type {other:?}"))),
            };
            tensors.insert(name, tensor);
        }
        Ok(Self { header, tensors })
    }

    /// Reads one.
    pub fn read_from(file: impl Read) -> Result<Self, CheckpointError> {
        let mut bytes = Vec::new();
        let read = file.take(MOST_BYTES).read_to_end(&mut bytes);
        read.map_err(|source| CheckpointError::File { doing: "read", source })?;
        Self::from_bytes(&bytes)
    }

    /// Writes it to `path`: into a file beside it first, which then takes its place, so that `path` holds
    /// a whole checkpoint at every moment, the old one or the new.
    pub fn save(&self, path: &Path) -> Result<(), CheckpointError> {
        let bytes = self.to_bytes()?;
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let failed = |doing| move |source| CheckpointError::File { doing, source };
        let mut file = std::fs::File::create(&partial).map_err(failed("create"))?;
        file.write_all(&bytes).map_err(failed("write"))?;
        file.sync_all().map_err(failed("write"))?;
        std::fs::rename(&partial, path).map_err(failed("replace"))
    }

    /// Reads the one at `path`.
    pub fn open(path: &Path) -> Result<Self, CheckpointError> {
        let file = std::fs::File::open(path);
        Self::read_from(file.map_err(|source| CheckpointError::File { doing: "open", source })?)
    }
}

fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> {
    bytes.as_chunks::<N>().0.iter().copied()
}

#[cfg(test)]
mod tests;
