//! Programs that the checks need and cargo does not bring: installed once, at one version, into
//! `target/tools`, so that everyone runs the same and nothing outside the repository changes.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step::run;

const FOLDER: &str = "target/tools";

/// A cargo subcommand of one version.
pub(crate) struct Tool {
    /// The package and its executable.
    name: &'static str,
    version: &'static str,
}

/// Judges licences, sources, bans and advisories by `deny.toml`.
pub(crate) const CARGO_DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2" };

/// Builds the targets in `fuzz/`.
pub(crate) const CARGO_FUZZ: Tool = Tool { name: "cargo-fuzz", version: "0.13.2" };

impl Tool {
    /// The executable of the right version: one that is on the path, or the one we installed.
    pub(crate) fn find(&self) -> Option<PathBuf> {
        let installed = Path::new(FOLDER).join("bin").join(self.name);
        [PathBuf::from(self.name), installed].into_iter().find(|place| self.is_at(place))
    }

    /// The executable of the right version, installed now if it is not there.
    pub(crate) fn install(&self) -> Result<PathBuf, String> {
        if let Some(found) = self.find() {
            return Ok(found);
        }
        let Self { name, version } = self;
        let mut install = Command::new("cargo");
        install.args(["install", "--locked", "--version", version, "--root", FOLDER, name]);
        run(&mut install).map_err(|problem| {
            format!(
                "{name} {version} is needed and cannot be installed: {problem}. Where the package \
                 registry can be reached, run `cargo install --locked --version {version} {name}`; \
                 a {name} {version} on the path is used as it is"
            )
        })?;
        self.find().ok_or_else(|| {
            format!("{name} was installed into {FOLDER} but does not report version {version}")
        })
    }

    fn is_at(&self, place: &Path) -> bool {
        let Ok(output) = Command::new(place).arg("--version").output() else { return false };
        output.status.success() && self.is_version(&String::from_utf8_lossy(&output.stdout))
    }

    /// Whether `answer` is what the tool prints of its version, such as `cargo-deny 0.20.2`.
    fn is_version(&self, answer: &str) -> bool {
        answer.split_whitespace().eq([self.name, self.version])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pinned_version_will_do() {
        assert!(CARGO_DENY.is_version("cargo-deny 0.20.2\n"));
        assert!(!CARGO_DENY.is_version("cargo-deny 0.20.20\n"));
        assert!(!CARGO_DENY.is_version(""));
        let absent = Tool { name: "cargo-absent-tool", version: "1.0.0" };
        assert!(absent.find().is_none());
    }
}
