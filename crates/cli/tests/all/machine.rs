//! What `windfall doctor` says about this machine, whatever that is.

use super::program::{Place, root};

#[test]
fn every_capability_has_a_state_and_what_is_not_exact_a_fix() {
    let found = Place::new().run("doctor --format json", &[]).json();
    let capabilities = found["capabilities"].as_array().unwrap();
    let page = std::fs::read_to_string(root().join("docs/reference/machine.md")).unwrap();
    assert_eq!(capabilities.len(), 17);
    for capability in capabilities {
        let name = capability["name"].as_str().unwrap();
        assert!(page.contains(&format!("| `{name}` |")), "{name} is not on the page");
        match capability["state"].as_str().unwrap() {
            "exact" => assert!(capability["fix"].is_null(), "{capability}"),
            "emulated" | "absent" => {
                assert!(!capability["fix"].as_str().unwrap().is_empty(), "{capability}");
            }
            other => panic!("{name} is {other}"),
        }
    }
}

#[test]
fn people_read_the_same_as_scripts() {
    let place = Place::new();
    let text = place.run("doctor", &[]).done().stdout;
    let driver = place.run("doctor --format json", &[]).json()["driver"].clone();
    assert!(text.starts_with(&format!("cgroup driver: {}", driver.as_str().unwrap())), "{text}");
    assert!(text.contains("cpu-quota") && text.contains("isolation-sandbox"), "{text}");
}
