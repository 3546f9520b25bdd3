//! A recommender of the Vertical Pod Autoscaler: VPA objects that name the recommender `windfall` get our
//! recommendation, and VPA's own updater and admission controller act on it.
//!
//! ```text
//!   VerticalPodAutoscaler ──► ResourcePolicy vpa-<name>, mode Recommend, owned by it ──► controller measures
//!     status.recommendation ◄── status.recommendation ◄───────────────────────────────────────┘
//! ```
//!
//! The guest measures nothing itself. Deleting the VPA object deletes the policy with it.

use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use windfall_autoscalers::Quantity;

use super::{FIELD_MANAGER, GuestError};
use crate::resource_policy::{ResourcePolicy, ResourcePolicyStatus};

/// The name in `spec.recommenders`.
pub const RECOMMENDER: &str = "windfall";
/// How far a sure recommendation may lie from a pod's request before VPA's updater acts: a tenth to either side.
const TOLERANCE: f64 = 0.1;
/// Bounds are no wider than at this confidence; VPA's own widen without end.
const LEAST_CONFIDENCE: f64 = 0.05;

/// The API of VPA objects.
pub fn api_resource() -> ApiResource {
    ApiResource {
        group: "autoscaling.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "autoscaling.k8s.io/v1".to_owned(),
        kind: "VerticalPodAutoscaler".to_owned(),
        plural: "verticalpodautoscalers".to_owned(),
    }
}

/// What one pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// VPA objects that name us.
    pub guests: usize,
    /// Statuses that were written.
    pub written: usize,
}

/// Serves all VPA objects once: two lists, and a write for each that changed.
pub async fn pass(client: &Client) -> Result<Pass, GuestError> {
    let resource = api_resource();
    let objects = Api::<DynamicObject>::all_with(client.clone(), &resource);
    let listed = objects
        .list(&ListParams::default())
        .await
        .map_err(GuestError::api("listing VPA objects"))?;
    let policies = Api::<ResourcePolicy>::all(client.clone())
        .list(&ListParams::default())
        .await
        .map_err(GuestError::api("listing ResourcePolicies"))?;
    let mut done = Pass::default();
    for object in listed.items.iter().filter(|object| names_us(&object.data)) {
        done.guests += 1;
        let namespace = object.namespace().unwrap_or_default();
        let name = policy_name(&object.name_any());
        let policy = policies.items.iter().find(|policy| {
            policy.namespace().as_deref() == Some(&namespace) && policy.name_any() == name
        });
        if policy.is_none_or(|policy| is_outdated(policy, object)) {
            let wanted = policy_of(object);
            Api::<ResourcePolicy>::namespaced(client.clone(), &namespace)
                .patch(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(&wanted))
                .await
                .map_err(GuestError::api("writing the ResourcePolicy of a VPA object"))?;
        }
        let status = policy.and_then(|policy| policy.status.as_ref());
        let now = jiff::Timestamp::now().to_string();
        let wanted = status_of(status, &object.data["status"], &now);
        if object.data["status"] != wanted {
            Api::<DynamicObject>::namespaced_with(client.clone(), &namespace, &resource)
                .patch_status(
                    &object.name_any(),
                    &PatchParams::default(),
                    &Patch::Merge(&json!({"status": wanted})),
                )
                .await
                .map_err(GuestError::api("writing the status of a VPA object"))?;
            done.written += 1;
        }
    }
    Ok(done)
}

/// Whether `spec.recommenders` has our name.
fn names_us(object: &Value) -> bool {
    let recommenders = object["spec"]["recommenders"].as_array();
    recommenders.is_some_and(|all| all.iter().any(|one| one["name"] == RECOMMENDER))
}

fn policy_name(vpa: &str) -> String {
    format!("vpa-{vpa}")
}

/// The policy that measures the target of a VPA object and changes nothing.
fn policy_of(object: &DynamicObject) -> Value {
    let spec = &object.data["spec"];
    let policies = spec["resourcePolicy"]["containerPolicies"].as_array();
    let bounds: Vec<Value> = policies
        .into_iter()
        .flatten()
        .map(|own| {
            let mut bound = json!({"containerName": own["containerName"]});
            for key in ["minAllowed", "maxAllowed"] {
                if own[key].is_object() {
                    bound[key] = own[key].clone();
                }
            }
            bound
        })
        .collect();
    json!({
        "apiVersion": "windfall.dev/v1alpha1",
        "kind": "ResourcePolicy",
        "metadata": {
            "name": policy_name(&object.name_any()),
            "namespace": object.namespace(),
            "ownerReferences": [{
                "apiVersion": "autoscaling.k8s.io/v1",
                "kind": "VerticalPodAutoscaler",
                "name": object.name_any(),
                "uid": object.uid(),
                "controller": true,
            }],
        },
        "spec": {
            "targetRef": {
                "apiVersion": spec["targetRef"]["apiVersion"],
                "kind": spec["targetRef"]["kind"],
                "name": spec["targetRef"]["name"],
            },
            "mode": "Recommend",
            "bounds": {"containers": bounds},
        },
    })
}

