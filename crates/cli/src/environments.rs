//! Every environment there is, by its id.

use anyhow::bail;
use windfall_core::Seed;
use windfall_rl::{Entry, Split};

/// In the order they are listed in. A crate with environments has one line here.
const LISTS: [&[Entry]; 3] = [
    &windfall_papers::ece471::entries::ENTRIES,
    &windfall_gym::ENTRIES,
    &windfall_rl::toy::ENTRIES,
];

/// Policies that need no training, by name, with their returns on the panel of a split and a seed.
pub(crate) type Rivals = fn(Split, Seed) -> Vec<(&'static str, Vec<f64>)>;

/// Where a trained policy stands beside classic ones.
const RIVALS: [(&str, Rivals); 3] = [
    ("windfall/Ece471-v0", |_, _| windfall_papers::ece471::baselines::rules()),
    ("windfall/Ece471Direction-v0", |_, _| windfall_papers::ece471::baselines::rules()),
    ("windfall/Scaling-v0", windfall_gym::rivals),
];

/// The classic policies of an environment, if there are some.
pub(crate) fn rivals(id: &str) -> Option<Rivals> {
    RIVALS.iter().find(|(own, _)| *own == id).map(|(_, rivals)| *rivals)
}

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
    assert!(RIVALS.iter().all(|(id, _)| find(id).is_ok()));
    assert!(find("windfall/None-v0").unwrap_err().to_string().contains("windfall/Ece471-v0"));
}
