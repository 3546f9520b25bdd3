//! `windfall reproduce faasrm`: the published simulation beside ours, then the same agent where time, queues
//! and memory kills are real, beside every other policy that sizes calls.

mod honest;
mod honest_page;
mod page;
mod sizing_variants;

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;
use windfall_core::Seed;
use windfall_papers::faasrm::Origin;
use windfall_papers::faasrm::calls::generated_sample;
use windfall_papers::faasrm::paper_agent::TrainingSettings;
use windfall_papers::faasrm::published::{Reproduction, reproduce};
use windfall_rl::parallel::Workers;
use windfall_trace::freyr_sample::{SampledFunction, open_sample};

use super::{Delivery, data_folder};
use crate::commands::compare::all_threads;
use crate::progress;

/// FaaSRM (later Freyr): per-call sizes by a learned score network behind a safeguard.
///
/// First the paper's own simulator with its quirks: the published table beside ours, and what learning added
/// over a random choice inside the safeguard. Then the honest benchmark: the same agent trained here, with
/// all sizing policies, at four loads, on functions and hours that nothing was tuned on.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    delivery: Delivery,
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
}

/// A price as typed.
fn price(text: &str) -> Result<f32, String> {
    let price = text.parse().ok().filter(|price| (0.0..=100.0).contains(price));
    price.ok_or_else(|| format!("`{text}` is not a price, allowed is 0 to 100"))
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let seeds = arguments.seeds()?;
    let (sample, origin) = arguments.sample()?;
    let published = play_published(arguments, &sample, &seeds);
    let honest = if arguments.published_only { None } else { Some(honest::play(arguments)?) };

    let mut text = page::text(&published, origin);
    let mut sections = page::sections(&published, origin);
    let mut numbers = json!({
        "workload": origin.label(),
        "published": page::rows(&published),
        "learning_added": published.added,
        "learning_curves": published.curves.iter().map(|(seed, episodes)| json!({
            "seed": seed, "episodes": episodes,
        })).collect::<Vec<_>>(),
    });
    if let Some(honest) = &honest {
        text += &honest_page::text(honest);
        sections.extend(honest_page::sections(honest));
        honest_page::add_numbers(honest, &mut numbers);
    }
    let document = page::document(&published, origin, honest.as_ref(), sections);
    arguments.delivery.deliver("faasrm", &document, &text, &numbers)
}

impl Arguments {
    fn seeds(&self) -> anyhow::Result<Vec<u64>> {
        let usual = if self.delivery.quick { 2 } else { 4 };
        match self.delivery.seeds.unwrap_or(usual) {
            0 => bail!("--seeds is 0, allowed is 1 or more"),
            count => Ok((1..=u64::from(count)).collect()),
        }
    }

    /// The authors' sample, or a generated one where it is not at hand.
    fn sample(&self) -> anyhow::Result<(Vec<SampledFunction>, Origin)> {
        if let Some(folder) = &self.sample {
            return Ok((open_sample(folder)?, Origin::Azure2019));
        }
        let folder = data_folder("azure2019-joint-1000fn-60min");
        if folder.is_dir() {
            return Ok((open_sample(&folder)?, Origin::Azure2019));
        }
        eprintln!(
            "{}: not there. The published numbers are about three CSV files derived from the Azure Functions \
             2019 data set (Azure/AzurePublicDataset), which the authors publish in IntelliSys-Lab/Freyr-sim \
             as exp_sim_{{invocation,duration,memory}}_traces_0.csv. Put them into one folder and give it \
             with --sample DIR, or set WINDFALL_DATA. Going on with GENERATED calls.",
            folder.display()
        );
        let functions = if self.delivery.quick { 100 } else { 1000 };
        Ok((generated_sample(functions, Seed::new(1)), Origin::Generated))
    }

    /// The 500-function trace, where it can be found.
    fn trace(&self) -> anyhow::Result<Option<PathBuf>> {
        if let Some(folder) = &self.trace {
            let told = || format!("{}: the trace is not there", folder.display());
            return folder.exists().then(|| Some(folder.clone())).with_context(told);
        }
        let folder = data_folder("azure2019-joint-500fn-8h");
        if !folder.is_dir() {
            eprintln!(
                "{}: not there. The honest benchmark is about 500 functions of the Azure Functions 2019 data \
                 set (Azure/AzurePublicDataset): invocations, durations and memory of 8 hours. Give the \
                 folder with --trace DIR, or set WINDFALL_DATA. Going on with GENERATED calls.",
                folder.display()
            );
            return Ok(None);
        }
        Ok(Some(folder))
    }
}

fn play_published(
    arguments: &Arguments,
    sample: &[SampledFunction],
    seeds: &[u64],
) -> Reproduction {
    let usual = if arguments.delivery.quick {
        TrainingSettings::quick()
    } else {
        TrainingSettings::default()
    };
    let training =
        TrainingSettings { episodes: arguments.episodes.unwrap_or(usual.episodes).max(1), ..usual };
    let bar = progress::steps(
        "training in the paper's simulator",
        (seeds.len() * training.episodes) as u64,
    );
    let workers = Workers::new(all_threads());
    let result = reproduce(sample, seeds, &training, &workers, &mut |_| bar.inc(1));
    bar.finish_and_clear();
    result
}
