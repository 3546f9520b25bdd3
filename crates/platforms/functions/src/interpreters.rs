//! Interpreters on this machine: where they are searched, and the program that speaks the protocol in them.
//!
//! The runtime's source is an argument, not a file, so that nothing has to be copied into an instance.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::program::{Program, read_only_outside_usr};
use crate::runtime::RuntimeError;

/// One language's interpreter.
pub(crate) struct Interpreter {
    name: &'static str,
    /// Environment variable with the path of the interpreter to use instead.
    variable: &'static str,
    arguments: &'static [&'static str],
    runtime: &'static str,
    fix: &'static str,
}

pub(crate) const PYTHON: Interpreter = Interpreter {
    name: "python3",
    variable: "WINDFALL_PYTHON",
    // Isolated from the user's environment, and without the search for installed packages, which takes half of the
    // start; the runtime makes up for it when a package is imported.
    arguments: &["-I", "-S", "-c"],
    runtime: include_str!("interpreters/runtime.py"),
    fix: "install Python 3.9 or newer (Debian package python3) or set WINDFALL_PYTHON",
};

pub(crate) const NODE: Interpreter = Interpreter {
    name: "node",
    variable: "WINDFALL_NODE",
    arguments: &["-e"],
    runtime: include_str!("interpreters/runtime.js"),
    fix: "install Node 18 or newer (Debian package nodejs) or set WINDFALL_NODE",
};

/// Searched first: instances see `/usr` anyway, and a version manager's shim in PATH is a slow shell script.
const FIRST: [&str; 2] = ["/usr/bin", "/usr/local/bin"];

impl Interpreter {
    pub(crate) fn program(&self) -> Result<Program, RuntimeError> {
        let path = self.find()?;
        let mut arguments: Vec<String> =
            self.arguments.iter().map(|argument| (*argument).to_owned()).collect();
        arguments.push(self.runtime.to_owned());
        let read_only = read_only_outside_usr(prefixes(&path));
        Ok(Program { path, arguments, environment: Program::listens_on_descriptor_3(), read_only })
    }

    fn find(&self) -> Result<PathBuf, RuntimeError> {
        if let Some(named) = env::var_os(self.variable) {
            let path = Path::new(&named).to_owned();
            return program_file(&path).ok_or_else(|| RuntimeError::Named {
                variable: self.variable,
                path: path.display().to_string(),
            });
        }
        let in_path = env::var_os("PATH").unwrap_or_default();
        let folders = FIRST.map(PathBuf::from).into_iter().chain(env::split_paths(&in_path));
        let mut looked_at = Vec::new();
        for folder in folders {
            let candidate = folder.join(self.name);
            if let Some(found) = program_file(&candidate) {
                return Ok(found);
            }
            looked_at.push(folder.display().to_string());
        }
        let looked_at = looked_at.join(", ");
        Err(RuntimeError::Missing { name: self.name, looked_at, fix: self.fix })
    }
}

/// An interpreter in `<prefix>/bin` has its library in `<prefix>/lib`. In a virtual environment it is a link to one
/// elsewhere, and both places are needed.
fn prefixes(path: &Path) -> Vec<PathBuf> {
    let real = path.canonicalize().ok();
    let prefix = |path: &Path| path.parent().and_then(Path::parent).map(Path::to_owned);
    let mut prefixes: Vec<PathBuf> =
        [Some(path), real.as_deref()].into_iter().flatten().filter_map(prefix).collect();
    prefixes.dedup();
    prefixes
}

/// The absolute form of `path` if it leads to something that can be executed and is no script.
fn program_file(path: &Path) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    let facts = fs::metadata(&real).ok()?;
    let is_executable = facts.is_file() && facts.permissions().mode() & 0o111 != 0;
    let mut magic = [0; 4];
    File::open(&real).ok()?.read_exact(&mut magic).ok()?;
    (is_executable && &magic == b"\x7fELF").then(|| std::path::absolute(path).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOWHERE: Interpreter = Interpreter {
        name: "no-such-interpreter",
        variable: "WINDFALL_NO_SUCH_VARIABLE",
        arguments: &[],
        runtime: "",
        fix: "install it",
    };

    #[test]
    fn a_missing_interpreter_is_an_error_with_the_fix() {
        let message = NOWHERE.program().unwrap_err().to_string();
        assert!(message.starts_with("no no-such-interpreter on this machine: looked at /usr/bin"));
        assert!(message.ends_with("; install it"), "{message}");
    }

    #[test]
    fn scripts_and_folders_are_no_programs() {
        assert_eq!(program_file(Path::new("/usr/bin")), None);
        assert_eq!(program_file(Path::new("/usr/bin/no-such-program")), None);
        assert_eq!(
            program_file(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml").as_path()),
            None
        );
        let own = env::current_exe().unwrap();
        assert_eq!(program_file(&own), Some(own));
    }

    #[test]
    fn an_interpreter_outside_of_usr_needs_its_prefix() {
        assert_eq!(read_only_outside_usr(["/usr".into()]), Vec::<PathBuf>::new());
        let own = Path::new("/opt/python/bin/python3");
        assert_eq!(read_only_outside_usr(prefixes(own)), [PathBuf::from("/opt/python")]);
    }
}
