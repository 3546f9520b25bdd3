//! Load held as people read it in a terminal, a document or a spreadsheet.

use std::fmt::Write;

use super::objective::{Binding, Clause, Objective, Service};
use super::search::Tried;
use super::summary::CapacitySummary;
use super::{CapacityResult, CapacityRow, FixedService};

const COLUMNS: usize = 10;
const HEADS: [&str; COLUMNS] = [
    "policy",
    "over-commit",
    "load held",
    "seeds",
    "over fixed",
    "over best incumbent",
    "95 %",
    "over best ordered",
    "of oracle",
    "binds",
];

fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"))
}

fn cells(one: &CapacitySummary) -> [String; COLUMNS] {
    let interval = match one.low.zip(one.high) {
        Some((low, high)) => format!("{low:.2}..{high:.2}"),
        None => "-".to_owned(),
    };
    [
        one.policy.clone(),
        format!("{}", one.best_over_commit),
        format!("{:.3}", one.load_held),
        format!("{}", one.seeds),
        ratio(one.relative_to_fixed),
        ratio(one.relative_to_best_incumbent),
        interval,
        ratio(one.relative_to_best_ordered_incumbent),
        ratio(one.share_of_peak_oracle),
        one.binds.clone(),
    ]
}

/// Worlds in order, each with its summaries.
pub(super) fn by_world(summaries: &[CapacitySummary]) -> Vec<&[CapacitySummary]> {
    summaries.chunk_by(|a, b| a.world == b.world).collect()
}

/// What came out, in a sentence for each world.
pub fn story(summaries: &[CapacitySummary]) -> String {
    let sentence = |of_world: &[CapacitySummary]| {
        let ours = of_world.iter().filter(|one| one.policy.starts_with("windfall"));
        let best = ours.max_by(|a, b| a.load_held.total_cmp(&b.load_held))?;
        let ratio = best.relative_to_best_incumbent?;
        let CapacitySummary { world, policy, load_held, .. } = best;
        Some(format!(
            "On {world}, {policy} holds a load of {load_held:.2}, {ratio:.2} times the best incumbent as published."
        ))
    };
    by_world(summaries).into_iter().filter_map(sentence).collect::<Vec<_>>().join(" ")
}

/// For a terminal: one table for each world.
pub fn to_text(summaries: &[CapacitySummary]) -> String {
    let mut text = String::new();
    for of_world in by_world(summaries) {
        let Some(first) = of_world.first() else { continue };
        let rows: Vec<[String; COLUMNS]> = of_world.iter().map(cells).collect();
        let width = |place: usize| {
            let widest = rows.iter().map(|row| row[place].len()).max().unwrap_or(0);
            widest.max(HEADS[place].len())
        };
        let mut line = |row: [&str; COLUMNS]| {
            for (place, cell) in row.iter().enumerate() {
                let width = width(place);
                let _ = match place {
                    0 => write!(text, "  {cell:<width$}"),
                    _ => write!(text, "  {cell:>width$}"),
                };
            }
            text.push('\n');
        };
        line([first.world.as_str(), "", "", "", "", "", "", "", "", ""]);
        line(HEADS);
        rows.iter().for_each(|row| line(std::array::from_fn(|place| row[place].as_str())));
        text.push('\n');
    }
    text
}

/// For documents: one table for each world.
pub fn to_markdown(summaries: &[CapacitySummary]) -> String {
    let mut text = String::new();
    for of_world in by_world(summaries) {
        let Some(first) = of_world.first() else { continue };
        let _ = writeln!(text, "### {}\n\n| {} |", first.world, HEADS.join(" | "));
        let _ = writeln!(text, "|---|{}", "---:|".repeat(HEADS.len() - 1));
        for one in of_world {
            let _ = writeln!(text, "| {} |", cells(one).join(" | "));
        }
        text.push('\n');
    }
    text
}

/// For spreadsheets: one line for each search.
pub fn to_csv(result: &CapacityResult) -> String {
    let mut text = "world,policy,over_commit,seed,load_held\n".to_owned();
    for CapacityRow { world, policy, over_commit, seed, load_held, .. } in &result.rows {
        let _ = writeln!(text, "{world},\"{policy}\",{over_commit},{seed},{load_held:.4}");
    }
    text
}

/// For spreadsheets: one line for each load that was tried, with what each clause measured over what it allows.
pub fn curves_to_csv(objective: &Objective, result: &CapacityResult) -> String {
    let clauses = Clause::ALL.map(Clause::name).join(",");
    let mut text = format!("world,policy,over_commit,seed,load,{clauses},breaks\n");
    for CapacityRow { world, policy, over_commit, seed, measured, .. } in &result.rows {
        let known = |one: &&FixedService| one.world == *world && one.seed == *seed;
        let fixed = result.fixed.iter().find(known);
        let kills = fixed.map_or(0.0, |one| Service::of(&one.functions, None).kills());
        for Tried { load, result } in measured {
            let service = Service::of(result, None);
            let _ = write!(text, "{world},\"{policy}\",{over_commit},{seed},{load:.4}");
            for (_, margin) in objective.margins(&service, kills) {
                let _ = write!(text, ",{margin:.4}");
            }
            let Binding { clause, margin } = objective.binding(&service, kills);
            let _ = writeln!(text, ",{}", if margin > 1.0 { clause.name() } else { "" });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summaries() -> Vec<CapacitySummary> {
        let one = |policy: &str, load_held: f64| CapacitySummary {
            world: "generated".into(),
            policy: policy.into(),
            best_over_commit: 1.5,
            load_held,
            relative_to_best_incumbent: Some(load_held),
            low: Some(0.9),
            high: Some(1.1),
            ..CapacitySummary::default()
        };
        vec![one("weights", 1.0), one("windfall-admission", 1.25)]
    }

    #[test]
    fn tables_have_a_cell_for_every_head() {
        let text = to_markdown(&summaries());
        let bars = |line: &str| line.matches('|').count();
        let table: Vec<usize> = text.lines().filter(|l| l.starts_with('|')).map(bars).collect();
        assert_eq!(table, [11; 4]);
        assert!(to_text(&summaries()).contains("0.90..1.10"), "{}", to_text(&summaries()));
    }

    #[test]
    fn the_story_names_the_best_of_ours() {
        assert!(story(&summaries()).contains("windfall-admission holds a load of 1.25"));
    }
}
