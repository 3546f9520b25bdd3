//! A frontier in the terminal: for people, for documents, for spreadsheets.

use std::fmt::Write;

use windfall_telemetry::document::Table;

use super::alone::over_alone;
use super::ratios::Ratio;
use super::tables::{alone_of, parameter, ratios_of, settings_of};
use super::{FrontierPoint, FrontierResult, Question};

/// The heading of each table, and the table; without rows there is none.
fn tables(
    question: Question,
    result: &FrontierResult,
    ratios: &[Ratio],
) -> impl Iterator<Item = (&'static str, Table)> {
    let all = [
        ("Every setting", settings_of(question, result)),
        ("Against the incumbents' lower envelope, seed by seed", ratios_of(question, ratios)),
        (
            "Both together over each alone, and over the best incumbents",
            alone_of(&over_alone(&result.points)),
        ),
    ];
    all.into_iter().filter(|(_, table)| !table.rows.is_empty())
}

/// The tables for people.
pub fn to_text(question: Question, result: &FrontierResult, ratios: &[Ratio]) -> String {
    let tables = tables(question, result, ratios);
    let text = tables.map(|(head, table)| format!("{head}:\n{}\n", aligned(&table)));
    text.collect::<String>() + &story(question, ratios)
}

/// The tables for a document.
pub fn to_markdown(question: Question, result: &FrontierResult, ratios: &[Ratio]) -> String {
    let tables = tables(question, result, ratios);
    let text = tables.map(|(head, table)| format!("{head}:\n\n{}\n", piped(&table)));
    text.collect::<String>() + &story(question, ratios)
}

/// Every run as a line, for a spreadsheet.
pub fn to_csv(points: &[FrontierPoint]) -> String {
    let mut text = "policy,dial,seed,calls,slow_share,slow_share_per_function,slowdown_p99,\
                    bounded_slowdown_p99,core_seconds,mib_seconds,instance_seconds,changes_per_hour\n"
        .to_owned();
    for point in points {
        let FrontierPoint { policy, parameter: value, seed, calls, .. } = point;
        let shares = [point.slow_share, point.slow_share_per_function];
        let tails = [point.slowdown_p99, point.bounded_slowdown_p99];
        let held = [point.core_seconds, point.mib_seconds, point.instance_seconds];
        let numbers = shares.into_iter().chain(tails).chain(held).chain([point.changes_per_hour]);
        let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
        // Names of families hold commas: `hybrid-histogram, further 600 s`.
        let _ = writeln!(
            text,
            "\"{policy}\",{},{seed},{calls},{}",
            parameter(*value),
            numbers.join(",")
        );
    }
    text
}

/// A table of Markdown, numbers to the right.
fn piped(table: &Table) -> String {
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let rule: Vec<&str> =
        (0..table.heads.len()).map(|n| if n == 0 { "---" } else { "---:" }).collect();
    let heads = line(table.heads.iter().map(String::as_str).collect()) + &line(rule);
    let rows =
        table.rows.iter().map(|row| line(row.iter().map(|cell| cell.text.as_str()).collect()));
    heads + &rows.collect::<String>()
}

/// Words under heads, each column as wide as its widest cell; the first one to the left, numbers to the right.
fn aligned(table: &Table) -> String {
    let heads = table.heads.iter().map(String::as_str).collect();
    let rows = table.rows.iter().map(|row| row.iter().map(|cell| cell.text.as_str()).collect());
    let lines: Vec<Vec<&str>> = std::iter::once(heads).chain(rows).collect();
    let wide = |place: usize| {
        lines.iter().filter_map(|line| line.get(place)).map(|cell| cell.len()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.heads.len()).map(wide).collect();
    let mut text = String::new();
    for line in lines {
        for (place, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let _ = match place {
                0 => write!(text, "{cell:width$}"),
                _ => write!(text, "  {cell:>width$}"),
            };
        }
        text.push('\n');
    }
    text
}

/// What came out, and where it holds: a ratio exists only where some incumbent is as good.
pub(super) fn story(question: Question, ratios: &[Ratio]) -> String {
    let (what, good) = match question {
        Question::Scaling | Question::Together { .. } => {
            ("MiB-seconds of the incumbents' envelope at equal slow share", "slow share")
        }
        Question::Sizing { .. } => {
            ("core-seconds of the incumbents' envelope at equal p99 slowdown", "p99 slowdown")
        }
    };
    let Some(first) = ratios.first() else {
        return "No family was set against the incumbents.".to_owned();
    };
    let of = question.ratio_columns()[0].of;
    let own: Vec<&Ratio> = ratios.iter().filter(|ratio| ratio.policy == first.policy).collect();
    let known: Vec<f64> = own.iter().filter_map(|ratio| of(ratio)).collect();
    let beyond: Vec<String> = own
        .iter()
        .filter(|ratio| of(ratio).is_none())
        .map(|ratio| parameter(ratio.price))
        .collect();
    if known.is_empty() {
        return format!("{} has a lower {good} than the incumbents ever get.", first.policy);
    }
    let low = known.iter().copied().fold(f64::INFINITY, f64::min);
    let high = known.iter().copied().fold(0.0, f64::max);
    let mut text = format!("{} needs {low:.3} to {high:.3} of the {what}.", first.policy);
    if !beyond.is_empty() {
        text += &format!(
            " That is said of the settings at which some incumbent gets there; at {} none has as low a {good}.",
            beyond.join(" and ")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::ratios::tests::point;
    use super::*;

    #[test]
    fn a_story_says_where_its_ratio_holds() {
        let ratio = |price, mib_seconds_at_equal_slow_share| Ratio {
            policy: "ours".to_owned(),
            price,
            mib_seconds_at_equal_slow_share,
            ..Ratio::default()
        };
        let text = story(Question::Scaling, &[ratio(3e-6, None), ratio(1e-5, Some(0.7))]);
        assert!(text.contains("0.700 to 0.700") && text.contains("at 3e-6 none"), "{text}");
        let never = story(Question::Scaling, &[ratio(3e-6, None)]);
        assert_eq!(never, "ours has a lower slow share than the incumbents ever get.");
    }

    fn result() -> FrontierResult {
        let points = ["keep-alive", "ours"].map(|policy| point(policy, 1, 100.0, 0.1)).to_vec();
        FrontierResult { points, oracle: Vec::new() }
    }

    #[test]
    fn a_spreadsheet_gets_a_line_for_every_run_with_as_many_cells_as_heads() {
        let text = to_csv(&result().points);
        let cells: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(cells, [12, 12, 12]);
        assert!(text.contains("\"ours\",100,1,1000000,0.1,"), "{text}");
    }

    #[test]
    fn a_document_gets_the_tables_that_have_rows() {
        let question = Question::Scaling;
        let text = to_markdown(question, &result(), &[]);
        assert!(text.contains("| ours at 100 | 10.000 |"), "{text}");
        assert!(!text.contains("Against") && !text.contains("Both together"), "{text}");
        let bars = |line: &str| line.matches('|').count();
        let table: Vec<usize> = text.lines().filter(|l| l.starts_with('|')).map(bars).collect();
        assert_eq!(table, [table[0]; 4]);
    }
}
