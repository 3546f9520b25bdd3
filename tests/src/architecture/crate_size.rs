//! How large crates are, without their tests. No parser is needed: formatted code closes an item with a
//! brace at the indentation of its first line.

use std::collections::BTreeMap;

use super::finding::Finding;
use super::repository::{Repository, TextFile};

/// Lines below `src` of a crate, comments included, tests left out.
const CRATE_LIMIT: usize = 12_000;

pub(crate) fn findings(repository: &Repository) -> Vec<Finding> {
    lines_per_crate(repository.rust_files())
        .into_iter()
        .filter(|(_, lines)| *lines > CRATE_LIMIT)
        .map(|(name, lines)| Finding {
            file: format!("crates/{name}"),
            line: None,
            found: format!("the crate has {lines} lines without its tests"),
            allowed: format!("{CRATE_LIMIT} lines"),
            remedy: "look for the second subject inside and give it a crate, with a decision record",
        })
        .collect()
}

/// By the name of the crate's folder.
fn lines_per_crate<'a>(files: impl Iterator<Item = &'a TextFile>) -> BTreeMap<String, usize> {
    let files: Vec<(&str, &TextFile)> =
        files.filter_map(|file| Some((crate_of(file)?, file))).collect();
    let only_tests: Vec<String> = files.iter().flat_map(|(_, file)| test_modules(file)).collect();
    let is_test = |file: &TextFile| {
        let module = file.path.trim_end_matches(".rs");
        only_tests.iter().any(|test| module == test || module.starts_with(&format!("{test}/")))
    };
    let mut lines = BTreeMap::new();
    for (name, file) in files.into_iter().filter(|(_, file)| !is_test(file)) {
        *lines.entry(name.to_owned()).or_default() += lines_without_tests(&file.text);
    }
    lines
}

/// The crate whose library or program a file belongs to; nothing for its tests and examples.
fn crate_of(file: &TextFile) -> Option<&str> {
    let path = file.path.strip_prefix("crates/")?;
    let (name, inside) = path.strip_prefix("platforms/").unwrap_or(path).split_once('/')?;
    inside.starts_with("src/").then_some(name)
}

/// Modules with a file of their own that `file` declares for tests only, as paths without ending.
fn test_modules(file: &TextFile) -> Vec<String> {
    let folder = file.path.trim_end_matches("/lib.rs").trim_end_matches("/main.rs");
    let folder = folder.trim_end_matches(".rs");
    let lines: Vec<&str> = file.text.lines().collect();
    let declared = lines.windows(2).filter(|pair| pair[0].trim() == "#[cfg(test)]");
    declared
        .filter_map(|pair| {
            let (_, name) = pair[1].strip_suffix(';')?.split_once("mod ")?;
            Some(format!("{folder}/{name}"))
        })
        .collect()
}

fn lines_without_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let (mut place, mut count) = (0, 0);
    while place < lines.len() {
        if matches!(lines[place].trim(), "#[cfg(test)]" | "#[test]") {
            place += item_length(&lines[place..]);
        } else {
            count += 1;
            place += 1;
        }
    }
    count
}

/// Lines of the item whose first attribute is the first of `lines`.
fn item_length(lines: &[&str]) -> usize {
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let indent = lines.first().map_or(0, |line| indentation(line));
    let is_last = |line: &&str| {
        indentation(line) == indent
            && !line.trim_start().starts_with("#[")
            && (line.ends_with(';') || line.ends_with('}'))
    };
    lines.iter().position(is_last).map_or(lines.len(), |place| place + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.into(), text: text.into() }
    }

    #[test]
    fn tests_are_left_out_wherever_they_are() {
        let files = [
            file("crates/a/src/lib.rs", "mod b;\n#[cfg(test)]\nmod story;\nfn c() {\n}\n"),
            file("crates/a/src/story.rs", "one\ntwo\n"),
            file("crates/a/src/story/more.rs", "three\n"),
            file(
                "crates/a/src/b.rs",
                "fn d() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn e() {\n    }\n}\n",
            ),
            file("crates/a/src/b/tests_of_life.rs", "fn f() {}\n"),
            file("crates/a/tests/all.rs", "fn g() {}\n"),
            file("crates/h/src/main.rs", "fn i() {}\n#[test]\nfn j() {\n}\nfn k() {}\n"),
        ];
        let lines = lines_per_crate(files.iter());
        assert_eq!(lines, BTreeMap::from([("a".to_owned(), 6), ("h".to_owned(), 2)]));
    }

    #[test]
    fn an_attribute_takes_its_whole_item_with_it() {
        assert_eq!(item_length(&["#[cfg(test)]", "use a::b;", "fn c() {}"]), 2);
        assert_eq!(
            item_length(&["#[test]", "#[should_panic]", "fn c() {", "    d();", "}", "x"]),
            5
        );
    }
}
