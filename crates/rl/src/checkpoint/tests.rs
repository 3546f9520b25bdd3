use super::*;
use crate::algorithms::ppo::{Ppo, PpoSettings};
use crate::learner::Learner;
use crate::policy::Decide;
use crate::toy::{Corridor, Identity};
use proptest::prelude::*;
use windfall_core::Seed;

fn learner() -> Ppo<Identity> {
    let settings = PpoSettings { steps: 16, hidden: vec![8], ..PpoSettings::default() };
    let mut ppo = Ppo::new(settings, vec![Identity::new(); 2], Seed::new(7), 1);
    drop(ppo.iterate());
    ppo
}

#[test]
fn bytes_come_back_as_the_checkpoint_they_were() {
    let checkpoint = learner().checkpoint();
    let bytes = checkpoint.to_bytes().unwrap();
    assert_eq!(bytes, checkpoint.to_bytes().unwrap());
    assert_eq!(Checkpoint::from_bytes(&bytes).unwrap(), checkpoint);
    let Tensor::F32(shape, _) = &checkpoint.tensors["actor.0.weight"] else { panic!("floats") };
    assert_eq!(shape, &[8, 3]);
    assert_eq!((checkpoint.header.iteration, checkpoint.header.steps), (1, 32));
}

#[test]
fn a_file_is_replaced_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("last.safetensors");
    let checkpoint = learner().checkpoint();
    std::fs::write(&path, "something old").unwrap();
    checkpoint.save(&path).unwrap();
    assert_eq!(Checkpoint::open(&path).unwrap(), checkpoint);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let missing = Checkpoint::open(&folder.path().join("none")).unwrap_err();
    assert!(missing.to_string().starts_with("cannot open checkpoint"));
}

#[test]
fn a_policy_decides_as_the_learner_that_saved_it() {
    let learner = learner();
    let mut opened = learner.checkpoint().policy().unwrap();
    let mut own = learner.policy();
    for row in [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.3, 0.1, 0.9]] {
        assert_eq!(opened.decide(&row, &[true; 3]), own.decide(&row, &[true; 3]));
    }
}

#[test]
fn truncated_and_foreign_files_are_refused_with_a_reason() {
    let bytes = learner().checkpoint().to_bytes().unwrap();
    for length in [0, 7, 100, bytes.len() / 2, bytes.len() - 1] {
        let error = Checkpoint::from_bytes(&bytes[..length]).unwrap_err();
        assert!(matches!(error, CheckpointError::Damaged { .. }), "{length}: {error}");
    }
    let nothing: [(&str, TensorView<'_>); 0] = [];
    let foreign = safetensors::serialize(nothing, None).unwrap();
    let error = Checkpoint::from_bytes(&foreign).unwrap_err();
    assert!(matches!(error, CheckpointError::Foreign), "{error}");
}

#[test]
fn a_checkpoint_of_something_else_is_refused_with_both_names() {
    let checkpoint = learner().checkpoint();
    let refused = |checkpoint: &Checkpoint| {
        Ppo::resume(checkpoint, vec![Identity::new(); 2], 1).unwrap_err().to_string()
    };
    let error = Ppo::resume(&checkpoint, vec![Corridor::new(); 2], 1).unwrap_err();
    assert_eq!(error.to_string(), "environment is toy/Identity-v0, expected toy/Corridor-v0");
    let error = Ppo::resume(&checkpoint, vec![Identity::new(); 3], 1).unwrap_err();
    assert_eq!(error.to_string(), "`rewards.returns` is 2 doubles, expected 3 doubles");

    let mut other = checkpoint.clone();
    other.header.algorithm = "dqn".to_owned();
    assert_eq!(refused(&other), "algorithm is dqn, expected ppo");
    let mut other = checkpoint.clone();
    other.header.environment.features[1].high = 2.0;
    assert!(refused(&other).starts_with("list of features is first 0..1, second 0..2"));
    let mut other = checkpoint.clone();
    other.tensors.remove("critic.1.bias");
    assert_eq!(refused(&other), "`critic.1.bias` is missing, expected floats of shape [1]");
    let mut other = checkpoint.clone();
    other.put("player.0.actions", Tensor::I64(vec![99]));
    assert!(refused(&other).contains("an action that does not exist"));

    let mut other = checkpoint;
    other.header.format = "windfall-checkpoint/0".to_owned();
    let error = Checkpoint::from_bytes(&other.to_bytes().unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "format is windfall-checkpoint/0, expected windfall-checkpoint/1"
    );
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Checkpoint::from_bytes(&bytes);
    }
}
