//! Licence expressions, as far as packages use them: names, AND, OR, WITH, brackets, and the old `/`
//! for OR.

/// Whether a user who accepts only `allowed` may use something under `expression`.
pub(crate) fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, allowed };
    // What cannot be read to its end is not allowed.
    reader.either().is_some_and(|verdict| verdict && reader.words.is_empty())
}

struct Reader<'a> {
    words: &'a [&'a str],
    allowed: &'a [&'a str],
}

impl<'a> Reader<'a> {
    fn either(&mut self) -> Option<bool> {
        let mut verdict = self.both()?;
        while self.takes("OR") {
            verdict |= self.both()?;
        }
        Some(verdict)
    }

    fn both(&mut self) -> Option<bool> {
        let mut verdict = self.one()?;
        while self.takes("AND") {
            verdict &= self.one()?;
        }
        Some(verdict)
    }

    fn one(&mut self) -> Option<bool> {
        if self.takes("(") {
            let verdict = self.either()?;
            return self.takes(")").then_some(verdict);
        }
        let name = self.next()?;
        if self.takes("WITH") {
            let whole = format!("{name} WITH {}", self.next()?);
            return Some(self.allowed.contains(&whole.as_str()));
        }
        Some(self.allowed.contains(&name))
    }

    fn next(&mut self) -> Option<&'a str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.words.first() == Some(&word);
        if is_next {
            self.words = &self.words[1..];
        }
        is_next
    }
}

#[test]
fn one_allowed_side_of_or_is_enough_and_and_needs_both() {
    let allowed = ["MIT", "Unicode-3.0"];
    for fine in ["MIT", "MIT OR GPL-3.0", "Apache-2.0/MIT", "(MIT OR Apache-2.0) AND Unicode-3.0"] {
        assert!(is_allowed(fine, &allowed), "{fine}");
    }
    for not in ["", "GPL-3.0", "MIT AND GPL-3.0", "MIT WITH x-exception", "(MIT", "MIT MIT"] {
        assert!(!is_allowed(not, &allowed), "{not}");
    }
    assert!(is_allowed("MIT WITH x-exception", &["MIT WITH x-exception"]));
}
