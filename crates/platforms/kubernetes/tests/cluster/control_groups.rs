//! The control group of a container, read from the kernel's files.

use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = "/sys/fs/cgroup";

/// CPU quota in microseconds per 100 ms and memory limit in bytes, as the kernel has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) cpu_quota: i64,
    pub(crate) memory: u64,
}

/// The group of a container.
pub(crate) struct ContainerGroup {
    cpu: PathBuf,
    memory: PathBuf,
}

impl ContainerGroup {
    /// Finds it by the container's id, which is the name of its folder.
    pub(crate) fn find(container_id: &str) -> Option<Self> {
        let id = container_id.rsplit('/').next()?;
        if Path::new(ROOT).join("cgroup.controllers").exists() {
            let folder = search(Path::new(ROOT), id, 0)?;
            return Some(Self { cpu: folder.join("cpu.max"), memory: folder.join("memory.max") });
        }
        let cpu = search(&Path::new(ROOT).join("cpu"), id, 0)?.join("cpu.cfs_quota_us");
        let memory = search(&Path::new(ROOT).join("memory"), id, 0)?.join("memory.limit_in_bytes");
        Some(Self { cpu, memory })
    }

    pub(crate) fn limits(&self) -> Limits {
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        let first = |text: String| text.split_whitespace().next().unwrap_or("-1").to_owned();
        Limits {
            cpu_quota: first(read(&self.cpu)).parse().unwrap_or(-1),
            memory: first(read(&self.memory)).parse().unwrap_or(u64::MAX),
        }
    }
}

/// Pods lie at most six folders deep.
fn search(folder: &Path, name: &str, depth: u32) -> Option<PathBuf> {
    let entries: Vec<PathBuf> = fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    let is_named =
        |path: &&PathBuf| path.file_name().is_some_and(|own| own.to_string_lossy().contains(name));
    if let Some(found) = entries.iter().find(is_named) {
        return Some(found.clone());
    }
    (depth < 6).then(|| entries.iter().find_map(|path| search(path, name, depth + 1))).flatten()
}
