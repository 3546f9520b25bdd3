//! A real Kubernetes with real Knative on this machine, the tests against it, and its end.
//!
//! ```text
//!   KUBECONFIG is set             the tests run against that cluster, nothing is built or started
//!   root and Go, or a prebuilt    etcd, API server, scheduler, kubelet, containerd, Knative in namespaces of their own
//!   Go without root               etcd, API server and controller-manager on loopback: objects, no pods
//!   neither                       the tests that use recorded answers
//! ```
//!
//! Programs and images are kept in `target/kubernetes/build-<hash>`, where the hash covers the Go sources, their
//! go.sum files and the version of Go. `WINDFALL_KUBERNETES_BUILD` names another folder that is complete.

mod build;
mod ground;
mod suite;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::step::{Outcome, run};
use ground::Ground;
use suite::Summary;

/// The scripts and Go modules of the cluster.
const HARNESS: &str = "tests/kubernetes";

/// How the cluster is made and what becomes of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cluster {
    /// Only the summary goes to standard output, as one JSON object.
    pub(crate) json: bool,
    /// The cluster stays up after the tests.
    pub(crate) keep: bool,
    /// Without it the cluster has no Knative, and the tests that need it are skipped.
    pub(crate) knative: bool,
    /// Only tests with this in their name.
    pub(crate) filter: Option<String>,
}

impl Cluster {
    /// The options of `kubernetes`, in any order.
    pub(crate) fn parse(options: &[&str]) -> Result<Self, String> {
        let mut cluster = Self { json: false, keep: false, knative: true, filter: None };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            match *option {
                "--keep" => cluster.keep = true,
                "--no-knative" => cluster.knative = false,
                "--format" => match options.next() {
                    Some(&"json") => cluster.json = true,
                    Some(&"text") => cluster.json = false,
                    other => {
                        let other = other.copied().unwrap_or_default();
                        return Err(format!("--format is `{other}`, allowed is text or json"));
                    }
                },
                "--test" => {
                    let name = options.next().ok_or("--test needs a part of a test's name")?;
                    cluster.filter = Some((*name).to_owned());
                }
                other => return Err(format!("`kubernetes` has no option `{other}`; allowed is:")),
            }
        }
        Ok(cluster)
    }

    /// Builds, starts, tests and ends the cluster; the summary is the last line.
    pub(crate) fn run(&self) -> ExitCode {
        match self.test() {
            Ok(summary) => {
                println!("{}", if self.json { summary.to_json() } else { summary.to_string() });
                if summary.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
            }
            Err(problem) => {
                eprintln!("error: {problem}");
                ExitCode::FAILURE
            }
        }
    }

    /// The same as one step of the long check.
    pub(crate) fn step(&self) -> Result<Outcome, String> {
        let summary = self.test()?;
        match (summary.failed, summary.node) {
            (0, "kubelet") => Ok(Outcome::Passed),
            (0, _) => Ok(Outcome::PassedWithout("a node: no real pods were tested".to_owned())),
            (failed, _) => Err(format!("{failed} tests failed; {summary}")),
        }
    }

    fn test(&self) -> Result<Summary, String> {
        match ground::survey(self)? {
            Ground::Given => suite::against_cluster(self, None),
            Ground::Recorded => suite::recorded(),
            Ground::Node => self.on_own_cluster(true),
            Ground::ControlPlane => self.on_own_cluster(false),
        }
    }

    fn on_own_cluster(&self, has_node: bool) -> Result<Summary, String> {
        let build = build::programs(self.knative && has_node, has_node)?;
        let mut place = Place::new(build, has_node);
        // The cluster idles while the tests compile, so they are compiled before it starts.
        suite::compile()?;
        if has_node {
            let program = target().join("debug/windfall-kubernetes");
            place.run_script("own-image.sh", &[&program.to_string_lossy()])?;
        }
        let began = Instant::now();
        let mode = match (has_node, self.knative) {
            (false, _) => "without-node",
            (true, false) => "without-knative",
            (true, true) => "all",
        };
        place.is_up = true;
        place.run_script("up.sh", &[mode])?;
        eprintln!("the cluster is up after {:.1} s", began.elapsed().as_secs_f64());
        let summary = suite::against_cluster(self, Some(&place));
        if self.keep {
            place.is_up = false;
            eprintln!(
                "the cluster stays up; `WINDFALL_KUBERNETES_STATE={} {HARNESS}/down.sh` ends it",
                place.state.display()
            );
        }
        summary
    }
}

/// Where one cluster lives. Dropping it ends the cluster, however the tests ended.
pub(crate) struct Place {
    build: PathBuf,
    state: PathBuf,
    has_node: bool,
    is_up: bool,
}

impl Place {
    fn new(build: PathBuf, has_node: bool) -> Self {
        // One state folder and one control group per run: two clusters can be up side by side.
        let state = target().join("kubernetes").join(format!("state-{}", std::process::id()));
        Self { build, state, has_node, is_up: false }
    }

    /// A script of the harness, with the names of this cluster's folders.
    fn script(&self, name: &str) -> Command {
        let mut script = Command::new(Path::new(HARNESS).join(name));
        self.name_folders(&mut script);
        script
    }

    fn name_folders(&self, command: &mut Command) {
        command.env("WINDFALL_KUBERNETES_BUILD", &self.build);
        command.env("WINDFALL_KUBERNETES_STATE", &self.state);
        command.env("WINDFALL_KUBERNETES_GROUP", self.group());
        if !self.has_node {
            // The usual ports may be taken by a cluster of the user's own.
            command.env("WINDFALL_KUBERNETES_PORT", "16443");
        }
    }

    fn group(&self) -> String {
        format!("windfall-kubernetes-{}", std::process::id())
    }

    fn run_script(&self, name: &str, words: &[&str]) -> Result<(), String> {
        let mut script = self.script(name);
        script.args(words);
        // Progress is for people; standard output is the summary.
        script.stdout(std::io::stderr());
        run(&mut script).map_err(|problem| {
            format!("{problem}; the logs of its parts are in {}", self.state.join("log").display())
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_up {
            let _ = self.run_script("down.sh", &[]);
        }
    }
}

/// Where cargo puts what it makes, made absolute for programs that run elsewhere.
fn target() -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    std::path::absolute(&named).unwrap_or(named)
}

#[test]
fn options_come_in_any_order_and_mistakes_are_named() {
    let wanted = Cluster { json: true, keep: true, knative: false, filter: None };
    assert_eq!(Cluster::parse(&["--keep", "--no-knative", "--format", "json"]), Ok(wanted));
    let problem = |options: &[&str]| Cluster::parse(options).expect_err("a mistake");
    assert!(problem(&["--format", "yaml"]).contains("--format is `yaml`"));
    assert!(problem(&["--fast"]).contains("`--fast`"));
    assert!(problem(&["--test"]).contains("--test needs"));
}
