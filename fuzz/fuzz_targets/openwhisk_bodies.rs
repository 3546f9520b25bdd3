//! Bodies of clients and answers of functions: actions, parameters, results.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;
use windfall_openwhisk::{Outcome, merge_parameters, read_action};

fuzz_target!(|bytes: &[u8]| {
    read_action(bytes);
    // What is passed on to a function is a JSON object, whatever came in.
    for bound in [false, true] {
        if let Some(merged) = merge_parameters(bound, bytes) {
            serde_json::from_slice::<IgnoredAny>(&merged).expect("JSON");
            assert!(merged.trim_ascii().starts_with(b"{"));
        }
    }
    match Outcome::of_run(200, bytes.to_vec().into()) {
        Outcome::Success(result) => assert_eq!(&result[..], bytes),
        Outcome::ApplicationError(result) => {
            serde_json::from_slice::<IgnoredAny>(&result).expect("JSON");
            assert!(result.starts_with(b"{\"error\":"));
        }
        Outcome::DeveloperError(_) | Outcome::SystemError(_) => {}
    }
    assert_eq!(Outcome::of_run(502, bytes.to_vec().into()).status_code(), 2);
});
