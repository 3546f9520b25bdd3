//! The published table, its distributions and the agent's learning curve, as text and as a page.

use serde_json::{Value, json};
use windfall_core::statistics::{self, Interval};
use windfall_papers::faasrm::Origin;
use windfall_papers::faasrm::published::{Reproduction, Row, Score};
use windfall_telemetry::Document;
use windfall_telemetry::document::{Axis, Block, Cell, Chart, Point, Section, Series, Table};

use super::Request;
use super::honest::Honest;

/// The page with all its sections.
pub(super) fn document(
    request: &Request<'_>,
    published: &Reproduction,
    origin: Origin,
    honest: Option<&Honest>,
    sections: Vec<Section>,
) -> Document {
    let mut story = format!("{} {}", met(published, origin), learned(published));
    if let Some(honest) = honest {
        story += &format!(" {}", honest.headline());
    }
    Document {
        context: request.context("FaaSRM: reproduced, then honestly contested", Value::Null),
        subtitle: format!("{} calls, {}", published.calls, origin.label()),
        story,
        sections,
        ..Document::default()
    }
}

/// Rows for scripts.
pub(super) fn rows(published: &Reproduction) -> Vec<Value> {
    let row = |row: &Row| {
        let mut value = json!(row.summary);
        let own = json!({
            "policy": row.policy, "rfet_mean": row.rfet_mean, "p98_s": row.p98_s,
            "rfet_range": row.rfet_range, "p98_range": row.p98_range,
            "published_rfet": row.published.map(|score| score.rfet),
            "published_p98_s": row.published.map(|score| score.p98_s),
        });
        if let (Value::Object(value), Value::Object(own)) = (&mut value, own) {
            value.extend(own);
        }
        value
    };
    published.rows.iter().map(row).collect()
}

/// The table for people.
pub(super) fn text(published: &Reproduction, origin: Origin) -> String {
    let mut text = format!(
        "the paper's simulator, {} calls: {}\n\n{:18} {:>9} {:>6}   {:>9} {:>6}  {:>9} {:>9} {:>9} {:>9}\n",
        published.calls,
        origin.label(),
        "policy",
        "published",
        "P98 s",
        "RFET",
        "P98 s",
        "harvested",
        "faster",
        "safeguard",
        "worst"
    );
    for row in &published.rows {
        let (rfet, seconds) = match row.published {
            Some(Score { rfet, p98_s }) => (format!("{rfet:.2}"), format!("{p98_s:.0}")),
            None => ("-".to_owned(), "-".to_owned()),
        };
        let summary = &row.summary;
        text += &format!(
            "{:18} {rfet:>9} {seconds:>6}   {:>9.3} {:>6}  {:>7.1} % {:>7.1} % {:>7.1} % {:>7.1} %\n",
            row.policy,
            row.rfet_mean,
            whole(row.p98_s),
            summary.harvested_share * 100.0,
            summary.accelerated_share * 100.0,
            summary.safeguarded_share * 100.0,
            summary.worst_harvested_degradation * 100.0,
        );
    }
    format!("{text}\n{}\n", learned(published))
}

