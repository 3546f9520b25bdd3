//! Every environment there is, by its id: what the command line and the Python package choose from.

use windfall_core::Seed;
use windfall_rl::{Entry, Split};

/// In the order they are listed in. A crate with environments has one line here.
const LISTS: [&[Entry]; 4] = [
    &windfall_papers::ece471::entries::ENTRIES,
    &windfall_gym::ENTRIES,
    &windfall_papers::knative_concurrency::environment::ENTRIES,
    &windfall_rl::toy::ENTRIES,
];

/// Environments in which every function has an agent, with what they are: the Python package makes them
/// (`windfall.parallel_env`), and `windfall reproduce simppo` plays them.
pub const MULTI_AGENT: [(&str, &str); 2] = [
    (windfall_gym::multi::ID, "functions on as many nodes as they need, one agent each"),
    (windfall_gym::shared_nodes::ID, "a fixed set of nodes that functions join, one agent each"),
];

/// Policies that need no training, by name, with their returns on the panel of a split and a seed.
pub type Rivals = fn(Split, Seed) -> Vec<(&'static str, Vec<f64>)>;

/// Where a trained policy stands beside classic ones.
const RIVALS: [(&str, Rivals); 3] = [
    ("windfall/Ece471-v0", |_, _| windfall_papers::ece471::baselines::rules()),
    ("windfall/Ece471Direction-v0", |_, _| windfall_papers::ece471::baselines::rules()),
    ("windfall/Scaling-v0", windfall_gym::rivals),
];

/// The classic policies of an environment, if there are some.
pub fn rivals(id: &str) -> Option<Rivals> {
    RIVALS.iter().find(|(own, _)| *own == id).map(|(_, rivals)| *rivals)
}

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    LISTS.into_iter().flatten()
}

/// No environment of one agent has this id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no environment `{id}` of one agent; there are {known}{hint}")]
pub struct UnknownEnvironment {
    /// The id that was asked for.
    pub id: String,
    /// The ids there are.
    pub known: String,
    /// What to do where the id means an environment of many agents.
    pub hint: String,
}

/// The one with this id.
pub fn find(id: &str) -> Result<&'static Entry, UnknownEnvironment> {
    let unknown = || {
        let known: Vec<&str> = all().map(|entry| entry.id).collect();
        let many = MULTI_AGENT.iter().find(|(own, _)| *own == id);
        let hint = many.map_or(String::new(), |(_, what)| {
            format!("; `{id}` ({what}) is made by `windfall.parallel_env` of the Python package")
        });
        UnknownEnvironment { id: id.to_owned(), known: known.join(", "), hint }
    };
    all().find(|entry| entry.id == id).ok_or_else(unknown)
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
    let many = find(windfall_gym::shared_nodes::ID).unwrap_err().to_string();
    assert!(many.contains("fixed set of nodes") && many.contains("parallel_env"), "{many}");
}
