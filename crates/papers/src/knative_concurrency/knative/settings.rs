//! What the platform under a revision is made of.

use serde::{Deserialize, Serialize};
use windfall_core::Duration;

/// Nodes, pods, queues and delays. All numbers are chosen, unless a line says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnativeSettings {
    /// Nodes; nine in the paper.
    pub nodes: u32,
    /// Pods that fit on a node: 64 GB in the paper, of which some 48 GiB are left beside the system, the gateways and
    /// the monitoring, at 6.5 GiB each.
    pub pods_per_node: u32,
    /// CPU limit of a pod, cores.
    pub pod_cores: f64,
    /// Memory limit of a pod, MiB.
    pub pod_memory_mib: f64,
    /// Memory that a pod uses without any request, MiB.
    pub pod_base_mib: f64,
    /// Median time from the decision until a pod is ready, on a node that starts nothing else.
    pub cold_start: Duration,
    /// Standard deviation of its logarithm.
    pub cold_start_sigma: f64,
    /// A node starts one pod after the other, this far apart.
    pub start_spacing: Duration,
    /// How long a killed container takes to come back the first time.
    pub restart: Duration,
    /// Waiting before the second restart; doubles each time. Kubernetes' number.
    pub restart_backoff: Duration,
    /// Requests that may wait at the activator. Knative's number.
    pub activator_queue: usize,
    /// Requests that may wait at a pod, per place. Knative's number.
    pub queue_depth: u32,
    /// Time on the wire and in gateways, per request.
    pub network: Duration,
    /// Spread of the speed of pods within a test, as a share.
    pub pod_speed_sigma: f64,
    /// Spread of the speed of all pods from test to test: neighbours on the same machines.
    pub test_speed_sigma: f64,
    /// After this the client gives up. Vegeta's number.
    pub client_timeout: Duration,
    /// From a patched service to a revision that takes all traffic, besides the start of its first pod.
    pub roll_out: Duration,
}

impl Default for KnativeSettings {
    fn default() -> Self {
        Self {
            nodes: 9,
            pods_per_node: 7,
            pod_cores: 0.2,
            pod_memory_mib: 6656.0,
            pod_base_mib: 30.0,
            cold_start: Duration::from_secs(4),
            cold_start_sigma: 0.15,
            start_spacing: Duration::from_secs(1),
            restart: Duration::from_secs(2),
            restart_backoff: Duration::from_secs(10),
            activator_queue: 10_000,
            queue_depth: 10,
            network: Duration::from_millis(3),
            pod_speed_sigma: 0.03,
            test_speed_sigma: 0.05,
            client_timeout: Duration::from_secs(30),
            roll_out: Duration::from_secs(4),
        }
    }
}

impl KnativeSettings {
    /// Pods that fit into the cluster.
    pub fn most_pods(&self) -> u32 {
        self.nodes * self.pods_per_node
    }
}
