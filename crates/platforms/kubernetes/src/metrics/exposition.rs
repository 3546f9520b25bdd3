//! The text format of Prometheus: one sample per line.
//!
//! ```text
//!   kn_serving_invocation_duration_seconds_bucket{http_response_status_code="200",le="0.25"} 17 1760000000000
//!   └──────────────── name ─────────────────────┘└──────────── labels ─────────────────────┘ value and time
//! ```
//!
//! The bytes come from pods of any user, so nothing here can panic, and a line that is wrong costs that line alone.

use std::borrow::Cow;

/// Lines that are longer are skipped.
const LONGEST_LINE: usize = 64 << 10;
/// Labels beyond this make the line invalid.
const MOST_LABELS: usize = 128;

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line<'a> {
    /// The name of the metric.
    pub name: &'a str,
    /// Its labels in the order of the page.
    pub labels: Vec<(&'a str, Cow<'a, str>)>,
    /// The value.
    pub value: f64,
    /// When it was sampled, milliseconds since 1970; most pages leave it to the reader.
    pub millis: Option<u64>,
}

impl Line<'_> {
    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_ref())
    }

    /// The value of the first of these labels that is there: names differ between generations.
    pub fn any_label(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.label(name))
    }
}

/// All valid lines of a page, comments left out.
pub fn lines(page: &str) -> impl Iterator<Item = Line<'_>> {
    page.lines().filter_map(line)
}

/// One sample; nothing for a comment, an empty line or one that is wrong.
pub fn line(text: &str) -> Option<Line<'_>> {
    let text = text.trim();
    if text.is_empty() || text.starts_with('#') || text.len() > LONGEST_LINE {
        return None;
    }
    let end = text.find(|c: char| c == '{' || c.is_whitespace())?;
    let (name, rest) = text.split_at(end);
    if !is_name(name) {
        return None;
    }
    let rest = rest.trim_start();
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => labels(inside)?,
        None => (Vec::new(), rest),
    };
    let mut words = rest.split_whitespace();
    let value = number(words.next()?)?;
    let millis = words.next().and_then(|time| time.parse().ok());
    Some(Line { name, labels, value, millis })
}

fn is_name(name: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    !name.is_empty() && name.chars().all(part) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// Go writes infinities and no number in its own way, all of which Rust reads.
fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

type Labels<'a> = Vec<(&'a str, Cow<'a, str>)>;

/// Labels up to the closing brace, and what follows it.
fn labels(mut rest: &str) -> Option<(Labels<'_>, &str)> {
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix('}') {
            return Some((found, after));
        }
        let (name, after) = rest.split_once('=')?;
        let (value, after) = quoted(after.trim_start().strip_prefix('"')?)?;
        let name = name.trim();
        if !is_name(name) || found.len() >= MOST_LABELS {
            return None;
        }
        found.push((name, value));
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(next) => next,
            None if after.starts_with('}') => after,
            None => return None,
        };
    }
}

/// The text up to the closing quote without its escapes, and what follows.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let end = text.find(['"', '\\'])?;
    if text[end..].starts_with('"') {
        return Some((Cow::Borrowed(&text[..end]), &text[end + 1..]));
    }
    let mut plain = String::from(&text[..end]);
    let mut characters = text[end..].char_indices();
    while let Some((place, c)) = characters.next() {
        match c {
            '"' => return Some((Cow::Owned(plain), &text[end + place + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => plain.push('\n'),
                escaped => plain.push(escaped),
            },
            c => plain.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_labels_and_values_are_read() {
        let page = "# HELP a b\n# TYPE a counter\na_total 3\nb{c=\"d\", e=\"f \\\"g\\\"\\n\",} +Inf 17\n\nc NaN\n";
        let found: Vec<Line<'_>> = lines(page).collect();
        assert_eq!((found.len(), found[0].name, found[0].value), (3, "a_total", 3.0));
        assert_eq!(found[1].label("e"), Some("f \"g\"\n"));
        assert!(found[1].value.is_infinite() && found[2].value.is_nan());
    }

    #[test]
    fn a_wrong_line_costs_that_line_alone() {
        let page = "a{b=\"c} 1\n1a 2\na{b} 3\na\na{b=\"c\"x} 4\na{b=\"\\\nok 5\n";
        let found: Vec<&str> = lines(page).map(|line| line.name).collect();
        assert_eq!(found, ["ok"]);
    }

    proptest! {
        #[test]
        fn no_page_makes_it_panic(page in "[a-z{}=\",\\\\\\n 0-9.#é-]{0,200}") {
            prop_assert!(lines(&page).count() <= page.lines().count());
        }
    }
}
