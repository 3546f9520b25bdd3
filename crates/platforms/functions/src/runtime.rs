//! How a kind of action becomes a program on this machine.

use std::path::PathBuf;
use std::{env, io};

use thiserror::Error;

use crate::interpreters::{NODE, PYTHON};
use crate::program::{FUNCTION_ARGUMENT, Program, read_only_outside_usr};

/// What serves an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Runtime {
    /// A function of [`builtins`](crate::builtins), in this very program.
    Builtin,
    /// Python source with a function `main(parameters)`.
    Python,
    /// JavaScript source with a function `main(parameters)`, promises included.
    Node,
}

/// Why a runtime cannot be started here. All are fatal until the machine changes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// No interpreter.
    #[error("no {name} on this machine: looked at {looked_at}; {fix}")]
    Missing {
        /// The interpreter, e.g. `python3`.
        name: &'static str,
        /// Where it was searched.
        looked_at: String,
        /// What to do.
        fix: &'static str,
    },
    /// The path of the running program is not known.
    #[error("the path of this program is not known: {0}; is /proc mounted?")]
    OwnPath(#[source] io::Error),
    /// A variable names something that is not a program.
    #[error("{variable} is {path}, which is not a program; unset it or correct the path")]
    Named {
        /// The environment variable.
        variable: &'static str,
        /// Its value.
        path: String,
    },
}

impl Runtime {
    /// All runtimes.
    pub const ALL: [Self; 3] = [Self::Builtin, Self::Python, Self::Node];

    /// The kind that names this runtime in a list of kinds.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Python => "python:3",
            Self::Node => "nodejs:20",
        }
    }

    /// The program of an instance, found on this machine. Searches the file system: ask once per runtime, not once
    /// per instance.
    pub fn program(self) -> Result<Program, RuntimeError> {
        match self {
            Self::Builtin => Ok(builtin_program(own_path()?)),
            Self::Python => PYTHON.program(),
            Self::Node => NODE.program(),
        }
    }
}

fn own_path() -> Result<PathBuf, RuntimeError> {
    env::current_exe().and_then(|path| path.canonicalize()).map_err(RuntimeError::OwnPath)
}

/// A server of built-in functions by this program, which must call
/// [`serve_if_function`](crate::serve_if_function) first thing.
pub(crate) fn builtin_program(path: PathBuf) -> Program {
    Program {
        read_only: read_only_outside_usr([path.clone()]),
        path,
        arguments: vec![FUNCTION_ARGUMENT.to_owned()],
        environment: Program::listens_on_descriptor_3(),
    }
}
