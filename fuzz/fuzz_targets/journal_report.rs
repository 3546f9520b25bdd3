//! Journals, to the metrics and the page of the run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windfall_telemetry::JournalReader;
use windfall_telemetry::report::journal_report;

fuzz_target!(|bytes: &[u8]| {
    let Ok(journal) = JournalReader::open(bytes) else { return };
    let _ = journal_report(journal, "fuzz");
});
