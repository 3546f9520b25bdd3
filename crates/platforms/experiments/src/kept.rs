//! What was measured, as a file that a later run reads and adds to.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{ExperimentError, system};

/// What is kept under a name of its own.
pub(crate) trait Kept: Serialize + DeserializeOwned {
    const NAME: &'static str;
}

/// Writes all of it, or nothing: a file that is cut off would lose the runs before.
pub(crate) fn keep<K: Kept>(folder: &Path, what: &K) -> Result<(), ExperimentError> {
    let doing = "writing what was measured";
    let path = folder.join(K::NAME);
    let text = serde_json::to_vec(what).map_err(|why| system(doing)(why.into()))?;
    let beside = path.with_extension("json.new");
    fs::write(&beside, text).map_err(system(doing))?;
    fs::rename(&beside, &path).map_err(system(doing))
}

/// What earlier runs have left; nothing if there was none.
pub(crate) fn kept<K: Kept>(folder: &Path) -> Result<Option<K>, ExperimentError> {
    let path = folder.join(K::NAME);
    match fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|why| ExperimentError::Unreadable { file: path, problem: why.to_string() }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(system("reading what was measured before")(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, serde::Deserialize)]
    struct Numbers(Vec<f64>);

    impl Kept for Numbers {
        const NAME: &'static str = "numbers.json";
    }

    #[test]
    fn what_is_kept_comes_back_and_a_file_that_is_none_is_named() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(kept::<Numbers>(folder.path()).unwrap(), None);
        keep(folder.path(), &Numbers(vec![0.1, 2.0])).unwrap();
        assert_eq!(kept(folder.path()).unwrap(), Some(Numbers(vec![0.1, 2.0])));
        fs::write(folder.path().join(Numbers::NAME), "[1,").unwrap();
        let problem = kept::<Numbers>(folder.path()).unwrap_err().to_string();
        assert!(problem.contains("numbers.json"), "{problem}");
    }
}
