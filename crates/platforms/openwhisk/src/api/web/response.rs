//! The result of a call as an HTTP answer.

use axum::body::Body;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::request::is_json;
use crate::api::answer::{self, Refusal};

/// How a result is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extension {
    Http,
    Json,
    Html,
    Svg,
    Text,
}

impl Extension {
    /// `hello.json` as `hello` and how to send its result; without a known ending, `http`.
    pub(super) fn split(name: &str) -> (&str, Self) {
        let endings = [
            (".http", Self::Http),
            (".json", Self::Json),
            (".html", Self::Html),
            (".svg", Self::Svg),
            (".text", Self::Text),
        ];
        endings
            .into_iter()
            .find_map(|(ending, extension)| Some((name.strip_suffix(ending)?, extension)))
            .unwrap_or((name, Self::Http))
    }

    /// Sends the result of a call that ended with `status`. An error on purpose is sent like a result: its `error` is
    /// what is looked at.
    pub(super) fn send(self, status: u8, result: &[u8]) -> Result<Response, Refusal> {
        let failed = || Refusal::bad_request("There was an error processing your request.");
        let mut value: Value = serde_json::from_slice(result).map_err(|_| failed())?;
        match status {
            0 => {}
            1 => value = value["error"].take(),
            _ => return Err(failed()),
        }
        match self {
            Self::Http => send_http(&value),
            Self::Json if value.is_object() || value.is_array() => {
                Ok(answer::json_answer(StatusCode::OK, &value))
            }
            Self::Json => Err(invalid("application/json")),
            Self::Html => send_text(field(&value, "html"), "text/html; charset=UTF-8", "text/html"),
            Self::Svg => send_text(field(&value, "svg"), "image/svg+xml", "image/svg+xml"),
            Self::Text => Ok(plain(field(&value, "text"))),
        }
    }
}

fn invalid(media: &str) -> Refusal {
    Refusal::bad_request(format!("Response is not valid '{media}'."))
}

/// `body`, or the field named like the extension, or the value itself if it is no object.
fn field<'a>(value: &'a Value, name: &str) -> &'a Value {
    match value {
        Value::Object(fields) => {
            fields.get("body").or_else(|| fields.get(name)).unwrap_or(&Value::Null)
        }
        other => other,
    }
}

fn send_text(value: &Value, content_type: &'static str, media: &str) -> Result<Response, Refusal> {
    let Value::String(text) = value else { return Err(invalid(media)) };
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(content_type))]);
    Ok(respond(StatusCode::OK, headers, text.clone().into()))
}

fn plain(value: &Value) -> Response {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let plain = HeaderValue::from_static("text/plain; charset=UTF-8");
    respond(StatusCode::OK, HeaderMap::from_iter([(CONTENT_TYPE, plain)]), text.into())
}

