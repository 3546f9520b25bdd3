//! Reads a HorizontalPodAutoscaler from YAML, `autoscaling/v2` or `autoscaling/v1`.
//!
//! ```text
//!  spec: {minReplicas, maxReplicas, metrics: [{type, <source>: {target: {type, …}}}], behavior: {scaleUp, …}}
//! ```
//!
//! Defaults: `minReplicas` is 1, `metrics` is CPU at 80 %, no `behavior` means the older limits. Bounds are those of
//! the API server: a period of 1 to 1800 s, a window of 0 to 3600 s.

use super::fields::{Fields, one_of_kind};
use super::problems::{ManifestError, Problems};
use super::yaml_tree::Node;
use crate::hpa::{
    Behavior, Change, MetricSpec, MetricTarget, RatePolicy, Resource, SelectPolicy, Source, Spec,
    WrittenRules,
};

const RESOURCES: [(&str, Resource); 2] = [("cpu", Resource::Cpu), ("memory", Resource::Memory)];
const COUNT: (i64, i64) = (1, i32::MAX as i64);

impl Spec {
    /// Reads a HorizontalPodAutoscaler from YAML.
    ///
    /// # Errors
    ///
    /// Returns all problems together: unknown fields, values out of bounds, targets that do not fit their metric.
    pub fn from_yaml(text: &str) -> Result<Self, ManifestError> {
        one_of_kind(text, "HorizontalPodAutoscaler", |fields, problems| {
            let versions = [("autoscaling/v2", false), ("autoscaling/v1", true)];
            let is_v1 = fields.choice("apiVersion", &versions, problems).unwrap_or(false);
            match fields.map("spec", problems) {
                Some(spec) => read(spec, is_v1, problems),
                None => {
                    problems.add(fields.line(), "spec is missing");
                    Spec { min_replicas: 1, max_replicas: 1, metrics: Vec::new(), behavior: None }
                }
            }
        })
    }
}

fn read(mut spec: Fields<'_>, is_v1: bool, problems: &mut Problems) -> Spec {
    spec.ignore(&["scaleTargetRef"]);
    let (line, min_line, before) = (spec.line(), spec.line_of("minReplicas"), problems.count());
    let min = spec.int("minReplicas", (0, COUNT.1), problems).unwrap_or(1);
    let max = spec.int("maxReplicas", COUNT, problems);
    if max.is_none() {
        problems.add_unless_reported(before, line, "spec.maxReplicas is missing");
    }
    let mut metrics = Vec::new();
    let mut behavior = None;
    if is_v1 {
        let percent = spec.int("targetCPUUtilizationPercentage", COUNT, problems);
        metrics.extend(percent.map(|percent| MetricSpec {
            source: Source::Resource(Resource::Cpu),
            target: MetricTarget::Utilization(percent as i32),
        }));
    } else {
        let nodes = spec.list("metrics", problems).map_or(&[][..], |(_, nodes)| nodes);
        metrics = nodes.iter().filter_map(|node| metric(node, problems)).collect();
        behavior = spec.map("behavior", problems).map(|fields| read_behavior(fields, problems));
    }
    spec.finish(problems);
    if max.is_some_and(|max| max < min) {
        problems
            .add(min_line, format!("spec.minReplicas is {min}, which is more than maxReplicas"));
    }
    if min == 0 && !metrics.iter().any(|metric| metric.source.is_object_or_external()) {
        problems.add(min_line, "spec.minReplicas is 0, which needs an Object or External metric");
    }
    if metrics.is_empty() {
        metrics = Spec::default_metrics();
    }
    let max_replicas = max.unwrap_or(1) as i32;
    Spec { min_replicas: min as i32, max_replicas, metrics, behavior }
}

fn metric(node: &Node, problems: &mut Problems) -> Option<MetricSpec> {
    let mut fields = Fields::of(node, "spec.metrics[]", problems);
    let kinds = [
        ("Resource", "resource"),
        ("ContainerResource", "containerResource"),
        ("Pods", "pods"),
        ("Object", "object"),
        ("External", "external"),
    ];
    let before = problems.count();
    let Some(kind) = fields.choice("type", &kinds, problems) else {
        problems.add_unless_reported(before, node.line, "spec.metrics[].type is missing");
        return None;
    };
    let Some(mut inner) = fields.map(kind, problems) else {
        problems.add(node.line, format!("spec.metrics[].{kind} is missing"));
        return None;
    };
    let source = source(kind, &mut inner, problems);
    let target = inner.map("target", problems).and_then(|target| read_target(target, problems));
    let line = inner.line();
    inner.finish(problems);
    fields.finish(problems);
    let (source, target) = match (source, target) {
        (Some(source), Some(target)) => (source, target),
        _ => {
            let what = format!("spec.metrics[].{kind}.target or its value is missing");
            problems.add_unless_reported(before, line, what);
            return None;
        }
    };
    let fits = match (&source, target) {
        (Source::Resource(_) | Source::ContainerResource(..), target) => {
            !matches!(target, MetricTarget::Value(_))
        }
        (Source::Pods(_), target) => matches!(target, MetricTarget::Average(_)),
        (_, target) => !matches!(target, MetricTarget::Utilization(_)),
    };
    if !fits {
        problems.add(line, format!("spec.metrics[].{kind}.target is of a type it cannot have"));
    }
    fits.then_some(MetricSpec { source, target })
}

