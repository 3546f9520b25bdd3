//! Objects as YAML, for files that people read and `kubectl` applies. Strings that YAML could take for something else
//! are quoted as in JSON, which YAML understands.

use serde_json::Value;

/// `value` as one YAML document.
pub fn document(value: &Value) -> String {
    let mut text = String::new();
    write(value, 0, &mut text);
    text
}

fn write(value: &Value, depth: usize, text: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, inner) in map {
                indent(depth, text);
                text.push_str(&scalar(&Value::String(key.clone())));
                text.push(':');
                write_inner(inner, depth + 1, text);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for inner in list {
                indent(depth, text);
                text.push('-');
                write_item(inner, depth + 1, text);
            }
        }
        other => {
            indent(depth, text);
            text.push_str(&scalar(other));
            text.push('\n');
        }
    }
}

/// The value of a key: on the same line, or below and deeper.
fn write_inner(value: &Value, depth: usize, text: &mut String) {
    if is_nested(value) {
        text.push('\n');
        write(value, depth, text);
    } else {
        text.push(' ');
        text.push_str(&scalar(value));
        text.push('\n');
    }
}

/// An entry of a list: a map begins behind its dash.
fn write_item(value: &Value, depth: usize, text: &mut String) {
    if !is_nested(value) {
        return write_inner(value, depth, text);
    }
    let mut below = String::new();
    write(value, depth, &mut below);
    text.push(' ');
    text.push_str(below.trim_start());
}

fn is_nested(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => false,
    }
}

fn indent(depth: usize, text: &mut String) {
    text.extend(std::iter::repeat_n("  ", depth));
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(plain) if is_plain(plain) => plain.clone(),
        other => other.to_string(),
    }
}

/// Whether YAML reads `text` as a string without quotes.
fn is_plain(text: &str) -> bool {
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let first = text.chars().next().is_some_and(|first| first.is_ascii_alphabetic());
    let simple = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    first && text.chars().all(simple) && !words.contains(&text.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_maps_and_doubtful_strings_are_written() {
        let value = json!({"a": {"b": [1, "no", {"c": "x y", "d": []}], "e": {}}, "f": "1.5"});
        let expected =
            "a:\n  b:\n    - 1\n    - \"no\"\n    - c: \"x y\"\n      d: []\n  e: {}\nf: \"1.5\"\n";
        assert_eq!(document(&value), expected);
    }
}
