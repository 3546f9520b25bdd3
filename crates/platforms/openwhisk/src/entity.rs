//! Everything that has a name: actions, packages, triggers and rules, and how clients see them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::action::{Action, ActionLimits, Exec};
use crate::key_values::KeyValues;
use crate::name::FullName;
use crate::version::Version;

/// Actions that share parameters, or a binding that adds parameters to someone else's package.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: FullName,
    pub(crate) version: Version,
    pub(crate) publish: bool,
    pub(crate) parameters: KeyValues,
    pub(crate) annotations: KeyValues,
    /// The package that a binding stands for.
    pub(crate) binding: Option<FullName>,
    pub(crate) updated: u64,
}

/// An event with a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trigger {
    pub(crate) name: FullName,
    pub(crate) version: Version,
    pub(crate) publish: bool,
    pub(crate) parameters: KeyValues,
    pub(crate) annotations: KeyValues,
    pub(crate) updated: u64,
}

/// Calls an action whenever a trigger fires.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rule {
    pub(crate) name: FullName,
    pub(crate) version: Version,
    pub(crate) publish: bool,
    pub(crate) annotations: KeyValues,
    pub(crate) trigger: FullName,
    pub(crate) action: FullName,
    pub(crate) is_active: bool,
    pub(crate) updated: u64,
}

/// Anything with a name. One name stands for one entity, whatever its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entity", rename_all = "snake_case")]
pub(crate) enum Entity {
    Action(Arc<Action>),
    Package(Arc<Package>),
    Trigger(Arc<Trigger>),
    Rule(Arc<Rule>),
}

impl Entity {
    pub(crate) fn name(&self) -> &FullName {
        match self {
            Self::Action(action) => &action.name,
            Self::Package(package) => &package.name,
            Self::Trigger(trigger) => &trigger.name,
            Self::Rule(rule) => &rule.name,
        }
    }

    pub(crate) fn updated(&self) -> u64 {
        match self {
            Self::Action(action) => action.updated,
            Self::Package(package) => package.updated,
            Self::Trigger(trigger) => trigger.updated,
            Self::Rule(rule) => rule.updated,
        }
    }
}

/// The fields that all views begin with.
fn head(
    name: &FullName,
    version: Version,
    publish: bool,
    annotations: &KeyValues,
) -> Map<String, Value> {
    let mut view = Map::new();
    view.insert("namespace".into(), name.place().into());
    view.insert("name".into(), name.name().into());
    view.insert("version".into(), version.to_string().into());
    view.insert("publish".into(), publish.into());
    view.insert("annotations".into(), json!(annotations));
    view
}

/// Limits in the units of the API: milliseconds and MB.
pub(crate) fn limits_view(limits: &ActionLimits) -> Value {
    let mut view = json!({
        "timeout": limits.timeout.as_millis() as u64,
        "memory": limits.memory.get(),
        "logs": limits.logs_mib,
        "concurrency": limits.concurrency,
    });
    if let Some(instances) = limits.instances {
        view["instances"] = instances.into();
    }
    view
}

impl Action {
    /// All of it, the code only if asked for.
    pub(crate) fn view(&self, with_code: bool) -> Value {
        let exec = match &self.exec {
            Exec::Code(code) => {
                let mut exec = json!({ "kind": code.kind, "binary": code.binary });
                if with_code {
                    exec["code"] = code.text.as_str().into();
                }
                if let Some(main) = &code.main {
                    exec["main"] = main.as_str().into();
                }
                exec
            }
            Exec::Sequence(components) => json!({ "kind": self.kind(), "components": components }),
        };
        let mut view = self.head_view();
        view.insert("exec".into(), exec);
        view.insert("parameters".into(), json!(self.parameters));
        view.into()
    }

    /// As in lists.
    pub(crate) fn summary(&self) -> Value {
        let mut view = self.head_view();
        let binary = self.code().is_some_and(|code| code.binary);
        view.insert("exec".into(), json!({ "binary": binary }));
        view.into()
    }

    fn head_view(&self) -> Map<String, Value> {
        let mut view = head(&self.name, self.version, self.publish, &self.annotations);
        view.insert("limits".into(), limits_view(&self.limits));
        view.insert("updated".into(), self.updated.into());
        view
    }
}

impl Package {
    pub(crate) fn view(&self) -> Value {
        let mut view = self.summary();
        view["parameters"] = json!(self.parameters);
        view
    }

    pub(crate) fn summary(&self) -> Value {
        let binding = match &self.binding {
            Some(package) => json!({ "namespace": package.namespace(), "name": package.name() }),
            None => json!({}),
        };
        let mut view = head(&self.name, self.version, self.publish, &self.annotations);
        view.insert("binding".into(), binding);
        view.insert("updated".into(), self.updated.into());
        view.into()
    }
}

impl Trigger {
    /// With the rules that listen to it.
    pub(crate) fn view(&self, rules: &[Arc<Rule>]) -> Value {
        let mut view = self.summary();
        view["parameters"] = json!(self.parameters);
        let rules: Map<String, Value> = rules
            .iter()
            .map(|rule| {
                let action = json!({ "name": rule.action.name(), "path": rule.action.place() });
                (rule.name.joined(), json!({ "action": action, "status": rule.status() }))
            })
            .collect();
        if !rules.is_empty() {
            view["rules"] = rules.into();
        }
        view
    }

    pub(crate) fn summary(&self) -> Value {
        let mut view = head(&self.name, self.version, self.publish, &self.annotations);
        view.insert("limits".into(), json!({}));
        view.insert("updated".into(), self.updated.into());
        view.into()
    }
}

impl Rule {
    pub(crate) fn status(&self) -> &'static str {
        if self.is_active { "active" } else { "inactive" }
    }

    pub(crate) fn view(&self) -> Value {
        let place = |name: &FullName| json!({ "name": name.name(), "path": name.place() });
        let mut view = head(&self.name, self.version, self.publish, &self.annotations);
        view.insert("trigger".into(), place(&self.trigger));
        view.insert("action".into(), place(&self.action));
        view.insert("status".into(), self.status().into());
        view.insert("updated".into(), self.updated.into());
        view.into()
    }
}
