//! What actions, packages, triggers and rules have in common.

use std::sync::Arc;

use axum::extract::State;
use serde_json::Value;

use super::answer::{self, Answer, Refusal};
use super::asked::Own;
use super::pages::Page;
use super::{ApiState, Shared};
use crate::action::Action;
use crate::entity::{Entity, Package, Rule, Trigger};
use crate::name::{EntityName, FullName};
use crate::runner::Runner;

/// A kind of entity.
pub(super) trait Collection: Sized {
    /// Its name in URLs.
    const NAME: &'static str;
    /// The entity, if it is of this kind.
    fn pick(entity: &Entity) -> Option<&Arc<Self>>;
    /// As in lists.
    fn in_list(&self) -> Value;
}

macro_rules! collection {
    ($kind:ident, $name:literal, $in_list:ident) => {
        impl Collection for $kind {
            const NAME: &'static str = $name;

            fn pick(entity: &Entity) -> Option<&Arc<Self>> {
                match entity {
                    Entity::$kind(one) => Some(one),
                    _ => None,
                }
            }

            fn in_list(&self) -> Value {
                self.$in_list()
            }
        }
    };
}

collection!(Action, "actions", summary);
collection!(Package, "packages", summary);
collection!(Trigger, "triggers", summary);
collection!(Rule, "rules", view);

/// The list of a collection.
pub(super) async fn list<R: Runner, C: Collection>(
    State(api): State<ApiState<R>>,
    Own(asked): Own,
) -> Answer {
    let page = Page::read(&asked.query(), C::NAME)?;
    let all = api
        .shared
        .entities
        .list(&asked.namespace, |entity| C::pick(entity).map(|one| one.in_list()));
    answer::ok(&page.of(all, C::NAME))
}

/// What was written, else what was there, else the default.
pub(super) fn kept<T: Clone + Default>(written: Option<T>, old: Option<&T>) -> T {
    written.or_else(|| old.cloned()).unwrap_or_default()
}

fn wrong_collection() -> Refusal {
    Refusal::conflict("Resource by this name exists but is not in this collection.")
}

impl<R: Runner> Shared<R> {
    /// An entity that has to be there.
    pub(super) fn one<C: Collection>(
        &self,
        namespace: &EntityName,
        path: &str,
    ) -> Result<Arc<C>, Refusal> {
        let entity = self.entities.find(namespace, path).ok_or_else(Refusal::not_found)?;
        C::pick(&entity).cloned().ok_or_else(wrong_collection)
    }

    /// What a new entity of this name replaces, if it may.
    pub(super) fn to_replace<C: Collection>(
        &self,
        name: &FullName,
        may_overwrite: bool,
    ) -> Result<Option<Arc<C>>, Refusal> {
        let Some(entity) = self.entities.find(name.namespace(), name.path()) else {
            return Ok(None);
        };
        let old = C::pick(&entity).ok_or_else(wrong_collection)?;
        if may_overwrite {
            Ok(Some(Arc::clone(old)))
        } else {
            Err(Refusal::conflict("resource already exists"))
        }
    }

    /// Writes an entity to disk, then to memory.
    pub(super) async fn keep(&self, entity: Entity) -> Result<(), Refusal> {
        self.store.put(&entity).await?;
        self.entities.insert(entity);
        Ok(())
    }

    /// Takes an entity out of both.
    pub(super) async fn forget(&self, name: &FullName) -> Result<(), Refusal> {
        self.store.remove(name).await?;
        self.entities.remove(name);
        Ok(())
    }

    /// Takes an action out and informs the runner.
    pub(super) async fn forget_action(&self, action: &Action) -> Result<(), Refusal> {
        self.forget(&action.name).await?;
        if action.code().is_some() {
            self.runner.removed(&action.name);
        }
        Ok(())
    }
}
