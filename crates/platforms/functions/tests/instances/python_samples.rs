//! The applications in Python, in the real interpreter. Those whose packages are missing must say which.

use serde_json::{Value, json};
use windfall_functions::{Builtin, PythonSample, Runtime, python_samples};

use super::instance::{Instance, program};

/// Loads the sample and runs it once; nothing, with a sentence, where a package is missing.
fn answer(sample: &PythonSample, parameters: Value) -> Option<Value> {
    let instance = Instance::start(&program(Runtime::Python)?);
    let mut client = instance.connect();
    let (status, loaded) = client.init(sample.source);
    if status == 502 {
        let error = loaded["error"].as_str().unwrap();
        assert!(
            sample
                .packages
                .iter()
                .any(|package| error.ends_with(&format!("pip install {package}"))),
            "{}: {error}",
            sample.name
        );
        eprintln!("skipped: {}: {error}", sample.name);
        return None;
    }
    let (status, answer) = client.run(parameters);
    assert_eq!(status, 200, "{}: {answer}", sample.name);
    Some(answer)
}

#[test]
fn every_sample_runs_or_names_the_package_it_needs() {
    let sizes = [
        ("arithmetic", "million_steps", 1),
        ("dna-visualisation", "kilobases", 1),
        ("dynamic-html", "rows", 10),
        ("email", "mails", 10),
        ("gradient-descent", "samples", 5000),
        ("image-recognition", "pictures", 1),
        ("image-resize", "width", 600),
        ("merge-sort", "thousand_numbers", 1),
        ("nearest-neighbours", "points", 500),
        ("video-encode", "frames", 10),
    ];
    for (sample, (name, parameter, size)) in python_samples().iter().zip(sizes) {
        assert_eq!(sample.name, name);
        let Some(answer) = answer(sample, json!({ parameter: size })) else { continue };
        assert!(answer.is_object(), "{name}: {answer}");
    }
}

#[test]
fn arithmetic_has_the_same_answer_in_both_languages() {
    let parameters = json!({"million_steps": 1, "threads": 2});
    let sample = python_samples().iter().find(|sample| sample.name == "arithmetic").unwrap();
    let Some(python) = answer(sample, parameters.clone()) else { return };
    assert_eq!(Builtin::named("arithmetic").unwrap().run(&parameters), Ok(python));
}
