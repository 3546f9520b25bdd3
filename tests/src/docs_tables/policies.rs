//! The registry as tables.

use windfall_core::Seed;
use windfall_registry::{Assembled, PolicyEntry, REGISTRY};

use crate::architecture::finding::Finding;
use crate::architecture::repository::Repository;

/// The page about a policy, from the root of the repository.
pub(crate) fn page_of(policy: &str) -> String {
    // Beside `windfall-scaling`, the page of plain `windfall` says which of the two it is about.
    let page = if policy == "windfall" { "windfall-sizing" } else { policy };
    format!("docs/algorithms/{page}.md")
}

fn built(entry: &PolicyEntry) -> Assembled {
    let built = entry.assemble(&None, Seed::new(1));
    built.unwrap_or_else(|why| panic!("{} with its defaults: {why}", entry.name))
}

/// All policies for the reference.
pub(crate) fn all() -> String {
    let mut table = "| Policy | What it does | Decides at | Compared by default |\n\
                     |---|---|---|---|\n"
        .to_owned();
    for entry in REGISTRY {
        let PolicyEntry { name, summary, by_default, .. } = entry;
        let page = page_of(name).replace("docs/", "../");
        let by_default = if *by_default { "yes" } else { "no" };
        let points = decision_points(entry);
        table += &format!("| [`{name}`]({page}) | {summary} | {points} | {by_default} |\n");
    }
    table
}

/// `fixed` sizes for calls are what a policy has that decides at ticks alone.
fn decision_points(entry: &PolicyEntry) -> &'static str {
    let built = built(entry);
    let has_own_sizes = built.call.name() != "fixed" || entry.name == "fixed";
    match (has_own_sizes, built.tick.is_some()) {
        (true, true) => "calls and ticks",
        (true, false) => "calls",
        (false, _) => "ticks",
    }
}

/// Which rules stand between each policy and the platform; policies with the same rules share a row.
pub(crate) fn safeguards() -> String {
    let mut rows: Vec<(Vec<&str>, String, String)> = Vec::new();
    for entry in REGISTRY {
        let built = built(entry);
        let mut calls: Vec<&str> = built.call_safeguards.iter().map(|rule| rule.name()).collect();
        // The chain itself adds the last rule.
        calls.push("ceiling");
        let calls = listed(&calls);
        let ticks = match built.tick {
            Some(_) => listed(&built.tick_safeguards.names()),
            None => "no ticks".to_owned(),
        };
        match rows.iter_mut().find(|row| (&row.1, &row.2) == (&calls, &ticks)) {
            Some((names, ..)) => names.push(entry.name),
            None => rows.push((vec![entry.name], calls, ticks)),
        }
    }
    let mut table = "| Policy | Rules per call | Rules per tick |\n|---|---|---|\n".to_owned();
    for (names, calls, ticks) in rows {
        table += &format!("| {} | {calls} | {ticks} |\n", listed(&names));
    }
    table
}

/// Those that need a platform where every call has its own size.
pub(crate) fn sizing_single_calls() -> String {
    let names: Vec<&str> =
        REGISTRY.iter().filter(|entry| entry.sizes_calls).map(|entry| entry.name).collect();
    format!("{}\n", listed(&names))
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Policies that no page describes.
pub(crate) fn without_page(repository: &Repository) -> Vec<Finding> {
    let pages = REGISTRY.iter().map(|entry| (entry.name, page_of(entry.name)));
    pages
        .filter(|(_, page)| !repository.has(page))
        .map(|(name, page)| Finding {
            file: page,
            line: None,
            found: format!("policy `{name}` has no page"),
            allowed: "one page for each entry of the registry".to_owned(),
            remedy: "write where the idea is from, its settings, its command and where it loses",
        })
        .collect()
}
