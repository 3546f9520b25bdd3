//! The repository as the rules see it: its files, its manifests and what cargo knows about it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A text file, with its path from the root.
pub(crate) struct TextFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl TextFile {
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Lines with their number, counted from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

pub(crate) struct Repository {
    root: PathBuf,
    /// Every text file that is or could be committed, in order of their paths.
    pub(crate) files: Vec<TextFile>,
}

impl Repository {
    pub(crate) fn open() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("this package lies in a folder of the repository")
            .to_owned();
        let mut paths = listed_by_git(&root).unwrap_or_else(|| walked(&root));
        paths.sort();
        paths.dedup();
        let files = paths
            .into_iter()
            // Archives are not text, and a deleted file may still be listed.
            .filter_map(|path| {
                let text = std::fs::read_to_string(root.join(&path)).ok()?;
                Some(TextFile { path, text })
            })
            .collect();
        Self { root, files }
    }

    pub(crate) fn rust_files(&self) -> impl Iterator<Item = &TextFile> {
        self.files.iter().filter(|file| file.is_rust())
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// The text of a file that must be there.
    pub(crate) fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path))
            .unwrap_or_else(|why| panic!("{path} must be readable: {why}"))
    }

    /// What cargo knows about the workspace and all it depends on.
    pub(crate) fn metadata(&self) -> Value {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1", "--all-features"])
            .current_dir(&self.root)
            .output()
            .expect("cargo runs these tests, so it can be started");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "cargo metadata failed:\n{said}");
        serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON")
    }
}

/// Tracked files and new ones that are not ignored; nothing where git cannot tell.
fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()?;
    let listed = String::from_utf8_lossy(&output.stdout);
    let paths: Vec<String> =
        listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
    (output.status.success() && !paths.is_empty()).then_some(paths)
}

/// The same for an unpacked archive: all files except what a build or a run leaves behind.
fn walked(root: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(root.join(&folder)).expect("own folders can be read");
        for entry in entries.filter_map(Result::ok) {
            let path = folder.join(entry.file_name());
            if !root.join(&path).is_dir() {
                paths.push(path.to_string_lossy().replace('\\', "/"));
            } else if ![".git", "target", "runs"].contains(&&*entry.file_name().to_string_lossy()) {
                folders.push(path);
            }
        }
    }
    paths
}
