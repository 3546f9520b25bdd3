//! The lines of `windfall top`, drawn from the same data as its JSON.

use serde_json::Value;

use super::Order;

/// Steps of a sparkline, from nothing to the most.
const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How much room there is.
pub(super) struct Screen {
    pub(super) width: usize,
    pub(super) height: usize,
    /// The last line.
    pub(super) note: String,
}

impl Screen {
    /// All lines.
    pub(super) fn draw(&self, data: &Value, filter: &str, order: Order) -> String {
        let status = &data["status"];
        let mut lines = head(status);
        lines.push(String::new());
        lines.push(format!(
            "{:<28} {:<9} {:>7} {:<30} {:>8} {:>9} {:>9} {:>7} {:>7} {:<8}",
            "FUNCTION",
            "SLO",
            "BUDGET",
            "CALLS, 5 MIN",
            "CALLS",
            "P99",
            "OBJECTIVE",
            "HELD",
            "TRIPS",
            "MANAGED"
        ));
        let rows = data["functions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let room = self.height.saturating_sub(lines.len() + 1);
        lines.extend(rows.iter().take(room).map(row));
        if rows.is_empty() {
            lines.push(match filter.is_empty() {
                true => "no functions yet".to_owned(),
                false => format!("no function is called like `{filter}`"),
            });
        }
        if !self.note.is_empty() {
            lines.push(format!("{}   by {}", self.note, order.word()));
        }
        let cut = |line: &String| line.chars().take(self.width).collect::<String>();
        lines.iter().map(cut).collect::<Vec<_>>().join("\n")
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

fn millis(value: &Value) -> String {
    match value.as_f64() {
        None => "-".to_owned(),
        Some(ms) if ms >= 1000.0 => format!("{:.2} s", ms / 1000.0),
        Some(ms) => format!("{ms:.0} ms"),
    }
}

fn head(status: &Value) -> Vec<String> {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let (totals, point) = (&status["totals"], &status["point"]);
    let (reserved, held) =
        (number(&totals["core_seconds_reserved"]), number(&totals["core_seconds_held"]));
    let killed = if status["killed"] == true { "   KILL SWITCH ON" } else { "" };
    vec![
        format!(
            "windfall   {}   {}   mode {}   policy {}   up {:.0} s{killed}",
            text(&status["platform"]),
            text(&status["health"]),
            text(&status["mode"]),
            text(&status["policy"]),
            number(&status["now"]),
        ),
        format!(
            "cores      {:.1} used   {:.1} granted   {:.1} reserved   {:.1} harvested   {:.1} lent   of {:.1}",
            number(&point["used"]),
            number(&point["granted"]),
            number(&point["reserved"]),
            number(&point["harvested"]),
            number(&point["lent"]),
            number(&status["capacity_cores"]),
        ),
        format!(
            "calls      {}   {:.1}/s   p99 {}   objective met {:.2} %   saved {:.0} %   safeguards {}",
            totals["calls"],
            number(&point["calls_per_second"]),
            millis(&status["p99_ms"]),
            number(&status["objective_met_share"]) * 100.0,
            (1.0 - held / reserved.max(1e-9)) * 100.0,
            totals["safeguard_trips"],
        ),
    ]
}

fn row(function: &Value) -> String {
    let name: String = text(&function["name"]).chars().take(28).collect();
    let (reserved, held) =
        (function["core_seconds_reserved"].as_f64(), function["core_seconds_held"].as_f64());
    let share = reserved.zip(held).filter(|(reserved, _)| *reserved > 0.0);
    let share = share.map_or("-".to_owned(), |(all, held)| format!("{:.0} %", 100.0 * held / all));
    let calls = function["calls"].as_u64().unwrap_or(0);
    let budget = function["budget_left"].as_f64().filter(|_| calls > 0);
    let budget = budget.map_or("-".to_owned(), |left| format!("{:.0} %", left * 100.0));
    format!(
        "{name:<28} {:<9} {budget:>7} {:<30} {calls:>8} {:>9} {:>9} {share:>7} {:>7} {:<8}",
        text(&function["slo"]),
        sparkline(&function["spark"]),
        millis(&function["p99_ms"]),
        millis(&function["objective_ms"]),
        function["trips"].as_u64().unwrap_or(0),
        text(&function["standing"]["word"]),
    )
}

fn sparkline(counts: &Value) -> String {
    let counts: Vec<u64> = counts
        .as_array()
        .map(|all| all.iter().filter_map(Value::as_u64).collect())
        .unwrap_or_default();
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let step = |count: &u64| match count {
        0 => ' ',
        count => STEPS[((count * 7).div_ceil(most) as usize).min(7)],
    };
    counts.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_fits_its_columns_and_a_sparkline_its_range() {
        assert_eq!(sparkline(&json!([0, 1, 7])), " ▂█");
        let row = row(&json!({
            "name": "resize-image", "slo": "met", "budget_left": 0.8, "calls": 12, "spark": [1, 2],
            "p99_ms": 1234.0, "objective_ms": null, "core_seconds_reserved": 10.0,
            "core_seconds_held": 4.0, "trips": 3, "standing": { "word": "managed" },
        }));
        assert!(row.starts_with("resize-image ") && row.contains("1.23 s") && row.contains("40 %"));
    }
}
