//! Settings of the learning algorithms, as a file for `windfall train --settings` holds them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};
use windfall_rl::Kind;
use windfall_rl::toy::ENTRIES;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(changes) = toml::from_str::<Map<String, Value>>(text) else { return };
    for kind in Kind::ALL {
        let _ = ENTRIES[0].settings(kind, 30).with(&changes);
    }
});
