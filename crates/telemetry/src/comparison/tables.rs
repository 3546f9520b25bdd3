//! A comparison as text, Markdown and CSV. The text is at most 100 columns wide and needs no colour.

use std::fmt::Write;

use super::number::{percent, plural, short};
use super::{Aggregate, COST, Comparison, HEADLINE, Pair};
use crate::metric_table::METRICS;
use crate::statistics::Estimate;

/// A column of the tables.
struct Column {
    head: &'static str,
    /// On a terminal; 0 if only documents have room for it.
    width: usize,
}

const fn column(head: &'static str, width: usize) -> Column {
    Column { head, width }
}

/// Width of the column of policies.
const POLICY_WIDTH: usize = 20;
/// The metrics of [`HEADLINE`], in its order.
const COLUMNS: [Column; HEADLINE.len()] = [
    column("p99 slowdown [min..max]", 23),
    column("p99.9", 0),
    column("bounded", 7),
    column("RFET", 11),
    column("viol%", 6),
    column("harv%", 6),
    column("cold%", 6),
    column("OOM", 6),
    column("core-s", 7),
    column("held back", 0),
];

impl Comparison {
    /// The tables for a terminal.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for load in self.loads() {
            let seeds = self.at(load).map(|one| one.seeds.len()).max().unwrap_or(0);
            let calls = self.at(load).filter_map(|one| one.mean("calls")).next().unwrap_or(0.0);
            push_line(
                &mut text,
                &format!(
                    "load {load}, {}, {} calls each",
                    plural(seeds as u64, "seed"),
                    short(calls)
                ),
            );
            push_line(&mut text, &line("policy", &COLUMNS.map(|column| column.head.to_owned())));
            let rule = "-".repeat(98);
            push_line(&mut text, &rule);
            let mut was_reference = true;
            for aggregate in self.at(load) {
                if was_reference && !aggregate.is_reference {
                    push_line(&mut text, &rule);
                }
                was_reference = aggregate.is_reference;
                push_line(&mut text, &line(&policy_cell(aggregate), &self.cells(aggregate)));
            }
            self.push_pairs(&mut text, load);
            text.push('\n');
        }
        text.push_str(LEGEND);
        if let Some(note) = self.left_out_note() {
            text.push_str(&wrapped(&note, 98));
        }
        text
    }

    /// The tables for a document.
    pub fn to_markdown(&self) -> String {
        let mut text = String::new();
        for load in self.loads() {
            let seeds = self.at(load).map(|one| one.seeds.len()).max().unwrap_or(0);
            push_line(&mut text, &format!("### Load {load}, {}\n", plural(seeds as u64, "seed")));
            let heads = COLUMNS.map(|column| column.head).join(" | ");
            push_line(&mut text, &format!("| policy | {heads} |"));
            push_line(&mut text, &format!("|---{}|", "|---:".repeat(COLUMNS.len())));
            for aggregate in self.at(load) {
                let cells = self.cells(aggregate).map(|cell| match cell.strip_suffix('*') {
                    Some(best) => format!("**{best}**"),
                    None => cell.trim().to_owned(),
                });
                let policy = policy_cell(aggregate).replace('|', "\\|");
                push_line(&mut text, &format!("| {policy} | {} |", cells.join(" | ")));
            }
            text.push('\n');
        }
        text.push_str(
            "Bold is the best without the oracle. Slowdowns are geometric means over seeds; RFET has \
             its 95 % interval; core-s is core-seconds granted plus held back. n/a: no call to say it \
             of.\n",
        );
        if let Some(note) = self.left_out_note() {
            push_line(&mut text, &format!("\nRuns {}.", note.replace('|', "\\|")));
        }
        text
    }

    /// Every run with every metric, one per line.
    pub fn to_csv(&self) -> String {
        let mut text = String::from("policy,load,seed");
        for metric in METRICS {
            text.push(',');
            text.push_str(metric.key);
        }
        text.push('\n');
        for row in &self.rows {
            text.push_str(&csv_field(&row.policy));
            // Writing to a string cannot fail.
            let _ = write!(text, ",{},{}", row.load, row.seed);
            for metric in METRICS {
                let _ = write!(text, ",{}", (metric.read)(row));
            }
            text.push('\n');
        }
        text
    }

    fn cells(&self, aggregate: &Aggregate) -> [String; HEADLINE.len()] {
        HEADLINE.map(|key| {
            let Some(estimate) = aggregate.metrics.get(key) else { return "n/a ".to_owned() };
            let is_best =
                aggregate.is_eligible() && self.best(aggregate.load, key) == Some(estimate.mean);
            shown(key, estimate) + if is_best { "*" } else { " " }
        })
    }

    fn push_pairs(&self, text: &mut String, load: f64) {
        let rivals: Vec<&Aggregate> = self
            .at(load)
            .filter(|one| self.pair(load, &one.policy, "slowdown_p99").is_some())
            .collect();
        if rivals.is_empty() {
            return;
        }
        let head = format!("against {} on the same seeds", self.baseline);
        push_line(
            text,
            &format!("\n{head:<34} {:<32}{}", "p99 slowdown, wins-losses", "core-s held"),
        );
        for rival in rivals {
            let cell = |key| self.pair(load, &rival.policy, key).map(against).unwrap_or_default();
            push_line(
                text,
                &format!(
                    "  {:<32} {:<32}{}",
                    cut(&rival.policy, 32),
                    cell("slowdown_p99"),
                    cell(COST)
                ),
            );
        }
        self.push_ratios_over_functions(text, load);
    }
}

