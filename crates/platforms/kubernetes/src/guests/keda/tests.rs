use std::collections::BTreeMap;
use std::sync::Mutex;

use futures_util::StreamExt;
use tonic::client::Grpc;
use tonic::transport::{Channel, Server};
use tonic_prost::ProstCodec;

use super::*;

#[derive(Default)]
struct Fixed(Mutex<BTreeMap<(String, String), Option<u32>>>);

impl Fixed {
    fn set(&self, policy: &str, replicas: Option<u32>) {
        self.0.lock().unwrap().insert(("n".to_owned(), policy.to_owned()), replicas);
    }
}

impl Recommendations for Fixed {
    fn replicas(&self, namespace: &str, policy: &str) -> Result<Option<u32>, String> {
        let key = (namespace.to_owned(), policy.to_owned());
        self.0.lock().unwrap().get(&key).copied().ok_or_else(|| format!("no {policy}"))
    }
}

fn trigger(policy: &str) -> ScaledObjectRef {
    let scaler_metadata = [(POLICY.to_owned(), policy.to_owned())].into();
    ScaledObjectRef { name: "s".into(), namespace: "n".into(), scaler_metadata }
}

#[test]
fn the_recommended_number_is_the_metric() {
    let known = Arc::new(Fixed::default());
    known.set("web", Some(7));
    known.set("idle", Some(0));
    known.set("new", None);
    let scaler = Scaler::new(known);
    let metrics = |policy: &str| {
        scaler.metrics(&GetMetricsRequest {
            scaled_object_ref: Some(trigger(policy)),
            metric_name: METRIC.into(),
        })
    };
    assert_eq!(metrics("web").unwrap().metric_values[0].metric_value, 7);
    assert_eq!(metrics("new").unwrap_err().code(), tonic::Code::Unavailable);
    assert!(scaler.is_active(&trigger("web")).unwrap());
    assert!(!scaler.is_active(&trigger("idle")).unwrap());
    assert!(scaler.is_active(&trigger("new")).unwrap(), "nothing measured: nothing changes");
    assert_eq!(scaler.is_active(&trigger("absent")).unwrap_err().code(), tonic::Code::NotFound);
    let nameless = ScaledObjectRef { scaler_metadata: Default::default(), ..trigger("") };
    assert_eq!(scaler.metric_spec(&nameless).unwrap_err().code(), tonic::Code::InvalidArgument);
}

async fn ask<Q, A>(channel: &Channel, method: &'static str, question: Q) -> Result<A, Status>
where
    Q: prost::Message + Send + Sync + 'static,
    A: prost::Message + Default + Send + Sync + 'static,
{
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.unwrap();
    let path = http::uri::PathAndQuery::from_static(method);
    let codec = ProstCodec::<Q, A>::default();
    grpc.unary(tonic::Request::new(question), path, codec).await.map(tonic::Response::into_inner)
}

#[tokio::test]
async fn every_method_answers_over_a_real_connection() {
    let known = Arc::new(Fixed::default());
    known.set("web", Some(0));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let service = ExternalScalerService::new(Scaler::new(known.clone()));
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    let serving =
        tokio::spawn(Server::builder().add_service(service).serve_with_incoming(incoming));
    let channel = Channel::from_shared(address).unwrap().connect().await.unwrap();
    let active: IsActiveResponse =
        ask(&channel, "/externalscaler.ExternalScaler/IsActive", trigger("web")).await.unwrap();
    assert!(!active.result);
    let spec: GetMetricSpecResponse =
        ask(&channel, "/externalscaler.ExternalScaler/GetMetricSpec", trigger("web"))
            .await
            .unwrap();
    assert_eq!(
        (spec.metric_specs[0].metric_name.as_str(), spec.metric_specs[0].target_size),
        (METRIC, 1)
    );
    let question =
        GetMetricsRequest { scaled_object_ref: Some(trigger("web")), metric_name: METRIC.into() };
    let metrics: GetMetricsResponse =
        ask(&channel, "/externalscaler.ExternalScaler/GetMetrics", question).await.unwrap();
    assert_eq!(metrics.metric_values[0].metric_value, 0);
    let missing: Result<IsActiveResponse, Status> =
        ask(&channel, "/externalscaler.ExternalScaler/Nothing", trigger("web")).await;
    assert_eq!(missing.unwrap_err().code(), tonic::Code::Unimplemented);
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.unwrap();
    let path =
        http::uri::PathAndQuery::from_static("/externalscaler.ExternalScaler/StreamIsActive");
    let codec = ProstCodec::<ScaledObjectRef, IsActiveResponse>::default();
    let stream =
        grpc.server_streaming(tonic::Request::new(trigger("web")), path, codec).await.unwrap();
    let mut stream = stream.into_inner();
    assert!(!stream.next().await.unwrap().unwrap().result, "the state comes first");
    known.set("web", Some(3));
    assert!(stream.next().await.unwrap().unwrap().result, "then every change");
    serving.abort();
}
