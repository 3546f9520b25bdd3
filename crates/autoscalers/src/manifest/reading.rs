//! Tests with realistic manifests, and with every kind of problem in one.

use proptest::prelude::*;

use super::ManifestError;
use crate::hpa::{Change, MetricTarget, Resource, SelectPolicy, Source, Spec};
use crate::kpa::ClusterSettings;
use crate::vpa::{Resources, UpdateMode, VpaSettings};

fn config_map(data: &str) -> Result<ClusterSettings, ManifestError> {
    let header = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config-autoscaler\ndata:\n";
    ClusterSettings::from_yaml(&format!("{header}{data}"))
}

fn problems(error: ManifestError) -> Vec<String> {
    let line = |line: Option<usize>| line.map_or("-".to_owned(), |line| line.to_string());
    error.problems.into_iter().map(|it| format!("{}: {}", line(it.line), it.what)).collect()
}

#[test]
fn an_empty_config_map_means_the_defaults() {
    let example = "  _example: |\n    # stable-window: \"60s\"\n    anything: at all\n";
    assert_eq!(config_map(example), Ok(ClusterSettings::default()));
    assert_eq!(ClusterSettings::from_yaml("kind: ConfigMap"), Ok(ClusterSettings::default()));
}

#[test]
fn every_key_of_the_config_map_is_read() {
    let data = r#"
  pod-autoscaler-class: " my.class "
  enable-scale-to-zero: "F"
  allow-zero-initial-scale: "true"
  max-scale-up-rate: "10.5"
  max-scale-down-rate: "3"
  container-concurrency-target-percentage: "80"
  container-concurrency-target-default: "50"
  requests-per-second-target-default: "150"
  target-burst-capacity: "-1"
  panic-window-percentage: "20"
  panic-threshold-percentage: "300"
  activator-capacity: "90"
  stable-window: 1m30s
  scale-down-delay: 15s
  scale-to-zero-grace-period: 40s
  scale-to-zero-pod-retention-period: 1m1.5s
  initial-scale: "0"
  min-scale: "1"
  max-scale: "9"
  max-scale-limit: "10"
"#;
    let wanted = ClusterSettings {
        pod_autoscaler_class: "my.class".to_owned(),
        enable_scale_to_zero: false,
        allow_zero_initial_scale: true,
        max_scale_up_rate: 10.5,
        max_scale_down_rate: 3.0,
        container_concurrency_target_fraction: 0.8,
        container_concurrency_target_default: 50.0,
        requests_per_second_target_default: 150.0,
        target_burst_capacity: -1.0,
        panic_window_percentage: 20.0,
        panic_threshold_percentage: 300.0,
        activator_capacity: 90.0,
        stable_window_seconds: 90,
        scale_down_delay_seconds: 15,
        scale_to_zero_grace_period_ms: 40_000,
        scale_to_zero_pod_retention_period_ms: 61_500,
        initial_scale: 0,
        min_scale: 1,
        max_scale: 9,
        max_scale_limit: 10,
    };
    assert_eq!(config_map(data), Ok(wanted));
}

#[test]
fn a_fraction_and_a_percentage_are_equivalent() {
    for text in ["0.7", "70"] {
        let data = format!("  container-concurrency-target-percentage: \"{text}\"\n");
        assert_eq!(config_map(&data), Ok(ClusterSettings::default()), "{text}");
    }
}

#[test]
fn all_problems_of_a_config_map_are_reported_with_their_lines() {
    let data = r#"  stable-windw: "60s"
  max-scale-up-rate: "1"
  stable-window: "7.5s"
  enable-scale-to-zero: "yes"
  min-scale: "5"
  max-scale: "3"
  initial-scale: "0"
  panic-window-percentage: 10
"#;
    assert_eq!(
        problems(config_map(data).unwrap_err()),
        [
            "6: stable-windw is not a key of config-autoscaler",
            "7: max-scale-up-rate is 1, allowed is more than 1",
            "8: stable-window must be whole seconds",
            "9: enable-scale-to-zero is \"yes\", which is not a boolean",
            "10: min-scale is 5, which is more than max-scale (3)",
            "12: initial-scale is 0, allowed is 1 or more (allow-zero-initial-scale is false)",
            "13: panic-window-percentage must be a string; quote the value: \"10\"",
        ]
    );
}

