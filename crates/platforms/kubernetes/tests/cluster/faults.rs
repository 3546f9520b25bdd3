//! What fails around the controller: its leader, the API server.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::bed::{Bed, Needs, record, resource, until};
use super::controller::{Controller, install, policy, seen, set_mode};
use super::resize::deployment;

/// Back in service within so many seconds.
const LIMIT: u64 = 15;

/// Seconds until a change of the policy is answered in its status.
pub(crate) async fn answers(bed: &Bed, namespace: &str, mode: &str, began: Instant) -> f64 {
    let changed = set_mode(bed, namespace, mode).await;
    let generation = changed.metadata.generation.unwrap();
    until(60, "the change is answered", async || {
        let policy = seen(bed, namespace).await?;
        (policy["status"]["observedGeneration"].as_i64() == Some(generation)).then_some(())
    })
    .await;
    began.elapsed().as_secs_f64()
}

async fn holder(bed: &Bed, namespace: &str) -> Option<String> {
    let leases = resource("coordination.k8s.io", "v1", "Lease", "leases");
    let lease = bed.api(&leases, Some(namespace)).get_opt("windfall").await.ok()??;
    lease.data["spec"]["holderIdentity"].as_str().map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cluster: cargo xtask kubernetes"]
async fn a_killed_leader_and_a_restarted_api_server_are_survived_within_15_s() {
    let Some(bed) = Bed::with("faults", Needs::Objects).await else { return };
    install(&bed).await;
    let namespace = bed.namespace("windfall-faults").await;
    bed.apply(&resource("apps", "v1", "Deployment", "deployments"), &deployment(&namespace)).await;
    policy(&bed, &namespace, "Recommend").await;
    let mut first = Controller::start(&namespace, "first", 1, false);
    until(30, "the first leads", async || {
        (holder(&bed, &namespace).await? == "first").then_some(())
    })
    .await;
    let mut second = Controller::start(&namespace, "second", 2, false);
    answers(&bed, &namespace, "Off", Instant::now()).await;

    let killed = Instant::now();
    first.kill();
    let took = answers(&bed, &namespace, "Recommend", killed).await;
    record("leader_killed_s", &format!("{took:.1}"));
    assert_eq!(holder(&bed, &namespace).await.as_deref(), Some("second"));
    assert!(took <= LIMIT as f64, "{took:.1} s without a leader");

    let Some(harness) = std::env::var_os("WINDFALL_KUBERNETES_HARNESS") else {
        record("skipped", "faults: the API server of this cluster is not ours to restart");
        return;
    };
    let script = std::path::Path::new(&harness).join("restart-api-server.sh");
    let restart = move || Command::new(script).status();
    assert!(tokio::task::spawn_blocking(restart).await.unwrap().unwrap().success());
    let back = Instant::now();
    let took = answers(&bed, &namespace, "Off", back).await;
    record("api_server_restarted_s", &format!("{took:.1}"));
    assert!(took <= LIMIT as f64, "{took:.1} s after the API server was back");
    assert!(second.runs(), "the controller never ended");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let policy = seen(&bed, &namespace).await.unwrap_or(Value::Null);
    assert_eq!(policy["spec"]["mode"], "Off", "no object was lost");
    bed.delete_namespace(&namespace).await;
}
