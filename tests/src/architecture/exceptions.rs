//! Where a rule does not hold, and why. An exception that is no longer needed fails too, so that this
//! list never names a file that no longer needs it.

use super::finding::Finding;
use super::repository::Repository;
use super::size;

/// A file or function that may be longer than the others.
pub(crate) struct Exception {
    /// The file, from the root of the repository.
    pub(crate) file: &'static str,
    /// The function; nothing if the whole file is meant.
    pub(crate) function: Option<&'static str>,
    /// Why cutting it would make it harder to read.
    pub(crate) reason: &'static str,
}

/// In order of files.
pub(crate) const LONG: &[Exception] = &[];

pub(crate) fn is_excepted(file: &str, function: Option<&str>) -> bool {
    LONG.iter().any(|exception| exception.file == file && exception.function == function)
}

pub(crate) fn unused(repository: &Repository) -> Vec<Finding> {
    let long = size::too_long(repository);
    LONG.iter()
        .filter(|exception| {
            let (file, function) = (exception.file, exception.function);
            !long.iter().any(|thing| thing.file == file && thing.function.as_deref() == function)
        })
        .map(|Exception { file, function, reason }| Finding {
            file: (*file).to_owned(),
            line: None,
            found: format!("{} needs no exception (\"{reason}\")", function.unwrap_or("the file")),
            allowed: "exceptions for what is longer than the limit".to_owned(),
            remedy: "take it out of LONG in tests/src/architecture/exceptions.rs",
        })
        .collect()
}
