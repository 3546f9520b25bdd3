//! A comparison as text, Markdown and CSV. The text is at most 100 columns wide and needs no colour.

use std::fmt::Write;

use super::number::{percent, plural, short};
use super::{Aggregate, Comparison, HEADLINE, Pair};
use crate::metric_table::METRICS;
use crate::statistics::Estimate;

/// Column heads and widths; the first is the policy.
const COLUMNS: [(&str, usize); 9] = [
    ("policy", 20),
    ("p99 slowdown [min..max]", 23),
    ("bounded", 7),
    ("RFET", 11),
    ("viol%", 6),
    ("harv%", 6),
    ("cold%", 6),
    ("OOM", 6),
    ("core-s", 7),
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
            push_line(&mut text, &line(&COLUMNS.map(|(head, _)| head.to_owned())));
            let rule = "-".repeat(line(&COLUMNS.map(|_| String::new())).len().max(98));
            push_line(&mut text, &rule);
            let mut was_reference = true;
            for aggregate in self.at(load) {
                if was_reference && !aggregate.is_reference {
                    push_line(&mut text, &rule);
                }
                was_reference = aggregate.is_reference;
                push_line(&mut text, &line(&self.cells(aggregate)));
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
            push_line(&mut text, &format!("| {} |", COLUMNS.map(|(head, _)| head).join(" | ")));
            push_line(&mut text, "|---|---:|---:|---:|---:|---:|---:|---:|---:|");
            for aggregate in self.at(load) {
                let cells = self.cells(aggregate).map(|cell| match cell.strip_suffix('*') {
                    Some(best) => format!("**{best}**"),
                    // A policy's name must not break the table.
                    None => cell.trim().replace('|', "\\|"),
                });
                push_line(&mut text, &format!("| {} |", cells.join(" | ")));
            }
            text.push('\n');
        }
        text.push_str(
            "Bold is the best without the oracle. p99 slowdowns are geometric means over seeds; \
             RFET has its 95 % interval. n/a: no call to say it of.\n",
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

    fn cells(&self, aggregate: &Aggregate) -> [String; 9] {
        let mut cells = COLUMNS.map(|_| String::new());
        cells[0] = aggregate.policy.clone();
        if aggregate.is_reference {
            cells[0].push_str(" (r)");
        }
        for (cell, key) in cells.iter_mut().skip(1).zip(HEADLINE) {
            let Some(estimate) = aggregate.metrics.get(key) else {
                cell.push_str("n/a ");
                continue;
            };
            *cell = shown(key, estimate);
            let is_best =
                aggregate.is_eligible() && self.best(aggregate.load, key) == Some(estimate.mean);
            cell.push(if is_best { '*' } else { ' ' });
        }
        cells
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
            &format!("\n{head:<34} {:<32}{}", "p99 slowdown, wins-losses", "core-s granted"),
        );
        for rival in rivals {
            let cell = |key| self.pair(load, &rival.policy, key).map(against).unwrap_or_default();
            push_line(
                text,
                &format!(
                    "  {:<32} {:<32}{}",
                    cut(&rival.policy, 32),
                    cell("slowdown_p99"),
                    cell("core_seconds_granted")
                ),
            );
        }
    }
}

const LEGEND: &str = "\
(r) reference row   * best without the oracle   viol% harv% cold% in percent of calls
p99 slowdown: geometric mean over seeds; RFET: mean and 95 % interval
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

fn line(cells: &[String; 9]) -> String {
    let mut text = String::new();
    for (place, (cell, (_, width))) in cells.iter().zip(COLUMNS).enumerate() {
        let cell = cut(cell, width);
        if place == 0 {
            let _ = write!(text, "{cell:<width$}");
        } else {
            let _ = write!(text, " {cell:>width$}");
        }
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
                one.core_seconds_granted = 987_654_321.0 / seed as f64;
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
