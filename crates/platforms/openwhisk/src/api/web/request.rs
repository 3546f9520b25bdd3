//! An HTTP request as parameters of a call.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method};
use serde_json::{Map, Value};

use crate::api::answer::Refusal;
use crate::api::query::Query;
use crate::name::EntityName;

/// Parameters that describe the request; nobody else may set them.
const RESERVED: [&str; 6] =
    ["__ow_method", "__ow_headers", "__ow_path", "__ow_user", "__ow_query", "__ow_body"];

pub(super) struct WebRequest<'a> {
    pub(super) method: &'a Method,
    pub(super) headers: &'a HeaderMap,
    /// What follows the action in the URL.
    pub(super) path: &'a str,
    pub(super) query: Option<&'a str>,
    pub(super) body: Bytes,
}

impl WebRequest<'_> {
    /// Query and body as parameters, the body on top. A body that is no object is `__ow_body`.
    pub(super) fn parameters(
        &self,
        user: Option<&EntityName>,
        fixed: &[String],
    ) -> Result<Map<String, Value>, Refusal> {
        let mut given = Map::new();
        for (key, value) in Query::new(self.query).pairs() {
            given.insert(key.to_owned(), value.into());
        }
        let mut opaque = None;
        match self.json_body()? {
            Some(Value::Object(fields)) => given.extend(fields),
            other => opaque = other,
        }
        let is_set_by_us = |key: &String| RESERVED.contains(&key.as_str()) || fixed.contains(key);
        if given.keys().any(is_set_by_us) {
            let message =
                "Request defines parameters that are not allowed (e.g., reserved properties).";
            return Err(Refusal::bad_request(message));
        }
        let mut all = self.about(user);
        all.extend(given);
        if let Some(body) = opaque {
            all.insert("__ow_body".into(), body);
        }
        Ok(all)
    }

    /// Query and body as they came: `raw-http`.
    pub(super) fn raw_parameters(&self, user: Option<&EntityName>) -> Map<String, Value> {
        let mut all = self.about(user);
        all.insert("__ow_query".into(), self.query.unwrap_or_default().into());
        all.insert("__ow_body".into(), self.opaque_body());
        all
    }

    fn about(&self, user: Option<&EntityName>) -> Map<String, Value> {
        let headers: Map<String, Value> = self
            .headers
            .iter()
            .map(|(name, value)| {
                (
                    name.as_str().to_owned(),
                    String::from_utf8_lossy(value.as_bytes()).into_owned().into(),
                )
            })
            .collect();
        let mut about = Map::new();
        about.insert("__ow_method".into(), self.method.as_str().to_ascii_lowercase().into());
        about.insert("__ow_headers".into(), headers.into());
        about.insert("__ow_path".into(), self.path.into());
        if let Some(user) = user {
            about.insert("__ow_user".into(), user.as_str().into());
        }
        about
    }

    fn media_type(&self) -> &str {
        let header = self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        header.unwrap_or_default().split(';').next().unwrap_or_default().trim()
    }

    fn json_body(&self) -> Result<Option<Value>, Refusal> {
        if self.body.is_empty() {
            return Ok(None);
        }
        let media = self.media_type();
        if is_json(media) {
            return serde_json::from_slice(&self.body).map(Some).map_err(|why| {
                Refusal::bad_request(format!("The request content was malformed: {why}"))
            });
        }
        if media == "application/x-www-form-urlencoded" {
            let pairs = form_urlencoded::parse(&self.body);
            let fields: Map<String, Value> =
                pairs.map(|(key, value)| (key.into_owned(), value.into_owned().into())).collect();
            return Ok(Some(fields.into()));
        }
        Ok(Some(self.opaque_body()))
    }

    /// Text as it is; anything else, and JSON by an old custom, in base64.
    fn opaque_body(&self) -> Value {
        let media = self.media_type();
        let is_text = media.starts_with("text/")
            || media == "application/x-www-form-urlencoded"
            || media.is_empty();
        match std::str::from_utf8(&self.body) {
            Ok(text) if is_text || text.is_empty() => text.into(),
            _ => STANDARD.encode(&self.body).into(),
        }
    }
}

/// `application/json` and everything that ends in `+json`.
pub(super) fn is_json(media: &str) -> bool {
    media == "application/json" || media.ends_with("+json")
}

/// Turns bytes into parameters as a web action does: for the fuzz target.
#[cfg(feature = "fuzzing")]
pub fn read_web_request(media: &str, query: &str, body: &[u8]) {
    let mut headers = HeaderMap::new();
    if let Ok(value) = http::HeaderValue::from_str(media) {
        headers.insert(CONTENT_TYPE, value);
    }
    let body = Bytes::copy_from_slice(body);
    let request =
        WebRequest { method: &Method::POST, headers: &headers, path: "", query: Some(query), body };
    let _ = request.parameters(None, &[]).is_ok();
    let _ = request.raw_parameters(None).len();
}
