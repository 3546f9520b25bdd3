use serde_json::json;

use super::*;
use crate::toy::Corridor;

fn corridor() -> Box<dyn Environment> {
    Box::new(Corridor::new())
}

fn small(kind: Kind) -> AnySettings {
    let usual = AnySettings::usual(kind, corridor().spec(), 6);
    let changes = json!({ "steps": 64 });
    usual.with(changes.as_object().unwrap()).unwrap()
}

#[test]
fn every_algorithm_resumes_bit_for_bit_by_its_name() {
    for kind in Kind::ALL {
        let settings = small(kind);
        let start = || settings.start(&corridor, kind.environments(3), Seed::new(9), 1);
        let mut whole = start();
        (0..6).for_each(|_| drop(whole.iterate()));
        let mut first = start();
        (0..4).for_each(|_| drop(first.iterate()));
        let saved = first.checkpoint();
        assert_eq!(saved.environments(), kind.environments(3));
        let read = Checkpoint::from_bytes(&saved.to_bytes().unwrap()).unwrap();
        let mut second = resume(&read, &corridor, 1).unwrap();
        (0..2).for_each(|_| drop(second.iterate()));
        let (whole, resumed) = (whole.checkpoint(), second.checkpoint());
        assert_eq!(whole.to_bytes().unwrap(), resumed.to_bytes().unwrap(), "{}", kind.name());
    }
}

#[test]
fn settings_are_changed_by_name_and_refused_by_name_and_value() {
    let settings = small(Kind::Ppo);
    let with = |changes: Value| settings.with(changes.as_object().unwrap());
    let changed = with(json!({ "entropy": 0.5, "hidden": [8], "target_kl": 0.01 })).unwrap();
    let AnySettings::Ppo(changed) = changed else { panic!("still PPO") };
    assert_eq!(changed.entropy, Schedule::constant(0.5));
    assert_eq!((changed.hidden, changed.target_kl), (vec![8], Some(0.01)));
    let refused = |changes| with(changes).unwrap_err().to_string();
    assert!(refused(json!({ "entrop": 1 })).contains("`entrop`; there are"));
    assert_eq!(
        refused(json!({ "minibatch": 0 })),
        "setting `minibatch` is 0, allowed is 1 to 1000000"
    );
    assert_eq!(refused(json!({ "hidden": [8, 0] })), "setting `hidden` is 0, allowed is 1 to 4096");
    assert!(
        refused(json!({ "learning_rate": { "kind": "linear", "from": 1, "to": 0, "until": 0 } }))
            .contains("`until` is 0")
    );
    assert!(refused(json!({ "masks": 3 })).contains("do not read"));
}

#[test]
fn a_table_needs_levels_for_every_feature() {
    let with = |levels: Value| {
        let changes = json!({ "levels": levels });
        small(Kind::QLearning).with(changes.as_object().unwrap()).unwrap()
    };
    let spec = corridor().spec().clone();
    assert!(with(json!([5])).check_for(&spec).is_ok());
    assert!(with(json!([5, 5])).check_for(&spec).unwrap_err().to_string().contains("1 features"));
}