#[test]
fn a_limit_requires_a_default_maximum() {
    let error = config_map("  max-scale-limit: \"5\"\n").unwrap_err();
    assert_eq!(problems(error), ["6: max-scale is 0, allowed is 1 to max-scale-limit (5)"]);
}

const HPA: &str = r#"
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 20
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}
  - type: Object
    object:
      metric: {name: rps, selector: {matchLabels: {a: b}}}
      describedObject: {apiVersion: v1, kind: Service, name: web}
      target: {type: Value, value: 10k}
  - type: ContainerResource
    containerResource:
      name: memory
      container: app
      target: {type: AverageValue, averageValue: 1.5Gi}
  behavior:
    scaleUp:
      stabilizationWindowSeconds: 30
      selectPolicy: Min
      policies:
      - {type: Percent, value: 50, periodSeconds: 60}
    scaleDown: {tolerance: "0.3"}
"#;

#[test]
fn an_hpa_is_read_with_its_defaults() {
    let spec = Spec::from_yaml(HPA).unwrap();
    assert_eq!((spec.min_replicas, spec.max_replicas, spec.metrics.len()), (2, 20, 3));
    assert_eq!(spec.metrics[0].target, MetricTarget::Utilization(60));
    assert_eq!(spec.metrics[1].target, MetricTarget::Value(10_000_000));
    assert_eq!(spec.metrics[1].title(), "Service metric rps");
    let container = Source::ContainerResource(Resource::Memory, "app".to_owned());
    assert_eq!(spec.metrics[2].source, container);
    assert_eq!(spec.metrics[2].target, MetricTarget::Average(1_610_612_736_000));
    let behavior = spec.behavior.unwrap();
    assert_eq!(behavior.scale_up.select_policy, SelectPolicy::Min);
    assert_eq!(behavior.scale_up.policies[0].change, Change::Percent(50));
    assert_eq!(behavior.scale_down.policies[0].change, Change::Percent(100));
    assert_eq!(behavior.scale_down.tolerance, Some(0.300_000_000_000_000_04));
    assert_eq!(behavior.scale_down.stabilization_window_seconds, None);
}

#[test]
fn version_one_of_an_hpa_supports_cpu_only() {
    let text = "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nspec:\n  maxReplicas: 5\n  \
                targetCPUUtilizationPercentage: 70\n";
    let spec = Spec::from_yaml(text).unwrap();
    assert_eq!((spec.min_replicas, spec.metrics[0].target), (1, MetricTarget::Utilization(70)));
    let bare = text.replace("  targetCPUUtilizationPercentage: 70\n", "");
    assert_eq!(Spec::from_yaml(&bare).unwrap().metrics, Spec::default_metrics());
}

#[test]
fn problems_of_an_hpa_name_field_and_line() {
    let text = HPA
        .replace("minReplicas: 2", "minReplicas: 30")
        .replace("type: Utilization, averageUtilization: 60", "type: Value, value: 1")
        .replace("periodSeconds: 60", "periodSeconds: 3600")
        .replace("selectPolicy: Min", "selectPolicy: Least")
        .replace("scaleDown: {", "scaleSideways: {");
    let found = problems(Spec::from_yaml(&text).unwrap_err());
    for wanted in [
        "7: spec.minReplicas is 30, which is more than maxReplicas",
        "11: spec.metrics[].resource.target is of a type it cannot have",
        "25: spec.behavior.scaleUp.selectPolicy is \"Least\", allowed is Max, Min, Disabled",
        "27: policies[].periodSeconds is \"3600\", allowed is 1 to 1800",
        "28: spec.behavior.scaleSideways is not a known field",
    ] {
        assert!(found.contains(&wanted.to_owned()), "{wanted}\nnot in {found:#?}");
    }
}

