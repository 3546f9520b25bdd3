//! Packages and bindings.

use std::sync::Arc;
use std::time::SystemTime;

use axum::body::Body;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{self, Answer, Refusal};
use super::asked::{Asked, Own};
use super::collection::{Put, kept};
use super::pages::Page;
use super::{ApiState, Shared, millis};
use crate::entity::{Entity, Package};
use crate::key_values::KeyValues;
use crate::name::{EntityName, FullName, OWN_NAMESPACE};
use crate::runner::Runner;
use crate::version::Version;

#[derive(Debug, Default, Deserialize)]
struct WrittenPackage {
    version: Option<Version>,
    publish: Option<bool>,
    parameters: Option<KeyValues>,
    annotations: Option<KeyValues>,
    binding: Option<WrittenBinding>,
}

/// `{}` stands for none.
#[derive(Debug, Default, Deserialize)]
struct WrittenBinding {
    namespace: Option<String>,
    name: Option<String>,
}

/// All packages of one's own namespace, the published ones of another.
pub(super) async fn list<R: Runner>(State(api): State<ApiState<R>>, asked: Asked) -> Answer {
    let page = Page::read(&asked.query(), "packages")?;
    let is_own = asked.is_own();
    let all = api.shared.entities.list(&asked.namespace, |entity| match entity {
        Entity::Package(package) if is_own || package.publish => Some(package.summary()),
        _ => None,
    });
    answer::ok(&page.of(all, "packages"))
}

pub(super) async fn read<R: Runner>(State(api): State<ApiState<R>>, asked: Asked) -> Answer {
    let package: Arc<Package> = api.shared.one(&asked.namespace, &asked.path)?;
    if !asked.is_own() && !package.publish {
        return Err(Refusal::forbidden(&package.name.joined()));
    }
    answer::ok(&api.shared.package_view(&package))
}

pub(super) async fn write<R: Runner>(
    State(api): State<ApiState<R>>,
    Own(asked): Own,
    body: Body,
) -> Answer {
    let shared = &api.shared;
    let longest = 2 * shared.settings.largest_parameters;
    let put: Put<'_, WrittenPackage, Package> = shared.put(&asked, body, longest).await?;
    if put.name.name() == "default" {
        return Err(Refusal::bad_request("Package name 'default' is reserved."));
    }
    let package = Arc::new(shared.package_over(put.written, put.old.as_deref(), put.name)?);
    shared.keep(Entity::Package(Arc::clone(&package))).await?;
    answer::ok(&package.view())
}

pub(super) async fn remove<R: Runner>(State(api): State<ApiState<R>>, Own(asked): Own) -> Answer {
    let shared = &api.shared;
    let is_forced = asked.query().flag("force")?;
    let _change = shared.changes.lock().await;
    let package: Arc<Package> = shared.one(&asked.namespace, &asked.path)?;
    let inside = shared.entities.list(&asked.namespace, |entity| match entity {
        Entity::Action(action) if action.name.package() == Some(package.name.name()) => {
            Some(Arc::clone(action))
        }
        _ => None,
    });
    if !inside.is_empty() && !is_forced {
        return Err(Refusal::conflict(
            "Package not empty. Delete its actions first, or use force=true.",
        ));
    }
    for action in inside {
        shared.forget_action(&action).await?;
    }
    shared.forget(&package.name).await?;
    answer::ok(&package.view())
}

impl<R: Runner> Shared<R> {
    /// With the actions in it; a binding shows those of its package.
    fn package_view(&self, package: &Package) -> Value {
        let mut view = package.view();
        let mut parameters = package.parameters.clone();
        let mut inside = &package.name;
        if let Some(provider) = &package.binding
            && let Some(around) = self.entities.package(provider.namespace(), provider.name())
        {
            parameters = around.parameters.merged(&package.parameters);
            inside = provider;
        }
        let parts = |feeds: bool| {
            self.entities.list(inside.namespace(), |entity| match entity {
                Entity::Action(action)
                    if action.name.package() == Some(inside.name())
                        && action.annotations.is_set("feed") == feeds =>
                {
                    Some(json!({
                        "name": action.name.name(),
                        "version": action.version,
                        "annotations": action.annotations,
                        "parameters": action.parameters,
                    }))
                }
                _ => None,
            })
        };
        view["parameters"] = json!(parameters);
        view["actions"] = parts(false).into();
        view["feeds"] = parts(true).into();
        view
    }

    fn package_over(
        &self,
        written: WrittenPackage,
        old: Option<&Package>,
        name: FullName,
    ) -> Result<Package, Refusal> {
        let WrittenPackage { version, publish, parameters, annotations, binding } = written;
        let binding = match binding.and_then(|binding| Some((binding.namespace, binding.name?))) {
            Some((namespace, provider)) => {
                if old.is_some_and(|old| old.binding.is_none()) {
                    let message = "Resource is a package and cannot be converted into a binding.";
                    return Err(Refusal::conflict(message));
                }
                Some(self.provider(namespace.as_deref(), &provider, &name)?)
            }
            None => old.and_then(|old| old.binding.clone()),
        };
        Ok(Package {
            version: Version::of_written(version, old.map(|old| old.version)),
            publish: kept(publish, old.map(|old| &old.publish)),
            parameters: kept(parameters, old.map(|old| &old.parameters)),
            annotations: kept(annotations, old.map(|old| &old.annotations)),
            binding,
            updated: millis(SystemTime::now()),
            name,
        })
    }

    /// The package that a binding may stand for.
    fn provider(
        &self,
        namespace: Option<&str>,
        provider: &str,
        binding: &FullName,
    ) -> Result<FullName, Refusal> {
        let own = binding.namespace();
        let namespace = match namespace {
            None | Some("" | OWN_NAMESPACE) => own.clone(),
            Some(other) => EntityName::new(other)?,
        };
        match self.entities.find(&namespace, provider) {
            Some(Entity::Package(package)) if package.binding.is_some() => {
                Err(Refusal::bad_request("Cannot bind to another package binding."))
            }
            Some(Entity::Package(package)) if namespace == *own || package.publish => {
                Ok(package.name.clone())
            }
            Some(Entity::Package(_)) => Err(Refusal::forbidden(&format!("{namespace}/{provider}"))),
            Some(_) => Err(Refusal::conflict("Cannot bind to a resource that is not a package.")),
            None => Err(Refusal::bad_request("Binding references a package that does not exist.")),
        }
    }
}
