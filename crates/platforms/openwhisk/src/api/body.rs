//! Bodies, never longer than allowed.

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use super::answer::Refusal;

/// The whole body. One that announces too many bytes is refused before any is read.
pub(super) async fn read(body: Body, limit: usize) -> Result<Bytes, Refusal> {
    let announced = body.size_hint().lower();
    if announced > limit as u64 {
        return Err(Refusal::too_large("Request", announced, limit));
    }
    match Limited::new(body, limit).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(why) if why.is::<LengthLimitError>() => {
            Err(Refusal::too_large("Request", format!("more than {limit}"), limit))
        }
        Err(why) => Err(Refusal::bad_request(format!("Failed extracting request body: {why}"))),
    }
}

/// The body as JSON; nothing is an empty object.
pub(super) async fn read_json<T: DeserializeOwned>(body: Body, limit: usize) -> Result<T, Refusal> {
    let whole = read(body, limit).await?;
    let text: &[u8] = if whole.trim_ascii().is_empty() { b"{}" } else { &whole };
    serde_json::from_slice(text)
        .map_err(|why| Refusal::bad_request(format!("The request content was malformed: {why}")))
}
