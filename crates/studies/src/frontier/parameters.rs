//! Which policies are swept, and over which settings of which parameter.

use windfall_registry::entry;
use windfall_scenario::settings::Scenario;
use windfall_sim::ScaleOut;

use super::{Question, minute_oracle};

/// One policy with one parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// The policy's name in the registry.
    pub policy: String,
    /// How the family is called: the name, and what tells it from others of the same policy.
    pub label: String,
    /// The setting that is swept.
    pub key: &'static str,
    /// Its values.
    pub values: Vec<f64>,
    /// Settings that stay.
    pub fixed: Vec<(&'static str, toml::Value)>,
    /// Where the policy is set by a manifest: its text, in which `PARAMETER` stands for the parameter and `MILLI` for as many
    /// per cent of the calls that an instance serves at once, in thousandths of a call.
    pub manifest: Option<String>,
    /// What makes the platform start instances under this policy.
    pub scale_out: ScaleOut,
    /// Whether it is one of those that others are judged by.
    pub is_incumbent: bool,
}

impl Question {
    /// All families that answer this question.
    pub fn families(self) -> Vec<Family> {
        match self {
            Self::Scaling => scaling_families(),
            Self::Sizing { .. } => sizing_families(),
            Self::Together { .. } => pair_families(),
        }
    }
}

impl Family {
    /// Leaves out every second value of the parameter, for a quick look.
    pub fn thin_out(&mut self) {
        self.values = self.values.iter().copied().step_by(2).collect();
    }

    fn new(policy: &str, key: &'static str, values: &[f64]) -> Self {
        Self {
            policy: policy.to_owned(),
            label: policy.to_owned(),
            key,
            values: values.to_vec(),
            fixed: Vec::new(),
            manifest: None,
            scale_out: ScaleOut::OnMiss,
            is_incumbent: true,
        }
    }

    /// Whose setting the parameter is: of a pair, the half that decides at ticks.
    fn set(&self) -> &str {
        self.policy.split_once('+').map_or(&self.policy, |(_, ticks)| ticks)
    }

    /// The scenario with the parameter at `value`. A parameter that is a whole number in settings stays one.
    pub fn at(&self, value: f64, scenario: &Scenario) -> Scenario {
        let mut scenario = scenario.clone();
        let mut table = scenario.policy_settings.get(self.set()).cloned().unwrap_or_default();
        for (key, value) in &self.fixed {
            table.insert((*key).to_owned(), value.clone());
        }
        let (key, value) = if let Some(manifest) = &self.manifest {
            let milli = 10.0 * value * f64::from(scenario.platform.concurrency);
            let text = manifest.replace("PARAMETER", &value.to_string());
            ("manifest", toml::Value::String(text.replace("MILLI", &format!("{milli}m"))))
        } else if WHOLE_PARAMETERS.contains(&self.key) {
            (self.key, toml::Value::Integer(value as i64))
        } else {
            (self.key, toml::Value::Float(value))
        };
        table.insert(key.to_owned(), value);
        scenario.policy_settings.insert(self.set().to_owned(), table);
        scenario.platform.scale_out = self.scale_out;
        scenario
    }
}

/// Parameters whose settings are whole numbers.
const WHOLE_PARAMETERS: &[&str] = &["range_minutes"];

/// The prices at which ours is shown.
pub const PRICES: [f64; 5] = [3e-6, 1e-5, 3e-5, 1e-4, 3e-4];
/// The same beside sizing, where an instance keeps less and a start takes cores from others.
pub const PRICES_BESIDE_SIZING: [f64; 4] = [2e-6, 5e-6, 1e-5, 3e-5];

const KPA_MANIFEST: &str =
    "kind: ConfigMap\ndata:\n  container-concurrency-target-percentage: \"PARAMETER\"\n";

/// Calls that need time only use no CPU to see, so the share of places that calls take stands for it.
const HPA_MANIFEST: &str = "apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: function}
  minReplicas: 1
  maxReplicas: 1000
  metrics:
  - {type: Pods, pods: {metric: {name: concurrency}, target: {type: AverageValue, averageValue: MILLI}}}
";

/// Whether a setting is one of those that the incumbents were first tuned over. What was added later made the envelope
/// stricter where hardly any call is slow: keep-alive beyond an hour, and further instances of the hybrid histogram
/// that stay for one.
pub fn is_on_first_grid(label: &str, parameter: f64) -> bool {
    label != FURTHER_AN_HOUR && !(label == "keep-alive" && parameter > 3600.0)
}

const FURTHER_AN_HOUR: &str = "hybrid-histogram, further 3600 s";

