//! A report of any shape: sections of text, tables and charts that become one HTML page. Reproductions,
//! frontiers and training curves describe what they found; this is the only place that knows how it looks.
//!
//! ```text
//!  Document ─┬─ story: what came out, in one paragraph
//!            └─ Section ─┬─ Paragraph
//!                        ├─ Facts    name and value, large
//!                        ├─ Table    heads, rows; the best cell marked
//!                        └─ Charts   side by side; lines with bands, points with error bars
//! ```
//!
//! A series keeps its colour, shape and dash through all charts of a document, by its name.

use serde::Serialize;
use serde_json::{Value, json};

use crate::report::{ReportContext, page, rounded, signs};

/// A page: where its numbers come from, what came out, and the evidence.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// Heading, command, version, settings.
    pub context: ReportContext,
    /// One line under the heading, e.g. "10 seeds, 500 iterations".
    pub subtitle: String,
    /// What came out, in a paragraph.
    pub story: String,
    /// The evidence, in order.
    pub sections: Vec<Section>,
    /// Load the page anew this often: for work that is still going on.
    pub refresh_seconds: Option<u32>,
}

/// One card of the page.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Section {
    /// Its heading; also its link at the top.
    pub title: String,
    /// How to read it, in a sentence or two.
    pub lead: String,
    /// What it shows.
    pub blocks: Vec<Block>,
}

/// One piece of a section.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", content = "of", rename_all = "snake_case")]
pub enum Block {
    /// Plain text.
    Paragraph(String),
    /// A table.
    Table(Table),
    /// Charts side by side, two in a row.
    Charts(Vec<Chart>),
    /// Name and value, large.
    Facts(Vec<(String, String)>),
}

/// Rows under heads. The first cell of a row is its name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Table {
    /// One for each column.
    pub heads: Vec<String>,
    /// As many cells as heads each.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cell {
    /// What it says.
    pub text: String,
    /// A second line in small print, e.g. the spread.
    pub small: String,
    /// Whether it is the best of its column.
    pub best: bool,
    /// Whether it misses what it should reach.
    pub worse: bool,
}

/// A drawing of series over two axes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// What is drawn, in the order of the legend.
    pub series: Vec<Series>,
}

/// One axis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Axis {
    /// What is measured, with its unit.
    pub label: String,
    /// Equal ratios take equal space; values at or below zero are left out.
    pub log: bool,
    /// Whether it begins at zero.
    pub zero: bool,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SeriesStyle {
    /// A line; a band where points have a spread.
    #[default]
    Line,
    /// A thin dashed line: a bar to reach, a reference.
    Reference,
    /// Points with error bars, named in the drawing.
    Points,
    /// Points joined by a line, e.g. the settings of one policy along its parameter.
    Frontier,
}

/// Points that belong together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Series {
    /// The legend's word for it.
    pub name: String,
    /// How it is drawn.
    pub style: SeriesStyle,
    /// Where it goes.
    pub points: Vec<Point>,
}

/// One value, with its spread if it has one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// Across.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// Lowest and highest of `y`.
    pub spread: Option<(f64, f64)>,
    /// What to say beside the numbers, e.g. the setting.
    pub label: String,
}

impl Point {
    /// A bare value.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, ..Self::default() }
    }

    /// The same with the lowest and highest value seen.
    pub fn with_spread(self, low: f64, high: f64) -> Self {
        Self { spread: Some((low, high)), ..self }
    }

    /// The same with a word about it.
    pub fn with_label(self, label: impl Into<String>) -> Self {
        Self { label: label.into(), ..self }
    }
}

impl Serialize for Point {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut value = json!({ "x": rounded(self.x), "y": rounded(self.y) });
        if let Some((low, high)) = self.spread {
            value["y0"] = json!(rounded(low));
            value["y1"] = json!(rounded(high));
        }
        if !self.label.is_empty() {
            value["label"] = json!(self.label);
        }
        value.serialize(serializer)
    }
}

impl Series {
    /// A line through bare values.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().map(|(x, y)| Point::new(x, y)).collect();
        Self { name: name.into(), style: SeriesStyle::Line, points }
    }

    /// A level to reach, drawn from `from` to `to`.
    pub fn reference(name: impl Into<String>, level: f64, from: f64, to: f64) -> Self {
        let points = vec![Point::new(from, level), Point::new(to, level)];
        Self { name: name.into(), style: SeriesStyle::Reference, points }
    }
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), log: false, zero: false }
    }

    /// A linear axis from zero.
    pub fn from_zero(label: impl Into<String>) -> Self {
        Self { zero: true, ..Self::linear(label) }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>) -> Self {
        Self { log: true, ..Self::linear(label) }
    }
}

impl Table {
    /// A table with these heads and no rows yet.
    pub fn new<T: Into<String>>(heads: impl IntoIterator<Item = T>) -> Self {
        Self { heads: heads.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

impl Section {
    /// A section with nothing in it yet.
    pub fn new(title: impl Into<String>, lead: impl Into<String>) -> Self {
        Self { title: title.into(), lead: lead.into(), blocks: Vec::new() }
    }

    /// The same with one more block.
    #[must_use]
    pub fn with(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }
}

impl Document {
    /// The page, complete in itself.
    pub fn html(&self) -> String {
        let data = json!({
            "kind": "document", "metrics": [], "sections": self.sections, "palette": self.palette(),
            "command": self.context.command, "settings": self.context.settings,
            "refresh_seconds": self.refresh_seconds,
            "footer": format!("Windfall {}", self.context.version),
        });
        page(&self.context.title, &self.subtitle, &self.story, &data)
    }

    fn palette(&self) -> Value {
        let charts = self.sections.iter().flat_map(|section| &section.blocks).filter_map(|block| {
            let Block::Charts(charts) = block else { return None };
            Some(charts)
        });
        let mut names: Vec<&str> = Vec::new();
        for series in charts.flatten().flat_map(|chart| &chart.series) {
            if !names.contains(&series.name.as_str()) {
                names.push(&series.name);
            }
        }
        json!(signs(&names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Document {
        let lines = [
            Series::line("ppo", [(0.0, 1.0), (1.0, 2.0)]),
            Series::reference("optimum", 2.0, 0.0, 1.0),
        ];
        let chart = Chart { title: "reward".into(), series: lines.into(), ..Chart::default() };
        let mut table = Table::new(["policy", "score"]);
        table.rows.push(vec!["ppo".into(), Cell { best: true, ..Cell::from("2.0") }]);
        let section = Section::new("Scores </script>", "higher is better")
            .with(Block::Charts(vec![chart]))
            .with(Block::Table(table));
        Document { story: "It learned.".into(), sections: vec![section], ..Document::default() }
    }

    #[test]
    fn a_document_carries_its_sections_and_escapes_them() {
        let html = sample().html();
        assert!(html.contains("It learned.") && html.contains("\"ppo\""));
        assert_eq!(html.matches("</script").count(), 4);
    }

    #[test]
    fn every_series_has_a_sign_of_its_own() {
        let palette = sample().palette();
        assert!(palette["ppo"] != palette["optimum"]);
    }

    #[test]
    fn a_point_tells_its_spread_only_if_it_has_one() {
        assert_eq!(json!(Point::new(1.0, 2.0)), json!({ "x": 1.0, "y": 2.0 }));
        let spread = Point::new(1.0, 2.0).with_spread(1.5, 2.5).with_label("price 1e-5");
        assert_eq!(
            json!(spread),
            json!({ "x": 1.0, "y": 2.0, "y0": 1.5, "y1": 2.5, "label": "price 1e-5" })
        );
    }
}