fn source(kind: &str, inner: &mut Fields<'_>, problems: &mut Problems) -> Option<Source> {
    if matches!(kind, "resource" | "containerResource") {
        let before = problems.count();
        let resource = inner.choice("name", &RESOURCES, problems);
        let container = inner.text("container", problems).map(|(_, name)| name.to_owned());
        let found = match kind {
            "resource" => resource.map(Source::Resource),
            _ => resource.zip(container).map(|(it, name)| Source::ContainerResource(it, name)),
        };
        if found.is_none() {
            let what = format!("spec.metrics[].{kind} lacks its name or container");
            problems.add_unless_reported(before, inner.line(), what);
        }
        return found;
    }
    let name = inner.map("metric", problems).and_then(|mut metric| {
        // Selectors choose among series, which is done by the metrics API.
        metric.ignore(&["selector"]);
        let name = metric.text("name", problems).map(|(_, name)| name.to_owned());
        metric.finish(problems);
        name
    });
    let described = inner.map("describedObject", problems).and_then(|mut object| {
        object.ignore(&["apiVersion", "name"]);
        let kind = object.text("kind", problems).map(|(_, kind)| kind.to_owned());
        object.finish(problems);
        kind
    });
    let Some(name) = name else {
        problems.add(inner.line(), format!("spec.metrics[].{kind}.metric.name is missing"));
        return None;
    };
    Some(match kind {
        "pods" => Source::Pods(name),
        "object" => Source::Object { metric: name, kind: described.unwrap_or_default() },
        _ => Source::External(name),
    })
}

fn read_target(mut target: Fields<'_>, problems: &mut Problems) -> Option<MetricTarget> {
    let kinds = [
        ("Utilization", "averageUtilization"),
        ("AverageValue", "averageValue"),
        ("Value", "value"),
    ];
    let kind = target.choice("type", &kinds, problems)?;
    let found = match kind {
        "averageUtilization" => {
            let percent = target.int(kind, COUNT, problems);
            percent.map(|percent| MetricTarget::Utilization(percent as i32))
        }
        _ => target.quantity(kind, problems).and_then(|(line, quantity)| {
            let amount = quantity.milli().filter(|amount| *amount > 0);
            if amount.is_none() {
                problems
                    .add(line, format!("{} must be above 0 and fit 64 bits", target.path(kind)));
            }
            amount.map(|amount| match kind {
                "averageValue" => MetricTarget::Average(amount),
                _ => MetricTarget::Value(amount),
            })
        }),
    };
    target.finish(problems);
    found
}

fn read_behavior(mut fields: Fields<'_>, problems: &mut Problems) -> Behavior {
    let up = fields.map("scaleUp", problems).map(|rules| read_rules(rules, problems));
    let down = fields.map("scaleDown", problems).map(|rules| read_rules(rules, problems));
    fields.finish(problems);
    Behavior::defaulted(up, down)
}

fn read_rules(mut fields: Fields<'_>, problems: &mut Problems) -> WrittenRules {
    let selects = [
        ("Max", SelectPolicy::Max),
        ("Min", SelectPolicy::Min),
        ("Disabled", SelectPolicy::Disabled),
    ];
    let window = fields.int("stabilizationWindowSeconds", (0, 3600), problems);
    let select_policy = fields.choice("selectPolicy", &selects, problems);
    let tolerance = fields.quantity("tolerance", problems);
    let policies = fields.list("policies", problems).map(|(line, nodes)| {
        if nodes.is_empty() {
            problems.add(line, format!("{} must have at least one", fields.path("policies")));
        }
        nodes.iter().filter_map(|node| rate_policy(node, problems)).collect()
    });
    fields.finish(problems);
    WrittenRules {
        stabilization_window_seconds: window.map(|seconds| seconds as u32),
        select_policy,
        policies,
        tolerance: tolerance.map(|(_, quantity)| quantity.approximate()),
    }
}

fn rate_policy(node: &Node, problems: &mut Problems) -> Option<RatePolicy> {
    let before = problems.count();
    let mut fields = Fields::of(node, "policies[]", problems);
    let kinds = [("Pods", true), ("Percent", false)];
    let is_pods = fields.choice("type", &kinds, problems);
    let value = fields.int("value", COUNT, problems);
    let period = fields.int("periodSeconds", (1, 1800), problems);
    fields.finish(problems);
    let (Some(is_pods), Some(value), Some(period)) = (is_pods, value, period) else {
        let what = "policies[] needs type, value and periodSeconds";
        problems.add_unless_reported(before, node.line, what);
        return None;
    };
    let value = value as i32;
    let change = if is_pods { Change::Pods(value) } else { Change::Percent(value) };
    Some(RatePolicy { change, period_seconds: period as u32 })
}
