//! FaaSRM's OpenWhisk experiment on a real kernel, beside the simulator's prediction of the same runs.
//!
//! Nothing is run here: whoever has a machine passes the records of its calls. A call's relative execution time (RFET) is
//! its run time over that of the same call, alone on the machine, at the user's size.

mod page;

use serde::{Deserialize, Serialize};
use windfall_core::statistics::nearest_rank;
use windfall_core::{CallRecord, DecidedBy};
use windfall_telemetry::Document;
use windfall_telemetry::statistics::Estimate;

use super::Request;
use crate::calibration::Calibration;

/// What the paper reports of its own run of the 268 calls (FaaSRM v1, OpenWhisk on 80 cores).
pub const PUBLISHED: [PublishedRow; 4] = [
    PublishedRow { policy: "fixed", rfet_mean: 1.09, p98_s: 32.2 },
    PublishedRow { policy: "greedy", rfet_mean: 0.93, p98_s: 25.8 },
    PublishedRow { policy: "ensure", rfet_mean: 1.12, p98_s: 27.4 },
    PublishedRow { policy: "faasrm", rfet_mean: 0.89, p98_s: 16.9 },
];

/// A published row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PublishedRow {
    /// The policy's name here.
    pub policy: &'static str,
    /// Mean relative execution time.
    pub rfet_mean: f64,
    /// 98 % of the calls run at most so long.
    pub p98_s: f64,
}

/// What else went on while a run was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// CPU time of the manager over that of manager and functions; written with the row.
    #[serde(skip)]
    pub manager_cpu_share: f64,
    /// The same for the thread that decides alone.
    pub agent_cpu_share: f64,
    /// Load average of the machine over one minute, at the end.
    pub load_average: f64,
    /// Share of the time in which some task on the machine waited for a CPU.
    pub cpu_pressure: f64,
    /// Share of the machine's CPU time that its hypervisor gave to others.
    pub steal: f64,
    /// From the first call to the end of the last one, seconds.
    pub took_s: f64,
    /// Calls that did not end with a result.
    pub failed: u32,
}

/// One run of all calls under one policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelRow {
    /// The policy.
    pub policy: String,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// Calls that ended.
    pub calls: u32,
    /// Mean relative execution time.
    pub rfet_mean: f64,
    /// 98th percentile of it.
    pub rfet_p98: f64,
    /// 98th percentile of run times, seconds.
    pub p98_s: f64,
    /// 98th percentile of the time from the due moment to the end, seconds.
    pub latency_p98_s: f64,
    /// Mean of it.
    pub latency_mean_s: f64,
    /// Share of calls that held less than their user reserves at some time.
    pub harvested_share: f64,
    /// Share of calls that held more.
    pub accelerated_share: f64,
    /// Share of calls where a safeguard stepped in or a decision was replaced.
    pub safeguarded_share: f64,
    /// How much longer the worst harvested call ran than at the user's size; 0.1 is 10 %.
    pub worst_degradation: f64,
    /// Attempts that were killed because memory crossed the limit.
    pub memory_kills: u32,
    /// Core-seconds granted.
    pub granted_core_s: f64,
    /// Core-seconds used.
    pub used_core_s: f64,
    /// CPU time of the manager over that of manager and functions; 0 in the simulator, where deciding costs nothing.
    pub manager_cpu_share: f64,
    /// What else went on; nothing in the simulator.
    #[serde(flatten)]
    pub conditions: Option<Conditions>,
}

