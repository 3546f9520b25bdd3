//! Scenarios: what is run, believed only after every value was checked. All problems of a file are reported
//! together, each with its line.

mod read;
mod table;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use windfall_core::{Allocation, Duration};
use windfall_registry::{REGISTRY, read_manifest};
use windfall_sim::{CpuModel, Faults, Placement, QueueOrder, ScaleOut, Sensors, Settings};
use windfall_trace::{AzureLikeSettings, Source};

pub use table::Problem;

/// A checked scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scenario {
    /// What it is called.
    pub name: String,
    /// Where calls come from.
    pub trace: Source,
    /// Loads to run, each with a cluster of its own size.
    pub loads: Vec<f64>,
    /// About what a node has.
    pub node: Allocation,
    /// CPU that may be granted for each core there is.
    pub over_commit_cpu: f64,
    /// Memory that may be granted for each MiB there is.
    pub over_commit_memory: f64,
    /// The most CPU one call may be granted, cores.
    pub call_max_cores: f64,
    /// How a node's CPU is shared. The fluid model is not written, so that scenarios keep their digests.
    #[serde(skip_serializing_if = "CpuModel::is_fluid")]
    pub cpu: CpuModel,
    /// How the platform behaves.
    pub platform: PlatformSettings,
    /// Policies to run, by name.
    pub policies: Vec<String>,
    /// A policy that is asked beside each, recorded, never obeyed.
    pub shadow: Option<String>,
    /// Safeguards around every policy's calls, after those it brings itself.
    pub call_safeguards: Vec<String>,
    /// Settings of single policies.
    pub policy_settings: BTreeMap<String, toml::Table>,
    /// Seeds to run.
    pub seeds: Vec<u64>,
    /// Time between two ticks.
    pub tick: Duration,
    /// Calls that arrive before this do not count.
    pub warm_up: Duration,
}

/// How a platform behaves, whatever its size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PlatformSettings {
    /// Where calls go.
    pub placement: Placement,
    /// What makes it start instances.
    pub scale_out: ScaleOut,
    /// Calls that one instance serves at once.
    pub concurrency: u32,
    /// How long an idle instance stays.
    pub keep_alive: Duration,
    /// Whether new instances take time to start.
    pub cold_starts: bool,
    /// Calls of one function that may wait.
    pub queue_limit: Option<u32>,
    /// Which of the waiting calls starts first.
    #[serde(skip_serializing_if = "is_first_come")]
    pub queue_order: QueueOrder,
    /// Whether short calls wait for a warm instance as long as they are on time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_warm: bool,
    /// How long a live change takes.
    pub actuation_delay: Duration,
    /// How well sensors see.
    pub sensors: Sensors,
    /// What goes wrong.
    pub faults: Faults,
}

/// The usual order is not written, so that scenarios keep their digests.
fn is_first_come(order: &QueueOrder) -> bool {
    *order == QueueOrder::FirstCome
}

impl Default for PlatformSettings {
    fn default() -> Self {
        let usual = Settings::new(1, Allocation::new(16_000, 65_536));
        Self {
            placement: usual.placement,
            scale_out: usual.scale_out,
            concurrency: usual.concurrency,
            keep_alive: usual.keep_alive,
            cold_starts: usual.cold_starts,
            queue_limit: usual.queue_limit,
            queue_order: usual.queue_order,
            waits_for_warm: usual.waits_for_warm,
            actuation_delay: usual.actuation_delay,
            sensors: usual.sensors,
            faults: usual.faults,
        }
    }
}

impl Default for Scenario {
    /// A generated hour like Azure's, at three loads, with every policy and three seeds.
    fn default() -> Self {
        let policies = REGISTRY.iter().filter(|entry| entry.by_default);
        Self {
            name: "default".into(),
            trace: Source::AzureLike(AzureLikeSettings::default()),
            loads: vec![0.5, 0.8, 1.1],
            node: Allocation::new(16_000, 65_536),
            over_commit_cpu: 1.0,
            over_commit_memory: 1.0,
            call_max_cores: 8.0,
            cpu: CpuModel::Fluid,
            platform: PlatformSettings::default(),
            policies: policies.map(|entry| entry.name.to_owned()).collect(),
            shadow: None,
            call_safeguards: Vec::new(),
            policy_settings: BTreeMap::new(),
            seeds: vec![1, 2, 3],
            tick: Duration::from_secs(2),
            warm_up: Duration::ZERO,
        }
    }
}

/// A scenario that was refused, with every reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ScenarioError {
    /// The file, or what else it was called.
    pub file: String,
    /// Everything that is wrong.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.problems.len();
        write!(f, "{}: {count} problem{}", self.file, if count == 1 { "" } else { "s" })?;
        for Problem { line, message } in &self.problems {
            match line {
                Some(line) => write!(f, "\n  line {line}: {message}")?,
                None => write!(f, "\n  {message}")?,
            }
        }
        Ok(())
    }
}

impl Scenario {
    /// Reads a scenario; `file` is what messages call it.
    pub fn parse(text: &str, file: &str) -> Result<Self, ScenarioError> {
        read::parse(text).map_err(|problems| ScenarioError { file: file.to_owned(), problems })
    }

