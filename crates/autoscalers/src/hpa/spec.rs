//! Spec of a HorizontalPodAutoscaler and settings of its controller.
//!
//! ```text
//!  behavior as written ─► defaults, per direction:   up   window 0, Pods 4 / 15 s, Percent 100 / 15 s
//!                                                    down window of the controller, Percent 100 / 15 s
//! ```
//!
//! `behavior: {scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 60}]}}` keeps the window of 0 s
//! and the selection Max, replaces both default policies, and leaves scale-down at its defaults.

/// Flags of the controller.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerSettings {
    /// `--horizontal-pod-autoscaler-tolerance`.
    pub tolerance: f64,
    /// `--horizontal-pod-autoscaler-downscale-stabilization`.
    pub downscale_stabilization_ms: i64,
    /// `--horizontal-pod-autoscaler-cpu-initialization-period`.
    pub cpu_initialization_period_ms: i64,
    /// `--horizontal-pod-autoscaler-initial-readiness-delay`.
    pub initial_readiness_delay_ms: i64,
    /// Feature gate `HPAScaleToZero`.
    pub scale_to_zero_enabled: bool,
}

impl Default for ControllerSettings {
    fn default() -> Self {
        Self {
            tolerance: 0.1,
            downscale_stabilization_ms: 300_000,
            cpu_initialization_period_ms: 300_000,
            initial_readiness_delay_ms: 30_000,
            scale_to_zero_enabled: false,
        }
    }
}

/// `spec` of a HorizontalPodAutoscaler, after defaulting.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// `minReplicas`.
    pub min_replicas: i32,
    /// `maxReplicas`.
    pub max_replicas: i32,
    /// `metrics`, in order.
    pub metrics: Vec<MetricSpec>,
    /// `behavior`; `None` selects the older code path with its own limits.
    pub behavior: Option<Behavior>,
}

impl Spec {
    /// The default metric: CPU at 80 % of the request.
    pub fn default_metrics() -> Vec<MetricSpec> {
        vec![MetricSpec {
            source: Source::Resource(Resource::Cpu),
            target: MetricTarget::Utilization(80),
        }]
    }
}

/// A resource of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// `cpu`, in millicores.
    Cpu,
    /// `memory`, in thousandths of a byte.
    Memory,
}

impl Resource {
    /// Name in a manifest.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
        }
    }
}

/// Where a metric comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `Resource`: a whole pod's usage.
    Resource(Resource),
    /// `ContainerResource`: that of one container.
    ContainerResource(Resource, String),
    /// `Pods`: a custom metric of each pod.
    Pods(String),
    /// `Object`: a custom metric of one other object.
    Object {
        /// Name of the metric.
        metric: String,
        /// Kind of the object, for the reason of a rescale.
        kind: String,
    },
    /// `External`: a metric from outside the cluster, possibly several series.
    External(String),
}

impl Source {
    /// Whether it can be read without pods.
    pub fn is_object_or_external(&self) -> bool {
        matches!(self, Self::Object { .. } | Self::External(_))
    }

    /// The reason of the condition ScalingActive when it cannot be read.
    pub fn failure(&self) -> &'static str {
        match self {
            Self::Resource(_) => "FailedGetResourceMetric",
            Self::ContainerResource(..) => "FailedGetContainerResourceMetric",
            Self::Pods(_) => "FailedGetPodsMetric",
            Self::Object { .. } => "FailedGetObjectMetric",
            Self::External(_) => "FailedGetExternalMetric",
        }
    }
}

/// Target of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricTarget {
    /// `averageUtilization`: percent of the request.
    Utilization(i32),
    /// `averageValue`, in thousandths.
    Average(i64),
    /// `value`, in thousandths.
    Value(i64),
}

/// One entry of `metrics`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricSpec {
    /// Where it comes from.
    pub source: Source,
    /// Its target.
    pub target: MetricTarget,
}

impl MetricSpec {
    /// Title of the metric in the reason of a rescale.
    pub fn title(&self) -> String {
        let is_average = matches!(self.target, MetricTarget::Average(_));
        match &self.source {
            Source::Resource(resource) | Source::ContainerResource(resource, _) if is_average => {
                format!("{} resource", resource.name())
            }
            Source::Resource(resource) => {
                format!("{} resource utilization (percentage of request)", resource.name())
            }
            Source::ContainerResource(resource, _) => {
                format!(
                    "{} container resource utilization (percentage of request)",
                    resource.name()
                )
            }
            Source::Pods(name) => format!("pods metric {name}"),
            // The selector is printed too; upstream shows nil for an absent one.
            Source::Object { metric, .. } if is_average => format!("external metric {metric}(nil)"),
            Source::Object { metric, kind } => format!("{kind} metric {metric}"),
            Source::External(name) => format!("external metric {name}(nil)"),
        }
    }
}

/// `behavior`, after defaulting.
#[derive(Clone, Debug, PartialEq)]
pub struct Behavior {
    /// `scaleUp`.
    pub scale_up: Rules,
    /// `scaleDown`.
    pub scale_down: Rules,
}

/// One direction of `behavior`, after defaulting.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// `stabilizationWindowSeconds`; `None` (down only) means the controller's.
    pub stabilization_window_seconds: Option<u32>,
    /// `selectPolicy`.
    pub select_policy: SelectPolicy,
    /// `policies`.
    pub policies: Vec<RatePolicy>,
    /// `tolerance`; `None` means the controller's.
    pub tolerance: Option<f64>,
}

/// Which of several policies counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SelectPolicy {
    /// The one that allows the largest change.
    #[default]
    Max,
    /// The one that allows the smallest.
    Min,
    /// None: this direction is disabled.
    Disabled,
}

/// How much may change within a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RatePolicy {
    /// `type` and `value`.
    pub change: Change,
    /// `periodSeconds`.
    pub period_seconds: u32,
}

/// An amount of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// `Pods`.
    Pods(i32),
    /// `Percent` of the pods at the start of the period.
    Percent(i32),
}

/// One direction of `behavior` as a user writes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WrittenRules {
    /// `stabilizationWindowSeconds`.
    pub stabilization_window_seconds: Option<u32>,
    /// `selectPolicy`.
    pub select_policy: Option<SelectPolicy>,
    /// `policies`.
    pub policies: Option<Vec<RatePolicy>>,
    /// `tolerance`.
    pub tolerance: Option<f64>,
}

impl Behavior {
    /// Fills in the defaults of fields that were not written.
    pub fn defaulted(scale_up: Option<WrittenRules>, scale_down: Option<WrittenRules>) -> Self {
        let policy = |change| RatePolicy { change, period_seconds: 15 };
        let (up, down) = (scale_up.unwrap_or_default(), scale_down.unwrap_or_default());
        let up_window = Some(up.stabilization_window_seconds.unwrap_or(0));
        Self {
            scale_up: Rules {
                stabilization_window_seconds: up_window,
                ..up.over(vec![policy(Change::Pods(4)), policy(Change::Percent(100))])
            },
            scale_down: down.over(vec![policy(Change::Percent(100))]),
        }
    }
}

impl WrittenRules {
    fn over(self, policies: Vec<RatePolicy>) -> Rules {
        Rules {
            stabilization_window_seconds: self.stabilization_window_seconds,
            select_policy: self.select_policy.unwrap_or_default(),
            policies: self.policies.unwrap_or(policies),
            tolerance: self.tolerance,
        }
    }
}
