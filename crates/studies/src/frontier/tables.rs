//! The tables of a frontier: every setting, ours against the envelope, and both together over each alone.

use windfall_core::statistics;
use windfall_telemetry::document::{Cell, Table};

use super::alone::OverAlone;
use super::ratios::Ratio;
use super::trades::RatioColumn;
use super::{FrontierPoint, FrontierResult, Interval, Question};

/// One setting, averaged over the seeds.
pub(super) struct Setting<'a> {
    pub(super) policy: &'a str,
    pub(super) parameter: f64,
    points: Vec<&'a FrontierPoint>,
}

impl Setting<'_> {
    pub(super) fn mean(&self, of: fn(&FrontierPoint) -> f64) -> f64 {
        statistics::mean(self.points.iter().map(|point| of(point))).unwrap_or(0.0)
    }

    pub(super) fn geometric_mean(&self, of: fn(&FrontierPoint) -> f64) -> f64 {
        let values = self.points.iter().map(|point| of(point));
        statistics::geometric_mean(values).unwrap_or(f64::NAN)
    }

    pub(super) fn is_incumbent(&self) -> bool {
        self.points.iter().all(|point| point.is_incumbent)
    }

    pub(super) fn range(&self, of: fn(&FrontierPoint) -> f64) -> Interval {
        Interval::covering(self.points.iter().map(|point| of(point)))
    }
}

pub(super) fn settings(result: &FrontierResult) -> Vec<Setting<'_>> {
    let mut settings: Vec<Setting<'_>> = Vec::new();
    for point in &result.points {
        let known = settings
            .iter_mut()
            .find(|setting| setting.policy == point.policy && setting.parameter == point.parameter);
        match known {
            Some(setting) => setting.points.push(point),
            None => settings.push(Setting {
                policy: &point.policy,
                parameter: point.parameter,
                points: vec![point],
            }),
        }
    }
    settings
}

/// A parameter as it is typed: prices in powers of ten.
pub fn parameter(value: f64) -> String {
    let is_small = value != 0.0 && value.abs() < 0.01;
    if is_small { format!("{value:e}") } else { value.to_string() }
}

/// A ratio, or that the incumbents never get there.
fn shown(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}"))
}

pub(super) fn ratios_of(question: Question, ratios: &[Ratio]) -> Table {
    let columns = question.ratio_columns();
    let heads = columns.iter().map(|column| column.head);
    let mut table = Table::new(["setting"].into_iter().chain(heads).chain(["seeds won"]));
    for ratio in ratios {
        let cell = |column: &RatioColumn| {
            let value = (column.of)(ratio);
            let worse = value.is_some_and(|value| value > column.fair);
            Cell { worse, ..Cell::from(shown(value)) }
        };
        let mut cells: Vec<Cell> = columns.iter().map(cell).collect();
        if let Some(Interval { low, high }) =
            ratio.bootstrap.filter(|_| question == Question::Scaling)
        {
            cells[0].small = format!("functions {low:.2} to {high:.2}");
        }
        let name = format!("{} at {}", ratio.policy, parameter(ratio.price));
        let won = format!("{} of {}", ratio.seeds_won, ratio.seeds);
        table.rows.push([name.into()].into_iter().chain(cells).chain([won.into()]).collect());
    }
    table
}

pub(super) fn alone_of(rows: &[OverAlone]) -> Table {
    let heads = rows.first().map_or(Vec::new(), |row| row.columns().map(|(head, _)| head).to_vec());
    let mut table = Table::new(["price", "over", ""].into_iter().chain(heads));
    for row in rows {
        let cells = row.columns().map(|(_, ratio)| {
            let Interval { low, high } = Interval::covering(&ratio.by_seed);
            Cell {
                small: format!("{low:.2} to {high:.2}"),
                worse: ratio.mean > 1.0,
                ..Cell::from(format!("{:.3}", ratio.mean))
            }
        });
        let names = [parameter(row.price).into(), row.what.into(), row.over.as_str().into()];
        table.rows.push(names.into_iter().chain(cells).collect());
    }
    table
}

pub(super) fn settings_of(question: Question, result: &FrontierResult) -> Table {
    let columns = question.setting_columns();
    let mut table = Table::new(["setting"].into_iter().chain(columns.iter().map(|c| c.head)));
    for setting in settings(result) {
        let name = format!("{} at {}", setting.policy, parameter(setting.parameter));
        let cells = columns.iter().map(|column| {
            let (value, decimals) = ((column.of)(&setting, result), column.decimals);
            Cell::from(format!("{value:.decimals$}"))
        });
        table.rows.push([name.into()].into_iter().chain(cells).collect());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_printed_as_they_are_typed() {
        let printed = [3e-6, 1e-4, 0.001, 0.3, 600.0, 0.0].map(parameter);
        assert_eq!(printed, ["3e-6", "1e-4", "1e-3", "0.3", "600", "0"]);
    }

    #[test]
    fn each_question_has_its_own_columns() {
        let heads = |question| ratios_of(question, &[]).heads.join(" | ");
        assert!(!heads(Question::Scaling).contains("core-s"));
        assert!(!heads(Question::Sizing { load: 0.8 }).contains("MiB-s"));
    }
}
