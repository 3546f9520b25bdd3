//! The autoscalers that platforms run today, configured by their users' existing manifests.
//!
//! ```text
//!  kpa, hpa         set the number of instances at ticks; calls get what the user reserves
//!  vpa, autopilot   size instances at ticks, or each call on a platform with per-call sizing
//! ```
//!
//! They run behind the `limits` and `capacity` safeguards only. Each has its own rate limit, window or tolerance;
//! further safeguards would measure our rules instead of theirs.

use serde::Deserialize;
use serde::de::Error as _;
use windfall_autoscalers::autopilot::EnsembleSettings;
use windfall_autoscalers::hpa::{ControllerSettings, Spec};
use windfall_autoscalers::kpa::{ClusterSettings, RevisionSettings};
use windfall_autoscalers::manifest::{ManifestError, Problem};
use windfall_autoscalers::policies::{
    Autopilot, AutopilotForCalls, AutopilotKind, Hpa, Kpa, Vpa, VpaForCalls,
};
use windfall_autoscalers::vpa::{RecommenderSettings, UpdaterSettings, VpaSettings};
use windfall_control::safeguards::{Capacity, Limits};
use windfall_core::{CallPolicy, Policy, SafeguardChain};
use windfall_policy::Fixed;

use super::{Assembled, Parts, PolicyEntry, sizes_calls};

pub(super) const KPA: PolicyEntry = PolicyEntry {
    name: "kpa",
    summary: "Knative's autoscaler: instances from calls in flight, panic, scale to zero",
    foresight: false,
    by_default: true,
    sizes_calls: false,
    build: kpa,
};

pub(super) const HPA: PolicyEntry = PolicyEntry {
    name: "hpa",
    summary: "Kubernetes' horizontal autoscaler: instances from CPU use; fixed sizes",
    foresight: false,
    by_default: true,
    sizes_calls: false,
    build: hpa,
};

pub(super) const VPA: PolicyEntry = PolicyEntry {
    name: "vpa",
    summary: "Kubernetes' vertical autoscaler: p90 of decaying histograms plus 15 %",
    foresight: false,
    by_default: true,
    sizes_calls: false,
    build: vpa,
};

pub(super) const AUTOPILOT: PolicyEntry = PolicyEntry {
    name: "autopilot",
    summary: "Google's recommender: load-weighted p95 of CPU, p98 of memory, plus 15 %",
    foresight: false,
    by_default: true,
    sizes_calls: false,
    build: autopilot,
};

/// Settings of a policy that is configured by a manifest.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ByManifest {
    /// YAML as in the user's cluster; `None` for the defaults.
    manifest: Option<String>,
}

impl Parts<'_> {
    fn manifest<T>(
        &self,
        read: impl FnOnce(&str) -> Result<T, ManifestError>,
    ) -> Result<Option<T>, toml::de::Error> {
        let ByManifest { manifest } = self.settings()?;
        manifest.map(|text| read(&text)).transpose().map_err(toml::de::Error::custom)
    }
}

/// Checks `text` as the manifest of `policy` and reports all problems.
pub fn read_manifest(policy: &str, text: &str) -> Result<(), ManifestError> {
    let one = |what: String| ManifestError { problems: vec![Problem { line: None, what }] };
    match policy {
        "kpa" => ClusterSettings::from_yaml(text).map(|_| ()),
        "vpa" => VpaSettings::from_yaml(text).map(|_| ()),
        "hpa" => match Hpa::unmeasured(&Spec::from_yaml(text)?) {
            None => Ok(()),
            Some(problem) => Err(one(problem)),
        },
        _ => Err(one(format!("policy {policy} does not read manifests; kpa, hpa and vpa do"))),
    }
}

fn behind_limits(
    call: impl CallPolicy + 'static,
    tick: impl Policy + 'static,
    ticks_resize_only: bool,
) -> Assembled {
    Assembled {
        tick: Some(Box::new(tick)),
        tick_safeguards: SafeguardChain::new(vec![
            Box::new(Limits::default()),
            Box::new(Capacity::default()),
        ]),
        ticks_resize_only,
        ..sizes_calls(call)
    }
}