/// All families of scaling policies that the registry knows.
pub fn scaling_families() -> Vec<Family> {
    let further = |seconds: f64, ranges: &[f64]| Family {
        label: format!("hybrid-histogram, further {seconds} s"),
        fixed: vec![("further_keep_alive_seconds", toml::Value::Float(seconds))],
        ..Family::new("hybrid-histogram", "range_minutes", ranges)
    };
    let kpa = |label: &str, lines: &str| Family {
        label: label.to_owned(),
        scale_out: ScaleOut::OnTick,
        manifest: Some(format!("{KPA_MANIFEST}{lines}")),
        ..Family::new("kpa", "container-concurrency-target-percentage", &[20.0, 40.0, 70.0, 90.0])
    };
    let hpa = Family {
        scale_out: ScaleOut::OnTick,
        manifest: Some(HPA_MANIFEST.to_owned()),
        ..Family::new("hpa", "concurrency, %", &[50.0, 70.0])
    };
    let families = vec![
        Family::new(
            "keep-alive",
            "keep_alive_seconds",
            &[10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 3600.0, 7200.0, 14_400.0],
        ),
        Family::new("hybrid-histogram", "range_minutes", &[10.0, 30.0, 60.0, 120.0, 240.0]),
        further(60.0, &[10.0, 60.0, 240.0]),
        further(3600.0, &[60.0, 240.0]),
        Family::new("queueing", "wait_share", &[0.3, 0.1, 0.03, 0.01, 0.001]),
        kpa("kpa", ""),
        kpa("kpa, window 600 s", "  stable-window: \"600s\"\n"),
        hpa,
        windfall("windfall-scaling", &[]),
        Family { is_incumbent: false, ..Family::new(minute_oracle::NAME, "price", &PRICES) },
    ];
    families.into_iter().filter(Family::is_known).collect()
}

/// Families of sizing policies that the registry knows; each brings its own way of starting instances.
pub fn sizing_families() -> Vec<Family> {
    let per_call = |family: Family| Family { scale_out: ScaleOut::PerCall, ..family };
    let quantiles = [0.5, 0.8, 0.9, 0.95, 0.99, 1.0];
    let families = vec![
        per_call(Family::new("histogram", "quantile", &quantiles)),
        per_call(Family::new("libra", "peak_quantile", &quantiles)),
        per_call(Family::new("greedy", "threshold", &[0.5, 0.6, 0.7, 0.8, 0.9])),
        per_call(Family::new("ensure", "latency_threshold", &[1.02, 1.05, 1.15, 1.3])),
        per_call(Family {
            is_incumbent: false,
            ..Family::new("windfall", "cpu_quantile", &[0.5, 0.8, 0.9, 0.95, 0.99])
        }),
    ];
    families.into_iter().filter(Family::is_known).collect()
}

/// Pairs of a sizing and a scaling policy. The incumbents are all pairs of the stronger ones; `windfall` with
/// keep-alive and `fixed` with our scaling are what each half of ours does alone.
pub fn pair_families() -> Vec<Family> {
    let pair = |calls: &str, ticks: &Family, is_incumbent: bool| {
        let policy = format!("{calls}+{}", ticks.policy);
        Family {
            label: policy.clone(),
            policy,
            scale_out: ScaleOut::PerCall,
            is_incumbent,
            ..ticks.clone()
        }
    };
    let keep_alive = Family::new(
        "keep-alive",
        "keep_alive_seconds",
        &[10.0, 60.0, 300.0, 600.0, 1200.0, 3600.0],
    );
    let hybrid = Family::new("hybrid-histogram", "range_minutes", &[10.0, 60.0, 240.0]);
    let ours =
        Family { values: PRICES_BESIDE_SIZING.to_vec(), ..windfall("windfall-scaling", &[]) };
    let incumbents = ["fixed", "histogram", "libra"];
    let mut families: Vec<Family> = incumbents
        .iter()
        .flat_map(|calls| [pair(calls, &keep_alive, true), pair(calls, &hybrid, true)])
        .collect();
    families.extend([
        pair("windfall", &ours, false),
        pair("windfall", &keep_alive, false),
        pair("fixed", &ours, false),
    ]);
    families
}

impl Family {
    /// Whether the policy is there and has the parameter.
    fn is_known(&self) -> bool {
        if self.policy == minute_oracle::NAME {
            return true;
        }
        let scenario = self.at(self.values[0], &Scenario::default());
        let table = scenario.policy_settings.get(self.set()).cloned();
        let seed = windfall_core::Seed::new(0);
        entry(self.set()).is_some_and(|entry| entry.assemble(&table, seed).is_ok())
    }
}

/// Ours with its price swept, and other settings as given.
pub fn windfall(label: &str, settings: &[(&'static str, f64)]) -> Family {
    let fixed = settings.iter().map(|&(key, value)| (key, toml::Value::Float(value)));
    Family {
        label: label.to_owned(),
        fixed: fixed.collect(),
        is_incumbent: false,
        ..Family::new("windfall-scaling", "price", &PRICES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strong_incumbents_and_ours_are_there() {
        let labels: Vec<String> = scaling_families().into_iter().map(|f| f.label).collect();
        for name in ["keep-alive", FURTHER_AN_HOUR, "queueing", "hpa", "windfall-scaling"] {
            assert!(labels.iter().any(|label| label == name), "{labels:?}");
        }
    }

    #[test]
    fn a_parameter_becomes_a_setting_of_its_policy() {
        let family = Family::new("keep-alive", "keep_alive_seconds", &[60.0]);
        let scenario = family.at(60.0, &Scenario::default());
        let table = &scenario.policy_settings["keep-alive"];
        assert_eq!(table["keep_alive_seconds"].as_float(), Some(60.0));
        assert_eq!(scenario.platform.scale_out, ScaleOut::OnMiss);
    }
}
