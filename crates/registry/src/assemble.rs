//! From what a user types to a policy behind its safeguards.

use std::collections::BTreeMap;

use windfall_core::Seed;
use windfall_rl::CheckpointError;

use crate::checkpoint_policy::{is_checkpoint, open};
use crate::entries::{Assembled, PolicyEntry, entry, names, pair};

/// Settings of policies by name, as a scenario has them; a policy without an entry has its defaults.
pub type PolicySettings = BTreeMap<String, toml::Table>;

/// Why a name or a file does not become a policy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AssembleError {
    /// Fatal: no such policy.
    #[error("there is no policy `{name}`; known are {known}")]
    UnknownPolicy {
        /// The name that was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Fatal: the policy does not accept its settings.
    #[error("policy {name}: {problem}")]
    Settings {
        /// The policy.
        name: String,
        /// What is wrong, with the key and the value.
        problem: String,
    },
    /// Fatal: a checkpoint cannot be read, or holds nothing that can be run.
    #[error("checkpoint {file}: {source}")]
    Checkpoint {
        /// Where it is.
        file: String,
        /// Why it is refused.
        source: CheckpointError,
    },
}

impl AssembleError {
    /// What to do about it, where there is something to do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::UnknownPolicy { .. } => Some("`windfall policies` lists them"),
            Self::Checkpoint { source, .. } => Some(source.hint()),
            Self::Settings { .. } => None,
        }
    }
}

/// A fresh policy for `policy`: a name of the registry, a pair `CALLS+TICKS`, or the path of a checkpoint.
///
/// Everything random in it draws from `seed`. A checkpoint holds its own settings, so `settings` is for names
/// only; both halves of a pair find theirs under their own names.
pub fn assemble(
    policy: &str,
    settings: &PolicySettings,
    seed: Seed,
) -> Result<Assembled, AssembleError> {
    if is_checkpoint(policy) {
        let opened = open(policy).and_then(|opened| opened.assemble(seed));
        return opened
            .map_err(|source| AssembleError::Checkpoint { file: policy.to_owned(), source });
    }
    let build = |entry: &PolicyEntry| {
        let table = settings.get(entry.name).cloned();
        entry.assemble(&table, seed).map_err(|error| AssembleError::Settings {
            name: entry.name.to_owned(),
            problem: error.message().to_owned(),
        })
    };
    if let Some((calls, ticks)) = pair(policy) {
        return Ok(build(calls)?.with_ticks_of(build(ticks)?));
    }
    let unknown = || AssembleError::UnknownPolicy { name: policy.to_owned(), known: names() };
    build(entry(policy).ok_or_else(unknown)?)
}

/// Whether a policy's whole point is another size for each call, so that it needs a platform where calls do not
/// share instances. False for a checkpoint that cannot be read; [`assemble`] says why it cannot.
pub fn sizes_single_calls(policy: &str) -> bool {
    if is_checkpoint(policy) {
        return open(policy).is_ok_and(|opened| opened.kind.sizes_calls);
    }
    let calls = pair(policy).map(|(calls, _)| calls).or_else(|| entry(policy));
    calls.is_some_and(|calls| calls.sizes_calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(policy: &str) -> Result<Assembled, AssembleError> {
        assemble(policy, &PolicySettings::new(), Seed::new(1))
    }

    #[test]
    fn a_name_and_a_pair_become_policies_and_only_the_oracle_needs_the_future() {
        assert_eq!(built("windfall").unwrap().call.name(), "windfall");
        assert!(built("oracle").unwrap().foresight && !built("windfall").unwrap().foresight);
        let both = built("oracle+queueing").unwrap();
        assert_eq!(both.tick.expect("it ticks").name(), "queueing");
        assert!(both.foresight, "one half of it needs the future");
    }

    #[test]
    fn both_halves_of_a_pair_have_their_own_settings() {
        let odd = PolicySettings::from([("queueing".to_owned(), "x = 1".parse().unwrap())]);
        let refused = assemble("histogram+queueing", &odd, Seed::new(1)).err().unwrap();
        assert!(refused.to_string().starts_with("policy queueing: "), "{refused}");
        assert!(assemble("histogram", &odd, Seed::new(1)).is_ok());
    }

    #[test]
    fn what_does_not_exist_is_refused_with_what_to_do() {
        let refused = built("windfal").err().unwrap();
        assert!(refused.to_string().contains("`windfal`; known are fixed, windfall"), "{refused}");
        assert_eq!(refused.hint(), Some("`windfall policies` lists them"));
        let refused = built("nowhere/night.safetensors").err().unwrap();
        assert!(refused.to_string().starts_with("checkpoint nowhere/night.safetensors: "));
        assert!(refused.hint().is_some() && !sizes_single_calls("nowhere/night.safetensors"));
    }

    #[test]
    fn the_first_half_of_a_pair_says_whether_single_calls_are_sized() {
        assert!(sizes_single_calls("histogram+queueing") && sizes_single_calls("windfall"));
        assert!(!sizes_single_calls("fixed+queueing") && !sizes_single_calls("nobody"));
    }
}
