//! Reads a VerticalPodAutoscaler from YAML, `autoscaling.k8s.io/v1`.
//!
//! ```text
//!  metadata.annotations: vpa-post-processor.kubernetes.io/<container>_integerCPU: "true"
//!  spec: {updatePolicy: {updateMode, …}, resourcePolicy: {containerPolicies: [{containerName, …}]}}
//! ```
//!
//! Defaults: `updateMode` is Recreate, both resources are controlled, for requests and limits. `minAllowed` above
//! `maxAllowed` is not an error upstream (the upper one wins); here it is reported with its line.

use super::fields::{Fields, one_of_kind};
use super::problems::{ManifestError, Problems};
use super::yaml_tree::{Node, Value};
use crate::vpa::{
    ContainerPolicy, EvictionRequirement, Resource, Resources, UpdateMode, UpdatePolicy,
    VpaSettings,
};

const ANY: (i64, i64) = (1, i64::MAX);
const INTEGER_CPU: (&str, &str) = ("vpa-post-processor.kubernetes.io/", "_integerCPU");

impl VpaSettings {
    /// Reads a VerticalPodAutoscaler from YAML.
    ///
    /// # Errors
    ///
    /// Returns all problems together: unknown fields, values out of bounds, policies that contradict each other.
    pub fn from_yaml(text: &str) -> Result<Self, ManifestError> {
        one_of_kind(text, "VerticalPodAutoscaler", |fields, problems| {
            let versions = [("autoscaling.k8s.io/v1", ())];
            fields.choice("apiVersion", &versions, problems);
            let metadata = fields.map("metadata", problems);
            let integer_cpu_containers =
                metadata.map(|metadata| integer_cpu(metadata, problems)).unwrap_or_default();
            let Some(mut spec) = fields.map("spec", problems) else {
                problems.add(fields.line(), "spec is missing");
                return VpaSettings::default();
            };
            spec.ignore(&["targetRef", "recommenders"]);
            let update = spec.map("updatePolicy", problems);
            let resource = spec.map("resourcePolicy", problems);
            spec.finish(problems);
            VpaSettings {
                policies: resource.map(|it| read_policies(it, problems)).unwrap_or_default(),
                integer_cpu_containers,
                update: update.map(|it| read_update(it, problems)).unwrap_or_default(),
            }
        })
    }
}

fn integer_cpu(mut metadata: Fields<'_>, problems: &mut Problems) -> Vec<String> {
    let Some(mut annotations) = metadata.map("annotations", problems) else { return Vec::new() };
    let named = annotations.take_all().into_iter().filter_map(|(key, _, node)| {
        let container = key.strip_prefix(INTEGER_CPU.0)?.strip_suffix(INTEGER_CPU.1)?;
        matches!(&node.value, Value::Scalar(text, _) if text == "true")
            .then(|| container.to_owned())
    });
    named.collect()
}

fn read_update(mut fields: Fields<'_>, problems: &mut Problems) -> UpdatePolicy {
    let modes = [
        ("Off", UpdateMode::Off),
        ("Initial", UpdateMode::Initial),
        ("Recreate", UpdateMode::Recreate),
        ("Auto", UpdateMode::Recreate),
        ("InPlaceOrRecreate", UpdateMode::InPlaceOrRecreate),
        ("InPlace", UpdateMode::InPlace),
    ];
    let mode = fields.choice("updateMode", &modes, problems).unwrap_or_default();
    let min = fields.int("minReplicas", (1, i64::from(i32::MAX)), problems);
    let evict_after_oom_seconds = fields.int("evictAfterOOMSeconds", ANY, problems);
    let requirements = fields.list("evictionRequirements", problems);
    fields.finish(problems);
    let nodes = requirements.map_or(&[][..], |(_, nodes)| nodes);
    UpdatePolicy {
        mode,
        min_replicas: min.map(|min| min as u32),
        evict_after_oom_seconds,
        eviction_requirements: nodes.iter().map(|node| requirement(node, problems)).collect(),
    }
}

fn requirement(node: &Node, problems: &mut Problems) -> EvictionRequirement {
    let before = problems.count();
    let mut fields = Fields::of(node, "spec.updatePolicy.evictionRequirements[]", problems);
    let changes = [("TargetHigherThanRequests", true), ("TargetLowerThanRequests", false)];
    let must_rise = fields.choice("changeRequirement", &changes, problems);
    let resources = resources(&mut fields, "resources", problems);
    if must_rise.is_none() || resources.is_none() {
        let what = "evictionRequirements[] needs resources and changeRequirement";
        problems.add_unless_reported(before, node.line, what);
    }
    fields.finish(problems);
    EvictionRequirement {
        resources: resources.unwrap_or_default(),
        must_rise: must_rise.unwrap_or_default(),
    }
}

