//! What is kept of Knative's objects. They are read as plain JSON: their Go types change more often than the few fields
//! that matter here.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::DynamicObject;

use super::Key;

/// The prefix of the annotations that Knative's autoscaler reads.
pub const AUTOSCALING: &str = "autoscaling.knative.dev/";
/// Where a Revision notes the annotations that its user had, while the controller sets others. It has the autoscaler's prefix
/// because Knative copies every other annotation of a Revision into the template of its pods, which replaces all of them.
pub const ORIGINAL_ANNOTATIONS: &str = "autoscaling.knative.dev/windfall-original";
/// Where a Service notes the containerConcurrency that its user had.
pub const ORIGINAL_CONCURRENCY: &str = "windfall.dev/original-container-concurrency";

/// A Knative Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceFacts {
    /// Its newest Revision that is ready.
    pub latest_ready: Option<String>,
    /// Its newest Revision, ready or not.
    pub latest_created: Option<String>,
    /// The hard limit of requests per pod in its template; 0 for none.
    pub container_concurrency: u32,
    /// That limit before the first change of the controller.
    pub original_concurrency: Option<u32>,
}

impl ServiceFacts {
    /// The facts of a Service.
    pub fn read(object: &DynamicObject) -> Option<(Key, Self)> {
        let text = |path: &str| Some(object.data.pointer(path)?.as_str()?.to_owned());
        let facts = Self {
            latest_ready: text("/status/latestReadyRevisionName"),
            latest_created: text("/status/latestCreatedRevisionName"),
            container_concurrency: number(object, "/spec/template/spec/containerConcurrency"),
            original_concurrency: object
                .annotations()
                .get(ORIGINAL_CONCURRENCY)
                .and_then(|noted| noted.parse().ok()),
        };
        Some((Key::new(object.namespace()?, object.name_any()), facts))
    }
}

/// A Revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevisionFacts {
    /// The Service it belongs to.
    pub service: Option<String>,
    /// Its annotations for the autoscaler, without their prefix.
    pub annotations: BTreeMap<String, String>,
    /// What its user had where the controller set something, without prefix; nothing where there was no annotation.
    pub original: BTreeMap<String, Option<String>>,
    /// The hard limit of requests per pod; 0 for none.
    pub container_concurrency: u32,
}

impl RevisionFacts {
    /// The facts of a Revision.
    pub fn read(object: &DynamicObject) -> Option<(Key, Self)> {
        let noted = object.annotations().get(ORIGINAL_ANNOTATIONS);
        let facts = Self {
            service: object.labels().get("serving.knative.dev/service").cloned(),
            annotations: autoscaling(object),
            original: noted.and_then(|noted| serde_json::from_str(noted).ok()).unwrap_or_default(),
            container_concurrency: number(object, "/spec/containerConcurrency"),
        };
        Some((Key::new(object.namespace()?, object.name_any()), facts))
    }
}

/// Knative's autoscaler of one Revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodAutoscalerFacts {
    /// Which implementation acts on it.
    pub class: String,
    /// Pods it wants.
    pub desired: Option<u32>,
    /// The Deployment it scales.
    pub target: Option<String>,
    /// Its annotations for the autoscaler, without their prefix.
    pub annotations: BTreeMap<String, String>,
}

impl PodAutoscalerFacts {
    /// The facts of a PodAutoscaler.
    pub fn read(object: &DynamicObject) -> Option<(Key, Self)> {
        let class = object.annotations().get("autoscaling.knative.dev/class").cloned();
        let desired = object.data.pointer("/status/desiredScale").and_then(|value| value.as_i64());
        let facts = Self {
            class: class.unwrap_or_else(|| "kpa.autoscaling.knative.dev".to_owned()),
            desired: desired.and_then(|value| u32::try_from(value).ok()),
            target: object
                .data
                .pointer("/spec/scaleTargetRef/name")
                .and_then(|name| Some(name.as_str()?.to_owned())),
            annotations: autoscaling(object),
        };
        Some((Key::new(object.namespace()?, object.name_any()), facts))
    }
}

/// Annotations for the autoscaler, without their prefix and without our note.
fn autoscaling(object: &DynamicObject) -> BTreeMap<String, String> {
    let of_prefix = |(key, value): (&String, &String)| {
        Some((key.strip_prefix(AUTOSCALING)?.to_owned(), value.clone()))
    };
    let all = object.annotations().iter().filter(|(key, _)| *key != ORIGINAL_ANNOTATIONS);
    all.filter_map(of_prefix).collect()
}

fn number(object: &DynamicObject, path: &str) -> u32 {
    let value = object.data.pointer(path).and_then(|value| value.as_u64());
    value.and_then(|value| u32::try_from(value).ok()).unwrap_or(0)
}
