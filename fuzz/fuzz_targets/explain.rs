//! Journals, to the account of a call and of a tick.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windfall_core::CallId;
use windfall_telemetry::JournalReader;
use windfall_telemetry::explain::{Question, explain};

fuzz_target!(|bytes: &[u8]| {
    for question in [Question::Call(CallId(0)), Question::Tick(0)] {
        let Ok(journal) = JournalReader::open(bytes) else { return };
        if let Ok(explanation) = explain(journal, question) {
            let _ = explanation.to_text();
        }
    }
});