fn respond(status: StatusCode, headers: HeaderMap, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// `{"statusCode": ..., "headers": ..., "body": ...}`.
fn send_http(value: &Value) -> Result<Response, Refusal> {
    let fields = value.as_object().ok_or_else(|| invalid("message/http"))?;
    let status = match fields.get("statusCode") {
        None => None,
        Some(status) => Some(status_code(status).ok_or_else(|| invalid("message/http"))?),
    };
    let mut headers = HeaderMap::new();
    if let Some(given) = fields.get("headers") {
        let given = given.as_object().ok_or_else(|| invalid("message/http"))?;
        for (name, value) in given {
            let name = HeaderName::try_from(name.as_str()).map_err(|_| invalid("message/http"))?;
            add_header(&mut headers, &name, value).ok_or_else(|| invalid("message/http"))?;
        }
    }
    let (status, body) = match fields.get("body") {
        None | Some(Value::Null) => (status.unwrap_or(StatusCode::NO_CONTENT), Vec::new()),
        Some(Value::String(text)) if text.is_empty() => {
            (status.unwrap_or(StatusCode::NO_CONTENT), Vec::new())
        }
        Some(Value::String(text)) => {
            let html = HeaderValue::from_static("text/html; charset=UTF-8");
            let media = headers.entry(CONTENT_TYPE).or_insert(html);
            (status.unwrap_or(StatusCode::OK), text_body(text, media)?)
        }
        Some(json) => {
            let media =
                headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
            if !is_json(media_of(media)) {
                let message = "Response type in header did not match generated content type.";
                return Err(Refusal::bad_request(message));
            }
            (status.unwrap_or(StatusCode::OK), json.to_string().into())
        }
    };
    if body.is_empty() {
        headers.remove(CONTENT_TYPE);
    }
    Ok(respond(status, headers, body))
}

fn status_code(value: &Value) -> Option<StatusCode> {
    let number = match value {
        Value::Number(number) => number.as_u64()?,
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    };
    // Below 200 are answers that announce another one; hyper would not end there.
    u16::try_from(number)
        .ok()
        .filter(|code| *code >= 200)
        .and_then(|code| StatusCode::from_u16(code).ok())
}

/// Adds each value; those that belong to the connection are ours and left out.
fn add_header(headers: &mut HeaderMap, name: &HeaderName, value: &Value) -> Option<()> {
    let is_ours = ["connection", "content-length", "transfer-encoding", "upgrade", "trailer", "te"];
    if is_ours.contains(&name.as_str()) {
        return Some(());
    }
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(values) => {
            return values.iter().try_for_each(|value| add_header(headers, name, value));
        }
        Value::Null | Value::Object(_) => return None,
    };
    headers.append(name, HeaderValue::try_from(text).ok()?);
    Some(())
}

fn media_of(header: &HeaderValue) -> &str {
    header.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim()
}

/// Text as it is; a binary media type has its body in base64.
fn text_body(text: &str, media: &HeaderValue) -> Result<Vec<u8>, Refusal> {
    let media = media_of(media);
    let is_text = media.starts_with("text/")
        || is_json(media)
        || media.ends_with("+xml")
        || matches!(
            media,
            "application/xml" | "application/javascript" | "application/x-www-form-urlencoded"
        );
    if is_text {
        return Ok(text.as_bytes().to_vec());
    }
    STANDARD.decode(text).map_err(|_| {
        Refusal::bad_request("Response type in header did not match generated content type.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn http(value: Value) -> Result<Response, Refusal> {
        Extension::Http.send(0, value.to_string().as_bytes())
    }

    #[test]
    fn an_http_result_says_everything_about_the_answer() {
        let answer = http(
            json!({"statusCode": "302", "headers": {"location": "/x", "set-cookie": ["a", "b"]}}),
        )
        .unwrap();
        assert_eq!(answer.status(), 302);
        assert_eq!(answer.headers().get_all("set-cookie").iter().count(), 2);
        assert_eq!(http(json!({"x": 1})).unwrap().status(), 204);
        assert_eq!(
            http(json!({"body": {"a": 1}})).unwrap().headers()["content-type"],
            "application/json"
        );
        assert_eq!(
            http(json!({"body": "x"})).unwrap().headers()["content-type"],
            "text/html; charset=UTF-8"
        );
        let image = json!({"headers": {"content-type": "image/png"}, "body": "iVBORw0KGgo="});
        assert_eq!(http(image).unwrap().status(), 200);
    }

    #[test]
    fn a_wrong_http_result_is_refused() {
        for wrong in [
            json!({"statusCode": 99}),
            json!({"statusCode": 101}),
            json!({"statusCode": 1000}),
            json!({"statusCode": true}),
            json!({"headers": 3}),
            json!({"headers": {"a b": "c"}}),
            json!({"headers": {"a": {}}}),
            json!({"headers": {"a": "b\r\nc: d"}}),
            json!({"headers": {"content-type": "image/png"}, "body": "!"}),
            json!({"headers": {"content-type": "text/plain"}, "body": {}}),
        ] {
            assert!(http(wrong.clone()).is_err(), "{wrong}");
        }
        assert!(Extension::Json.send(0, b"{}").is_ok());
        assert!(Extension::Json.send(2, b"{}").is_err());
        assert_eq!(
            Extension::Http.send(1, br#"{"error":{"statusCode":404}}"#).unwrap().status(),
            404
        );
    }
}
