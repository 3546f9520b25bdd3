//! The tests against a cluster, and what came out in numbers.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{Cluster, HARNESS, Place, target};
use crate::step::run;

const PACKAGE: &str = "windfall-kubernetes";
/// The test program that needs a cluster.
const PROGRAM: &str = "cluster";
/// Where tests write what they measured and what they skipped, one `name value` per line.
const MEASURED: &str = "WINDFALL_KUBERNETES_MEASURED";

/// What scripts read.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Summary {
    /// `kubelet` or `none`.
    pub(super) node: &'static str,
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) skipped: u64,
    /// From sending a resize to the changed control group, milliseconds.
    pub(super) resize_ms: Option<f64>,
    /// From the request to the answer of a service without pods, milliseconds.
    pub(super) scale_from_zero_ms: Option<f64>,
}

impl Summary {
    pub(super) fn to_json(&self) -> String {
        let number = |value: Option<f64>| value.map_or("null".to_owned(), |ms| format!("{ms:.1}"));
        format!(
            "{{\"node\":\"{}\",\"passed\":{},\"failed\":{},\"skipped\":{},\"resize_ms\":{},\"scale_from_zero_ms\":{}}}",
            self.node,
            self.passed,
            self.failed,
            self.skipped,
            number(self.resize_ms),
            number(self.scale_from_zero_ms)
        )
    }

    /// Adds the counts of one line of the test harness, such as `test result: ok. 3 passed; 1 failed; ...`.
    fn count(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result: ") else { return };
        let of = |word: &str| -> u64 {
            let part = counts.split([';', '.']).find(|part| part.trim().ends_with(word));
            part.and_then(|part| part.split_whitespace().next()?.parse().ok()).unwrap_or(0)
        };
        self.passed += of("passed");
        self.failed += of("failed");
    }

    /// Takes what the tests wrote. A test that skips itself has passed for the test harness.
    fn measure(&mut self, text: &str) {
        for line in text.lines() {
            let Some((name, value)) = line.split_once(' ') else { continue };
            match name {
                "resize_ms" => self.resize_ms = value.parse().ok(),
                "scale_from_zero_ms" => self.scale_from_zero_ms = value.parse().ok(),
                "node" if value == "kubelet" => self.node = "kubelet",
                "skipped" => {
                    eprintln!("skipped: {value}");
                    self.skipped += 1;
                    self.passed = self.passed.saturating_sub(1);
                }
                _ => {}
            }
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number =
            |value: Option<f64>| value.map_or("not measured".to_owned(), |ms| format!("{ms:.1}"));
        write!(
            f,
            "node {} · passed {} · failed {} · skipped {} · resize_ms {} · scale_from_zero_ms {}",
            self.node,
            self.passed,
            self.failed,
            self.skipped,
            number(self.resize_ms),
            number(self.scale_from_zero_ms)
        )
    }
}

/// Compiles the tests and the programs that they start.
pub(super) fn compile() -> Result<(), String> {
    let mut build = Command::new("cargo");
    build.args(["test", "--package", PACKAGE, "--test", PROGRAM, "--no-run"]);
    run(build.stdout(std::io::stderr()))
}

/// Runs the tests against the cluster of `place`, or of `KUBECONFIG`.
pub(super) fn against_cluster(cluster: &Cluster, place: Option<&Place>) -> Result<Summary, String> {
    let measured = measured_file()?;
    let mut tests = Command::new("cargo");
    tests.args(["test", "--package", PACKAGE, "--test", PROGRAM, "--"]);
    tests.args(["--ignored", "--test-threads=1", "--nocapture"]);
    tests.args(&cluster.filter);
    tests.env(MEASURED, &measured);
    if let Some(place) = place {
        place.name_folders(&mut tests);
        // Cargo itself stays outside the cluster's network, which leads nowhere else.
        let runner = std::path::absolute(HARNESS).map_err(|why| format!("{HARNESS}: {why}"))?;
        tests.env(runner_variable()?, runner.join("inside.sh"));
        tests.env("WINDFALL_KUBERNETES_HARNESS", &runner);
        if place.has_node {
            tests.env("WINDFALL_KUBERNETES_IMAGES", place.build.join("images"));
        }
    }
    let mut summary = Summary { node: "none", ..Summary::default() };
    run_counted(&mut tests, &mut summary)?;
    summary.measure(&std::fs::read_to_string(&measured).unwrap_or_default());
    Ok(summary)
}

/// Runs the package's other tests, which bring recorded answers of an API server.
pub(super) fn recorded() -> Result<Summary, String> {
    let mut tests = Command::new("cargo");
    tests.args(["test", "--package", PACKAGE]);
    let mut summary = Summary { node: "none", ..Summary::default() };
    run_counted(&mut tests, &mut summary)?;
    Ok(summary)
}

fn measured_file() -> Result<PathBuf, String> {
    let file = target().join("kubernetes").join(format!("measured-{}", std::process::id()));
    let folder = file.parent().map_or_else(|| PathBuf::from("."), PathBuf::from);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&file, ""))
        .map_err(|why| format!("{}: {why}", file.display()))?;
    Ok(file)
}

/// Passes on what the tests print and counts their results. A test that fails is a count, not an error.
fn run_counted(tests: &mut Command, summary: &mut Summary) -> Result<(), String> {
    let mut child = tests
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|why| format!("cargo could not start: {why}"))?;
    let output = child.stdout.take().ok_or("the tests have no output")?;
    for line in BufReader::new(output).lines() {
        let line = line.map_err(|why| format!("the tests' output: {why}"))?;
        eprintln!("{line}");
        summary.count(&line);
    }
    let status = child.wait().map_err(|why| format!("the tests: {why}"))?;
    if !status.success() && summary.failed == 0 {
        return Err(format!("the tests ended with {status} before they were counted"));
    }
    Ok(())
}

/// `CARGO_TARGET_<TRIPLE>_RUNNER` of the host.
fn runner_variable() -> Result<String, String> {
    let answer =
        Command::new("rustc").arg("-vV").output().map_err(|why| format!("rustc: {why}"))?;
    let text = String::from_utf8_lossy(&answer.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("rustc -vV names no host")?;
    Ok(format!("CARGO_TARGET_{}_RUNNER", host.replace('-', "_").to_uppercase()))
}

#[test]
fn counts_and_measurements_are_read() {
    let mut summary = Summary { node: "none", ..Summary::default() };
    summary.count("test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 2 filtered out");
    summary.measure("node kubelet\nresize_ms 36.25\nskipped knative: not installed\nbroken\n");
    assert_eq!(
        summary.to_json(),
        "{\"node\":\"kubelet\",\"passed\":2,\"failed\":1,\"skipped\":1,\"resize_ms\":36.2,\"scale_from_zero_ms\":null}"
    );
}