impl KernelRow {
    /// What a run comes to. `baselines` has the run time of each call alone at the user's size, seconds.
    pub fn new(
        policy: &str,
        repetition: u32,
        calls: &[Option<CallRecord>],
        baselines: &[f64],
        conditions: Option<Conditions>,
    ) -> Self {
        let ended: Vec<(&CallRecord, f64)> = (calls.iter().zip(baselines))
            .filter_map(|(call, baseline)| Some((call.as_ref()?, *baseline)))
            .collect();
        let count = ended.len().max(1) as f64;
        let rfet =
            |(call, baseline): &(&CallRecord, f64)| call.run.as_secs_f64() / baseline.max(1e-6);
        let latency = |call: &CallRecord| call.ended_at.since(call.arrived_at).as_secs_f64();
        let share = |of: &dyn Fn(&CallRecord) -> bool| {
            ended.iter().filter(|(call, _)| of(call)).count() as f64 / count
        };
        let sum = |of: &dyn Fn(&CallRecord) -> f64| -> f64 {
            ended.iter().map(|(call, _)| of(call)).sum()
        };
        let harvested = ended.iter().filter(|(call, _)| call.is_harvested());
        Self {
            policy: policy.to_owned(),
            repetition,
            calls: ended.len() as u32,
            rfet_mean: ended.iter().map(rfet).sum::<f64>() / count,
            rfet_p98: p98(ended.iter().map(rfet)),
            p98_s: p98(ended.iter().map(|(call, _)| call.run.as_secs_f64())),
            latency_p98_s: p98(ended.iter().map(|(call, _)| latency(call))),
            latency_mean_s: ended.iter().map(|(call, _)| latency(call)).sum::<f64>() / count,
            harvested_share: share(&CallRecord::is_harvested),
            accelerated_share: share(&CallRecord::is_accelerated),
            safeguarded_share: share(&is_safeguarded),
            worst_degradation: harvested.map(|call| rfet(call) - 1.0).fold(0.0, f64::max),
            memory_kills: ended.iter().map(|(call, _)| u32::from(call.oom_kills)).sum(),
            granted_core_s: sum(&|call| call.cpu_granted as f64 * 1e-12),
            used_core_s: sum(&|call| call.cpu_used as f64 * 1e-12),
            manager_cpu_share: conditions.map_or(0.0, |it| it.manager_cpu_share),
            conditions,
        }
    }
}

fn is_safeguarded(call: &CallRecord) -> bool {
    !call.amendments.is_empty() || matches!(call.decided_by, DecidedBy::Fallback(_))
}

fn p98(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    nearest_rank(&sorted, 0.98).unwrap_or(0.0)
}

/// How the experiment was set up, for the page and the numbers.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Setup {
    /// Calls per run.
    pub calls: usize,
    /// Seconds of the schedule.
    pub schedule_s: f64,
    /// How much faster than published calls arrive.
    pub speed: f64,
    /// Inputs over the functions' defaults.
    pub scale: f64,
    /// The seed of arrival times and inputs.
    pub seed: u64,
    /// Repetitions.
    pub repetitions: u32,
    /// Cores of the node.
    pub cores: f64,
    /// Memory of the node, MiB.
    pub memory_mib: u32,
    /// Core-seconds that users reserve for the calls, alone, over what the node has in the time of the schedule.
    pub reserved_load: f64,
    /// Which cgroup driver set the limits.
    pub driver: String,
    /// How often each call was measured alone at the user's size.
    pub baseline_passes: u32,
}

/// How the simulator's prediction compares with the kernel, for one policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// The policy.
    pub policy: String,
    /// Simulated over measured mean RFET, less 1.
    pub rfet_error: f64,
    /// Simulated over measured P98 time, less 1.
    pub p98_error: f64,
    /// Median over the calls of the error of a single run time, without its sign.
    pub call_error: f64,
}

/// Everything that was measured and predicted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KernelExperiment {
    /// How it was set up.
    pub setup: Setup,
    /// The published rows.
    pub published: Vec<PublishedRow>,
    /// What was measured, one row per run, in the order of the runs.
    pub kernel: Vec<KernelRow>,
    /// What the simulator predicts for the same calls.
    pub simulated: Vec<KernelRow>,
    /// How well it does.
    pub prediction: Vec<Comparison>,
    /// The functions' models behind the prediction.
    pub calibration: Calibration,
}

impl KernelExperiment {
    /// The policies in the order of the first repetition.
    pub fn policies(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for row in &self.kernel {
            if !names.contains(&row.policy.as_str()) {
                names.push(&row.policy);
            }
        }
        names
    }

    /// Mean over repetitions with its interval.
    pub fn estimate(&self, policy: &str, of: impl Fn(&KernelRow) -> f64) -> Option<Estimate> {
        estimate(&self.kernel, policy, of)
    }

    /// The same for the simulator.
    pub fn simulated(&self, policy: &str, of: impl Fn(&KernelRow) -> f64) -> Option<Estimate> {
        estimate(&self.simulated, policy, of)
    }

    /// Compares prediction and measurement; `call_errors` has the median error of single calls by policy.
    pub fn compare(&mut self, call_errors: &[(String, f64)]) {
        let error = |policy: &str, of: fn(&KernelRow) -> f64| {
            let measured = self.estimate(policy, of)?.mean;
            Some(self.simulated(policy, of)?.mean / measured.max(1e-9) - 1.0)
        };
        let row = |policy: &str| {
            Some(Comparison {
                policy: policy.to_owned(),
                rfet_error: error(policy, |row| row.rfet_mean)?,
                p98_error: error(policy, |row| row.p98_s)?,
                call_error: call_errors.iter().find(|(name, _)| name == policy)?.1,
            })
        };
        self.prediction = self.policies().into_iter().filter_map(row).collect();
    }

