//! Activation records: list, read, logs, result.

use std::collections::BTreeMap;

use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;

use super::ApiState;
use super::answer::{self, Answer, Refusal};
use super::asked::Own;
use super::pages::Page;
use crate::activation_id::ActivationId;
use crate::name::FullName;
use crate::runner::Runner;
use crate::store::RecordFilter;

pub(super) async fn list<R: Runner>(State(api): State<ApiState<R>>, Own(asked): Own) -> Answer {
    let shared = &api.shared;
    let query = asked.query();
    let page = Page::read(&query, "activations")?;
    let with_docs = query.flag("docs")?;
    if page.is_count && with_docs {
        return Err(Refusal::bad_request("The parameter 'docs' is not permitted with 'count'."));
    }
    let path = match query.text("name") {
        Some(name) => Some(FullName::in_namespace(&asked.namespace, name)?.path().to_owned()),
        None => None,
    };
    let filter = RecordFilter {
        namespace: asked.namespace.clone(),
        path,
        since: query.number("since")?,
        upto: query.number("upto")?,
        skip: page.skip,
        limit: page.limit,
    };
    if page.is_count {
        let count = shared.store.count(filter).await?;
        return json(&BTreeMap::from([("activations", count.saturating_sub(page.skip.into()))]));
    }
    let records = shared.store.records(filter).await?;
    if with_docs {
        // Each record is JSON already.
        let list = [b"[", records.join(&b","[..]).as_slice(), b"]"].concat();
        return Ok(answer::json_bytes(StatusCode::OK, list.into()));
    }
    let list: Vec<Fields<'_>> =
        records.iter().map(|record| summary(record)).collect::<Result<_, _>>()?;
    json(&list)
}

/// The fields of a record, not parsed: a result is any JSON a function wrote, nested as deep as it liked.
type Fields<'a> = BTreeMap<&'a str, &'a RawValue>;

/// As in lists: without result and logs.
fn summary(record: &[u8]) -> Result<Fields<'_>, Refusal> {
    let mut fields = parse(record)?;
    for left_out in ["response", "logs", "subject"] {
        fields.remove(left_out);
    }
    Ok(fields)
}

fn parse(record: &[u8]) -> Result<Fields<'_>, Refusal> {
    serde_json::from_slice(record).map_err(|why| {
        let message = format!("Resource is corrupted and cannot be read: {why}");
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    })
}

fn json(value: &impl Serialize) -> Answer {
    let text = serde_json::to_vec(value).expect("texts and JSON are always written to memory");
    Ok(answer::json_bytes(StatusCode::OK, text.into()))
}

/// The whole record, or `ID/logs` or `ID/result`.
pub(super) async fn read<R: Runner>(State(api): State<ApiState<R>>, Own(asked): Own) -> Answer {
    let (id, part) = asked.path.split_once('/').unwrap_or((&asked.path, ""));
    let id: ActivationId =
        id.parse().map_err(|_| Refusal::bad_request("The activation id is not valid."))?;
    let record = api.shared.store.record(&asked.namespace, id).await?;
    let record = record.ok_or_else(Refusal::not_found)?;
    if part.is_empty() {
        return Ok(answer::json_bytes(StatusCode::OK, record.into()));
    }
    let fields = parse(&record)?;
    match (part, fields.get("logs"), fields.get("response")) {
        ("logs", Some(logs), _) => json(&BTreeMap::from([("logs", logs)])),
        ("result", _, Some(response)) => json(response),
        _ => Err(Refusal::not_found()),
    }
}