/// Without needless digits: 15 or 15.3.
fn whole(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

fn met(published: &Reproduction, origin: Origin) -> String {
    if origin == Origin::Generated {
        return "These calls were GENERATED, because the authors' sample is not at hand: no number here can \
                be set beside the paper's."
            .to_owned();
    }
    let score = |policy: &str| {
        published.row(policy).map_or_else(String::new, |row| {
            format!("{:.3} / {} s", row.rfet_mean, whole(row.p98_s))
        })
    };
    format!(
        "On the authors' own calls the published baselines are met: fixed {}, greedy {} (published 1.49 / 76), \
         ensure {} (published 0.91 / 48).",
        score("fixed"),
        score("greedy-2"),
        score("ensure"),
    )
}

/// What learning added, plainly.
fn learned(published: &Reproduction) -> String {
    let added = &published.added;
    let verdict = if added.rfet.abs() < 0.0015 && added.p98_s.abs() <= 1.0 {
        "nothing that differs from zero"
    } else if added.rfet > 0.0 {
        "a little"
    } else {
        "less than nothing"
    };
    format!(
        "What learning added there over a random choice inside the safeguard: {verdict} ({:+.4} mean RFET, {:+.1} s \
         of P98; an oracle would add {:.4}).",
        added.rfet, added.p98_s, added.rfet_possible
    )
}

/// The sections about the paper's simulator.
pub(super) fn sections(published: &Reproduction, origin: Origin) -> Vec<Section> {
    let about = format!(
        "Mean run time relative to the user's size (RFET) and the seconds within which 98 % of calls end, on {}. The \
         published agent cannot be run again, its checkpoint is not public; `faasrm` is an agent trained here with \
         the paper's settings. Random rows are means over seeds with their range.",
        origin.label()
    );
    vec![
        Section::new("The published table", about).with(Block::Table(table(published))),
        Section::new("What learning added", "The agent beside a coin behind the same safeguard.")
            .with(facts(published))
            .with(Block::Paragraph(learned(published)))
            .with(Block::Paragraph(WHY.to_owned()))
            .with(Block::Charts(curves(published))),
        Section::new(
            "Distributions",
            "Like the paper's figures: how long calls run, and how long relative to the user's size.",
        )
        .with(Block::Charts(distributions(published))),
    ]
}

const WHY: &str = "Why there is so little to learn: a function's demand never changes there, so that one finished call \
    tells everything, and the safeguard itself climbs until more does not help. Any choice it allows is about as \
    fast; choices differ in the cores they hold, which the paper does not count.";

fn facts(published: &Reproduction) -> Block {
    let fact = |name: &str, policy: &str| {
        let value = published.row(policy).map_or(f64::NAN, |row| row.rfet_mean);
        (name.to_owned(), format!("{value:.3}"))
    };
    Block::Facts(vec![
        fact("safeguard and a coin", "safeguard-random"),
        fact("safeguard and the trained agent", "faasrm"),
        fact("oracle", "oracle"),
        ("added by learning".to_owned(), format!("{:+.4}", published.added.rfet)),
    ])
}

fn table(published: &Reproduction) -> Table {
    let mut table = Table::new([
        "policy",
        "published RFET",
        "RFET",
        "published P98 s",
        "P98 s",
        "P98 RFET",
        "worst RFET",
        "harvested",
        "ran faster",
        "safeguarded",
        "worst harvested",
        "core-s granted",
        "busy cores, most",
    ]);
    let share = |share: f64| Cell::from(format!("{:.1} %", share * 100.0));
    let spread = |text: String, Interval { low, high }: Interval, digits: usize| Cell {
        small: if low == high {
            String::new()
        } else {
            format!("{low:.digits$} to {high:.digits$}")
        },
        ..Cell::from(text)
    };
    for row in &published.rows {
        let said = |value: Option<f64>, digits: usize| {
            Cell::from(value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}")))
        };
        let summary = &row.summary;
        table.rows.push(vec![
            row.policy.into(),
            said(row.published.map(|score| score.rfet), 2),
            spread(format!("{:.3}", row.rfet_mean), row.rfet_range, 4),
            said(row.published.map(|score| score.p98_s), 0),
            spread(whole(row.p98_s), row.p98_range, 0),
            format!("{:.2}", summary.rfet_p98).into(),
            format!("{:.1}", summary.rfet_max).into(),
            share(summary.harvested_share),
            share(summary.accelerated_share),
            share(summary.safeguarded_share),
            format!("{:+.1} %", summary.worst_harvested_degradation * 100.0).into(),
            format!("{:.0}", summary.core_seconds).into(),
            format!("{:.0}", summary.busy_cores_max).into(),
        ]);
    }
    table
}

/// The learning curve: each episode is another workload, so the agent is shown beside a coin on the same calls.
fn curves(published: &Reproduction) -> Vec<Chart> {
    let episodes = published.curves.first().map_or(0, |(_, curve)| curve.len());
    let mean = |of: fn(&windfall_papers::faasrm::paper_agent::Episode) -> f64, place: usize| {
        let values: Vec<f64> =
            published.curves.iter().filter_map(|(_, curve)| curve.get(place).map(of)).collect();
        let Interval { low, high } = Interval::covering(&values);
        let mean = statistics::mean(&values).unwrap_or(0.0);
        Point::new(place as f64 + 1.0, mean).with_spread(low, high)
    };
    let line = |name: &str, of: fn(&windfall_papers::faasrm::paper_agent::Episode) -> f64| Series {
        name: name.to_owned(),
        points: (0..episodes).map(|place| mean(of, place)).collect(),
        ..Series::default()
    };
    vec![
        Chart {
            title: "RFET less that of a coin on the same calls: below zero, learning helps"
                .to_owned(),
            x: Axis::linear("episode"),
            y: Axis::linear("difference of mean RFET"),
            series: vec![
                line("faasrm", |episode| episode.rfet - episode.random_rfet),
                Series::reference("safeguard-random", 0.0, 1.0, episodes as f64),
            ],
        },
        Chart {
            title: "Entropy of the agent's choices".to_owned(),
            x: Axis::linear("episode"),
            y: Axis::from_zero("nats"),
            series: vec![line("faasrm", |episode| episode.entropy)],
        },
    ]
}

fn distributions(published: &Reproduction) -> Vec<Chart> {
    let shown = ["fixed", "greedy-2", "ensure", "safeguard-random", "faasrm", "oracle"];
    let series = |of: fn(&Row) -> &[(f64, f64)]| {
        let rows = shown.iter().filter_map(|policy| published.row(policy));
        rows.map(|row| Series::line(row.policy, of(row).iter().copied())).collect()
    };
    let chart = |title: &str, label: &str, series: Vec<Series>| Chart {
        title: title.to_owned(),
        x: Axis::log(label),
        y: Axis::linear("share of calls"),
        series,
    };
    vec![
        chart("Run time", "seconds", series(|row| &row.seconds_cdf)),
        chart("Run time over the user's size", "RFET", series(|row| &row.rfet_cdf)),
    ]
}
