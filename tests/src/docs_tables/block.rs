//! A part of a page that code writes.
//!
//! ```text
//!  <!-- generated: policies -->
//!  ...
//!  <!-- end -->
//! ```

use std::fs;

use crate::root;

const END: &str = "<!-- end -->";

/// Whether pages may be rewritten.
fn is_blessing() -> bool {
    std::env::var_os("WINDFALL_BLESS").is_some_and(|value| value == "1")
}

/// The block `name` of `page` must hold `wanted`; with leave from `cargo xtask bless` it is rewritten.
#[track_caller]
pub(crate) fn compare(page: &str, name: &str, wanted: &str) {
    let path = root().join(page);
    let text = fs::read_to_string(&path).unwrap_or_else(|why| panic!("{page}: {why}"));
    let Some((before, found, after)) = split(&text, name) else {
        panic!("{page} has no block `<!-- generated: {name} -->` that ends with `{END}`; add one");
    };
    if found == wanted {
        return;
    }
    if is_blessing() {
        fs::write(&path, format!("{before}{wanted}{after}")).expect("a page can be written");
        return;
    }
    let is_missing = |line: &&str| !found.lines().any(|other| other == *line);
    let first = wanted.lines().find(is_missing).unwrap_or("(lines are left over)");
    panic!(
        "the block `{name}` of {page} is not what the code says, first\n  {first}\nrun \
         `cargo xtask bless` and review the difference"
    );
}

/// What stands before, in and after a block, the markers outside.
fn split<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let marker = format!("<!-- generated: {name} -->\n");
    let begin = text.find(&marker)? + marker.len();
    let end = begin + text[begin..].find(END)?;
    Some((&text[..begin], &text[begin..end], &text[end..]))
}

#[test]
fn a_block_is_what_stands_between_its_markers() {
    let page = "a\n<!-- generated: b -->\nc\n<!-- end -->\nd\n";
    let (before, found, after) = split(page, "b").expect("it is there");
    assert_eq!(found, "c\n");
    assert_eq!([before, found, after].concat(), page);
    assert!(split(page, "e").is_none());
}
