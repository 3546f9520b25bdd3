//! The programs and images of the cluster: found, or built once and kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{HARNESS, target};
use crate::step::run;

/// Names a folder that already has everything.
const PREBUILT: &str = "WINDFALL_KUBERNETES_BUILD";

/// The oldest Go that builds Kubernetes 1.36.
const OLDEST_GO: u32 = 26;

/// The folder that `WINDFALL_KUBERNETES_BUILD` names, if its programs are there.
pub(super) fn prebuilt(knative: bool) -> Option<PathBuf> {
    let folder = std::env::var_os(PREBUILT).map(PathBuf::from)?;
    let needed: &[&str] =
        if knative { &["kubernetes", "edge", "kn-queue"] } else { &["kubernetes"] };
    let absent = needed.iter().find(|name| !folder.join("bin").join(name).exists());
    match absent {
        None => std::path::absolute(folder).ok(),
        Some(name) => {
            eprintln!("{PREBUILT}={} has no bin/{name} and is not used", folder.display());
            None
        }
    }
}

/// The version of Go, such as `go1.26.8`, or why there is none that will do.
pub(super) fn go() -> Result<String, String> {
    let answer = Command::new("go").args(["env", "GOVERSION"]).env("GOTOOLCHAIN", "local").output();
    let answer = answer.map_err(|_| format!("there is no Go; 1.{OLDEST_GO} or later is needed"))?;
    let version = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    match minor(&version) {
        Some(minor) if minor >= OLDEST_GO => Ok(version),
        _ => Err(format!("Go is `{version}`; 1.{OLDEST_GO} or later is needed")),
    }
}

fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("go1.")?.split('.').next()?.parse().ok()
}

/// The folder with all programs and images; the first build takes 8 to 16 minutes of two cores.
pub(super) fn programs(knative: bool, images: bool) -> Result<PathBuf, String> {
    if let Some(folder) = prebuilt(knative) {
        return Ok(folder);
    }
    let version = go()?;
    let sources = Path::new(HARNESS).join("modules");
    let mut hash = Fnv::new();
    hash.add(version.as_bytes());
    hash_folder(&sources, &mut hash).map_err(|why| format!("{}: {why}", sources.display()))?;
    let folder = target().join("kubernetes").join(format!("build-{:016x}", hash.0));
    let mut build = Command::new(Path::new(HARNESS).join("build.sh"));
    build.arg(if knative { "all" } else { "without-knative" }).env(PREBUILT, &folder);
    if !images {
        build.env("WINDFALL_KUBERNETES_WITHOUT_NODE", "1");
    }
    run(build.stdout(std::io::stderr()))?;
    Ok(folder)
}

/// Go sources and sums, in order of their paths.
fn hash_folder(folder: &Path, hash: &mut Fnv) -> std::io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            hash_folder(&path, hash)?;
        } else {
            hash.add(path.to_string_lossy().as_bytes());
            hash.add(&fs::read(&path)?);
        }
    }
    Ok(())
}

/// FNV-1a: enough to notice a change, and the same on every machine.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[test]
fn a_version_of_go_is_read() {
    assert_eq!(minor("go1.26.8"), Some(26));
    assert_eq!(minor("go1.27rc1"), None, "candidates are not taken");
    assert_eq!(minor(""), None);
}
