//! An external scaler of KEDA. A ScaledObject with a trigger of type `external` or `external-push` names a
//! ResourcePolicy of its namespace; KEDA's HPA then has as many pods as that policy recommends.
//!
//! ```text
//!   triggers:
//!     - type: external-push
//!       metadata: { scalerAddress: windfall-keda.windfall:6000, policy: checkout }
//! ```
//!
//! The metric is the recommended number of pods and its target is 1, so the HPA's `value / target` is that number. The
//! policy should be in mode Recommend: KEDA carries out, Windfall decides.

mod messages;
mod service;

use std::sync::Arc;
use std::time::Duration;

use kube::runtime::reflector::{ObjectRef, Store};
use tonic::Status;

pub use messages::{
    GetMetricSpecResponse, GetMetricsRequest, GetMetricsResponse, IsActiveResponse, MetricSpec,
    MetricValue, ScaledObjectRef,
};
pub use service::ExternalScalerService;

use crate::resource_policy::ResourcePolicy;

/// The name of the metric.
pub const METRIC: &str = "windfall-replicas";
/// The key of a trigger's metadata that names the policy.
pub const POLICY: &str = "policy";
/// How often a stream looks for a change of activity.
const STREAM_EVERY: Duration = Duration::from_secs(1);

/// Who knows how many pods a policy recommends.
pub trait Recommendations: Send + Sync + 'static {
    /// The number, nothing as long as nothing was measured; an error if there is no such policy.
    fn replicas(&self, namespace: &str, policy: &str) -> Result<Option<u32>, String>;
}

impl Recommendations for Store<ResourcePolicy> {
    fn replicas(&self, namespace: &str, policy: &str) -> Result<Option<u32>, String> {
        let found = self.get(&ObjectRef::new(policy).within(namespace));
        let found = found.ok_or_else(|| {
            format!("namespace {namespace} has no ResourcePolicy {policy}; create it, or correct `{POLICY}` of the trigger")
        })?;
        let status = found.status.as_ref();
        Ok(status.and_then(|status| status.recommendation.as_ref()?.replicas))
    }
}

/// Answers KEDA's questions.
#[derive(Clone)]
pub struct Scaler {
    recommendations: Arc<dyn Recommendations>,
}

impl Scaler {
    /// One that reads `recommendations`.
    pub fn new(recommendations: Arc<dyn Recommendations>) -> Self {
        Self { recommendations }
    }

    /// Recommended pods of the policy that a trigger names.
    fn replicas(&self, of: &ScaledObjectRef) -> Result<Option<u32>, Status> {
        let policy = of.scaler_metadata.get(POLICY).ok_or_else(|| {
            Status::invalid_argument(format!(
                "the trigger of {}/{} has no `{POLICY}`; it names a ResourcePolicy of that namespace",
                of.namespace, of.name
            ))
        })?;
        self.recommendations.replicas(&of.namespace, policy).map_err(Status::not_found)
    }

    /// Whether the workload should have pods at all. Without measurements it keeps what it has, so it is active.
    pub fn is_active(&self, of: &ScaledObjectRef) -> Result<bool, Status> {
        Ok(self.replicas(of)?.is_none_or(|replicas| replicas > 0))
    }

    /// The one metric there is.
    pub fn metric_spec(&self, of: &ScaledObjectRef) -> Result<GetMetricSpecResponse, Status> {
        self.replicas(of)?;
        let spec =
            MetricSpec { metric_name: METRIC.to_owned(), target_size: 1, target_size_float: 1.0 };
        Ok(GetMetricSpecResponse { metric_specs: vec![spec] })
    }

    /// The recommended number of pods. Without measurements this is an error, on which KEDA keeps the present number.
    pub fn metrics(&self, request: &GetMetricsRequest) -> Result<GetMetricsResponse, Status> {
        let of = request
            .scaled_object_ref
            .as_ref()
            .ok_or_else(|| Status::invalid_argument("scaledObjectRef is missing"))?;
        let replicas = self.replicas(of)?.ok_or_else(|| {
            Status::unavailable("nothing was measured yet; the number of pods stays as it is")
        })?;
        let value = MetricValue {
            metric_name: METRIC.to_owned(),
            metric_value: i64::from(replicas),
            metric_value_float: f64::from(replicas),
        };
        Ok(GetMetricsResponse { metric_values: vec![value] })
    }

    /// Activity now and at every change, as long as KEDA listens.
    pub fn stream(
        self,
        of: ScaledObjectRef,
    ) -> impl futures_util::Stream<Item = Result<IsActiveResponse, Status>> + Send + 'static {
        let state = (self, of, None::<bool>);
        futures_util::stream::unfold(state, |(scaler, of, last)| async move {
            loop {
                match scaler.is_active(&of) {
                    Ok(now) if last != Some(now) => {
                        return Some((
                            Ok(IsActiveResponse { result: now }),
                            (scaler, of, Some(now)),
                        ));
                    }
                    Ok(_) => tokio::time::sleep(STREAM_EVERY).await,
                    Err(status) => {
                        // KEDA connects again after an error; without the pause it would do so at once.
                        tokio::time::sleep(STREAM_EVERY).await;
                        return Some((Err(status), (scaler, of, last)));
                    }
                }
            }
        })
    }
}

#[cfg(test)]
mod tests;
