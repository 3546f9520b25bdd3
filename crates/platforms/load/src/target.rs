//! What is called: method, URL, headers and body.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

use crate::credentials::Credentials;
use crate::due::Placeholders;
use crate::error::LoadError;

/// One thing to call.
#[derive(Clone, Debug)]
pub struct Target {
    name: String,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    Same(Bytes),
    Filled(String),
}

impl Target {
    /// Calls `url`: GET without a body, POST with one. Headers are written `Name: value`; a body may have the
    /// placeholders of [`Placeholders`].
    pub fn url(url: &str, headers: &[String], body: Option<&str>) -> Result<Self, LoadError> {
        let uri = parse_url(url)?;
        let mut target = Self {
            name: url.to_owned(),
            method: if body.is_some() { Method::POST } else { Method::GET },
            headers: HeaderMap::new(),
            body: Body::Same(Bytes::new()),
            uri,
        };
        if let Some(body) = body {
            target.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            target.body = if Placeholders::are_in(body) {
                Body::Filled(body.to_owned())
            } else {
                Body::Same(Bytes::copy_from_slice(body.as_bytes()))
            };
        }
        for header in headers {
            let (name, value) = parse_header(header)?;
            target.headers.insert(name, value);
        }
        if let Some(authority) = target.uri.authority() {
            let host = HeaderValue::from_str(authority.as_str())
                .map_err(|why| LoadError::Url { url: url.to_owned(), why: why.to_string() })?;
            target.headers.entry(HOST).or_insert(host);
        }
        Ok(target)
    }

    /// Invokes an action of an OpenWhisk-compatible platform and waits for its result.
    ///
    /// A name is `hello`, `package/hello`, `/namespace/hello` or `/namespace/package/hello`.
    pub fn action(
        name: &str,
        credentials: &Credentials,
        parameters: &str,
    ) -> Result<Self, LoadError> {
        let path = action_path(name)?;
        let host = credentials.api_host();
        let url = format!("{host}/api/v1/namespaces/{path}?blocking=true&result=true");
        let key = BASE64_STANDARD.encode(credentials.key());
        let mut target = Self::url(&url, &[], Some(parameters))?;
        let mut value = HeaderValue::try_from(format!("Basic {key}")).map_err(|why| {
            LoadError::Header { header: "Authorization".to_owned(), why: why.to_string() }
        })?;
        value.set_sensitive(true);
        target.headers.insert(AUTHORIZATION, value);
        target.name = name.to_owned();
        Ok(target)
    }

    /// The same under another name.
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// The same with another method.
    pub fn with_method(mut self, method: &str) -> Result<Self, LoadError> {
        self.method = method.parse().map_err(|_| LoadError::Header {
            header: method.to_owned(),
            why: "not an HTTP method, allowed is e.g. GET, POST, PUT".to_owned(),
        })?;
        Ok(self)
    }

    /// The name in reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn request(
        &self,
        call: &Placeholders,
    ) -> http::Request<http_body_util::Full<Bytes>> {
        let body = match &self.body {
            Body::Same(bytes) => bytes.clone(),
            Body::Filled(text) => Bytes::from(call.fill(text)),
        };
        let mut request = http::Request::new(http_body_util::Full::new(body));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }
}

fn parse_url(url: &str) -> Result<Uri, LoadError> {
    let wrong = |why: &str| LoadError::Url { url: url.to_owned(), why: why.to_owned() };
    let uri: Uri = url.parse().map_err(|why: http::uri::InvalidUri| wrong(&why.to_string()))?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => {
            return Err(wrong("TLS is not spoken here; put a proxy in front or use http"));
        }
        _ => return Err(wrong("allowed is e.g. http://127.0.0.1:8080/path")),
    }
    if uri.host().is_none_or(str::is_empty) {
        return Err(wrong("there is no host in it"));
    }
    Ok(uri)
}

fn parse_header(header: &str) -> Result<(HeaderName, HeaderValue), LoadError> {
    let wrong = |why: String| LoadError::Header { header: header.to_owned(), why };
    let (name, value) = header
        .split_once(':')
        .ok_or_else(|| wrong("allowed is e.g. `Content-Type: text/plain`".to_owned()))?;
    let name = name.trim().parse::<HeaderName>().map_err(|why| wrong(why.to_string()))?;
    let value = HeaderValue::from_str(value.trim()).map_err(|why| wrong(why.to_string()))?;
    Ok((name, value))
}

/// `_/actions/hello` for `hello`; `_` is the namespace of the key.
fn action_path(name: &str) -> Result<String, LoadError> {
    let is_plain = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_@.-".contains(&byte))
    };
    let (namespace, rest) = match name.strip_prefix('/') {
        Some(full) => full.split_once('/').unwrap_or((full, "")),
        None => ("_", name),
    };
    let parts: Vec<&str> = rest.split('/').collect();
    let fits = parts.len() <= 2 && parts.iter().copied().all(is_plain) && is_plain(namespace);
    if fits {
        Ok(format!("{namespace}/actions/{rest}"))
    } else {
        Err(LoadError::ActionName(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_with_a_body_is_posted_as_json() {
        let headers = ["X-Number: 7".to_owned()];
        let target =
            Target::url("http://127.0.0.1:8080/run", &headers, Some("{\"n\":{number}}")).unwrap();
        let request = target.request(&Placeholders { number: 3, ..Placeholders::default() });
        assert_eq!((request.method(), request.uri().path()), (&Method::POST, "/run"));
        assert_eq!(request.headers()["x-number"], "7");
        assert_eq!(request.headers()["host"], "127.0.0.1:8080");
        let get =
            Target::url("http://localhost/", &[], None).unwrap().request(&Placeholders::default());
        assert_eq!(get.method(), Method::GET);
    }

    #[test]
    fn an_action_is_invoked_with_its_key() {
        let credentials = Credentials::new("127.0.0.1:3233", "uuid:key").unwrap();
        let target = Target::action("/guest/package/hello", &credentials, "{}").unwrap();
        let request = target.request(&Placeholders::default());
        assert_eq!(
            request.uri().to_string(),
            "http://127.0.0.1:3233/api/v1/namespaces/guest/actions/package/hello?blocking=true&result=true"
        );
        assert_eq!(request.headers()["authorization"], "Basic dXVpZDprZXk=");
        assert_eq!(action_path("hello").unwrap(), "_/actions/hello");
    }

    #[test]
    fn what_cannot_be_called_is_refused_with_what_is_allowed() {
        let url = |text: &str| Target::url(text, &[], None).unwrap_err().to_string();
        assert!(url("https://host/").contains("TLS is not spoken here"));
        assert!(url("localhost:8080").contains("allowed is e.g."));
        assert!(url("not a url").starts_with("URL `not a url`"));
        let header = Target::url("http://h/", &["no colon".to_owned()], None).unwrap_err();
        assert!(header.to_string().contains("allowed is e.g. `Content-Type"));
        for name in ["", "a b", "a/b/c", "/ns", "/ns/", "a/../b/c", "a?b", "../x/y"] {
            assert!(action_path(name).is_err(), "{name}");
        }
    }
}