fn resources(fields: &mut Fields<'_>, key: &str, problems: &mut Problems) -> Option<Vec<Resource>> {
    let (_, nodes) = fields.list(key, problems)?;
    let mut found = Vec::new();
    for node in nodes {
        match &node.value {
            Value::Scalar(text, _) if text == "cpu" => found.push(Resource::Cpu),
            Value::Scalar(text, _) if text == "memory" => found.push(Resource::Memory),
            _ => problems.add(node.line, format!("{}: allowed is cpu, memory", fields.path(key))),
        }
    }
    Some(found)
}

fn read_policies(mut fields: Fields<'_>, problems: &mut Problems) -> Vec<ContainerPolicy> {
    let nodes = fields.list("containerPolicies", problems).map_or(&[][..], |(_, nodes)| nodes);
    fields.finish(problems);
    let mut policies: Vec<ContainerPolicy> = Vec::new();
    for node in nodes {
        let policy = read_policy(node, problems);
        if policies.iter().any(|other| other.container == policy.container) {
            let name = &policy.container;
            problems.add(node.line, format!("containerPolicies[]: {name:?} has two policies"));
        }
        policies.push(policy);
    }
    policies
}

fn read_policy(node: &Node, problems: &mut Problems) -> ContainerPolicy {
    let mut fields = Fields::of(node, "containerPolicies[]", problems);
    let name = fields.text("containerName", problems).map(|(_, name)| name.to_owned());
    if name.is_none() {
        problems.add(node.line, "containerPolicies[].containerName is missing");
    }
    let values = [("RequestsAndLimits", false), ("RequestsOnly", true)];
    let min_allowed = amounts(&mut fields, "minAllowed", problems);
    let max_allowed = amounts(&mut fields, "maxAllowed", problems);
    for resource in Resource::ALL {
        let bounds = min_allowed.of(resource).zip(max_allowed.of(resource));
        if bounds.is_some_and(|(min, max)| max != 0 && min > max) {
            let what = format!("containerPolicies[]: minAllowed {resource:?} is above maxAllowed");
            problems.add(node.line, what);
        }
    }
    let real = |milli: Option<i64>| milli.map(|milli| milli as f64 / 1000.0);
    let ratio = fields.quantity("oomBumpUpRatio", problems);
    let bump = fields.quantity("oomMinBumpUp", problems);
    let policy = ContainerPolicy {
        container: name.unwrap_or_default(),
        is_off: fields.choice("mode", &[("Auto", false), ("Off", true)], problems) == Some(true),
        min_allowed,
        max_allowed,
        controlled: resources(&mut fields, "controlledResources", problems),
        is_requests_only: fields.choice("controlledValues", &values, problems) == Some(true),
        oom_bump_up_ratio: real(ratio.and_then(|(_, quantity)| quantity.milli())),
        oom_min_bump_up_bytes: real(bump.and_then(|(_, quantity)| quantity.milli())),
        memory_aggregation_interval_seconds: fields.int(
            "memoryAggregationIntervalSeconds",
            ANY,
            problems,
        ),
        memory_aggregation_interval_count: fields.int(
            "memoryAggregationIntervalCount",
            ANY,
            problems,
        ),
    };
    fields.finish(problems);
    policy
}

fn amounts(fields: &mut Fields<'_>, key: &str, problems: &mut Problems) -> Resources {
    let Some(mut map) = fields.map(key, problems) else { return Resources::default() };
    let cpu = map.quantity("cpu", problems);
    let memory = map.quantity("memory", problems);
    map.finish(problems);
    let mut fit = |found: Option<(usize, Option<i64>)>| match found {
        Some((line, None)) => {
            problems.add(line, format!("{key}: does not fit 64 bits"));
            None
        }
        Some((_, amount)) => amount,
        None => None,
    };
    Resources {
        cpu_millicores: fit(cpu.map(|(line, quantity)| (line, quantity.milli()))),
        memory_bytes: fit(memory.map(|(line, quantity)| (line, quantity.whole()))),
    }
}