    /// Difference to `fixed` of the same repetition, with its interval.
    pub fn beside_fixed(&self, policy: &str, of: impl Fn(&KernelRow) -> f64) -> Option<Estimate> {
        let rows = |policy: &str| {
            let policy = policy.to_owned();
            self.kernel.iter().filter(move |row| row.policy == policy)
        };
        let differences: Vec<f64> = rows(policy)
            .filter_map(|row| {
                let other = rows("fixed").find(|other| other.repetition == row.repetition)?;
                Some(of(row) - of(other))
            })
            .collect();
        Estimate::of(&differences)
    }

    /// The table for a terminal.
    pub fn text(&self) -> String {
        page::text(self)
    }

    /// The page.
    pub fn page(&self, request: &Request<'_>) -> Document {
        page::page(request, self)
    }
}

fn estimate(rows: &[KernelRow], policy: &str, of: impl Fn(&KernelRow) -> f64) -> Option<Estimate> {
    let values: Vec<f64> = rows.iter().filter(|row| row.policy == policy).map(of).collect();
    Estimate::of(&values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_core::{Allocation, Duration, Timestamp};

    fn call(run_ms: u64, lowest: u32) -> Option<CallRecord> {
        let reservation = Allocation::new(1000, 128);
        Some(CallRecord {
            arrived_at: Timestamp::from_secs(1),
            ended_at: Timestamp::from_secs(1) + Duration::from_millis(run_ms + 50),
            run: Duration::from_millis(run_ms),
            reservation,
            first_grant: reservation,
            lowest_grant: Allocation::new(lowest, 128),
            highest_grant: Allocation::new(1000.max(lowest), 128),
            ..CallRecord::default()
        })
    }

    #[test]
    fn a_row_counts_what_its_calls_came_to() {
        let calls = [call(100, 1000), call(150, 500), call(50, 2000), None];
        let row = KernelRow::new("greedy", 2, &calls, &[0.1, 0.1, 0.1, 0.1], None);
        assert_eq!((row.calls, row.repetition), (3, 2));
        assert!((row.rfet_mean - 1.0).abs() < 1e-9 && (row.p98_s - 0.15).abs() < 1e-9);
        assert!((row.worst_degradation - 0.5).abs() < 1e-9 && row.latency_p98_s > row.p98_s);
        let third = 1.0 / 3.0;
        assert_eq!([row.harvested_share, row.accelerated_share], [third, third]);
    }

    #[test]
    fn rows_carry_the_keys_that_scripts_rely_on() {
        let conditions = Conditions { manager_cpu_share: 0.02, ..Conditions::default() };
        let row = KernelRow::new("fixed", 1, &[call(100, 1000)], &[0.1], Some(conditions));
        let keys = serde_json::to_value(&row).unwrap();
        for key in [
            "policy",
            "repetition",
            "rfet_mean",
            "p98_s",
            "harvested_share",
            "accelerated_share",
            "worst_degradation",
            "manager_cpu_share",
        ] {
            assert!(!keys[key].is_null(), "{key} is missing in {keys}");
        }
        assert_eq!(keys["manager_cpu_share"], 0.02);
    }

    #[test]
    fn a_page_and_a_table_name_every_policy_and_the_published_rows() {
        let mut experiment =
            KernelExperiment { published: PUBLISHED.to_vec(), ..Default::default() };
        for repetition in 1..=2 {
            for policy in ["fixed", "greedy"] {
                let calls = [call(100, 1000), call(120, 800)];
                let row = KernelRow::new(policy, repetition, &calls, &[0.1, 0.1], None);
                experiment.simulated.push(row.clone());
                experiment.kernel.push(row);
            }
        }
        experiment.compare(&[("fixed".into(), 0.1), ("greedy".into(), 0.2)]);
        assert_eq!(experiment.prediction.len(), 2);
        let text = experiment.text();
        assert!(text.contains("greedy") && text.contains("0.93"), "{text}");
        let request = Request {
            command: "windfall reproduce faasrm --platform embedded",
            quick: true,
            seeds: None,
            threads: 1,
            folder: std::path::Path::new("."),
        };
        assert!(experiment.page(&request).html().contains("greedy"));
    }
}
