//! Names beside ids: a journal says once what its functions are called.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use windfall_core::{Allocation, FunctionId, FunctionProfile};

/// A function as the journal introduces it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedFunction {
    /// The id that records use.
    pub id: FunctionId,
    /// What it is called.
    pub name: String,
    /// What its user reserves.
    #[serde(default)]
    pub reservation: Allocation,
}

impl NamedFunction {
    /// `functions` with their ids, from `first` on.
    pub fn list(first: FunctionId, functions: &[FunctionProfile]) -> Vec<Self> {
        let named = |(id, function): (u32, &FunctionProfile)| Self {
            id: FunctionId(id),
            name: function.name.clone(),
            reservation: function.reservation,
        };
        (first.0..).zip(functions).map(named).collect()
    }
}

/// The names that a journal has introduced so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct FunctionNames(BTreeMap<FunctionId, String>);

impl FunctionNames {
    /// Takes in what a line introduces.
    pub fn add(&mut self, functions: &[NamedFunction]) {
        self.0.extend(functions.iter().map(|one| (one.id, one.name.clone())));
    }

    /// What `id` is called, if that was said.
    pub fn get(&self, id: FunctionId) -> Option<&str> {
        self.0.get(&id).map(String::as_str)
    }

    /// Whether nothing was introduced.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of `ids` alone.
    pub fn only(&self, ids: impl IntoIterator<Item = FunctionId>) -> Self {
        let named = |id| Some((id, self.get(id)?.to_owned()));
        Self(ids.into_iter().filter_map(named).collect())
    }

    /// All names in the order of ids; a function without one is called by its number.
    pub fn in_order(&self) -> Vec<String> {
        let Some((last, _)) = self.0.last_key_value() else { return Vec::new() };
        // A journal from outside may introduce the last id alone; a list up to there would not fit in memory.
        let count = last.index().min(self.0.len().saturating_mul(2)) + 1;
        let name =
            |id| self.get(FunctionId(id)).map_or_else(|| format!("function {id}"), str::to_owned);
        (0..count as u32).map(name).collect()
    }

    /// `id` with its name, for people: `3 (checkout)`, or `3` if it has none.
    pub fn show(&self, id: FunctionId) -> impl fmt::Display + '_ {
        Shown { id, name: self.get(id) }
    }
}

struct Shown<'a> {
    id: FunctionId,
    name: Option<&'a str>,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Some(name) => write!(f, "{} ({name})", self.id.0),
            None => write!(f, "{}", self.id.0),
        }
    }
}