fn kpa(parts: &Parts<'_>) -> Result<Assembled, toml::de::Error> {
    let cluster = parts.manifest(ClusterSettings::from_yaml)?.unwrap_or_default();
    Ok(behind_limits(Fixed, Kpa::new(cluster, RevisionSettings::default()), false))
}

fn hpa(parts: &Parts<'_>) -> Result<Assembled, toml::de::Error> {
    let policy = match parts.manifest(Spec::from_yaml)? {
        None => Hpa::default(),
        Some(spec) => match Hpa::unmeasured(&spec) {
            None => Hpa::new(ControllerSettings::default(), spec, 15_000),
            Some(problem) => return Err(toml::de::Error::custom(problem)),
        },
    };
    Ok(behind_limits(Fixed, policy, false))
}

fn vpa(parts: &Parts<'_>) -> Result<Assembled, toml::de::Error> {
    let settings = parts.manifest(VpaSettings::from_yaml)?.unwrap_or_default();
    let recommender = RecommenderSettings::default();
    let calls = VpaForCalls::new(recommender.clone(), settings.clone());
    let ticks = Vpa::new(recommender, UpdaterSettings::default(), settings);
    Ok(behind_limits(calls, ticks, true))
}

/// Settings of `autopilot`.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AutopilotSettings {
    recommender: Recommender,
    window_seconds: u32,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Recommender {
    Window,
    Ensemble,
}

impl Default for AutopilotSettings {
    fn default() -> Self {
        Self { recommender: Recommender::Window, window_seconds: 300 }
    }
}

fn autopilot(parts: &Parts<'_>) -> Result<Assembled, toml::de::Error> {
    let AutopilotSettings { recommender, window_seconds } = parts.settings()?;
    let kind = match recommender {
        Recommender::Window => AutopilotKind::default(),
        Recommender::Ensemble => {
            AutopilotKind::Ensemble(EnsembleSettings::default(), EnsembleSettings::default())
        }
    };
    let window = i64::from(window_seconds.max(1));
    let calls = AutopilotForCalls::new(kind.clone(), window);
    Ok(behind_limits(calls, Autopilot::new(kind, window), true))
}

#[cfg(test)]
mod tests {
    use super::super::{PolicyTable, entry};
    use windfall_core::Seed;

    fn build(name: &str, table: &str) -> Result<(), String> {
        let table: PolicyTable = Some(table.parse().expect("a table"));
        let policy = entry(name).expect("registered");
        policy.assemble(&table, Seed::new(1)).map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_manifest_configures_the_policy_and_its_problems_name_their_lines() {
        let config =
            |data: &str| format!("manifest = \"\"\"\nkind: ConfigMap\ndata:\n  {data}\n\"\"\"");
        assert_eq!(build("kpa", &config("stable-window: 30s")), Ok(()));
        let message = build("kpa", &config("stable-windw: 30s")).unwrap_err();
        assert!(message.contains("line 3: stable-windw is not a key"), "{message}");
    }

    #[test]
    fn a_metric_that_is_not_measured_is_rejected() {
        let message = build(
            "hpa",
            "manifest = \"\"\"\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nspec:\n  \
             scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n  maxReplicas: 5\n  \
             metrics:\n  - {type: Pods, pods: {metric: {name: lag}, target: {type: AverageValue, \
             averageValue: 5}}}\n\"\"\"",
        )
        .unwrap_err();
        assert!(message.contains("pods metric lag is not measured here"), "{message}");
    }

    #[test]
    fn both_recommenders_of_autopilot_can_be_chosen() {
        assert_eq!(build("autopilot", "recommender = \"ensemble\"\nwindow_seconds = 60"), Ok(()));
        assert!(build("autopilot", "recommender = \"best\"").is_err());
    }
}
