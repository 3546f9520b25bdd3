//! Renders a page with a table from records, as a template engine does.

use std::fmt::Write;

use rand::Rng;
use serde_json::{Value, json};
use windfall_core::{Allocation, Duration, Seed};

use crate::applications::splitting::split;
use crate::builtin::{Builtin, Invocation};
use crate::failure::Failure;
use crate::input::Input;

pub(crate) const DYNAMIC_HTML: Builtin = Builtin {
    name: "dynamic-html",
    published_as: Some("dh"),
    summary: "Renders a page with a table of random records.",
    reservation: Allocation::new(2000, 128),
    timeout: Duration::from_secs(60),
    // About 200 bytes a row: 100,000 rows need 20 MB.
    input: Some(Input { parameter: "rows", unit: "rows", default: 100_000, most: 5_000_000 }),
    threads: 8,
    uses_store: false,
    body: run,
};

/// Rows that are rendered together, from a stream of random numbers of their own.
const BLOCK: usize = 1000;

fn run(call: &Invocation) -> Result<Value, Failure> {
    let rows = call.size as usize;
    let user = call.parameters.get("user").and_then(Value::as_str).unwrap_or("<stranger>");
    let blocks = split(rows.div_ceil(BLOCK), call.threads, |range| {
        let block = |index: usize| render_rows(index, BLOCK.min(rows - index * BLOCK));
        range.map(block).collect::<Vec<_>>()
    });
    let head = format!("<!doctype html><title>For {}</title><table>", escaped(user));
    let mut digest = crc32fast::Hasher::new();
    let mut bytes = 0;
    let texts = blocks.iter().flatten().map(String::as_str);
    for text in std::iter::once(head.as_str()).chain(texts).chain(["</table>"]) {
        digest.update(text.as_bytes());
        bytes += text.len();
    }
    Ok(json!({ "rows": rows, "bytes": bytes, "digest": digest.finalize() }))
}

fn render_rows(block: usize, rows: usize) -> String {
    let mut generator = Seed::new(1).stream("dynamic-html").member(block as u64).generator();
    let mut page = String::with_capacity(rows * 200);
    for row in 0..rows {
        page.push_str("<tr><td>");
        let _ = write!(page, "{}", block * BLOCK + row);
        for _ in 0..8 {
            let number = generator.next_u32();
            page.push_str("</td><td>");
            // Characters that must be escaped, as in real text.
            page.push_str(&escaped(&format!("{} <{}> & \"x\"", number % 100_000, number % 97)));
        }
        page.push_str("</td></tr>");
    }
    page
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_cell() {
        assert_eq!(
            escaped("<b a='1'>\"&\"</b>"),
            "&lt;b a=&#39;1&#39;&gt;&quot;&amp;&quot;&lt;/b&gt;"
        );
        assert_eq!(escaped("plain \u{e9}"), "plain \u{e9}");
    }

    #[test]
    fn rows_are_numbered_across_blocks_and_complete() {
        let page = render_rows(2, 3);
        assert_eq!(page.matches("<tr>").count(), 3);
        assert_eq!(page.matches("</td>").count(), 27);
        assert!(page.starts_with("<tr><td>2000</td><td>") && page.contains("<td>2002</td>"));
    }

    #[test]
    fn the_name_changes_the_page() {
        let digest =
            |user| DYNAMIC_HTML.run(&json!({"rows": 5, "user": user})).unwrap()["digest"].clone();
        assert_ne!(digest("Ada"), digest("Bob"));
    }
}
