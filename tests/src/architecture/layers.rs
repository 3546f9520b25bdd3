//! Which crate may know which, and what pure crates may not touch.

use serde_json::Value;

use super::finding::Finding;
use super::repository::Repository;

/// Our crates, in layers, with the others they may depend on (dev-dependencies are exempt).
///
/// `sim` and `rl` do not see each other: one is any platform that can be reset, the other learns on
/// any such platform. `scenario` does not see platforms, so no experiment drags in a cluster client.
const ARROWS: &[(&str, &[&str])] = &[
    ("windfall-core", &[]),
    ("windfall-trace", &["core"]),
    ("windfall-policy", &["core"]),
    ("windfall-autoscalers", &["core"]),
    ("windfall-control", &["core"]),
    ("windfall-telemetry", &["core"]),
    ("windfall-sim", &["core", "control"]),
    ("windfall-rl", &["core", "control"]),
    ("windfall-agents", &["core", "policy", "rl"]),
    ("windfall-registry", &["core", "policy", "autoscalers", "control", "rl", "agents"]),
    ("windfall-sandbox", &["core"]),
    ("windfall-functions", &["core"]),
    ("windfall-load", &["core", "trace"]),
    ("windfall-openwhisk", &["core"]),
    ("windfall-embedded", &["core", "control", "telemetry", "sandbox", "functions", "openwhisk"]),
    ("windfall-gym", &["core", "trace", "sim", "policy", "control", "rl"]),
    (
        "windfall-papers",
        &["core", "trace", "sim", "policy", "autoscalers", "control", "rl", "agents", "gym"],
    ),
    (
        "windfall-scenario",
        &[
            "core",
            "trace",
            "policy",
            "autoscalers",
            "control",
            "telemetry",
            "sim",
            "rl",
            "registry",
        ],
    ),
    (
        "windfall-studies",
        &[
            "core",
            "trace",
            "policy",
            "autoscalers",
            "control",
            "telemetry",
            "sim",
            "rl",
            "agents",
            "registry",
            "gym",
            "papers",
            "scenario",
        ],
    ),
    // A program of its own, so that no other crate links a cluster client. `papers` and `studies` are for the published
    // experiment on a real Knative.
    (
        "windfall-kubernetes",
        &[
            "core",
            "policy",
            "autoscalers",
            "control",
            "telemetry",
            "rl",
            "registry",
            "load",
            "papers",
            "studies",
        ],
    ),
    // Runs published experiments on a real machine: platforms below, pages and predictions of the studies.
    (
        "windfall-experiments",
        &[
            "core",
            "control",
            "telemetry",
            "registry",
            "rl",
            "sandbox",
            "functions",
            "load",
            "openwhisk",
            "embedded",
            "gym",
            "policy",
            "papers",
            "scenario",
            "studies",
        ],
    ),
    (
        "windfall-daemon",
        &[
            "core",
            "trace",
            "policy",
            "autoscalers",
            "control",
            "telemetry",
            "sim",
            "rl",
            "registry",
            "scenario",
            "embedded",
            "functions",
            "load",
            "openwhisk",
            "sandbox",
        ],
    ),
    // The bindings offer what the command line offers, so they know as much: environments, policies, runs, traces.
    (
        "windfall-python",
        &["core", "trace", "telemetry", "rl", "gym", "registry", "scenario", "studies"],
    ),
    (
        "windfall-cli",
        &[
            "core",
            "control",
            "policy",
            "autoscalers",
            "trace",
            "sim",
            "telemetry",
            "rl",
            "gym",
            "papers",
            "registry",
            "scenario",
            "studies",
            "embedded",
            "functions",
            "load",
            "openwhisk",
            "sandbox",
            "experiments",
            "daemon",
        ],
    ),
    // Only dev-dependencies, and none at all.
    ("windfall-tests", &[]),
    ("xtask", &[]),
];

/// Crates that read no clock, open no socket and iterate over nothing in hash order.
///
/// `scenario` and `studies` are among them although they use all cores: rayon's results are collected in index
/// order, and threads of our own stay banned there as everywhere below.
const PURE: &[&str] = &[
    "core",
    "trace",
    "policy",
    "autoscalers",
    "control",
    "telemetry",
    "sim",
    "rl",
    "agents",
    "registry",
    "gym",
    "papers",
    "scenario",
    "studies",
];

/// Outside crates that only some of ours may name.
const CONFINED: &[(&str, &[&str])] = &[
    // Errors without a type are for programs; libraries have one enum per subject.
    ("anyhow", &["cli", "daemon"]),
    // Time is an integer since the run began; calendars are for talking to the outside.
    ("chrono", &["embedded", "openwhisk", "daemon"]),
    ("clap", &["cli", "kubernetes"]),
    ("indicatif", &["cli"]),
    ("kube", &["kubernetes"]),
    // Nothing below the bindings knows of Python.
    ("numpy", &["python"]),
    ("pyo3", &["python"]),
    // Parallel work must be collected in a fixed order: where experiments are repeated by the hundred.
    ("rayon", &["papers", "rl", "scenario", "studies", "python"]),
    ("rusqlite", &["openwhisk", "daemon"]),
    // Nothing but platforms and programs waits for a socket.
    (
        "tokio",
        &[
            "embedded",
            "experiments",
            "functions",
            "kubernetes",
            "load",
            "openwhisk",
            "daemon",
            "cli",
        ],
    ),
];

