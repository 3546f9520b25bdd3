//! The hard limit of requests per pod. It is part of a Revision, which cannot be changed, so each change makes a new one
//! and every pod of it starts cold. Used only where the policy permits it; the soft limit is an annotation.

use super::{Action, Actuator, Cost, is_knative};
use crate::cluster::TargetFacts;
use crate::desired::{Desired, Scope};
use crate::discovery::Offers;
use crate::resource_policy::ResourcePolicySpec;

pub(super) const NAME: &str = "new-revision";

pub(super) struct NewRevision;

impl Actuator for NewRevision {
    fn name(&self) -> &'static str {
        NAME
    }

    fn cost(&self) -> Cost {
        Cost::Replacement
    }

    fn is_offered(&self, offers: &Offers, spec: &ResourcePolicySpec) -> bool {
        offers.knative && is_knative(spec) && spec.actuation.new_revisions
    }

    fn pursue(&self, target: &TargetFacts<'_>, desired: &Desired, scope: Scope) -> Vec<Action> {
        let Some((key, service)) = target.service else { return Vec::new() };
        let (Some(limit), Scope::Everything) = (desired.concurrency, scope) else {
            return Vec::new();
        };
        // One at a time: the last new Revision must be ready before the next.
        let is_settled = service.latest_ready == service.latest_created;
        if service.container_concurrency == limit || !is_settled {
            return Vec::new();
        }
        vec![Action::NewRevision {
            service: key.clone(),
            container_concurrency: limit,
            original: Some(service.original_concurrency.unwrap_or(service.container_concurrency)),
        }]
    }

    fn restore(&self, target: &TargetFacts<'_>) -> Vec<Action> {
        let Some((key, service)) = target.service else { return Vec::new() };
        let Some(original) = service.original_concurrency else { return Vec::new() };
        vec![Action::NewRevision {
            service: key.clone(),
            container_concurrency: original,
            original: None,
        }]
    }
}
