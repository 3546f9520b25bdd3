//! What the controller may do, rule by rule with the reason. `windfall-kubernetes rbac` prints the ClusterRole, and
//! manifests are compared with it.

use serde_json::{Value, json};

/// One rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// API groups.
    pub groups: &'static [&'static str],
    /// Resources and subresources.
    pub resources: &'static [&'static str],
    /// Verbs.
    pub verbs: &'static [&'static str],
    /// Why.
    pub why: &'static str,
}

const READ: &[&str] = &["get", "list", "watch"];

/// Rules for the whole cluster.
pub const CLUSTER: &[Rule] = &[
    Rule {
        groups: &["windfall.dev"],
        resources: &["resourcepolicies"],
        verbs: &["get", "list", "watch", "patch"],
        why: "policies, and their finalizer",
    },
    Rule {
        groups: &["windfall.dev"],
        resources: &["resourcepolicies/status"],
        verbs: &["patch"],
        why: "their status",
    },
    Rule {
        groups: &[""],
        resources: &["pods", "nodes"],
        verbs: READ,
        why: "what runs, and how much room there is",
    },
    Rule {
        groups: &["apps"],
        resources: &["deployments"],
        verbs: &["get", "list", "watch", "patch"],
        why: "targets, and the note of their replicas",
    },
    Rule {
        groups: &["autoscaling"],
        resources: &["horizontalpodautoscalers"],
        verbs: READ,
        why: "conflicts",
    },
    Rule {
        groups: &["autoscaling.k8s.io"],
        resources: &["verticalpodautoscalers"],
        verbs: READ,
        why: "conflicts",
    },
    Rule { groups: &["keda.sh"], resources: &["scaledobjects"], verbs: READ, why: "conflicts" },
    Rule {
        groups: &["serving.knative.dev"],
        resources: &["services", "revisions"],
        verbs: &["get", "list", "watch", "patch"],
        why: "targets, annotations, a new Revision where the policy permits it",
    },
    Rule {
        groups: &["autoscaling.internal.knative.dev"],
        resources: &["podautoscalers"],
        verbs: READ,
        why: "what Knative's autoscaler has taken over",
    },
    Rule {
        groups: &[""],
        resources: &["pods/resize"],
        verbs: &["get", "patch"],
        why: "sizes of running pods",
    },
    Rule {
        groups: &["apps"],
        resources: &["deployments/scale"],
        verbs: &["get", "patch"],
        why: "number of pods",
    },
    Rule {
        groups: &["metrics.k8s.io"],
        resources: &["pods"],
        verbs: &["get", "list"],
        why: "usage",
    },
    Rule {
        groups: &[""],
        resources: &["nodes/proxy"],
        verbs: &["get"],
        why: "usage and throttling from the kubelet; may be left out where metrics.k8s.io or Prometheus is there",
    },
    Rule {
        groups: &["events.k8s.io"],
        resources: &["events"],
        verbs: &["create", "patch"],
        why: "Events",
    },
    Rule {
        groups: &["admissionregistration.k8s.io"],
        resources: &["mutatingwebhookconfigurations"],
        verbs: &["get", "create", "patch"],
        why: "the webhook that sizes new pods",
    },
];

/// Rules for the controller's own namespace.
pub const OWN_NAMESPACE: &[Rule] = &[
    Rule {
        groups: &["coordination.k8s.io"],
        resources: &["leases"],
        verbs: &["get", "create", "update"],
        why: "which replica acts",
    },
    Rule {
        groups: &[""],
        resources: &["secrets"],
        verbs: &["get", "create"],
        why: "the webhook's certificate",
    },
];

/// The rules as a ClusterRole and a Role.
pub fn roles(namespace: &str) -> [Value; 2] {
    let rules = |rules: &[Rule]| -> Value {
        let rule = |rule: &Rule| json!({"apiGroups": rule.groups, "resources": rule.resources, "verbs": rule.verbs});
        rules.iter().map(rule).collect()
    };
    let api = "rbac.authorization.k8s.io/v1";
    [
        json!({"apiVersion": api, "kind": "ClusterRole", "metadata": {"name": "windfall"}, "rules": rules(CLUSTER)}),
        json!({"apiVersion": api, "kind": "Role", "metadata": {"name": "windfall", "namespace": namespace}, "rules": rules(OWN_NAMESPACE)}),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_granted_by_a_star() {
        for rule in CLUSTER.iter().chain(OWN_NAMESPACE) {
            let words = rule.groups.iter().chain(rule.resources).chain(rule.verbs);
            assert!(words.clone().all(|word| *word != "*"), "{rule:?}");
            assert!(!rule.verbs.contains(&"delete") && !rule.why.is_empty(), "{rule:?}");
        }
    }
}
