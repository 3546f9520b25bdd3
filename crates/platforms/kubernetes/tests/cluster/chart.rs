//! The Helm chart: linted, rendered, accepted by a real API server, and equal to the plain manifests.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::bed::{Bed, Needs, record};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// A program of the harness; nothing where the cluster is somebody else's.
fn program(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("WINDFALL_KUBERNETES_BUILD")?;
    Some(Path::new(&folder).join("bin").join(name)).filter(|path| path.exists())
}

fn helm(helm: &Path, words: &[&str]) -> String {
    let output = Command::new(helm).args(words).current_dir(repository()).output().unwrap();
    let problem = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "helm {words:?}: {problem}");
    String::from_utf8(output.stdout).unwrap()
}

const CHART: &str = "deploy/helm/windfall";
/// Helm knows no cluster while it renders, and a helm that was built from source takes it for an old one.
const VERSION: &[&str] = &["--kube-version", "1.36.3"];
/// Everything that needs no definitions of other operators.
const ALL: &[&str] = &[
    "--set",
    "guests.vpa.enabled=true,guests.keda.enabled=true,guests.class.enabled=true,dashboard.enabled=true",
];

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask kubernetes"]
async fn the_api_server_accepts_the_chart() {
    let Some(bed) = Bed::with("chart", Needs::Objects).await else { return };
    let (Some(tool), Some(kubernetes)) = (program("helm"), program("kubernetes")) else {
        record("skipped", "chart: helm is not built here");
        return;
    };
    helm(&tool, &["lint", "--strict", CHART]);
    let refused = Command::new(&tool)
        .args(["template", "windfall", CHART, "--set", "replicas=0"])
        .current_dir(repository())
        .output()
        .unwrap();
    assert!(!refused.status.success(), "the schema refuses a controller without replicas");
    let monitoring = [
        "template",
        "windfall",
        CHART,
        "--set",
        "serviceMonitor.enabled=true,prometheusRule.enabled=true",
    ];
    let rendered = helm(&tool, &[&monitoring[..], VERSION].concat());
    assert!(rendered.contains("kind: PrometheusRule"));

    let namespace = bed.namespace("windfall").await;
    let base =
        ["template", "windfall", CHART, "--namespace", "windfall", "--include-crds", "--no-hooks"];
    let base = [&base[..], VERSION].concat();
    let rendered = helm(&tool, &[&base[..], ALL].concat());
    let mut apply = Command::new(kubernetes)
        .args([
            "kubectl",
            "apply",
            "--server-side",
            "--dry-run=server",
            "--force-conflicts",
            "-f",
            "-",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    apply.stdin.take().unwrap().write_all(rendered.as_bytes()).unwrap();
    let output = apply.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let accepted = String::from_utf8_lossy(&output.stdout).lines().count();
    record("chart_objects", &accepted.to_string());
    assert!(accepted >= 20, "{accepted} objects");
    bed.delete_namespace(&namespace).await;

    let plain = helm(&tool, &base);
    equals_the_manifests(&plain);
}

/// The plain manifests are what the chart renders.
fn equals_the_manifests(plain: &str) {
    let path = repository().join("deploy/kubernetes/windfall.yaml");
    if std::env::var_os("WINDFALL_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, plain).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == plain,
        "deploy/kubernetes/windfall.yaml is not what the chart renders; WINDFALL_BLESS=1 rewrites it"
    );
}
