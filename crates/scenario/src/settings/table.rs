//! A table of a scenario file, read key by key. Every problem is kept with its line, so that one look
//! at the file's messages mends all of it.

use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One thing that is wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line it stands on, counted from 1; none if it came from the command line.
    pub line: Option<usize>,
    /// What is wrong, with the value and what is allowed.
    pub message: String,
}

/// Everything that is wrong with a scenario, as it is found.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    pub(crate) found: Vec<Problem>,
}

impl Problems {
    pub(crate) fn add(&mut self, line: Option<usize>, message: String) {
        self.found.push(Problem { line, message });
    }
}

/// The line of a byte offset.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// A table from which keys are taken one by one; what is left over at the end is unknown.
pub(crate) struct Table<'t, 'i> {
    name: &'static str,
    text: &'t str,
    keys: Vec<(String, usize, Spanned<DeValue<'i>>)>,
    known: Vec<&'static str>,
}

impl<'t, 'i> Table<'t, 'i> {
    pub(crate) fn new(name: &'static str, text: &'t str, table: DeTable<'i>) -> Self {
        let keys = table
            .into_iter()
            .map(|(key, value)| (key.get_ref().to_string(), key.span().start, value))
            .collect();
        Self { name, text, keys, known: Vec::new() }
    }

    /// `cluster.node_cores`, or just `name` at the top.
    fn full(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    fn take(&mut self, key: &'static str) -> Option<(usize, DeValue<'i>)> {
        self.known.push(key);
        let place = self.keys.iter().position(|(name, ..)| name == key)?;
        let (_, start, value) = self.keys.remove(place);
        Some((line_of(self.text, start), value.into_inner()))
    }

    /// A part with a heading of its own.
    pub(crate) fn table(
        &mut self,
        key: &'static str,
        problems: &mut Problems,
    ) -> Option<Table<'t, 'i>> {
        let (line, value) = self.take(key)?;
        if let DeValue::Table(table) = value {
            return Some(Table::new(key, self.text, table));
        }
        let message = format!("{} is {}, allowed is a table", self.full(key), kind(&value));
        problems.add(Some(line), message);
        None
    }

    /// A table whose keys are not ours to know: each with its line.
    pub(crate) fn free_tables(
        &mut self,
        key: &'static str,
        problems: &mut Problems,
    ) -> Vec<(String, usize)> {
        let Some(inner) = self.table(key, problems) else { return Vec::new() };
        let text = self.text;
        inner.keys.into_iter().map(|(name, start, _)| (name, line_of(text, start))).collect()
    }

    pub(crate) fn number(
        &mut self,
        key: &'static str,
        allowed: RangeInclusive<f64>,
        problems: &mut Problems,
    ) -> Option<f64> {
        let (line, value) = self.take(key)?;
        let number = as_number(&value);
        match number.filter(|number| allowed.contains(number)) {
            Some(number) => Some(number),
            None => {
                let shown = shown(&value);
                let message =
                    format!("{} is {shown}, allowed is {}", self.full(key), range(&allowed));
                problems.add(Some(line), message);
                None
            }
        }
    }

    pub(crate) fn whole(
        &mut self,
        key: &'static str,
        allowed: RangeInclusive<u64>,
        problems: &mut Problems,
    ) -> Option<u64> {
        let (line, value) = self.take(key)?;
        let whole = match &value {
            DeValue::Integer(integer) => integer.as_str().replace('_', "").parse::<u64>().ok(),
            _ => None,
        };
        match whole.filter(|whole| allowed.contains(whole)) {
            Some(whole) => Some(whole),
            None => {
                let message = format!(
                    "{} is {}, allowed is a whole number from {} to {}",
                    self.full(key),
                    shown(&value),
                    allowed.start(),
                    allowed.end()
                );
                problems.add(Some(line), message);
                None
            }
        }
    }

    pub(crate) fn truth(&mut self, key: &'static str, problems: &mut Problems) -> Option<bool> {
        let (line, value) = self.take(key)?;
        if let DeValue::Boolean(truth) = value {
            return Some(truth);
        }
        let message = format!("{} is {}, allowed is true or false", self.full(key), shown(&value));
        problems.add(Some(line), message);
        None
    }

    pub(crate) fn text(&mut self, key: &'static str, problems: &mut Problems) -> Option<String> {
        let (line, value) = self.take(key)?;
        if let DeValue::String(text) = value {
            return Some(text.into_owned());
        }
        let message = format!("{} is {}, allowed is text", self.full(key), shown(&value));
        problems.add(Some(line), message);
        None
    }

    /// One of a few words.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        allowed: &[(&'static str, T)],
        problems: &mut Problems,
    ) -> Option<T> {
        let (line, value) = self.take(key)?;
        let chosen = match &value {
            DeValue::String(text) => allowed.iter().find(|(word, _)| word == text),
            _ => None,
        };
        if chosen.is_none() {
            let words: Vec<&str> = allowed.iter().map(|(word, _)| *word).collect();
            let message =
                format!("{} is {}, allowed is {}", self.full(key), shown(&value), words.join(", "));
            problems.add(Some(line), message);
        }
        chosen.map(|(_, meaning)| *meaning)
    }

