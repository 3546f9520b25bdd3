//! What every request passes: where it comes from, how many there are, how long it takes, and whether it may change
//! anything.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::ApiState;
use super::answers::Refused;

/// Requests that are answered per second in the long run, and as many as may come together.
const REQUESTS: Rate = Rate { per_second: 200.0, burst: 400.0 };
/// Refusals that are logged and recorded; a flood of them must not push what matters out of the audit log.
const NOTES: Rate = Rate { per_second: 1.0, burst: 50.0 };
/// An answer takes no longer than this; streams of events are exempt.
const LONGEST: Duration = Duration::from_secs(30);

/// How fast a bucket fills, and how much it holds.
#[derive(Clone, Copy, Debug)]
struct Rate {
    per_second: f64,
    burst: f64,
}

/// A bucket that fills at a fixed rate.
#[derive(Debug)]
struct Bucket {
    rate: Rate,
    level: Mutex<(f64, Instant)>,
}

impl Bucket {
    fn new(rate: Rate) -> Self {
        Self { rate, level: Mutex::new((rate.burst, Instant::now())) }
    }

    /// Takes one out, if there is one left.
    fn take(&self) -> bool {
        let Rate { per_second, burst } = self.rate;
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, at) = *level;
        let now = Instant::now();
        let left = (left + now.duration_since(at).as_secs_f64() * per_second).min(burst);
        let is_left = left >= 1.0;
        *level = (if is_left { left - 1.0 } else { left }, now);
        is_left
    }
}

/// Bounds how many requests are answered, and how many refusals are written down.
#[derive(Debug)]
pub(super) struct Limiter {
    requests: Bucket,
    notes: Bucket,
    /// Refusals since the last one that was written down.
    unnoted: AtomicU64,
}

impl Default for Limiter {
    fn default() -> Self {
        let unnoted = AtomicU64::new(0);
        Self { requests: Bucket::new(REQUESTS), notes: Bucket::new(NOTES), unnoted }
    }
}

/// Logs a request that was refused; one that would have changed something is in the audit log too.
pub(super) fn note_refusal(state: &ApiState, what: &str, reason: &str, changes: bool) {
    if !state.limiter.notes.take() {
        state.limiter.unnoted.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let before = state.limiter.unnoted.swap(0, Ordering::Relaxed);
    tracing::warn!(request = what, reason, unlogged_before = before, "request refused");
    if changes {
        let more = if before > 0 { format!(", after {before} more") } else { String::new() };
        state.desk.note_refusal(format!("{what} refused: {reason}{more}"), "api");
    }
}

pub(super) async fn guard(
    State(state): State<Arc<ApiState>>,
    request: Request,
    next: Next,
) -> Response {
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let path: String = request.uri().path().chars().take(120).collect();
    let what = format!("{} {path}", request.method());
    let answer = match admit(&state, request.headers(), changes) {
        Ok(()) if path == "/api/v1/events" => next.run(request).await,
        Ok(()) => {
            let answer = match tokio::time::timeout(LONGEST, next.run(request)).await {
                Ok(answer) => answer,
                Err(_) => {
                    Refused::new(StatusCode::GATEWAY_TIMEOUT, "it took too long").into_response()
                }
            };
            let status = answer.status();
            // An order that the manager refused (409) was recorded by the manager.
            let is_new = status.is_client_error() || status.is_server_error();
            if changes && is_new && status != StatusCode::CONFLICT {
                let reason = status.canonical_reason().unwrap_or("refused");
                note_refusal(&state, &what, reason, changes);
            }
            answer
        }
        Err((refused, reason)) => {
            note_refusal(&state, &what, reason, changes);
            refused.into_response()
        }
    };
    with_headers(answer)
}

/// Whether a request may go on; else the answer, and a few words for the audit log.
fn admit(
    state: &ApiState,
    headers: &HeaderMap,
    changes: bool,
) -> Result<(), (Refused, &'static str)> {
    let refuse = |status, error: &str, why| Err((Refused::new(status, error), why));
    if !state.limiter.requests.take() {
        let error = "too many requests: 200 a second are answered; try again in a second";
        return refuse(StatusCode::TOO_MANY_REQUESTS, error, "too many requests");
    }
    if !is_our_host(state, headers) {
        let error = "the Host header names another site; use the address that `windfall up` prints";
        return refuse(StatusCode::FORBIDDEN, error, "another host");
    }
    if is_from_another_site(headers) {
        return refuse(
            StatusCode::FORBIDDEN,
            "requests of other sites are refused",
            "another site",
        );
    }
    if changes && !has_token(state, headers) {
        let error = "a change needs the header `Authorization: Bearer TOKEN`; `windfall up` prints the token";
        return refuse(StatusCode::UNAUTHORIZED, error, "no token or a wrong one");
    }
    Ok(())
}

/// A page of another site can point a name of its own at the loopback interface; then the Host header has that name.
fn is_our_host(state: &ApiState, headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST).and_then(|host| host.to_str().ok()) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.chars().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_matches(['[', ']']);
    let address = state.address.ip();
    name == "localhost"
        || name
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback() || ip == address || address.is_unspecified())
}

fn is_from_another_site(headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let site = text(HeaderName::from_static("sec-fetch-site"));
    if matches!(site, Some("cross-site" | "same-site")) {
        return true;
    }
    let Some(origin) = text(ORIGIN) else { return false };
    let host = text(HOST).unwrap_or_default();
    origin.split_once("://").is_none_or(|(_, rest)| rest != host)
}

/// Compares every byte, so that the time says nothing about how many were right.
fn has_token(state: &ApiState, headers: &HeaderMap) -> bool {
    let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    let (given, token) = (given.as_bytes(), state.token.as_bytes());
    given.len() == token.len()
        && given.iter().zip(token).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

fn with_headers(mut answer: Response) -> Response {
    let headers = answer.headers_mut();
    let fixed = [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        (
            "content-security-policy",
            "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; \
             base-uri 'none'; form-action 'none'",
        ),
    ];
    for (name, value) in fixed {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    answer
}
