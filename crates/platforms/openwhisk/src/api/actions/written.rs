//! An action as a client writes it: everything may be missing, everything may be wrong.

use std::time::Duration;

use serde::Deserialize;
use windfall_core::Mebibytes;

use crate::action::{Action, ActionLimits, Code, Exec, SEQUENCE_KIND};
use crate::api::answer::Refusal;
use crate::api::collection::kept;
use crate::key_values::KeyValues;
use crate::name::{EntityName, FullName};
use crate::settings::{ApiSettings, Bounds};
use crate::version::Version;

/// The first characters of a ZIP archive in base64.
const ZIP_IN_BASE64: &str = "UEsDB";

#[derive(Debug, Default, Deserialize)]
pub(super) struct WrittenAction {
    exec: Option<WrittenExec>,
    parameters: Option<KeyValues>,
    annotations: Option<KeyValues>,
    limits: Option<WrittenLimits>,
    version: Option<Version>,
    publish: Option<bool>,
    #[serde(rename = "delAnnotations")]
    removed_annotations: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
struct WrittenExec {
    kind: Option<String>,
    code: Option<String>,
    binary: Option<bool>,
    main: Option<String>,
    components: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
struct WrittenLimits {
    timeout: Option<u64>,
    memory: Option<u32>,
    logs: Option<u32>,
    concurrency: Option<u32>,
    instances: Option<u32>,
}

impl WrittenAction {
    /// The action that results; what is not written stays as it was.
    pub(super) fn over(
        self,
        old: Option<&Action>,
        name: FullName,
        settings: &ApiSettings,
    ) -> Result<Action, Refusal> {
        let Self { exec, parameters, annotations, limits, version, publish, removed_annotations } =
            self;
        let exec = match (exec, old) {
            (Some(exec), _) => exec.check(name.namespace(), settings)?,
            (None, Some(old)) => old.exec.clone(),
            (None, None) => {
                return Err(Refusal::bad_request(
                    "The request content was malformed: exec undefined",
                ));
            }
        };
        let old_limits = old.map(|old| old.limits).unwrap_or_default();
        let limits = limits.unwrap_or_default().over(old_limits, &settings.bounds)?;
        let mut annotations = kept(annotations, old.map(|old| &old.annotations));
        for key in removed_annotations.unwrap_or_default() {
            annotations.remove(&key);
        }
        if annotations.value("provide-api-key").is_none() {
            annotations.set("provide-api-key", false);
        }
        let mut action = Action {
            name,
            version: Version::of_written(version, old.map(|old| old.version)),
            publish: kept(publish, old.map(|old| &old.publish)),
            exec,
            parameters: kept(parameters, old.map(|old| &old.parameters)),
            annotations,
            limits,
            updated: 0,
        };
        let kind = action.kind().to_owned();
        action.annotations.set("exec", kind);
        check_size("Parameters", &action.parameters, settings.largest_parameters)?;
        check_size("Annotations", &action.annotations, settings.largest_parameters)?;
        Ok(action)
    }
}

fn check_size(what: &str, values: &KeyValues, allowed: usize) -> Result<(), Refusal> {
    let size: usize =
        values.iter().map(|entry| entry.key.len() + entry.value.to_string().len()).sum();
    if size > allowed { Err(Refusal::too_large(what, size, allowed)) } else { Ok(()) }
}

impl WrittenExec {
    fn check(self, own: &EntityName, settings: &ApiSettings) -> Result<Exec, Refusal> {
        let Self { kind, code, binary, main, components } = self;
        let kind = kind.ok_or_else(|| {
            Refusal::bad_request(
                "The request content was malformed: 'kind' must be a string defined in 'exec'",
            )
        })?;
        if kind == SEQUENCE_KIND {
            let components = components.unwrap_or_default();
            let names = components.iter().map(|text| FullName::parse(text, own));
            return Ok(Exec::Sequence(names.collect::<Result<_, _>>()?));
        }
        let known =
            settings.kinds.iter().find(|known| known.answers_to(&kind)).ok_or_else(|| {
                let names: Vec<&str> =
                    settings.kinds.iter().map(|kind| kind.name.as_str()).collect();
                let kind: String = kind.chars().take(64).collect();
                Refusal::bad_request(format!(
                    "The kind '{kind}' is not allowed; allowed are {}.",
                    names.join(", ")
                ))
            })?;
        let text = code.unwrap_or_default();
        let binary = binary.unwrap_or_else(|| text.starts_with(ZIP_IN_BASE64));
        let length = if binary { text.len() / 4 * 3 } else { text.len() };
        if length > settings.largest_code {
            return Err(Refusal::too_large("Action code", length, settings.largest_code));
        }
        let main = main.filter(|main| !main.is_empty());
        Ok(Exec::Code(Code { kind: known.name.clone(), text, binary, main }))
    }
}

impl WrittenLimits {
    fn over(self, old: ActionLimits, bounds: &Bounds) -> Result<ActionLimits, Refusal> {
        let Self { timeout, memory, logs, concurrency, instances } = self;
        let millis = |time: Duration| time.as_millis() as u64;
        let timeout = timeout.unwrap_or_else(|| millis(old.timeout));
        let (shortest, longest) = (millis(bounds.shortest_timeout), millis(bounds.longest_timeout));
        let memory = memory.unwrap_or_else(|| old.memory.get());
        let logs_mib = logs.unwrap_or(old.logs_mib);
        let concurrency = concurrency.unwrap_or(old.concurrency);
        let instances = instances.or(old.instances);
        within("timeout", timeout, shortest, longest, "ms")?;
        within(
            "memory",
            memory.into(),
            bounds.smallest_memory.into(),
            bounds.largest_memory.into(),
            "MB",
        )?;
        within("logs", logs_mib.into(), 0, bounds.longest_log.into(), "MB")?;
        within("concurrency", concurrency.into(), 1, bounds.most_concurrency.into(), "calls")?;
        if let Some(instances) = instances {
            within("instances", instances.into(), 1, bounds.most_instances.into(), "instances")?;
        }
        let timeout = Duration::from_millis(timeout);
        Ok(ActionLimits {
            timeout,
            memory: Mebibytes::new(memory),
            logs_mib,
            concurrency,
            instances,
        })
    }
}

fn within(what: &str, value: u64, least: u64, most: u64, unit: &str) -> Result<(), Refusal> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Refusal::bad_request(format!(
        "The request content was malformed: requirement failed: {what} {value} {unit} is out of range, allowed is \
         {least} to {most} {unit}."
    )))
}

