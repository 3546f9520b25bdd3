//! What has to be executed so that an instance answers.

use std::path::{Path, PathBuf};

/// First argument of a program that re-executes itself as a server of built-in functions.
pub const FUNCTION_ARGUMENT: &str = "__function";

/// The descriptor on which every runtime accepts connections.
pub const INHERITED_LISTENER: i32 = 3;

/// The program of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The file to execute, an absolute path.
    pub path: PathBuf,
    /// Its arguments, without the program's own name.
    pub arguments: Vec<String>,
    /// Environment variables that it needs; nothing else has to be passed on. `LISTEN_FDS` is among them: without
    /// it a program listens on a port of its own, the one in `PORT` or 8080.
    pub environment: Vec<(String, String)>,
    /// Files and folders outside of `/usr` that it needs to read, at the same place in the instance.
    pub read_only: Vec<PathBuf>,
}

impl Program {
    /// The variables that every program needs.
    pub(crate) fn listens_on_descriptor_3() -> Vec<(String, String)> {
        // No LISTEN_PID: an instance in a namespace of its own does not have the process id that its parent sees.
        vec![
            ("LISTEN_FDS".to_owned(), "1".to_owned()),
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ]
    }
}

/// Those of `paths` that an instance with nothing but `/usr` could not see.
pub(crate) fn read_only_outside_usr(paths: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    paths.into_iter().filter(|path| !path.starts_with(Path::new("/usr"))).collect()
}
