//! The gRPC service: paths of the interface, each with its method of [`Scaler`]. Written by hand, so that building needs
//! no protobuf compiler.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tonic::body::Body;
use tonic::server::{Grpc, NamedService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::service_fn;

use super::{GetMetricsRequest, ScaledObjectRef, Scaler};

/// [`Scaler`] behind the paths of `externalscaler.ExternalScaler`.
#[derive(Clone)]
pub struct ExternalScalerService {
    scaler: Scaler,
}

impl ExternalScalerService {
    /// Serves `scaler`.
    pub fn new(scaler: Scaler) -> Self {
        Self { scaler }
    }
}

impl NamedService for ExternalScalerService {
    const NAME: &'static str = "externalscaler.ExternalScaler";
}

type Answer = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

impl tower::Service<http::Request<Body>> for ExternalScalerService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Answer {
        let scaler = self.scaler.clone();
        Box::pin(async move { Ok(answer(scaler, request).await) })
    }
}

async fn answer(scaler: Scaler, request: http::Request<Body>) -> http::Response<Body> {
    let path = request.uri().path().to_owned();
    let method = path.strip_prefix("/externalscaler.ExternalScaler/").unwrap_or_default();
    match method {
        "IsActive" => {
            let call = service_fn(move |asked: Request<ScaledObjectRef>| {
                let answer = scaler.is_active(asked.get_ref());
                let answer = answer.map(|result| Response::new(super::IsActiveResponse { result }));
                std::future::ready(answer)
            });
            Grpc::new(ProstCodec::default()).unary(call, request).await
        }
        "StreamIsActive" => {
            let call = service_fn(move |asked: Request<ScaledObjectRef>| {
                let stream = scaler.clone().stream(asked.into_inner());
                std::future::ready(Ok::<_, Status>(Response::new(Box::pin(stream))))
            });
            Grpc::new(ProstCodec::default()).server_streaming(call, request).await
        }
        "GetMetricSpec" => {
            let call = service_fn(move |asked: Request<ScaledObjectRef>| {
                std::future::ready(scaler.metric_spec(asked.get_ref()).map(Response::new))
            });
            Grpc::new(ProstCodec::default()).unary(call, request).await
        }
        "GetMetrics" => {
            let call = service_fn(move |asked: Request<GetMetricsRequest>| {
                std::future::ready(scaler.metrics(asked.get_ref()).map(Response::new))
            });
            Grpc::new(ProstCodec::default()).unary(call, request).await
        }
        other => Status::unimplemented(format!("there is no method `{other}`")).into_http(),
    }
}