impl Comparison {
    /// The cost again, with functions drawn again and not only seeds.
    fn push_ratios_over_functions(&self, text: &mut String, load: f64) {
        let known: Vec<(&str, String)> = self
            .at(load)
            .filter_map(|one| {
                let ratio = self.pair(load, &one.policy, COST)?.over_functions?;
                let [middle, low, high] = [ratio.ratio, ratio.low, ratio.high].map(short);
                Some((one.policy.as_str(), format!("x{middle} [{low} {high}]")))
            })
            .collect();
        if known.is_empty() {
            return;
        }
        push_line(text, &format!("\n{:<34} core-s held", "the same, functions drawn again"));
        for (policy, ratio) in known {
            push_line(text, &format!("  {:<32} {ratio}", cut(policy, 32)));
        }
    }
}

fn policy_cell(aggregate: &Aggregate) -> String {
    let mark = if aggregate.is_reference { " (r)" } else { "" };
    format!("{}{mark}", aggregate.policy)
}

const LEGEND: &str = "\
(r) reference row   * best without the oracle   viol% harv% cold% in percent of calls
p99 slowdown: geometric mean over seeds; RFET: mean and 95 % interval
core-s: core-seconds held, that is granted plus held back for running calls
x0.50 [0.40 0.60]: ratio to the baseline with its 95 % interval
!: the interval of the difference leaves zero out   n/a: no call to say it of
";

fn shown(key: &str, estimate: &Estimate) -> String {
    let Estimate { mean, min, max, .. } = *estimate;
    match key {
        "slowdown_p99" if estimate.samples > 1 => {
            format!("{} [{}..{}]", short(mean), short(min), short(max))
        }
        "rfet_mean" if estimate.samples > 1 => format!("{mean:.3}±{:.2}", estimate.half_width()),
        "rfet_mean" => format!("{mean:.3}"),
        "violation_share" | "harvested_violation_share" | "cold_share" => percent(mean),
        _ => short(mean),
    }
}

/// `x0.50 [0.40 0.60] 5-0 !`
fn against(pair: &Pair) -> String {
    let ratio = match pair.outcome.ratio {
        Some(ratio) if ratio.samples > 1 => {
            format!("x{} [{} {}]", short(ratio.mean), short(ratio.low), short(ratio.high))
        }
        Some(ratio) => format!("x{}", short(ratio.mean)),
        None => "x n/a".to_owned(),
    };
    let mark = if pair.outcome.is_decided() { " !" } else { "" };
    format!("{ratio} {}-{}{mark}", pair.outcome.wins, pair.outcome.losses)
}

fn line(policy: &str, cells: &[String; HEADLINE.len()]) -> String {
    let mut text = format!("{:<POLICY_WIDTH$}", cut(policy, POLICY_WIDTH));
    for (cell, Column { width, .. }) in cells.iter().zip(COLUMNS).filter(|(_, one)| one.width > 0) {
        // Writing to a string cannot fail.
        let _ = write!(text, " {:>width$}", cut(cell, width));
    }
    text
}

/// `text` in lines of at most `width` where its words allow it.
fn wrapped(text: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            lines.push('\n');
            column = 0;
        } else if column > 0 {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += length;
    }
    lines + "\n"
}

fn cut(cell: &str, width: usize) -> String {
    if cell.chars().count() <= width {
        return cell.to_owned();
    }
    let kept: String = cell.chars().take(width - 1).collect();
    kept + "~"
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::row;
    use super::*;

    #[test]
    fn no_line_is_wider_than_a_hundred_columns_whatever_the_numbers() {
        let mut rows = Vec::new();
        for seed in 1..=3 {
            for policy in ["fixed", "a-policy-with-a-very-long-name-indeed-yes"] {
                let mut one = row(policy, 0.85, seed, 123_456.7 * seed as f64);
                one.oom_kills = 123_456_789;
                one.violation_share = 0.999_999;
                one.core_seconds_held = 987_654_321.0 / seed as f64;
                rows.push(one);
            }
        }
        let text = Comparison::new(rows, "fixed").to_text();
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
        }
    }

    #[test]
    fn csv_quotes_what_needs_it_and_has_a_column_for_every_metric() {
        let csv = Comparison::new(vec![row("a,\"b\"", 0.8, 1, 2.0)], "fixed").to_csv();
        let mut lines = csv.lines();
        let head = lines.next().unwrap();
        assert_eq!(head.split(',').count(), 3 + METRICS.len());
        assert!(lines.next().unwrap().starts_with("\"a,\"\"b\"\"\",0.8,1,1000,"));
    }

    #[test]
    fn markdown_marks_the_best_in_bold() {
        let rows = vec![row("fixed", 0.8, 1, 9.0), row("libra|x", 0.8, 1, 3.0)];
        let text = Comparison::new(rows, "fixed").to_markdown();
        assert!(text.contains("| libra\\|x | **3.00** |"), "{text}");
    }
}
