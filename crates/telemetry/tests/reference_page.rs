//! The reference page of metrics says what the table in the code says.

use windfall_telemetry::METRICS;

#[test]
fn the_page_of_metrics_lists_the_table() {
    let page = include_str!("../../../docs/reference/metrics.md");
    let rows: String = METRICS
        .iter()
        .map(|metric| {
            let direction = metric.direction.words();
            format!("| `{}` | {} | {direction} | {} |\n", metric.key, metric.unit, metric.meaning)
        })
        .collect();
    let table = format!("| metric | unit | | meaning |\n|---|---|---|---|\n{rows}");
    assert!(page.contains(&table), "docs/reference/metrics.md should contain:\n{table}");
}
