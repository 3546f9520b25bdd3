//! Finds the `windfall` program, runs it in a directory of its own, and judges how it ended.
//!
//! Cargo passes the path of a program only to tests of its own package (`CARGO_BIN_EXE_…`), and a
//! dependency on a program is unstable. So the first test asks cargo to build it beside this test's own
//! executable: nothing happens if it is there and fresh, and a stale one is never tested.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

/// A generated world in which a run takes milliseconds.
pub(crate) const SMALL: [&str; 6] =
    ["--functions", "10", "--minutes", "5", "--calls-per-hour", "2000"];

/// The top of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests lie in the repository")
}

/// The program under test.
pub(crate) fn windfall() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(build)
}

fn build() -> PathBuf {
    let this = std::env::current_exe().expect("a running test has a path");
    // target/<profile>/deps/all-0123abcd
    let profile_directory = this.ancestors().nth(2).expect("tests lie in deps");
    let target = profile_directory.parent().expect("profiles lie in the target directory");
    let profile = match profile_directory.file_name().and_then(|name| name.to_str()) {
        // With the profile of the tests most of what is needed is built already.
        Some("debug") | None => "test",
        Some(other) => other,
    };
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--package", "windfall-cli", "--bin", "windfall"])
        .args(["--profile", profile, "--target-dir"])
        .arg(target)
        .current_dir(root())
        .output()
        .expect("cargo can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    profile_directory.join(format!("windfall{}", std::env::consts::EXE_SUFFIX))
}

/// How a run of the program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the program prints UTF-8");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// It did what it was asked to.
    #[track_caller]
    pub(crate) fn done(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// All of its standard output as one JSON value.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let ended = self.done();
        serde_json::from_str(&ended.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
    }

    /// It could not be done: exit code 2, nothing printed as data, and each of `parts` in the message.
    #[track_caller]
    pub(crate) fn refused(self, parts: &[&str]) -> Self {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        assert!(self.stderr.starts_with("error: "), "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        for part in parts {
            assert!(self.stderr.contains(part), "`{part}` is missing in: {}", self.stderr);
        }
        self
    }
}

/// An empty directory that the program runs in; gone at the end of the test.
pub(crate) struct Place {
    directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { directory: TempDir::new().expect("there is room for temporary files") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        let folder = path.parent().expect("every file lies in a folder");
        std::fs::create_dir_all(folder).expect("a folder can be made");
        std::fs::write(path, content).expect("a file can be written");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        let path = self.path(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The program with these words, ready to run here.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(windfall());
        command.args(words).current_dir(self.directory.path()).stdin(Stdio::null());
        command
    }

    /// Runs the program with the words of `line`, then with `more`.
    pub(crate) fn run(&self, line: &str, more: &[&str]) -> Ended {
        let words: Vec<&str> = line.split_whitespace().chain(more.iter().copied()).collect();
        Ended::of(self.command(&words).output().expect("the program can be started"))
    }

    /// Every file below, relative, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.directory.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder can be listed") {
                let path = entry.expect("an entry can be read").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let path = path.strip_prefix(self.directory.path()).expect("below");
                    found.push(path.to_string_lossy().replace('\\', "/"));
                }
            }
        }
        found.sort();
        found
    }
}
