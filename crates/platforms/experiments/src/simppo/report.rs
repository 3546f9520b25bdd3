//! Table and page of SIMPPO's agents on this machine.

use std::fmt::Write as _;

use windfall_studies::reproduce::Request;
use windfall_telemetry::Document;
use windfall_telemetry::document::{Block, Cell, Section, Table};

use super::{Row, SimppoOnKernel};

/// Each row beside its simulated one, in the order of the table.
fn pairs(found: &SimppoOnKernel) -> impl Iterator<Item = (&Row, &Row)> {
    found.kernel.iter().zip(&found.simulated)
}

pub(super) fn text(found: &SimppoOnKernel) -> String {
    let mut text = format!(
        "{:32} {:>7} {:>9} {:>9} {:>9} {:>6} {:>9} {:>6} {:>9} {:>11} {:>9}",
        "policy",
        "reward",
        "simulated",
        "SLO kept",
        "simulated",
        "late",
        "simulated",
        "CPU",
        "simulated",
        "core-s held",
        "simulated"
    );
    for (row, simulated) in pairs(found) {
        let _ = write!(
            text,
            "\n{:32} {:>7.2} {:>9.2} {:>9.3} {:>9.3} {:>4.1} % {:>7.1} % {:>6.2} {:>9.2} {:>11.0} {:>9.0}",
            row.policy,
            row.reward,
            simulated.reward,
            row.slo_preserved,
            simulated.slo_preserved,
            row.late_share * 100.0,
            simulated.late_share * 100.0,
            row.utilisation,
            simulated.utilisation,
            row.core_seconds,
            simulated.core_seconds,
        );
    }
    let _ = write!(text, "\n\n{}", story(found));
    text
}

fn story(found: &SimppoOnKernel) -> String {
    let settings = &found.settings;
    format!(
        "{} functions, one agent each, trained for {} episodes on windfall/MultiScaling-v1 (one node of 8 cores); {} episodes of {} \
         ticks of {} s on this machine, limits by {}, and the same calls in simulation. Reward: sum over an episode, mean of the \
         functions, at most {}. Load average at the end {:.1}.",
        settings.functions,
        settings.training,
        settings.episodes,
        settings.ticks,
        settings.tick_seconds,
        found.driver,
        settings.ticks,
        found.load_average,
    )
}

pub(super) fn page(request: &Request<'_>, found: &SimppoOnKernel) -> Document {
    let mut table = Table::new([
        "policy",
        "reward",
        "by episode",
        "SLO preservation",
        "late calls",
        "CPU utilisation",
        "core-seconds held",
    ]);
    let beside = |here: String, there: String| Cell {
        text: here,
        small: format!("simulated {there}"),
        ..Cell::default()
    };
    for (row, simulated) in pairs(found) {
        let episodes: Vec<String> = row.rewards.iter().map(|one| format!("{one:.1}")).collect();
        let both = |of: fn(&Row) -> f64, digits: usize, unit: &str| {
            let show = |row: &Row| format!("{:.digits$}{unit}", of(row));
            beside(show(row), show(simulated))
        };
        table.rows.push(vec![
            row.policy.as_str().into(),
            both(|row| row.reward, 2, ""),
            episodes.join(", ").into(),
            both(|row| row.slo_preserved, 3, ""),
            both(|row| row.late_share * 100.0, 1, " %"),
            both(|row| row.utilisation, 2, ""),
            both(|row| row.core_seconds, 0, ""),
        ]);
    }
    let lead = "A core of the environment is a quarter of a real one, time runs faster, memory is an eighth. Simulated: the same policy and \
                the same calls in windfall/MultiScaling-v1.";
    Document {
        context: request.context(
            "SIMPPO's agents on real processes",
            serde_json::to_value(found.settings).unwrap_or_default(),
        ),
        subtitle: format!("{} functions, limits by {}", found.settings.functions, found.driver),
        story: story(found),
        sections: vec![Section::new("On the kernel", lead).with(Block::Table(table))],
        ..Document::default()
    }
}
