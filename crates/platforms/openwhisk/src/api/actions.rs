//! Actions: create, update, list, read, delete.

mod written;

use std::sync::Arc;
use std::time::SystemTime;

use axum::body::Body;
use axum::extract::State;

use super::answer::{self, Answer, Refusal};
use super::asked::{Asked, Own};
use super::collection::Put;
use super::pages::Page;
use super::{ApiState, Shared, millis};
use crate::action::{Action, Exec};
use crate::entity::Entity;
use crate::name::FullName;
use crate::runner::Runner;
use written::WrittenAction;
#[cfg(feature = "fuzzing")]
pub use written::read_action;

pub(super) async fn read<R: Runner>(State(api): State<ApiState<R>>, asked: Asked) -> Answer {
    let shared = &api.shared;
    if let Some(package) = asked.path.strip_suffix('/') {
        return shared.list_package(&asked, package);
    }
    let with_code = asked.query().text("code") != Some("false");
    let target = shared.callable(&asked.caller, &asked.namespace, &asked.path)?;
    let mut view = target.action.view(with_code);
    if let Some(around) = &target.package_parameters {
        view["parameters"] = serde_json::json!(around.merged(&target.action.parameters));
    }
    answer::ok(&view)
}

pub(super) async fn write<R: Runner>(
    State(api): State<ApiState<R>>,
    Own(asked): Own,
    body: Body,
) -> Answer {
    let shared = &api.shared;
    // Code in base64 is a third longer than what it stands for; the rest is for parameters and quotes.
    let longest = shared.settings.largest_code / 3 * 4 + 2 * shared.settings.largest_parameters;
    let put: Put<'_, WrittenAction, Action> = shared.put(&asked, body, longest).await?;
    let old = put.old.as_deref();
    shared.check_package(&put.name)?;
    let mut action = put.written.over(old, put.name, &shared.settings)?;
    action.updated = millis(SystemTime::now());
    if let Exec::Sequence(components) = &action.exec {
        shared.check_sequence(&action.name, components)?;
    }
    let action = Arc::new(action);
    shared.keep(Entity::Action(Arc::clone(&action))).await?;
    shared.announce(&action, old);
    answer::ok(&action.view(true))
}

pub(super) async fn remove<R: Runner>(State(api): State<ApiState<R>>, Own(asked): Own) -> Answer {
    let _change = api.shared.changes.lock().await;
    let action: Arc<Action> = api.shared.one(&asked.namespace, &asked.path)?;
    api.shared.forget_action(&action).await?;
    answer::ok(&action.view(true))
}

impl<R: Runner> Shared<R> {
    /// The package of an action must exist and be one of its own.
    fn check_package(&self, name: &FullName) -> Result<(), Refusal> {
        let Some(package) = name.package() else { return Ok(()) };
        match self.entities.package(name.namespace(), package) {
            None => Err(Refusal::not_found()),
            Some(package) if package.binding.is_some() => {
                Err(Refusal::bad_request("Operation not permitted on package binding."))
            }
            Some(_) => Ok(()),
        }
    }

    /// The actions of one package: a path that ends in a slash.
    fn list_package(&self, asked: &Asked, package: &str) -> Answer {
        if !asked.is_own() {
            return Err(Refusal::forbidden(asked.namespace.as_str()));
        }
        let page = Page::read(&asked.query(), "actions")?;
        let all = self.entities.list(&asked.namespace, |entity| match entity {
            Entity::Action(action) if action.name.package() == Some(package) => {
                Some(action.summary())
            }
            _ => None,
        });
        answer::ok(&page.of(all, "actions"))
    }

    /// Runners know actions with code; one that became a sequence is gone for them.
    fn announce(&self, action: &Arc<Action>, old: Option<&Action>) {
        if action.code().is_some() {
            self.runner.deployed(action);
        } else if old.is_some_and(|old| old.code().is_some()) {
            self.runner.removed(&action.name);
        }
    }

    /// A sequence is finite, not too long, and all of its parts exist.
    fn check_sequence(&self, name: &FullName, components: &[FullName]) -> Result<(), Refusal> {
        if components.is_empty() {
            return Err(Refusal::bad_request("No component specified for the sequence."));
        }
        let mut left: Vec<FullName> = components.to_vec();
        let mut actions = 0;
        while let Some(component) = left.pop() {
            if component == *name {
                return Err(Refusal::bad_request("Sequence may not refer to itself."));
            }
            let target = self.entities.target(component.namespace(), component.path());
            let target = target.ok_or_else(|| {
                Refusal::bad_request(format!("Sequence component does not exist: {component}"))
            })?;
            match &target.action.exec {
                Exec::Code(_) => actions += 1,
                Exec::Sequence(inner) => left.extend(inner.iter().cloned()),
            }
            if actions + left.len() > self.settings.bounds.longest_sequence {
                return Err(Refusal::bad_request("Too many actions in the sequence."));
            }
        }
        Ok(())
    }
}
