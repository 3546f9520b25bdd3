//! `results.json` of a comparison, to the page and the tables that are made from it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windfall_telemetry::Comparison;
use windfall_telemetry::report::{ComparisonResults, comparison_report};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(results) = ComparisonResults::from_json(text) else { return };
    let comparison = Comparison::new(results.rows, "fixed");
    let page = comparison_report(&results.context, &comparison, &results.details);
    assert!(page.ends_with("</html>\n"));
    let _ = (comparison.to_text(), comparison.to_csv(), comparison.to_markdown());
});
