//! What a class owes Knative: the ServerlessService that decides who receives requests, and the status that the
//! Revision waits for. Plain functions of what was read and decided.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use windfall_autoscalers::kpa::{Activity, Outcome, PathMode};

/// A PodAutoscaler as far as it matters here.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Autoscaled {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) labels: BTreeMap<String, String>,
    /// The Deployment to scale.
    pub(super) deployment: String,
    pub(super) target: Value,
    pub(super) protocol: String,
    pub(super) container_concurrency: u32,
    pub(super) is_unreachable: bool,
    /// Its last status had traffic.
    pub(super) was_active: bool,
    /// Its first pods were there once.
    pub(super) was_initialized: bool,
}

impl Autoscaled {
    /// Nothing if the object has no target yet.
    pub(super) fn read(object: &DynamicObject) -> Option<Self> {
        let spec = &object.data["spec"];
        let condition =
            |name| condition(&object.data["status"], name).map(|found| found["status"] == "True");
        Some(Self {
            namespace: object.namespace()?,
            name: object.name_any(),
            uid: object.uid()?,
            annotations: object.annotations().clone(),
            labels: object.labels().clone(),
            deployment: spec["scaleTargetRef"]["name"].as_str()?.to_owned(),
            target: spec["scaleTargetRef"].clone(),
            protocol: spec["protocolType"].as_str().unwrap_or("http1").to_owned(),
            container_concurrency: spec["containerConcurrency"]
                .as_u64()
                .map_or(0, |limit| limit as u32),
            is_unreachable: spec["reachability"] == "Unreachable",
            was_active: condition("Active").unwrap_or(false),
            was_initialized: condition("ScaleTargetInitialized").unwrap_or(false),
        })
    }
}

fn condition<'a>(status: &'a Value, name: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|one| one["type"] == name)
}

/// What the ServerlessService reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Path {
    pub(super) service: Option<String>,
    pub(super) private_service: Option<String>,
    pub(super) is_ready: bool,
    /// Requests reach the activators now.
    pub(super) activators_answer: bool,
}

impl Path {
    pub(super) fn read(object: &Value) -> Self {
        let status = &object["status"];
        let is_true = |name| condition(status, name).is_some_and(|found| found["status"] == "True");
        let text =
            |name: &str| status[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        Self {
            service: text("serviceName"),
            private_service: text("privateServiceName"),
            is_ready: is_true("Ready"),
            activators_answer: object["spec"]["mode"] == "Proxy"
                && is_true("ActivatorEndpointsPopulated"),
        }
    }
}

/// The ServerlessService that a decision asks for.
pub(super) fn serverless_service(of: &Autoscaled, outcome: &Outcome) -> Value {
    let mode = match outcome.mode {
        PathMode::Proxy => "Proxy",
        PathMode::Serve => "Serve",
    };
    json!({
        "apiVersion": "networking.internal.knative.dev/v1alpha1",
        "kind": "ServerlessService",
        "metadata": {
            "name": of.name,
            "namespace": of.namespace,
            "labels": of.labels,
            "ownerReferences": [{
                "apiVersion": "autoscaling.internal.knative.dev/v1alpha1",
                "kind": "PodAutoscaler",
                "name": of.name,
                "uid": of.uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "mode": mode,
            "objectRef": of.target,
            "protocolType": of.protocol,
            "numActivators": outcome.activators,
        },
    })
}

/// Everything that the status is made of.
pub(super) struct Facts {
    pub(super) outcome: Outcome,
    pub(super) activity: Activity,
    pub(super) ready: u32,
    pub(super) is_initialized: bool,
    pub(super) path: Path,
}

impl Facts {
    /// The status of the PodAutoscaler. Times of conditions that did not change stay.
    pub(super) fn status(&self, object: &DynamicObject, now: &str) -> Value {
        let before = &object.data["status"];
        let (active, why, message) = match self.activity {
            Activity::Active => ("True", "", ""),
            Activity::Activating => (
                "Unknown",
                "Queued",
                "Requests to the target are being buffered as resources are provisioned.",
            ),
            Activity::Inactive => ("False", "NoTraffic", "The target is not receiving traffic."),
        };
        let initialized = self.is_initialized && self.path.service.is_some();
        let started = if initialized { "True" } else { "Unknown" };
        let path = if self.path.is_ready { "True" } else { "Unknown" };
        let (ready, ready_why, ready_message) = match (active, started, path) {
            ("True", "True", "True") => ("True", "", ""),
            ("False", ..) => ("False", why, message),
            ("Unknown", ..) => ("Unknown", why, message),
            _ => ("Unknown", "NotReady", "The pods or their service are not ready yet."),
        };
        let mut conditions = Vec::new();
        for (name, state, why, message) in [
            ("Active", active, why, message),
            ("Ready", ready, ready_why, ready_message),
            ("SKSReady", path, "", ""),
            ("ScaleTargetInitialized", started, "", ""),
        ] {
            let old = condition(before, name).filter(|old| old["status"] == state);
            let since = old.and_then(|old| old["lastTransitionTime"].as_str()).unwrap_or(now);
            let mut one = json!({"type": name, "status": state, "lastTransitionTime": since});
            if !why.is_empty() {
                one["reason"] = json!(why);
                one["message"] = json!(message);
            }
            conditions.push(one);
        }
        let mut status = json!({
            "observedGeneration": object.metadata.generation,
            "actualScale": self.ready,
            "conditions": conditions,
        });
        if let Some(want) = self.outcome.want {
            status["desiredScale"] = json!(want);
        }
        // The Revision becomes ready only when it knows through which Service it is reached.
        if let Some(service) = &self.path.service {
            status["serviceName"] = json!(service);
        }
        if let Some(service) = &self.path.private_service {
            status["metricsServiceName"] = json!(service);
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(status: Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "autoscaling.internal.knative.dev/v1alpha1", "kind": "PodAutoscaler",
            "metadata": {"name": "hello-00001", "namespace": "n", "uid": "u", "generation": 1,
                "annotations": {"autoscaling.knative.dev/class": "windfall.dev"}},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "hello-00001-deployment"},
                "containerConcurrency": 5, "protocolType": "http1", "reachability": "Reachable"},
            "status": status,
        }))
        .unwrap()
    }

