//! `windfall reproduce ece471`: the course's environment and the scores that can be computed exactly.

use clap::Args;
use serde_json::json;
use windfall_papers::ece471::baselines::{Golden, golden};
use windfall_telemetry::Document;
use windfall_telemetry::document::{Block, Section, Table};
use windfall_telemetry::report::ReportContext;

use super::Common;
use crate::output::command_line;

/// The course project's scaling environment, its algorithms and its rewards.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let golden = golden();
    let rows = rows(&golden);
    let lines: Vec<String> =
        rows.iter().map(|(name, score)| format!("{name:28} {score:>7.2}")).collect();
    let numbers = json!({ "golden": golden });
    arguments.common.deliver("ece471", &page(&rows), &lines.join("\n"), &numbers)
}

fn rows(golden: &Golden) -> [(&'static str, f64); 6] {
    [
        ("dynamic programming (exact)", golden.dp),
        ("greedy to the best count", golden.greedy),
        ("M/M/1 rule", golden.mm1),
        ("HPA 80 %", golden.hpa80),
        ("HPA 70 %", golden.hpa70),
        ("HPA 60 %", golden.hpa60),
    ]
}

fn page(rows: &[(&'static str, f64)]) -> Document {
    let mut table = Table::new(["policy", "return of 200 steps"]);
    table.rows.extend(
        rows.iter().map(|(name, score)| vec![(*name).into(), format!("{score:.2}").into()]),
    );
    Document {
        context: ReportContext {
            title: "ECE 471: scaling one function".to_owned(),
            command: command_line(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..ReportContext::default()
        },
        story: "Exact scores of the course's environment.".to_owned(),
        sections: vec![
            Section::new("Golden scores", "Means over arrival rates 1 to 8.")
                .with(Block::Table(table)),
        ],
        ..Document::default()
    }
}
