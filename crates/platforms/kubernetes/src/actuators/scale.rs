//! The number of pods of a Deployment. The user's number is noted on the Deployment first, so that it can be given back
//! even by another controller, or by hand.

use super::{Action, Actuator, Cost, is_knative};
use crate::cluster::TargetFacts;
use crate::desired::{Desired, Scope};
use crate::discovery::Offers;
use crate::resource_policy::ResourcePolicySpec;

pub(super) const NAME: &str = "deployment-scale";

pub(super) struct DeploymentScale;

impl Actuator for DeploymentScale {
    fn name(&self) -> &'static str {
        NAME
    }

    fn cost(&self) -> Cost {
        Cost::ColdStart
    }

    fn is_offered(&self, _: &Offers, spec: &ResourcePolicySpec) -> bool {
        // Knative's own autoscaler scales its Deployments.
        !is_knative(spec)
    }

    fn pursue(&self, target: &TargetFacts<'_>, desired: &Desired, scope: Scope) -> Vec<Action> {
        let (key, deployment) = target.deployment;
        if target.service.is_some() {
            return Vec::new();
        }
        let (Some(replicas), Scope::Everything) = (desired.replicas, scope) else {
            return self.restore(target);
        };
        if replicas == deployment.replicas {
            return Vec::new();
        }
        let mut actions = Vec::new();
        if deployment.original_replicas.is_none() {
            let replicas = Some(deployment.replicas);
            actions.push(Action::NoteReplicas { deployment: key.clone(), replicas });
        }
        actions.push(Action::Scale { deployment: key.clone(), replicas });
        actions
    }

    fn restore(&self, target: &TargetFacts<'_>) -> Vec<Action> {
        let (key, deployment) = target.deployment;
        let Some(original) = deployment.original_replicas else { return Vec::new() };
        let mut actions = Vec::new();
        if original != deployment.replicas {
            actions.push(Action::Scale { deployment: key.clone(), replicas: original });
        }
        actions.push(Action::NoteReplicas { deployment: key.clone(), replicas: None });
        actions
    }
}