    /// A list whose items are read one by one; an item that cannot be read is a problem.
    pub(crate) fn list<T>(
        &mut self,
        key: &'static str,
        allowed: &str,
        problems: &mut Problems,
        read: impl Fn(&DeValue<'_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let (line, value) = self.take(key)?;
        let DeValue::Array(items) = &value else {
            let message =
                format!("{} is {}, allowed is a list of {allowed}", self.full(key), shown(&value));
            problems.add(Some(line), message);
            return None;
        };
        let mut read_items = Vec::new();
        for item in items.iter() {
            match read(item.get_ref()) {
                Some(item) => read_items.push(item),
                None => problems.add(
                    Some(line_of(self.text, item.span().start)),
                    format!(
                        "{} holds {}, allowed is {allowed}",
                        self.full(key),
                        shown(item.get_ref())
                    ),
                ),
            }
        }
        if items.is_empty() {
            problems.add(Some(line), format!("{} is empty", self.full(key)));
        }
        Some(read_items)
    }

    /// The first item of a list that is text and not `known`, without taking the list.
    pub(crate) fn first_unknown(
        &self,
        key: &str,
        known: impl Fn(&DeValue<'_>) -> bool,
    ) -> Option<String> {
        let (_, _, value) = self.keys.iter().find(|(name, ..)| name == key)?;
        let items = value.get_ref().as_array()?;
        let unknown = items.iter().map(|item| item.get_ref()).find(|item| !known(item))?;
        unknown.as_str().map(str::to_owned)
    }

    /// Whatever was not asked for is unknown.
    pub(crate) fn finish(self, problems: &mut Problems) {
        for (key, start, _) in &self.keys {
            let near = nearest(key, &self.known)
                .map(|near| format!("; did you mean `{near}`?"))
                .unwrap_or_else(|| format!("; known here: {}", self.known.join(", ")));
            let message = format!("unknown key `{}`{near}", self.full(key));
            problems.add(Some(line_of(self.text, *start)), message);
        }
    }
}

/// The known word that differs in at most a third of its letters.
pub(crate) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let distance = |other: &&'k str| edit_distance(word, other);
    let best = known.iter().min_by_key(|other| distance(other))?;
    (distance(best) <= best.len().max(3) / 3).then_some(*best)
}

/// Letters to insert, remove or replace to turn one word into the other.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let replace = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// A number, whole or not; NaN and endless ones are none.
pub(crate) fn as_number(value: &DeValue<'_>) -> Option<f64> {
    let text = match value {
        DeValue::Integer(integer) => integer.as_str().replace('_', ""),
        DeValue::Float(float) => float.as_str().replace('_', ""),
        _ => return None,
    };
    text.parse::<f64>().ok().filter(|number| number.is_finite())
}

fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("\"{text}\""),
        DeValue::Integer(integer) => integer.to_string(),
        DeValue::Float(float) => float.to_string(),
        DeValue::Boolean(truth) => truth.to_string(),
        other => kind(other).to_owned(),
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn range(allowed: &RangeInclusive<f64>) -> String {
    if *allowed.end() == f64::MAX {
        format!("{} or more", allowed.start())
    } else {
        format!("{} to {}", allowed.start(), allowed.end())
    }
}
