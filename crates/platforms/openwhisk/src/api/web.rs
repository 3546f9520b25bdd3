//! Web actions: any HTTP request becomes a call, and its result any HTTP answer. No key is needed.
//!
//! ```text
//!  GET /api/v1/web/guest/default/hello.json/path?name=you
//!                  │     │       │     │    └ __ow_path, parameters
//!                  │     │       │     └ how the result is sent: http (default), json, html, svg, text
//!                  namespace, package, action with the annotation web-export
//! ```

mod request;
mod response;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_REQUEST_HEADERS,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::Value;

use super::ApiState;
use super::answer::{self, Answer, Refusal};
use super::body;
use super::callers::Caller;
use super::invoke::Waited;
use crate::entities::Target;
use crate::key_values::KeyValues;
use crate::name::EntityName;
use crate::runner::{Arrival, Runner};
use request::WebRequest;
#[cfg(feature = "fuzzing")]
pub use request::read_web_request;
use response::Extension;

pub(super) async fn call<R: Runner>(
    State(api): State<ApiState<R>>,
    Path(path): Path<String>,
    RawQuery(raw): RawQuery,
    method: Method,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let address = Address::parse(&path)?;
    let (owner, target) = api.web_action(&address)?;
    let annotations = target.action.annotations.clone();
    let is_ours_to_answer = !annotations.is_set("web-custom-options");
    if is_ours_to_answer && method == Method::OPTIONS {
        return Ok(with_cors(StatusCode::OK.into_response(), &headers));
    }
    let is_options = method == Method::OPTIONS;
    let user = api.web_user(&annotations, &headers, is_options)?;
    let body = body::read(body, api.shared.settings.largest_parameters).await?;
    let request = WebRequest {
        method: &method,
        headers: &headers,
        path: address.rest,
        query: raw.as_deref(),
        body,
    };
    let answer = api.answer_web(owner, target, request, user.as_ref(), address.extension).await?;
    Ok(if is_ours_to_answer { with_cors(answer, &headers) } else { answer })
}

/// Where a web action is, and how its result is sent.
struct Address<'a> {
    namespace: EntityName,
    /// `name` or `package/name`.
    path: String,
    extension: Extension,
    /// What follows the action, with its slash.
    rest: &'a str,
}

impl<'a> Address<'a> {
    fn parse(path: &'a str) -> Result<Self, Refusal> {
        let mut parts = path.splitn(4, '/');
        let (Some(namespace), Some(package), Some(action)) =
            (parts.next(), parts.next(), parts.next())
        else {
            return Err(Refusal::not_found());
        };
        // `splitn` drops the slash before the rest.
        let rest = parts.next().map_or("", |rest| &path[path.len() - rest.len() - 1..]);
        let (name, extension) = Extension::split(action);
        EntityName::new(name)?;
        let path = if package == "default" { name.to_owned() } else { format!("{package}/{name}") };
        Ok(Self { namespace: EntityName::new(namespace)?, path, extension, rest })
    }
}

impl<R: Runner> ApiState<R> {
    /// An action that is there for the web. Anything else is "not found", so that nothing can be learnt about it.
    fn web_action(&self, address: &Address<'_>) -> Result<(&Arc<Caller>, Target), Refusal> {
        let owner = self.shared.callers.owner(&address.namespace).ok_or_else(Refusal::not_found)?;
        let target = self.shared.entities.target(&address.namespace, &address.path);
        let target = target.ok_or_else(Refusal::not_found)?;
        if !target.action.annotations.is_set("web-export") {
            return Err(Refusal::not_found());
        }
        Ok((owner, target))
    }

    /// Who calls, where the action asks: `require-whisk-auth` is `true` for a key of the platform, or a text or number
    /// that the header `X-Require-Whisk-Auth` has to repeat.
    fn web_user(
        &self,
        annotations: &KeyValues,
        headers: &HeaderMap,
        is_options: bool,
    ) -> Result<Option<EntityName>, Refusal> {
        let user = self.shared.callers.of(headers).ok().map(|caller| caller.namespace().clone());
        let wanted = match annotations.value("require-whisk-auth") {
            _ if is_options => return Ok(user),
            None | Some(Value::Null | Value::Bool(false)) => return Ok(user),
            Some(Value::Bool(true)) => {
                return if user.is_some() { Ok(user) } else { Err(Refusal::unauthorized()) };
            }
            Some(Value::String(secret)) => secret.clone(),
            Some(other) => other.to_string(),
        };
        let given =
            headers.get("x-require-whisk-auth").map(HeaderValue::as_bytes).unwrap_or_default();
        let is_equal = subtle::ConstantTimeEq::ct_eq(given, wanted.as_bytes());
        if bool::from(is_equal) { Ok(user) } else { Err(Refusal::unauthorized()) }
    }

    async fn answer_web(
        &self,
        owner: &Arc<Caller>,
        target: Target,
        request: WebRequest<'_>,
        user: Option<&EntityName>,
        extension: Extension,
    ) -> Answer {
        let action = &target.action;
        let parameters = if action.annotations.is_set("raw-http") {
            request.raw_parameters(user)
        } else {
            let fixed = fixed_parameters(&target);
            request.parameters(user, &fixed)?
        };
        let parameters = Bytes::from(Value::Object(parameters).to_string());
        let invocation = self.shared.prepare(owner, target, parameters, Arrival::now())?;
        match self.shared.run_and_wait(invocation, self.shared.settings.longest_blocking).await? {
            Waited::Ended(ended) => {
                let sent = extension.send(ended.status, &ended.result);
                let sent = sent.unwrap_or_else(IntoResponse::into_response);
                Ok(answer::of_activation(sent, ended.id))
            }
            Waited::GoesOn(id) => {
                let refusal = Refusal::new(StatusCode::ACCEPTED, "Response not yet ready.");
                Ok(answer::of_activation(refusal.into_response(), id))
            }
        }
    }
}

/// Parameters that a request may not set: all bound ones, if the action is `final`.
fn fixed_parameters(target: &Target) -> Vec<String> {
    if !target.action.annotations.is_set("final") {
        return Vec::new();
    }
    let around = target.package_parameters.iter().flat_map(KeyValues::iter);
    around.chain(target.action.parameters.iter()).map(|entry| entry.key.clone()).collect()
}

fn with_cors(mut answer: Response, asked: &HeaderMap) -> Response {
    let headers = answer.headers_mut();
    let any = HeaderValue::from_static("*");
    headers.entry(ACCESS_CONTROL_ALLOW_ORIGIN).or_insert(any);
    let methods = HeaderValue::from_static("OPTIONS, GET, DELETE, POST, PUT, HEAD, PATCH");
    headers.entry(ACCESS_CONTROL_ALLOW_METHODS).or_insert(methods);
    let usual = HeaderValue::from_static(
        "Authorization, Origin, X-Requested-With, Content-Type, Accept, User-Agent",
    );
    let allowed = asked.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned().unwrap_or(usual);
    headers.entry(ACCESS_CONTROL_ALLOW_HEADERS).or_insert(allowed);
    answer
}
