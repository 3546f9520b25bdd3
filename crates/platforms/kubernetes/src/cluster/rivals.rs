//! Autoscalers of others. Two controllers on one workload undo each other's work, so the controller steps back.

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::ResourceExt;
use kube::api::DynamicObject;

use super::Key;

/// Which autoscaler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RivalKind {
    /// A HorizontalPodAutoscaler.
    Horizontal,
    /// A VerticalPodAutoscaler that changes pods.
    Vertical,
    /// A ScaledObject of KEDA.
    Keda,
}

impl RivalKind {
    /// The kind as users know it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Horizontal => "HorizontalPodAutoscaler",
            Self::Vertical => "VerticalPodAutoscaler",
            Self::Keda => "ScaledObject",
        }
    }
}

/// What an autoscaler acts on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rival {
    /// The kind of its target.
    pub target_kind: String,
    /// The name of its target.
    pub target: String,
    /// Whether it only recommends.
    pub is_passive: bool,
}

impl Rival {
    /// Whether it changes one of these objects.
    pub fn acts_on(&self, objects: &[(&str, &Key)]) -> bool {
        let same =
            |(kind, key): &(&str, &Key)| self.target_kind == *kind && self.target == key.name;
        !self.is_passive && objects.iter().any(same)
    }

    /// The target of a HorizontalPodAutoscaler.
    pub fn of_horizontal(object: &HorizontalPodAutoscaler) -> Option<(Key, Self)> {
        let target = &object.spec.as_ref()?.scale_target_ref;
        let rival = Self {
            target_kind: target.kind.clone(),
            target: target.name.clone(),
            is_passive: false,
        };
        Some((Key::new(object.namespace()?, object.name_any()), rival))
    }

    /// The target of a VerticalPodAutoscaler. With update mode Off it leaves pods alone.
    pub fn of_vertical(object: &DynamicObject) -> Option<(Key, Self)> {
        let text = |path: &str| object.data.pointer(path).and_then(|value| value.as_str());
        let rival = Self {
            target_kind: text("/spec/targetRef/kind")?.to_owned(),
            target: text("/spec/targetRef/name")?.to_owned(),
            is_passive: text("/spec/updatePolicy/updateMode") == Some("Off"),
        };
        Some((Key::new(object.namespace()?, object.name_any()), rival))
    }

    /// The target of a ScaledObject; a Deployment, if it names no kind.
    pub fn of_scaled_object(object: &DynamicObject) -> Option<(Key, Self)> {
        let text = |path: &str| object.data.pointer(path).and_then(|value| value.as_str());
        let rival = Self {
            target_kind: text("/spec/scaleTargetRef/kind").unwrap_or("Deployment").to_owned(),
            target: text("/spec/scaleTargetRef/name")?.to_owned(),
            is_passive: false,
        };
        Some((Key::new(object.namespace()?, object.name_any()), rival))
    }
}
