//! One kind of object as a watch shows it. While a watch lists anew, what was known stays in place; when the list is
//! complete, what it did not contain is gone.

use std::collections::{BTreeMap, BTreeSet};

use super::Key;

/// Objects of one kind in the order of their keys.
#[derive(Debug)]
pub struct Table<T> {
    entries: BTreeMap<Key, T>,
    /// Keys of the list that is being read.
    listed: Option<BTreeSet<Key>>,
    is_complete: bool,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), listed: None, is_complete: false }
    }
}

impl<T> Table<T> {
    /// A new list begins.
    pub fn begin_list(&mut self) {
        self.listed = Some(BTreeSet::new());
    }

    /// An object exists, new or changed.
    pub fn put(&mut self, key: Key, entry: T) {
        if let Some(listed) = &mut self.listed {
            listed.insert(key.clone());
        }
        self.entries.insert(key, entry);
    }

    /// An object is gone.
    pub fn remove(&mut self, key: &Key) {
        self.entries.remove(key);
    }

    /// The list is complete.
    pub fn end_list(&mut self) {
        if let Some(listed) = self.listed.take() {
            self.entries.retain(|key, _| listed.contains(key));
        }
        self.is_complete = true;
    }

    /// Whether a list has ever been complete.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// An object by its key.
    pub fn get(&self, key: &Key) -> Option<&T> {
        self.entries.get(key)
    }

    /// An object with its key as the table holds it.
    pub fn entry(&self, key: &Key) -> Option<(&Key, &T)> {
        self.entries.get_key_value(key)
    }

    /// All objects from `first` on.
    pub fn from(&self, first: &Key) -> impl Iterator<Item = (&Key, &T)> {
        self.entries.range(first.clone()..)
    }

    /// All objects.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &T)> {
        self.entries.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_list_drops_what_it_does_not_contain_only_when_it_is_complete() {
        let mut table = Table::default();
        let key = |name: &str| Key::new("a", name);
        table.begin_list();
        table.put(key("x"), 1);
        table.put(key("y"), 2);
        assert!(!table.is_complete());
        table.end_list();
        table.begin_list();
        table.put(key("y"), 3);
        assert_eq!((table.len(), table.is_complete()), (2, true));
        table.end_list();
        assert_eq!(table.iter().collect::<Vec<_>>(), [(&key("y"), &3)]);
    }
}
