//! Every reader of bytes from outside, under libFuzzer.
//!
//! The pinned compiler builds the targets: `RUSTC_BOOTSTRAP=1` lets it take the flags for coverage, and
//! `--sanitizer none` leaves out what only a nightly compiler has. Our code forbids `unsafe`, so panics,
//! hangs and memory are what can go wrong, and libFuzzer sees those without a sanitizer.
//!
//! ```text
//!  fuzz/seeds/T   first inputs, written by hand      ─┐
//!  fuzz/corpus/T  kept inputs, a minimal cover       ─┼─► target T ─► fuzz/target/corpus/T  new inputs
//!  fuzz/target/corpus/T  what earlier runs found     ─┘
//! ```
//!
//! `--keep` reduces all three to the smallest set that covers the same code and puts it into `fuzz/corpus`.

mod log;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::step::run;
use crate::tools::CARGO_FUZZ;
use log::{Statistics, tail};

/// An input may take no more memory than this, the fuzzer and its inputs included.
const MEMORY_MB: u32 = 200;
/// An input may take no longer than this.
const INPUT_SECONDS: u32 = 10;
/// Inputs per target unless the caller asks for another number.
pub(crate) const USUAL_RUNS: u64 = 1_000_000;

/// What to run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Campaign {
    /// Inputs per target.
    pub(crate) runs: u64,
    /// One target; all of them if there is none.
    pub(crate) target: Option<String>,
    /// Whether new inputs go into `fuzz/corpus`.
    pub(crate) keep: bool,
}

impl Campaign {
    /// Builds and runs the targets, and prints a table at the end. Fails with the first target that
    /// crashes, hangs or takes too much memory, after all others have run.
    pub(crate) fn run(&self) -> Result<(), String> {
        let targets = self.targets()?;
        build(self.target.as_deref())?;
        let mut rows = vec![format!(
            "{:<24} {:>12} {:>9} {:>9} {:>8}",
            "target", "inputs", "seconds", "per s", "peak MB"
        )];
        let mut problems = Vec::new();
        for target in &targets {
            match fuzz(target, self.runs) {
                Ok(row) => {
                    println!("    {row}");
                    rows.push(row);
                }
                Err(problem) => {
                    rows.push(format!("{target:<24} FAILED"));
                    problems.push(problem);
                }
            }
            if self.keep {
                minimise(target)?;
            }
        }
        println!("\n{}", rows.join("\n"));
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\n\n")) }
    }

    fn targets(&self) -> Result<Vec<String>, String> {
        let all = all_targets()?;
        match &self.target {
            None => Ok(all),
            Some(target) if all.contains(target) => Ok(vec![target.clone()]),
            Some(target) => {
                Err(format!("there is no fuzz target `{target}`; allowed is {}", all.join(", ")))
            }
        }
    }
}

/// The names of all targets, in order.
fn all_targets() -> Result<Vec<String>, String> {
    const FOLDER: &str = "fuzz/fuzz_targets";
    let unreadable = |why| format!("{FOLDER} cannot be read: {why}");
    let mut names = Vec::new();
    for entry in fs::read_dir(FOLDER).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

fn build(target: Option<&str>) -> Result<(), String> {
    let tool = CARGO_FUZZ.install()?;
    let mut build = Command::new(fs::canonicalize(&tool).unwrap_or(tool));
    // Named, so that `CARGO_TARGET_DIR` does not take the programs elsewhere.
    build.args(["build", "--sanitizer", "none", "--target-dir", "fuzz/target"]).args(target);
    run(build.env("RUSTC_BOOTSTRAP", "1"))
}

/// Where cargo-fuzz puts a target: it always names the platform it builds for.
fn executable(target: &str) -> Result<PathBuf, String> {
    let output = Command::new("rustc").arg("-vV").output();
    let output = output.map_err(|why| format!("`rustc -vV` could not start: {why}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("`rustc -vV` names no host")?;
    Ok(Path::new("fuzz/target").join(host).join("release").join(target))
}

/// Runs one target and returns its row of the table.
fn fuzz(target: &str, runs: u64) -> Result<String, String> {
    let artifacts = format!("fuzz/artifacts/{target}/");
    let found = folder(&format!("fuzz/target/corpus/{target}"))?;
    folder(&artifacts)?;
    let mut command = Command::new(executable(target)?);
    command.arg(&found).args(known_inputs(target)).args([
        format!("-runs={runs}"),
        format!("-rss_limit_mb={MEMORY_MB}"),
        format!("-timeout={INPUT_SECONDS}"),
        format!("-artifact_prefix={artifacts}"),
        "-print_final_stats=1".to_owned(),
    ]);
    let began = Instant::now();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|why| format!("{target} could not start: {why}"))?;
    let log = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!(
            "{target} ended with {}; the input is in {artifacts}. Make it a test next to the cause, \
             then mend that. The end of its output:\n{}",
            output.status,
            tail(&log, 30)
        ));
    }
    let statistics = Statistics::read(&log)
        .ok_or_else(|| format!("{target} printed no statistics:\n{}", tail(&log, 30)))?;
    Ok(row(target, &statistics, began.elapsed()))
}

fn row(target: &str, statistics: &Statistics, took: Duration) -> String {
    let Statistics { inputs, peak_mb } = statistics;
    let seconds = took.as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = *inputs as f64 / seconds.max(1e-3);
    format!("{target:<24} {inputs:>12} {seconds:>9.1} {rate:>9.0} {peak_mb:>8}")
}

/// Folders with inputs that are read and left alone.
fn known_inputs(target: &str) -> Vec<PathBuf> {
    let folders = ["fuzz/corpus", "fuzz/seeds"].map(|root| Path::new(root).join(target));
    folders.into_iter().filter(|folder| folder.is_dir()).collect()
}

/// Replaces the kept corpus by the smallest set of all known inputs that covers the same code.
fn minimise(target: &str) -> Result<(), String> {
    let (found, kept) = (format!("fuzz/target/corpus/{target}"), format!("fuzz/corpus/{target}"));
    let small = format!("fuzz/target/minimal/{target}");
    let failed = |what: &str, why| format!("{what} cannot be replaced: {why}");
    if Path::new(&small).exists() {
        fs::remove_dir_all(&small).map_err(|why| failed(&small, why))?;
    }
    folder(&small)?;
    let mut merge = Command::new(executable(target)?);
    // Seeds are kept anyway; code that they cover needs no second input.
    merge.args(["-set_cover_merge=1", "-use_counters=0", &small]);
    merge
        .arg(found)
        .args(known_inputs(target))
        .args([format!("-rss_limit_mb={MEMORY_MB}"), format!("-timeout={INPUT_SECONDS}")]);
    let output = merge.stdin(Stdio::null()).output();
    let output = output.map_err(|why| format!("{target} could not start: {why}"))?;
    if !output.status.success() {
        let log = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{target}: the corpus cannot be reduced:\n{}", tail(&log, 30)));
    }
    if Path::new(&kept).exists() {
        fs::remove_dir_all(&kept).map_err(|why| failed(&kept, why))?;
    }
    folder("fuzz/corpus")?;
    fs::rename(&small, &kept).map_err(|why| failed(&kept, why))
}

fn folder(path: &str) -> Result<PathBuf, String> {
    fs::create_dir_all(path).map_err(|why| format!("{path} cannot be made: {why}"))?;
    Ok(PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_inputs_seconds_rate_and_memory() {
        let statistics = Statistics { inputs: 3_000_000, peak_mb: 61 };
        let row = row("huawei", &statistics, Duration::from_secs(20));
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words, ["huawei", "3000000", "20.0", "150000", "61"]);
    }
}
