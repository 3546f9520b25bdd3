//! What this machine allows: the whole cluster, its control plane, or recorded answers.

use std::process::Command;

use super::{Cluster, build};
use crate::step::{run, succeeds};

/// What the tests can stand on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ground {
    /// `KUBECONFIG` names a cluster.
    Given,
    /// Everything, with real pods.
    Node,
    /// The API server and the controllers, without pods.
    ControlPlane,
    /// Neither.
    Recorded,
}

/// Programs that a node needs, with the Debian packages that have them.
const NODE_PROGRAMS: &[(&str, &str)] = &[
    ("containerd", "containerd"),
    ("runc", "runc"),
    ("umoci", "umoci"),
    ("iptables", "iptables"),
    ("conntrack", "conntrack"),
    ("ip", "iproute2"),
    ("ethtool", "ethtool"),
    ("nsenter", "util-linux"),
    ("pgrep", "procps"),
];

/// Programs that the scripts need in any case.
const PROGRAMS: &[(&str, &str)] =
    &[("openssl", "openssl"), ("curl", "curl"), ("bc", "bc"), ("bash", "bash")];

/// The network plug-ins are not on the path; their package is known by this file.
const NETWORK_PLUGIN: &str = "/usr/lib/cni/bridge";

/// Looks at the machine, installs packages where that is possible, and says what falls away and why.
pub(super) fn survey(cluster: &Cluster) -> Result<Ground, String> {
    if let Some(path) = std::env::var_os("KUBECONFIG").filter(|path| !path.is_empty()) {
        eprintln!("the tests use the cluster of KUBECONFIG={}", path.display());
        return Ok(Ground::Given);
    }
    let root = is_root();
    let prebuilt = build::prebuilt(cluster.knative && root);
    if prebuilt.is_none()
        && let Err(reason) = build::go()
    {
        eprintln!("no cluster here: {reason}. The tests use recorded answers");
        return Ok(Ground::Recorded);
    }
    let missing = install(PROGRAMS, root);
    if !missing.is_empty() {
        eprintln!("no cluster here: {}. The tests use recorded answers", to_install(&missing));
        return Ok(Ground::Recorded);
    }
    if !root {
        eprintln!(
            "no node here: a kubelet needs root. The tests use the control plane without pods"
        );
        return Ok(Ground::ControlPlane);
    }
    let mut missing = install(NODE_PROGRAMS, root);
    if !std::path::Path::new(NETWORK_PLUGIN).exists() {
        let package = "containernetworking-plugins";
        if !apt(&[package]) {
            missing.push(package);
        }
    }
    if missing.is_empty() {
        return Ok(Ground::Node);
    }
    eprintln!(
        "no node here: {}. The tests use the control plane without pods",
        to_install(&missing)
    );
    Ok(Ground::ControlPlane)
}

/// What is missing and how it is had.
fn to_install(packages: &[&str]) -> String {
    let packages = packages.join(" ");
    format!("{packages} missing; on Debian, `apt-get install {packages}` as root")
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|answer| answer.stdout.trim_ascii() == b"0")
}

/// Installs the packages of programs that are not there; returns those that still are not.
fn install<'a>(programs: &[(&str, &'a str)], root: bool) -> Vec<&'a str> {
    let missing = || -> Vec<&'a str> {
        programs.iter().filter(|(name, _)| !is_there(name)).map(|(_, package)| *package).collect()
    };
    let packages = missing();
    if packages.is_empty() || !root || !apt(&packages) {
        return packages;
    }
    missing()
}

fn is_there(program: &str) -> bool {
    succeeds(Command::new("sh").args(["-c", &format!("command -v {program}")]))
}

/// Installs packages. A fresh machine has no list of them; then it is fetched first.
fn apt(packages: &[&str]) -> bool {
    let apt_get = |words: &[&str]| {
        let mut apt_get = Command::new("apt-get");
        apt_get.args(words).env("DEBIAN_FRONTEND", "noninteractive").stdout(std::io::stderr());
        run(&mut apt_get).is_ok()
    };
    let install = ["install", "--yes", "--quiet", "--no-install-recommends"];
    let install = [&install, packages].concat();
    is_there("apt-get") && (apt_get(&install) || (apt_get(&["update"]) && apt_get(&install)))
}