pub(crate) fn arrows(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in members(&repository.metadata()) {
        let Some((_, may)) = ARROWS.iter().find(|(name, _)| *name == package.name) else {
            findings.push(Finding {
                file: package.manifest.clone(),
                line: None,
                found: format!("unknown crate {}", package.name),
                allowed: "the crates of ARROWS in tests/src/architecture/layers.rs".to_owned(),
                remedy: "add it to the table and write a decision record",
            });
            continue;
        };
        for other in package.dependencies.iter().filter_map(|name| name.strip_prefix("windfall-")) {
            if !may.contains(&other) {
                findings.push(Finding {
                    file: package.manifest.clone(),
                    line: line_of(repository, &package.manifest, &format!("windfall-{other}")),
                    found: format!("{} depends on {other}", package.name),
                    allowed: list(may),
                    remedy: "move the shared part down, or change the table with a decision record",
                });
            }
        }
    }
    findings
}

pub(crate) fn confined(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in members(&repository.metadata()) {
        let short = package.name.strip_prefix("windfall-").unwrap_or(&package.name);
        for (outside, may) in CONFINED {
            if package.dependencies.iter().any(|name| name == outside) && !may.contains(&short) {
                findings.push(Finding {
                    file: package.manifest.clone(),
                    line: line_of(repository, &package.manifest, outside),
                    found: format!("{short} depends on {outside}"),
                    allowed: format!("{outside} in {}", list(may)),
                    remedy: "hand in what you need as an argument, or write a decision record",
                });
            }
        }
    }
    findings
}

pub(crate) fn bans(repository: &Repository) -> Vec<Finding> {
    let wanted = repository.text("crates/core/clippy.toml");
    PURE.iter()
        .filter(|name| repository.has(&format!("crates/{name}/Cargo.toml")))
        .map(|name| format!("crates/{name}/clippy.toml"))
        .filter(|file| !repository.has(file) || repository.text(file) != wanted)
        .map(|file| Finding {
            file,
            line: None,
            found: "is missing or differs from crates/core/clippy.toml".to_owned(),
            allowed: "the same bans in every pure crate, because the nearest file replaces the rest"
                .to_owned(),
            remedy: "copy crates/core/clippy.toml; one place that must differ says so with #[expect]",
        })
        .collect()
}

struct Member {
    name: String,
    manifest: String,
    /// Names of what it depends on, dev-dependencies left out.
    dependencies: Vec<String>,
}

fn members(metadata: &Value) -> Vec<Member> {
    let root = metadata["workspace_root"].as_str().unwrap_or_default();
    let packages = metadata["packages"].as_array().expect("metadata lists packages");
    packages
        .iter()
        .filter(|package| package["source"].is_null())
        .map(|package| Member {
            name: package["name"].as_str().unwrap_or_default().to_owned(),
            manifest: package["manifest_path"]
                .as_str()
                .and_then(|path| path.strip_prefix(root))
                .unwrap_or_default()
                .trim_start_matches(['/', '\\'])
                .replace('\\', "/"),
            dependencies: package["dependencies"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|dependency| dependency["kind"] != "dev")
                .filter_map(|dependency| Some(dependency["name"].as_str()?.to_owned()))
                .collect(),
        })
        .collect()
}

fn line_of(repository: &Repository, manifest: &str, dependency: &str) -> Option<usize> {
    let text = repository.text(manifest);
    text.lines().position(|line| line.starts_with(dependency)).map(|index| index + 1)
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

#[test]
fn no_simulator_stands_behind_the_registry() {
    let mut behind = vec!["registry"];
    let mut place = 0;
    while let Some(name) = behind.get(place) {
        let row = ARROWS.iter().find(|(row, _)| row.strip_prefix("windfall-") == Some(*name));
        behind.extend(row.map_or(&[][..], |(_, may)| may));
        place += 1;
    }
    assert!(!behind.contains(&"sim"), "a driver of a real platform must not link the simulator");
}

#[test]
fn the_table_itself_has_no_circle() {
    // Layers are listed bottom up, so every arrow must lead to a row above.
    for (place, (name, may)) in ARROWS.iter().enumerate() {
        for other in *may {
            let below = ARROWS[..place].iter().any(|(row, _)| row.ends_with(&format!("-{other}")));
            assert!(below, "{name} may depend on {other}, which is not listed before it");
        }
    }
}
