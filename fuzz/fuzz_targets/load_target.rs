//! URLs, headers, bodies and names of actions that load is sent to.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windfall_load::{Credentials, Target};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (first, second) = text.split_once('\n').unwrap_or((text, ""));
    let _ = Target::url(first, &[second.to_owned()], Some(second));
    if let Ok(credentials) = Credentials::new("127.0.0.1:3233", second) {
        let _ = Target::action(first, &credentials, second);
    }
    if let Ok(credentials) = Credentials::new(first, "uuid:key") {
        let _ = Target::action("hello", &credentials, second);
    }
});
