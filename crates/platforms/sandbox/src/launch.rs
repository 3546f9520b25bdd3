//! What to start, and how strictly to isolate it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use windfall_core::Mebibytes;

use crate::error::SandboxError;
use crate::limits::Limits;

/// How strictly an instance is separated from the machine and from other instances.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Isolation {
    /// Limits only: the program sees the machine's files, network and processes with the manager's own rights.
    #[serde(rename = "process")]
    Process,
    /// Own pid, mount, ipc, uts and net namespaces, read-only root, no capabilities, an unprivileged user,
    /// `no_new_privs` and a system call filter.
    #[default]
    #[serde(rename = "sandbox")]
    Sandbox,
    /// The same inside a user namespace of its own: whatever right a bug gives the program is worth nothing outside.
    #[serde(rename = "sandbox+userns")]
    SandboxUserns,
}

impl Isolation {
    /// All levels, from the weakest to the strictest.
    pub const ALL: [Self; 3] = [Self::Process, Self::Sandbox, Self::SandboxUserns];

    /// The name on the command line and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Sandbox => "sandbox",
            Self::SandboxUserns => "sandbox+userns",
        }
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Isolation {
    type Err = SandboxError;

    fn from_str(text: &str) -> Result<Self, SandboxError> {
        Self::ALL.into_iter().find(|level| level.name() == text).ok_or(SandboxError::Setting {
            what: "isolation",
            value: text.to_owned(),
            allowed: "process, sandbox or sandbox+userns",
        })
    }
}

/// A file or folder of the machine that an instance may read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    /// Where it is on this machine.
    pub source: PathBuf,
    /// Where the program finds it; absolute, and not below a folder that is there anyway (`/usr`, `/proc`).
    pub target: PathBuf,
}

/// What to execute.
///
/// In a sandbox the program finds `/usr` with its links (`/bin`, `/lib`, ...), a few files of `/etc`, `/proc`, a small
/// `/dev`, a writable `/tmp` of limited size, and its own `files`; nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The executable. It is opened by the manager and executed by descriptor, so it may lie in a folder that the
    /// instance cannot see.
    pub executable: PathBuf,
    /// All arguments, the program's own name first.
    pub arguments: Vec<String>,
    /// Files that the program reads besides those of `/usr`; bound read-only.
    pub files: Vec<Bind>,
}

impl Program {
    /// `executable` with its own path as the only argument.
    pub fn new(executable: impl Into<PathBuf>) -> Self {
        let executable = executable.into();
        let name = executable.display().to_string();
        Self { executable, arguments: vec![name], files: Vec::new() }
    }

    /// The program that is running now, for functions that are built in. Survives the replacement of the file on disk.
    pub fn this() -> Self {
        Self::new("/proc/self/exe")
    }

    /// With one more argument.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// With one more file or folder to read.
    #[must_use]
    pub fn file(mut self, source: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Self {
        self.files.push(Bind { source: source.into(), target: target.into() });
        self
    }
}

/// One instance to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Name of function and instance, used as host name inside and in messages: `image-resize/7`.
    pub name: String,
    /// What to execute.
    pub program: Program,
    /// The whole environment; nothing is inherited. `LISTEN_FDS` and `LISTEN_PID` are added.
    pub environment: Vec<(String, String)>,
    /// How strictly to isolate it.
    pub isolation: Isolation,
    /// Limits in force from the first instruction.
    pub limits: Limits,
    /// Size of the writable `/tmp`. Its pages count as memory of the instance.
    pub scratch: Mebibytes,
}
