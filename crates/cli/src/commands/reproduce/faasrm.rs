//! `windfall reproduce faasrm`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use windfall_experiments::faasrm as kernel;
use windfall_functions::ExperimentInputs;
use windfall_studies::reproduce::DataFolder;
use windfall_studies::reproduce::faasrm::{Settings, reproduce};

use super::{Delivery, Platform, data_folder};

/// FaaSRM (later Freyr): per-call sizes by a learned score network behind a safeguard.
///
/// First the paper's own simulator with its quirks: the published table beside ours, and what learning added
/// over a random choice inside the safeguard. Then the honest benchmark: the same agent trained here, with
/// all sizing policies, at four loads, on functions and hours that nothing was tuned on.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    delivery: Delivery,
    /// Where the experiment takes place
    #[arg(long, value_enum, default_value_t)]
    platform: Platform,
    /// Folder with the authors' sample [default: azure2019-joint-1000fn-60min below $WINDFALL_DATA]
    #[arg(long, value_name = "DIR", help_heading = "Data")]
    sample: Option<PathBuf>,
    /// Folder with the 500-function trace [default: azure2019-joint-500fn-8h below $WINDFALL_DATA]
    #[arg(long, value_name = "DIR", help_heading = "Data")]
    trace: Option<PathBuf>,
    /// Episodes of training in the paper's simulator
    #[arg(long, value_name = "N", help_heading = "Amount")]
    episodes: Option<usize>,
    /// A checkpoint to judge instead of training one for the honest benchmark
    #[arg(long, value_name = "FILE", help_heading = "Amount")]
    checkpoint: Option<PathBuf>,
    /// Price of core-time in the reward of a second agent, for what the paper's leaves out; 0 for none
    #[arg(long, value_name = "PRICE", default_value_t = 1.0, value_parser = price, help_heading = "Amount")]
    core_price: f32,
    /// Loads of the honest benchmark, e.g. 0.5,0.8
    #[arg(long, value_name = "LOADS", value_delimiter = ',', value_parser = crate::arguments::load, help_heading = "Amount")]
    loads: Vec<f64>,
    /// Minutes of the test hours to play, instead of all 240
    #[arg(long, value_name = "MINUTES", help_heading = "Amount")]
    minutes: Option<u32>,
    /// Without switching off single ideas of `windfall`
    #[arg(long, help_heading = "Amount")]
    no_ablation: bool,
    /// Without playing incumbents at every over-commit
    #[arg(long, help_heading = "Amount")]
    no_over_commit: bool,
    /// Without the agent of the paper in the honest benchmark: nothing is trained
    #[arg(long, conflicts_with_all = ["checkpoint", "core_price"], help_heading = "Amount")]
    no_agent: bool,
    /// Only the paper's simulator
    #[arg(long, help_heading = "Amount")]
    published_only: bool,
    #[command(flatten)]
    kernel: KernelArguments,
}

/// What `--platform embedded` understands.
#[derive(Args)]
#[command(next_help_heading = "With --platform embedded")]
struct KernelArguments {
    /// How often everything is repeated [default: 5, or 1 with --quick]
    #[arg(long, value_name = "N")]
    repetitions: Option<u32>,
    /// Add the repetitions to what --out has from earlier runs with the same settings; with none, predict and
    /// draw it anew
    #[arg(long)]
    append: bool,
    /// Only so many of the 268 calls [default: all, or 40 with --quick]
    #[arg(long, value_name = "N")]
    calls: Option<usize>,
    /// Managers, e.g. fixed,windfall [default: all seven]
    #[arg(long, value_name = "POLICIES", value_delimiter = ',')]
    policies: Vec<String>,
    /// How much faster than published calls arrive [default: 1, or 4 with --quick]
    #[arg(long, value_name = "FACTOR", hide_short_help = true)]
    speed: Option<f64>,
    /// Inputs over the functions' defaults [default: 1, or 0.2 with --quick]
    #[arg(long, value_name = "FACTOR", hide_short_help = true)]
    scale: Option<f64>,
    /// Draws inputs, and when within its second a call arrives
    #[arg(long, value_name = "N", default_value_t = 1, hide_short_help = true)]
    seed: u64,
}

impl KernelArguments {
    fn settings(&self, quick: bool) -> kernel::Settings {
        let usual = if quick { kernel::Settings::quick() } else { kernel::Settings::default() };
        let policies = match self.policies.is_empty() {
            true => usual.policies,
            false => self.policies.clone(),
        };
        let scale = self.scale.unwrap_or(usual.inputs.scale);
        kernel::Settings {
            calls: self.calls.or(usual.calls),
            speed: self.speed.unwrap_or(usual.speed),
            inputs: ExperimentInputs { scale, ..usual.inputs },
            seed: self.seed,
            repetitions: self.repetitions.unwrap_or(usual.repetitions),
            policies,
            appends: self.append,
        }
    }
}

/// A price as typed.
fn price(text: &str) -> Result<f32, String> {
    let price = text.parse().ok().filter(|price| (0.0..=100.0).contains(price));
    price.ok_or_else(|| format!("`{text}` is not a price, allowed is 0 to 100"))
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.platform == Platform::Embedded {
        let delivery = &arguments.delivery;
        delivery.refuse_seeds("--repetitions")?;
        let settings = arguments.kernel.settings(delivery.quick);
        return delivery.deliver("faasrm-embedded", None, |request, watcher| {
            kernel::reproduce(request, &settings, watcher)
        });
    }
    let settings = arguments.settings();
    arguments
        .delivery
        .deliver("faasrm", None, |request, watcher| reproduce(request, &settings, watcher))
}

impl Arguments {
    fn settings(&self) -> Settings {
        let folder = |given: &Option<PathBuf>, usual: &str| match given {
            Some(folder) => DataFolder::Given(folder.clone()),
            None => DataFolder::Usual(data_folder(usual)),
        };
        Settings {
            sample: folder(&self.sample, "azure2019-joint-1000fn-60min"),
            trace: folder(&self.trace, "azure2019-joint-500fn-8h"),
            episodes: self.episodes,
            checkpoint: self.checkpoint.clone(),
            core_price: self.core_price,
            loads: self.loads.clone(),
            minutes: self.minutes,
            with_ablation: !self.no_ablation,
            with_over_commit: !self.no_over_commit,
            with_agent: !self.no_agent,
            published_only: self.published_only,
        }
    }
}
