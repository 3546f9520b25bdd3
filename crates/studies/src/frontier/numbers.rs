//! A frontier as scripts read it.

use std::path::Path;

use serde::Serialize;

use super::alone::{OverAlone, over_alone};
use super::ratios::Ratio;
use super::{FrontierPoint, FrontierResult, OraclePoint};

/// The keys of `results.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Numbers<'a> {
    world: &'a str,
    points: &'a [FrontierPoint],
    ratios: &'a [Ratio],
    /// Both decision points together over each alone; empty where only one is asked for.
    alone: Vec<OverAlone>,
    oracle: &'a [OraclePoint],
    report: String,
}

impl<'a> Numbers<'a> {
    /// The numbers of a frontier in `world`, whose page is at `report`.
    pub fn new(
        world: &'a str,
        result: &'a FrontierResult,
        ratios: &'a [Ratio],
        report: &Path,
    ) -> Self {
        Self {
            world,
            points: &result.points,
            ratios,
            alone: over_alone(&result.points),
            oracle: &result.oracle,
            report: report.display().to_string(),
        }
    }
}
