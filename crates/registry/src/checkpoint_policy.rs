//! Checkpoints as policies: the path of a `.safetensors` file is accepted wherever a policy's name is.
//!
//! ```text
//!   policies/night.safetensors ─► header ─► kind ─► KINDS ─► the policy with its safeguards
//! ```
//!
//! The kind is the id of the environment that the policy was trained in, from the file's header. A file that is
//! damaged, not a checkpoint, of an unknown kind or of another version of a known one is rejected with the reason
//! before anything runs. A policy from a file gets no special trust at run time: after an error or a NaN the call
//! runs at the user's size.
//!
//! A new kind is one entry in [`KINDS`]: the id that its trainer writes into the header, and a function that builds
//! the policy from the tensors.

use std::path::Path;

use windfall_agents::faasrm::sizing::{self, FaasrmSizing};
use windfall_agents::windfall_parameters;
use windfall_control::call_safeguards::Faasrm;
use windfall_core::Seed;
use windfall_core::peak_range::PeakSettings;
use windfall_rl::{Checkpoint, CheckpointError};

use crate::entries::{Assembled, sizes_calls, windfall};

/// A kind of checkpoint that can be run.
pub struct CheckpointKind {
    /// Id of the environment it was trained in, as in the file's header.
    pub id: &'static str,
    /// One-line summary for lists.
    pub summary: &'static str,
    /// Whether it sizes each call, which requires a platform where calls do not share instances.
    pub sizes_calls: bool,
    build: fn(&Checkpoint, Seed) -> Result<Assembled, CheckpointError>,
}

/// All kinds of checkpoints.
pub const KINDS: &[CheckpointKind] = &[
    CheckpointKind {
        id: sizing::KIND,
        summary: "FaaSRM's score network behind its safeguard",
        sizes_calls: true,
        build: |checkpoint, _| FaasrmSizing::from_checkpoint(checkpoint).map(behind_its_safeguard),
    },
    CheckpointKind {
        id: windfall_parameters::KIND,
        summary: "parameters of `windfall`, set by training",
        sizes_calls: true,
        build: |checkpoint, _| windfall_parameters::settings_from(checkpoint).map(windfall),
    },
];

/// Wraps FaaSRM's agent with its safeguard.
pub fn behind_its_safeguard(agent: FaasrmSizing) -> Assembled {
    Assembled {
        call_safeguards: vec![Box::new(Faasrm::new(PeakSettings::default()))],
        ..sizes_calls(agent)
    }
}

/// The agent as trained by `windfall reproduce faasrm` on the training half of the 500-function trace. It is built
/// in, so that the name `faasrm` refers to the same weights everywhere.
pub(crate) fn trained_faasrm() -> Result<Assembled, CheckpointError> {
    let checkpoint = Checkpoint::from_bytes(include_bytes!("../params/faasrm.safetensors"))?;
    FaasrmSizing::from_checkpoint(&checkpoint).map(behind_its_safeguard)
}

/// Whether `policy` is the path of a checkpoint rather than a name.
pub fn is_checkpoint(policy: &str) -> bool {
    Path::new(policy).extension().is_some_and(|extension| extension == "safetensors")
}

/// Label of `policy` in tables, journals and reports: for a file, its name without directories.
pub fn label(policy: &str) -> &str {
    let file = Path::new(policy).file_name().and_then(|name| name.to_str());
    if is_checkpoint(policy) { file.unwrap_or(policy) } else { policy }
}

/// A checkpoint whose kind is known, read but not yet built.
pub struct OpenedCheckpoint {
    /// Its kind.
    pub kind: &'static CheckpointKind,
    checkpoint: Checkpoint,
}

/// Reads the checkpoint at `path` and looks up its kind.
pub fn open(path: &str) -> Result<OpenedCheckpoint, CheckpointError> {
    of_known_kind(Checkpoint::open(Path::new(path))?)
}

/// The checkpoint with its kind, if that is a known one.
pub fn of_known_kind(checkpoint: Checkpoint) -> Result<OpenedCheckpoint, CheckpointError> {
    let id = &checkpoint.header.environment.id;
    let kind =
        KINDS.iter().find(|kind| kind.id == id).ok_or_else(|| CheckpointError::Mismatch {
            what: "kind".into(),
            found: id.clone(),
            expected: KINDS.iter().map(|kind| kind.id).collect::<Vec<_>>().join(" or "),
        })?;
    Ok(OpenedCheckpoint { kind, checkpoint })
}

impl OpenedCheckpoint {
    /// Builds a new policy with the weights of the file. Fails if they do not fit the policy.
    pub fn assemble(&self, seed: Seed) -> Result<Assembled, CheckpointError> {
        (self.kind.build)(&self.checkpoint, seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_agents::faasrm::ScoreAgent;

    fn saved(change: impl Fn(&mut Checkpoint)) -> (tempfile::TempDir, String) {
        let seed = Seed::new(1);
        let mut checkpoint = sizing::empty_checkpoint(seed, 3, 100, serde_json::json!({}));
        checkpoint.put_network("actor", ScoreAgent::new(seed).actor());
        change(&mut checkpoint);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("night.safetensors");
        checkpoint.save(&path).unwrap();
        let path = path.to_str().unwrap().to_owned();
        (folder, path)
    }

    fn refusal(change: impl Fn(&mut Checkpoint)) -> String {
        let (_folder, path) = saved(change);
        let opened = open(&path).and_then(|opened| opened.assemble(Seed::new(1)));
        opened.err().expect("refused").to_string()
    }

    #[test]
    fn a_checkpoint_is_recognised_by_its_extension_and_labelled_by_its_file_name() {
        assert!(is_checkpoint("runs/a/night.safetensors") && !is_checkpoint("faasrm"));
        assert_eq!(label("runs/a/night.safetensors"), "night.safetensors");
        assert_eq!(label("faasrm"), "faasrm");
    }

    #[test]
    fn the_header_determines_the_policy() {
        let (_folder, path) = saved(|_| ());
        let opened = open(&path).unwrap();
        assert!(opened.kind.sizes_calls);
        assert_eq!(opened.assemble(Seed::new(1)).unwrap().call.name(), "faasrm");
    }

    #[test]
    fn a_checkpoint_that_does_not_fit_is_rejected_with_the_reason() {
        let message = refusal(|file| file.header.environment.id = "windfall/Weather-v0".into());
        assert!(message.starts_with("kind is windfall/Weather-v0, expected "), "{message}");
        let message = refusal(|file| drop(file.header.environment.features.pop()));
        assert!(message.starts_with("list of features is "), "{message}");
        let message = refusal(|file| file.header.network = None);
        assert!(message.starts_with("network is None"), "{message}");
        let message = refusal(|file| drop(file.tensors.remove("actor.1.bias")));
        assert!(message.contains("`actor.1.bias` is missing"), "{message}");
        let message = refusal(|file| {
            let bias = windfall_rl::checkpoint::Tensor::F32(vec![1], vec![f32::NAN]);
            file.put("actor.2.bias", bias);
        });
        assert!(message.contains("a weight is not a number"), "{message}");
    }
}
