//! A small client for pages without TLS inside the cluster: pods by their address, Prometheus by its Service.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use super::SourceError;

/// Pages longer than this are refused: 4 MiB hold some 30,000 samples.
const LONGEST_PAGE: usize = 4 << 20;
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// Fetches pages over plain HTTP.
#[derive(Clone, Debug)]
pub struct Pages {
    client: Client<HttpConnector, Empty<Bytes>>,
}

impl Default for Pages {
    fn default() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(PATIENCE));
        Self { client: Client::builder(TokioExecutor::new()).build(connector) }
    }
}

impl Pages {
    /// The page at `address`, as text.
    pub async fn get(&self, address: &str) -> Result<String, SourceError> {
        let failed = |problem: String| SourceError::Http { address: address.to_owned(), problem };
        let uri: Uri = address.parse().map_err(|error| failed(format!("{error}")))?;
        if uri.scheme_str() != Some("http") {
            return Err(failed("only http:// addresses are supported".to_owned()));
        }
        let request = Request::get(uri)
            .header("accept", "text/plain, application/json")
            .body(Empty::new())
            .map_err(|error| failed(error.to_string()))?;
        let fetched = tokio::time::timeout(PATIENCE, self.fetch(request)).await;
        match fetched {
            Ok(page) => page.map_err(failed),
            Err(_) => Err(failed(format!("no answer within {} s", PATIENCE.as_secs()))),
        }
    }

    async fn fetch(&self, request: Request<Empty<Bytes>>) -> Result<String, String> {
        let answer = self.client.request(request).await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), LONGEST_PAGE).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        if !status.is_success() {
            let start: String = String::from_utf8_lossy(&body).chars().take(200).collect();
            return Err(format!("answered {status}: {start}"));
        }
        String::from_utf8(body.into()).map_err(|_| "the page is not UTF-8".to_owned())
    }
}