    /// Checks what no single value shows: names, and knobs that contradict each other. Call it after
    /// changing a scenario by hand.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let mut problems = table::Problems::default();
        read::check(self, &mut problems);
        if problems.found.is_empty() {
            Ok(())
        } else {
            Err(ScenarioError { file: self.name.clone(), problems: problems.found })
        }
    }

    /// Sets `policy` by the text of a manifest, which `file` is the name of in messages. The text is kept whole, so
    /// that a journal says how to run it again.
    pub fn set_by_manifest(
        &mut self,
        policy: &str,
        manifest: String,
        file: &str,
    ) -> Result<(), ScenarioError> {
        read_manifest(policy, &manifest).map_err(|error| ScenarioError {
            file: file.to_owned(),
            problems: (error.problems.into_iter())
                .map(|it| Problem { line: it.line, message: it.what })
                .collect(),
        })?;
        let table = self.policy_settings.entry(policy.to_owned()).or_default();
        table.insert("manifest".to_owned(), manifest.into());
        Ok(())
    }

    /// Eight hexadecimal digits that change with every setting.
    pub fn digest(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        format!("{:08x}", crc32fast::hash(text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_the_default_scenario() {
        assert_eq!(Scenario::parse("", "empty").unwrap(), Scenario::default());
    }

    #[test]
    fn all_problems_are_reported_together_with_their_lines() {
        let text = "[cluster]\nnode_cores = -4\nloads = [0.5, nan]\n[platfrom]\ntick = 2\n\n[run]\npolicies = [\"fixed\", \"histogramm\"]\nseeds = 3\n";
        let error = Scenario::parse(text, "burst.toml").unwrap_err();
        let message = error.to_string();
        assert_eq!(
            message,
            "burst.toml: 5 problems\n  \
             line 2: cluster.node_cores is -4, allowed is 0.1 to 1024\n  \
             line 3: cluster.loads holds nan, allowed is numbers from 0.01 to 10\n  \
             line 4: unknown key `platfrom`; did you mean `platform`?\n  \
             line 8: run.policies holds \"histogramm\", allowed is names of policies (did you mean `histogram`?)\n  \
             line 9: run.seeds is 3, allowed is a list of whole numbers"
        );
    }

    #[test]
    fn text_that_is_not_toml_is_reported_with_its_line() {
        let error = Scenario::parse("[cluster\nx = 1", "broken.toml").unwrap_err();
        assert_eq!(error.problems.len(), 1);
        assert_eq!(error.problems[0].line, Some(1));
    }

    #[test]
    fn settings_of_the_kernel_need_its_cpu_model() {
        let text = "[cluster]\ncpu_model = \"kernel\"\ncpu_period_millis = 20\n";
        let scenario = Scenario::parse(text, "kernel.toml").unwrap();
        let CpuModel::Kernel(kernel) = scenario.cpu else { panic!("{:?}", scenario.cpu) };
        assert_eq!(kernel.period, Duration::from_millis(20));
        assert_ne!(scenario.digest(), Scenario::default().digest());
        let error = Scenario::parse("[cluster]\ncpu_burst = 1.0\n", "fluid.toml").unwrap_err();
        let hint = "cluster.cpu_burst has no effect on the fluid CPU; set cpu_model = \"kernel\"";
        assert!(error.to_string().contains(hint), "{error}");
    }

    #[test]
    fn sizing_policies_need_calls_of_their_own() {
        let text = "[platform]\nconcurrency = 10\n[run]\npolicies = [\"histogram\"]\n";
        let error = Scenario::parse(text, "shared.toml").unwrap_err();
        assert!(error.to_string().contains("histogram sizes single calls"), "{error}");
    }

    #[test]
    fn where_instances_are_shared_everyone_who_can_act_takes_part() {
        let text = "[platform]\nconcurrency = 10\nscale_out = \"on-tick\"\n";
        let scenario = Scenario::parse(text, "shared.toml").unwrap();
        assert_eq!(scenario.policies, ["fixed", "queueing", "kpa", "hpa", "vpa", "autopilot"]);
    }

    #[test]
    fn a_manifest_is_kept_whole_or_refused_with_its_lines() {
        let mut scenario = Scenario::default();
        let manifest = "kind: ConfigMap\ndata:\n  stable-window: 30s\n";
        scenario.set_by_manifest("kpa", manifest.to_owned(), "config.yaml").unwrap();
        assert_eq!(scenario.policy_settings["kpa"]["manifest"].as_str(), Some(manifest));
        let wrong = "kind: ConfigMap\ndata:\n  min-scale: \"5\"\n  max-scale: \"2\"\n  windw: 6s\n";
        let error = scenario.set_by_manifest("kpa", wrong.to_owned(), "config.yaml").unwrap_err();
        assert_eq!(
            error.to_string(),
            "config.yaml: 2 problems\n  \
             line 3: min-scale is 5, which is more than max-scale (2)\n  \
             line 5: windw is not a key of config-autoscaler"
        );
        let error = scenario.set_by_manifest("libra", String::new(), "x.yaml").unwrap_err();
        assert!(error.to_string().contains("policy libra does not read manifests"), "{error}");
    }

    #[test]
    fn settings_of_a_policy_are_checked_too() {
        let text = "[policies.histogram]\nquantil = 0.9\n";
        let error = Scenario::parse(text, "typo.toml").unwrap_err();
        assert!(error.to_string().contains("line 1: policies.histogram: "), "{error}");
        assert!(error.to_string().contains("quantil"), "{error}");
    }
}
