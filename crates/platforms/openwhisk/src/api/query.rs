//! The part of a URL after the question mark.

use std::borrow::Cow;

use super::answer::Refusal;

/// Keys and values in order.
pub(super) struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Query<'a> {
    pub(super) fn new(raw: Option<&'a str>) -> Self {
        Self(form_urlencoded::parse(raw.unwrap_or_default().as_bytes()).collect())
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| &**value)
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// `true` or `false`; absent is false.
    pub(super) fn flag(&self, key: &str) -> Result<bool, Refusal> {
        match self.text(key) {
            None | Some("false" | "no" | "off" | "0") => Ok(false),
            Some("true" | "yes" | "on" | "1" | "") => Ok(true),
            Some(other) => Err(Refusal::bad_request(format!(
                "The query parameter '{key}' is '{}', allowed are true and false.",
                shown(other)
            ))),
        }
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<u64>, Refusal> {
        let Some(text) = self.text(key) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            Refusal::bad_request(format!(
                "The value '{}' is not an integer for {key}.",
                shown(text)
            ))
        })
    }
}

fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

/// Reads a query as every route does: for the fuzz target.
#[cfg(feature = "fuzzing")]
pub fn read_query(raw: &str) {
    let query = Query::new(Some(raw));
    let _ = (query.flag("blocking").is_ok(), query.number("limit").is_ok(), query.pairs().count());
    let _ = super::pages::Page::read(&query, "actions").is_ok();
}
