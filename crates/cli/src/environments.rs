//! Every environment there is, by its id.

use anyhow::bail;
use windfall_rl::Entry;

/// In the order they are listed in. A crate with environments has one line here.
const LISTS: [&[Entry]; 2] =
    [&windfall_papers::ece471::entries::ENTRIES, &windfall_rl::toy::ENTRIES];

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static Entry> {
    LISTS.into_iter().flatten()
}

/// The one with this id.
pub(crate) fn find(id: &str) -> anyhow::Result<&'static Entry> {
    if let Some(entry) = all().find(|entry| entry.id == id) {
        return Ok(entry);
    }
    let known: Vec<&str> = all().map(|entry| entry.id).collect();
    bail!("there is no environment `{id}`; there are {}", known.join(", "))
}

#[test]
fn ids_are_unique_and_true() {
    for entry in all() {
        assert_eq!(entry.spec().id, entry.id);
        assert_eq!(all().filter(|other| other.id == entry.id).count(), 1);
        assert_eq!(find(entry.id).unwrap().id, entry.id);
    }
    assert!(find("windfall/None-v0").unwrap_err().to_string().contains("windfall/Ece471-v0"));
}
