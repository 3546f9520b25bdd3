//! The dashboard's files, built into the program.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use super::answers::{Part, Refused};

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// Name, type, text.
const FILES: &[(&str, &str, &str)] = &[
    ("style.css", STYLE, include_str!("../../dashboard/style.css")),
    ("address.js", SCRIPT, include_str!("../../dashboard/address.js")),
    ("app.js", SCRIPT, include_str!("../../dashboard/app.js")),
    ("charts.js", SCRIPT, include_str!("../../dashboard/charts.js")),
    ("client.js", SCRIPT, include_str!("../../dashboard/client.js")),
    ("elements.js", SCRIPT, include_str!("../../dashboard/elements.js")),
    ("page-cluster.js", SCRIPT, include_str!("../../dashboard/page-cluster.js")),
    ("page-functions.js", SCRIPT, include_str!("../../dashboard/page-functions.js")),
    ("page-function.js", SCRIPT, include_str!("../../dashboard/page-function.js")),
    ("page-tape.js", SCRIPT, include_str!("../../dashboard/page-tape.js")),
    ("page-learning.js", SCRIPT, include_str!("../../dashboard/page-learning.js")),
    ("page-advice.js", SCRIPT, include_str!("../../dashboard/page-advice.js")),
];

pub(super) const OPENAPI: &str = include_str!("../../dashboard/openapi.json");

pub(super) async fn index() -> Response {
    ([(CONTENT_TYPE, HTML)], include_str!("../../dashboard/index.html")).into_response()
}

pub(super) async fn asset(Part(file): Part) -> Response {
    match FILES.iter().find(|(name, ..)| *name == file) {
        Some((_, kind, text)) => ([(CONTENT_TYPE, *kind)], *text).into_response(),
        None => {
            let name: String = file.chars().take(80).collect();
            let error = format!("the dashboard has no file `{name}`");
            Refused::new(StatusCode::NOT_FOUND, error).into_response()
        }
    }
}

pub(super) async fn openapi() -> Response {
    ([(CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}
