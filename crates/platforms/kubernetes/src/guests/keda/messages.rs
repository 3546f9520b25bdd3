//! The messages of KEDA's published interface `externalscaler.ExternalScaler`, by their field numbers.

use std::collections::HashMap;

/// Which trigger asks.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ScaledObjectRef {
    /// The ScaledObject's name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its namespace.
    #[prost(string, tag = "2")]
    pub namespace: String,
    /// `metadata` of the trigger.
    #[prost(map = "string, string", tag = "3")]
    pub scaler_metadata: HashMap<String, String>,
}

/// Whether the workload should have pods at all.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct IsActiveResponse {
    /// It should.
    #[prost(bool, tag = "1")]
    pub result: bool,
}

/// The metrics of a trigger.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetMetricSpecResponse {
    /// One each.
    #[prost(message, repeated, tag = "1")]
    pub metric_specs: Vec<MetricSpec>,
}

/// One metric and its target.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MetricSpec {
    /// Its name.
    #[prost(string, tag = "1")]
    pub metric_name: String,
    /// Its value per pod.
    #[prost(int64, tag = "2")]
    pub target_size: i64,
    /// The same, since KEDA 2.14.
    #[prost(double, tag = "3")]
    pub target_size_float: f64,
}

/// The question for a value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetMetricsRequest {
    /// Which trigger asks.
    #[prost(message, optional, tag = "1")]
    pub scaled_object_ref: Option<ScaledObjectRef>,
    /// For which metric.
    #[prost(string, tag = "2")]
    pub metric_name: String,
}

/// Values.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetMetricsResponse {
    /// One per metric.
    #[prost(message, repeated, tag = "1")]
    pub metric_values: Vec<MetricValue>,
}

/// One value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MetricValue {
    /// Its metric.
    #[prost(string, tag = "1")]
    pub metric_name: String,
    /// The value.
    #[prost(int64, tag = "2")]
    pub metric_value: i64,
    /// The same, since KEDA 2.14.
    #[prost(double, tag = "3")]
    pub metric_value_float: f64,
}
