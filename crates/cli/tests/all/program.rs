//! Runs the `windfall` program in a directory of its own and judges how it ended.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A generated world in which a run takes milliseconds.
pub(crate) const SMALL: [&str; 6] =
    ["--functions", "10", "--minutes", "5", "--calls-per-hour", "2000"];

/// The top of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The program under test.
pub(crate) fn windfall() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_windfall"))
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
