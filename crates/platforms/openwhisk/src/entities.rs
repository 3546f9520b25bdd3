//! All entities in memory. The store has the same on disk; a request never waits for it to read one.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::action::Action;
use crate::entity::{Entity, Package, Rule, Trigger};
use crate::key_values::KeyValues;
use crate::name::{EntityName, FullName};

type Namespace = HashMap<Box<str>, Entity>;

#[derive(Debug, Default)]
pub(crate) struct Entities {
    namespaces: RwLock<HashMap<Box<str>, Namespace>>,
}

/// An action as a call finds it.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) action: Arc<Action>,
    /// Parameters of the package around it, those of a binding on top; nothing in most cases.
    pub(crate) package_parameters: Option<KeyValues>,
    /// The binding it was called through.
    pub(crate) binding: Option<FullName>,
}

impl Entities {
    fn read(&self) -> RwLockReadGuard<'_, HashMap<Box<str>, Namespace>> {
        self.namespaces.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<Box<str>, Namespace>> {
        self.namespaces.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn insert(&self, entity: Entity) {
        let name = entity.name().clone();
        let mut namespaces = self.write();
        let namespace = namespaces.entry(name.namespace().as_str().into()).or_default();
        namespace.insert(name.path().into(), entity);
    }

    pub(crate) fn remove(&self, name: &FullName) {
        if let Some(namespace) = self.write().get_mut(name.namespace().as_str()) {
            namespace.remove(name.path());
        }
    }

    pub(crate) fn find(&self, namespace: &EntityName, path: &str) -> Option<Entity> {
        self.read().get(namespace.as_str())?.get(path).cloned()
    }

    pub(crate) fn package(&self, namespace: &EntityName, name: &str) -> Option<Arc<Package>> {
        match self.find(namespace, name)? {
            Entity::Package(package) => Some(package),
            _ => None,
        }
    }

    /// An action, found directly or through the binding it is behind.
    pub(crate) fn target(&self, namespace: &EntityName, path: &str) -> Option<Target> {
        let Some((package, name)) = path.split_once('/') else {
            let action = self.action(namespace, path)?;
            return Some(Target { action, package_parameters: None, binding: None });
        };
        let package = self.package(namespace, package)?;
        let (action, parameters, binding) = match &package.binding {
            None => (self.action(namespace, path)?, package.parameters.clone(), None),
            Some(provider) => {
                let action =
                    self.action(provider.namespace(), &format!("{}/{name}", provider.name()))?;
                let around = self.package(provider.namespace(), provider.name())?;
                let parameters = around.parameters.merged(&package.parameters);
                (action, parameters, Some(package.name.clone()))
            }
        };
        let package_parameters = (!parameters.is_empty()).then_some(parameters);
        Some(Target { action, package_parameters, binding })
    }

    pub(crate) fn action(&self, namespace: &EntityName, path: &str) -> Option<Arc<Action>> {
        match self.read().get(namespace.as_str())?.get(path)? {
            Entity::Action(action) => Some(Arc::clone(action)),
            _ => None,
        }
    }

    /// What `pick` takes of a namespace, last changed first.
    pub(crate) fn list<T>(
        &self,
        namespace: &EntityName,
        pick: impl Fn(&Entity) -> Option<T>,
    ) -> Vec<T> {
        let mut picked: Vec<(u64, Box<str>, T)> = match self.read().get(namespace.as_str()) {
            Some(entities) => entities
                .iter()
                .filter_map(|(path, entity)| Some((entity.updated(), path.clone(), pick(entity)?)))
                .collect(),
            None => Vec::new(),
        };
        // The path breaks ties, so that pages of a list do not overlap.
        picked.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        picked.into_iter().map(|(_, _, taken)| taken).collect()
    }

    /// Rules of any namespace that listen to a trigger, in order of their names.
    pub(crate) fn rules_of(&self, trigger: &FullName) -> Vec<Arc<Rule>> {
        let mut rules: Vec<Arc<Rule>> = self
            .read()
            .values()
            .flat_map(HashMap::values)
            .filter_map(|entity| match entity {
                Entity::Rule(rule) if rule.trigger == *trigger => Some(Arc::clone(rule)),
                _ => None,
            })
            .collect();
        rules.sort_by(|a, b| a.name.cmp(&b.name));
        rules
    }

    pub(crate) fn trigger(&self, name: &FullName) -> Option<Arc<Trigger>> {
        match self.find(name.namespace(), name.path())? {
            Entity::Trigger(trigger) => Some(trigger),
            _ => None,
        }
    }
}