/// Whether bounds were changed since the policy was written; a target cannot change.
fn is_outdated(policy: &ResourcePolicy, object: &DynamicObject) -> bool {
    let wanted = &policy_of(object)["spec"]["bounds"]["containers"];
    let there = serde_json::to_value(&policy.spec.bounds.containers).unwrap_or_default();
    *wanted != there
}

/// `status` of a VPA object, from the status of its policy. The time of a condition that did not change stays.
fn status_of(policy: Option<&ResourcePolicyStatus>, before: &Value, now: &str) -> Value {
    let recommendation = policy.and_then(|status| status.recommendation.as_ref());
    let rows: Vec<Value> = recommendation
        .iter()
        .flat_map(|found| {
            let confidence = f64::from(found.confidence_percent) / 100.0;
            found.containers.iter().map(move |container| {
                let target =
                    json!({"cpu": container.target.cpu, "memory": container.target.memory});
                let bound = |factor: f64| {
                    json!({
                        "cpu": times(&container.target.cpu, factor, "m"),
                        "memory": times(&container.target.memory, factor, ""),
                    })
                };
                json!({
                    "containerName": container.container_name,
                    "lowerBound": bound((1.0 - TOLERANCE) * confidence.max(LEAST_CONFIDENCE)),
                    "target": target,
                    "uncappedTarget": target,
                    "upperBound": bound((1.0 + TOLERANCE) / confidence.max(LEAST_CONFIDENCE)),
                })
            })
        })
        .collect();
    let (state, reason) =
        if rows.is_empty() { ("False", "NoMeasurementsYet") } else { ("True", "Windfall") };
    let old = before["conditions"].as_array().and_then(|all| all.first());
    let since =
        old.filter(|old| old["status"] == state).and_then(|old| old["lastTransitionTime"].as_str());
    let condition = json!({
        "type": "RecommendationProvided",
        "status": state,
        "reason": reason,
        "lastTransitionTime": since.unwrap_or(now),
    });
    if rows.is_empty() {
        return json!({"conditions": [condition]});
    }
    json!({"recommendation": {"containerRecommendations": rows}, "conditions": [condition]})
}

/// An amount of CPU (`unit` is `m`) or memory, multiplied and rounded to whole millicores or bytes.
fn times(amount: &str, factor: f64, unit: &str) -> String {
    let Ok(quantity) = amount.parse::<Quantity>() else { return amount.to_owned() };
    let scale = if unit == "m" { 1000.0 } else { 1.0 };
    format!("{:.0}{unit}", (quantity.approximate() * scale * factor).max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource_policy::{ContainerRecommendation, Recommendation, Size};

    fn vpa() -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
            "metadata": {"name": "web", "namespace": "n", "uid": "u-1"},
            "spec": {
                "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "recommenders": [{"name": "windfall"}],
                "resourcePolicy": {"containerPolicies": [
                    {"containerName": "*", "minAllowed": {"cpu": "50m"}, "mode": "Auto"}]},
            },
        }))
        .unwrap()
    }

    fn measured(confidence_percent: u32) -> ResourcePolicyStatus {
        let target = Size { cpu: "200m".into(), memory: "100Mi".into() };
        let container =
            ContainerRecommendation { container_name: "web".into(), target, user: Size::default() };
        let found = Recommendation {
            containers: vec![container],
            confidence_percent,
            ..Recommendation::default()
        };
        ResourcePolicyStatus { recommendation: Some(found), ..ResourcePolicyStatus::default() }
    }

    #[test]
    fn only_objects_that_name_us_are_served() {
        assert!(names_us(&vpa().data));
        assert!(!names_us(&json!({"spec": {"recommenders": [{"name": "other"}]}})));
        assert!(!names_us(&json!({"spec": {}})), "VPA's own recommender serves those");
    }

    #[test]
    fn the_policy_is_valid_owned_and_only_recommends() {
        let policy: ResourcePolicy = serde_json::from_value(policy_of(&vpa())).unwrap();
        assert_eq!(policy.name_any(), "vpa-web");
        assert_eq!(policy.spec.mode.word(), "Recommend");
        assert_eq!(policy.owner_references()[0].uid, "u-1");
        assert!(!is_outdated(&policy, &vpa()));
    }

    #[test]
    fn bounds_widen_as_confidence_falls() {
        let sure = status_of(Some(&measured(100)), &Value::Null, "t1");
        let row = &sure["recommendation"]["containerRecommendations"][0];
        assert_eq!(
            (&row["lowerBound"]["cpu"], &row["upperBound"]["cpu"]),
            (&json!("180m"), &json!("220m"))
        );
        assert_eq!(row["target"]["memory"], "100Mi");
        let unsure = status_of(Some(&measured(50)), &Value::Null, "t1");
        let row = &unsure["recommendation"]["containerRecommendations"][0];
        assert_eq!(
            (&row["lowerBound"]["cpu"], &row["upperBound"]["cpu"]),
            (&json!("90m"), &json!("440m"))
        );
    }

    #[test]
    fn a_condition_that_stays_keeps_its_time() {
        let first = status_of(None, &Value::Null, "t1");
        assert_eq!(first["conditions"][0]["status"], "False");
        assert_eq!(status_of(None, &first, "t2"), first, "nothing to write");
        let provided = status_of(Some(&measured(100)), &first, "t3");
        assert_eq!(provided["conditions"][0]["lastTransitionTime"], "t3");
    }
}