    fn facts(activity: Activity, ready: u32) -> Facts {
        let outcome =
            Outcome { want: Some(3), apply: Some(3), mode: PathMode::Serve, activators: 2 };
        let path = Path {
            service: Some("hello-00001".into()),
            private_service: Some("hello-00001-private".into()),
            is_ready: true,
            activators_answer: false,
        };
        Facts { outcome, activity, ready, is_initialized: ready > 0, path }
    }

    fn state<'a>(status: &'a Value, name: &str) -> &'a str {
        condition(status, name).unwrap()["status"].as_str().unwrap()
    }

    #[test]
    fn a_revision_is_ready_when_all_three_conditions_hold() {
        let status = facts(Activity::Active, 1).status(&object(Value::Null), "t1");
        assert_eq!((state(&status, "Ready"), &status["desiredScale"]), ("True", &json!(3)));
        let waiting = facts(Activity::Activating, 0).status(&object(Value::Null), "t1");
        assert_eq!(
            (state(&waiting, "Ready"), state(&waiting, "ScaleTargetInitialized")),
            ("Unknown", "Unknown")
        );
        let idle = facts(Activity::Inactive, 1).status(&object(Value::Null), "t1");
        assert_eq!((state(&idle, "Active"), state(&idle, "Ready")), ("False", "False"));
    }

    #[test]
    fn nothing_is_written_twice() {
        let first = facts(Activity::Active, 1).status(&object(Value::Null), "t1");
        assert_eq!(facts(Activity::Active, 1).status(&object(first.clone()), "t2"), first);
    }

    #[test]
    fn the_path_carries_mode_owner_and_target() {
        let of = Autoscaled::read(&object(Value::Null)).unwrap();
        assert_eq!(
            (of.container_concurrency, of.deployment.as_str()),
            (5, "hello-00001-deployment")
        );
        let made = serverless_service(&of, &facts(Activity::Active, 1).outcome);
        assert_eq!(
            (&made["spec"]["mode"], &made["spec"]["objectRef"]["name"]),
            (&json!("Serve"), &json!("hello-00001-deployment"))
        );
        assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], "u");
    }
}