const VPA: &str = r#"
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata:
  name: web
  annotations:
    vpa-post-processor.kubernetes.io/app_integerCPU: "true"
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy:
    updateMode: "Off"
    minReplicas: 1
    evictionRequirements:
    - resources: [cpu, memory]
      changeRequirement: TargetHigherThanRequests
  resourcePolicy:
    containerPolicies:
    - containerName: app
      minAllowed: {cpu: 100m, memory: 50Mi}
      maxAllowed: {cpu: 1, memory: 500Mi}
      controlledResources: [cpu]
      controlledValues: RequestsOnly
      oomBumpUpRatio: "1.5"
    - containerName: "*"
      mode: "Off"
"#;

#[test]
fn a_vpa_is_read_with_its_defaults() {
    let vpa = VpaSettings::from_yaml(VPA).unwrap();
    assert_eq!(vpa.integer_cpu_containers, ["app"]);
    assert_eq!((vpa.update.mode, vpa.update.min_replicas), (UpdateMode::Off, Some(1)));
    assert_eq!(vpa.update.eviction_requirements.len(), 1);
    let app = vpa.policy("app").unwrap();
    assert_eq!(app.min_allowed, Resources::both(100, 52_428_800));
    assert_eq!((app.is_requests_only, app.oom_bump_up_ratio), (true, Some(1.5)));
    assert!(vpa.policy("sidecar").unwrap().is_off);
}

#[test]
fn contradictions_in_a_vpa_are_reported() {
    let text = VPA.replace("cpu: 1,", "cpu: 50m,").replace("\"*\"", "app");
    assert_eq!(
        problems(VpaSettings::from_yaml(&text).unwrap_err()),
        [
            "18: containerPolicies[]: minAllowed Cpu is above maxAllowed",
            "24: containerPolicies[]: \"app\" has two policies",
        ]
    );
}

#[test]
fn a_text_that_is_not_a_manifest_is_rejected_with_a_reason() {
    let refused = |text: &str| problems(ClusterSettings::from_yaml(text).unwrap_err()).join("; ");
    assert_eq!(refused(""), "-: has 0 documents of kind ConfigMap, allowed is one");
    assert_eq!(refused("kind: ConfigMap\nkind: Secret\n"), "2: key kind appears twice");
    assert_eq!(
        refused("kind: ConfigMap\ndata: &a {b: *a}\n"),
        "2: is an alias; write the value out instead"
    );
    let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
    assert_eq!(refused(&deep), "1: is nested deeper than 32 levels");
    assert!(refused("a: b: c").contains("is not YAML"));
    assert_eq!(refused("kind: ConfigMap\ndata: 5\n"), "2: data must be a map of fields");
}

#[test]
fn the_right_document_is_found_among_several() {
    let text = format!("kind: Secret\n---\n{}\n---\n", VPA.trim());
    assert!(VpaSettings::from_yaml(&text).is_ok());
    let twice = format!("{}\n---\n{}", VPA.trim(), VPA.trim());
    assert!(VpaSettings::from_yaml(&twice).is_err());
}

proptest! {
    #[test]
    fn no_text_makes_a_reader_panic(text in "\\PC{0,200}") {
        let _ = (ClusterSettings::from_yaml(&text), Spec::from_yaml(&text));
        let _ = VpaSettings::from_yaml(&text);
    }

    #[test]
    fn no_damage_to_a_manifest_makes_a_reader_panic(
        place in 0_usize..900,
        word in "[ -~\n]{0,6}",
        cut in 0_usize..40,
    ) {
        for manifest in [HPA, VPA] {
            let start = place.min(manifest.len());
            let end = (start + cut).min(manifest.len());
            let text = format!("{}{word}{}", &manifest[..start], &manifest[end..]);
            let _ = (Spec::from_yaml(&text), VpaSettings::from_yaml(&text));
        }
    }

    #[test]
    fn no_value_makes_the_config_map_panic(key in 0_usize..4, value in "[ -~]{0,20}") {
        let keys = ["stable-window", "max-scale", "max-scale-up-rate", "scale-down-delay"];
        let quoted = value.replace('\'', "''");
        let _ = config_map(&format!("  {}: '{quoted}'\n", keys[key]));
    }
}
