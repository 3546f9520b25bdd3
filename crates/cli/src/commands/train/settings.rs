//! Settings as they are typed: a file, single ones on top, and back into a file.

use std::path::Path;

use anyhow::{Context, bail};
use serde_json::{Map, Value};
use windfall_rl::AnySettings;

/// What a file and `--set` change, the latter last.
pub(super) fn changes(file: Option<&Path>, set: &[String]) -> anyhow::Result<Map<String, Value>> {
    let mut changes = Map::new();
    if let Some(path) = file {
        let name = path.display().to_string();
        let text =
            std::fs::read_to_string(path).with_context(|| format!("{name}: cannot be read"))?;
        changes = toml::from_str(&text).with_context(|| name)?;
    }
    for pair in set {
        let Some((key, value)) = pair.split_once('=') else {
            bail!("--set is `{pair}`, allowed is KEY=VALUE, e.g. entropy=0.02");
        };
        // A value as in the file; a bare word needs no quotes.
        let line = format!("value = {value}");
        let parsed = toml::from_str::<Map<String, Value>>(&line).ok();
        let parsed = parsed.and_then(|mut table| table.remove("value"));
        changes.insert(key.trim().to_owned(), parsed.unwrap_or_else(|| value.trim().into()));
    }
    Ok(changes)
}

/// All settings in the form that a file has.
pub(super) fn as_file(settings: &AnySettings) -> String {
    let all = serde_json::to_value(settings).unwrap_or_default();
    let lines = all.as_object().into_iter().flatten();
    let lines: Vec<String> = lines.map(|(key, value)| format!("{key} = {}", toml(value))).collect();
    lines.join("\n")
}

fn toml(value: &Value) -> String {
    match value {
        Value::Null => "\"none\"".to_owned(),
        Value::Number(number) if number.is_f64() => {
            // Settings are single precision: 0.01 and not 0.009999999776482582.
            #[expect(clippy::cast_possible_truncation, reason = "from f32, so nothing is lost")]
            let number = number.as_f64().unwrap_or_default() as f32;
            format!("{number:?}")
        }
        Value::Object(parts) => {
            let parts: Vec<String> =
                parts.iter().map(|(key, value)| format!("{key} = {}", toml(value))).collect();
            format!("{{ {} }}", parts.join(", "))
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_rl::Kind;
    use windfall_rl::toy::ENTRIES;

    #[test]
    fn what_is_shown_reads_back_as_the_same() {
        for kind in Kind::ALL {
            let settings = ENTRIES[0].settings(kind, 30);
            let read: Map<String, Value> = toml::from_str(&as_file(&settings)).unwrap();
            assert_eq!(settings.with(&read).unwrap(), settings);
        }
    }

    #[test]
    fn single_settings_are_numbers_lists_or_bare_words() {
        let set = ["hidden=[8, 8]", "entropy=0.5", "target_kl=none", "activation=relu"];
        let changes = changes(None, &set.map(str::to_owned)).unwrap();
        let AnySettings::Ppo(changed) = ENTRIES[0].settings(Kind::Ppo, 3).with(&changes).unwrap()
        else {
            panic!("still PPO");
        };
        assert_eq!((changed.hidden, changed.target_kl), (vec![8, 8], None));
        assert!(super::changes(None, &["entropy".to_owned()]).is_err());
    }
}