/// Reads an action as a client would send it: for the fuzz target.
#[cfg(feature = "fuzzing")]
pub fn read_action(body: &[u8]) -> bool {
    let guest = EntityName::new("guest").expect("a name");
    let hello = FullName::in_namespace(&guest, "hello").expect("a name");
    let kinds = vec![crate::settings::Kind::default_of_family("python:3")];
    let settings = ApiSettings { kinds, ..ApiSettings::default() };
    let written = serde_json::from_slice::<WrittenAction>(body);
    written.is_ok_and(|written| written.over(None, hello, &settings).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn over(old: Option<&Action>, written: Value) -> Result<Action, Refusal> {
        let guest = EntityName::new("guest").unwrap();
        let name = FullName::in_namespace(&guest, "hello").unwrap();
        let kinds = vec![crate::settings::Kind::default_of_family("python:3")];
        let settings = ApiSettings { kinds, ..ApiSettings::default() };
        serde_json::from_value::<WrittenAction>(written).unwrap().over(old, name, &settings)
    }

    #[test]
    fn an_update_keeps_what_it_does_not_name() {
        let first = over(
            None,
            json!({"exec": {"kind": "python:default", "code": "x"}, "limits": {"memory": 128},
                   "parameters": [{"key": "a", "value": 1}]}),
        )
        .unwrap();
        assert_eq!((first.kind(), first.version), ("python:3", Version::FIRST));
        assert_eq!(first.annotations.value("exec"), Some(&json!("python:3")));
        let second = over(Some(&first), json!({"limits": {"timeout": 5000}})).unwrap();
        assert_eq!(second.version.to_string(), "0.0.2");
        assert_eq!((second.limits.memory.get(), second.limits.timeout.as_secs()), (128, 5));
        assert_eq!((&second.exec, &second.parameters), (&first.exec, &first.parameters));
    }

    #[test]
    fn what_is_out_of_range_is_refused_with_the_range() {
        let exec = json!({"kind": "python:3", "code": "x"});
        for (limits, said) in [
            (json!({"timeout": 1}), "100 to 300000 ms"),
            (json!({"memory": 4096}), "128 to 512 MB"),
            (json!({"logs": 11}), "0 to 10 MB"),
            (json!({"concurrency": 0}), "1 to 200"),
            (json!({"instances": 0}), "1 to 1000"),
        ] {
            let refusal = over(None, json!({"exec": exec, "limits": limits})).unwrap_err();
            assert!(refusal.message().contains(said), "{}", refusal.message());
        }
        let refusal = over(None, json!({"exec": {"kind": "cobol:1"}})).unwrap_err();
        assert!(refusal.message().contains("python:3"), "{}", refusal.message());
        assert!(over(None, json!({})).is_err());
    }

    #[test]
    fn archives_are_known_by_their_first_letters() {
        let action = over(None, json!({"exec": {"kind": "python:3", "code": "UEsDBBQA"}})).unwrap();
        assert!(action.code().unwrap().binary);
    }
}
