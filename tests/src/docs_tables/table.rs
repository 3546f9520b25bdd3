//! Tables of Markdown pages, read back.

/// The rows of all tables of a page whose first heading is `first`, without headings.
pub(crate) fn rows(page: &str, first: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut is_inside = false;
    for line in page.lines() {
        let Some(cells) = cells(line) else {
            is_inside = false;
            continue;
        };
        if cells[0] == first {
            is_inside = true;
        } else if is_inside && !is_rule(&cells) {
            rows.push(cells);
        }
    }
    rows
}

fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(|cell| cell.trim().to_owned()).collect())
}

fn is_rule(cells: &[String]) -> bool {
    cells.iter().all(|cell| !cell.is_empty() && cell.chars().all(|c| c == '-' || c == ':'))
}

/// `a` and `b` of "`a`, `b`".
pub(crate) fn code_words(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn rows_are_found_under_their_heading() {
    let page = "| A | B |\n|---|---|\n| 1 | 2 |\n\n| C | D |\n|---|---|\n| 3 | 4 |\n";
    assert_eq!(rows(page, "C"), [["3", "4"]]);
    assert_eq!(code_words("`a`, `b`"), ["a", "b"]);
}
