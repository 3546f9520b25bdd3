//! FaaSRM: the published simulation beside ours, then the same agent where time, queues and memory kills are
//! real, beside every other policy that sizes calls.

mod honest;
mod honest_page;
mod page;
mod sizing_variants;

use std::path::PathBuf;

use serde_json::json;
use windfall_core::Seed;
use windfall_papers::faasrm::Origin;
use windfall_papers::faasrm::calls::generated_sample;
use windfall_papers::faasrm::paper_agent::TrainingSettings;
use windfall_papers::faasrm::published::{Reproduction, reproduce as play};
use windfall_rl::parallel::Workers;
use windfall_trace::freyr_sample::{SampledFunction, open_sample};

use super::{DataFolder, ReproduceError, Reproduced, Request, Stage, Watcher};

/// What this reproduction is asked beyond the usual.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Folder with the authors' sample.
    pub sample: DataFolder,
    /// Folder with the 500-function trace.
    pub trace: DataFolder,
    /// Episodes of training in the paper's simulator; the usual number if none.
    pub episodes: Option<usize>,
    /// A checkpoint to judge instead of training one for the honest benchmark.
    pub checkpoint: Option<PathBuf>,
    /// Price of core-time in the reward of a second agent; 0 for no second agent.
    pub core_price: f32,
    /// Loads of the honest benchmark; the usual ones if empty.
    pub loads: Vec<f64>,
    /// Minutes of the test hours to play; all 240 if none.
    pub minutes: Option<u32>,
    /// Whether single ideas of `windfall` are switched off, one by one.
    pub with_ablation: bool,
    /// Whether incumbents are also played at every over-commit.
    pub with_over_commit: bool,
    /// Whether the paper's agent takes part in the honest benchmark.
    pub with_agent: bool,
    /// Only the paper's simulator.
    pub published_only: bool,
}

/// Plays the paper's simulator, then the honest benchmark.
pub fn reproduce(
    request: &Request<'_>,
    settings: &Settings,
    watcher: &dyn Watcher,
) -> Result<Reproduced, ReproduceError> {
    let seeds = seeds(request)?;
    let (sample, origin) = sample(request, &settings.sample, watcher)?;
    let published = play_published(request, settings, (&sample, &seeds), watcher);
    let honest = match settings.published_only {
        true => None,
        false => Some(honest::play(request, settings, watcher)?),
    };
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
    let document = page::document(request, &published, origin, honest.as_ref(), sections);
    Reproduced::new(document, text, &numbers)
}

fn seeds(request: &Request<'_>) -> Result<Vec<u64>, ReproduceError> {
    let usual = if request.quick { 2 } else { 4 };
    match request.seeds.unwrap_or(usual) {
        0 => Err(ReproduceError::NoSeeds),
        count => Ok((1..=u64::from(count)).collect()),
    }
}

/// The authors' sample, or a generated one where it is not at hand.
fn sample(
    request: &Request<'_>,
    folder: &DataFolder,
    watcher: &dyn Watcher,
) -> Result<(Vec<SampledFunction>, Origin), ReproduceError> {
    let folder = match folder {
        DataFolder::Given(folder) => return Ok((open_sample(folder)?, Origin::Azure2019)),
        DataFolder::Usual(folder) if folder.is_dir() => {
            return Ok((open_sample(folder)?, Origin::Azure2019));
        }
        DataFolder::Usual(folder) => folder,
    };
    watcher.warn(&format!(
        "{}: not there. The published numbers are about three CSV files derived from the Azure Functions \
         2019 data set (Azure/AzurePublicDataset), which the authors publish in IntelliSys-Lab/Freyr-sim \
         as exp_sim_{{invocation,duration,memory}}_traces_0.csv. Put them into one folder and give it \
         with --sample DIR, or set WINDFALL_DATA. Going on with GENERATED calls.",
        folder.display()
    ));
    let functions = if request.quick { 100 } else { 1000 };
    Ok((generated_sample(functions, Seed::new(1)), Origin::Generated))
}

/// The 500-function trace, where it can be found.
fn trace(folder: &DataFolder, watcher: &dyn Watcher) -> Result<Option<PathBuf>, ReproduceError> {
    match folder {
        DataFolder::Given(folder) if folder.exists() => Ok(Some(folder.clone())),
        DataFolder::Usual(folder) if folder.is_dir() => Ok(Some(folder.clone())),
        DataFolder::Given(folder) => Err(ReproduceError::NoTrace { folder: folder.clone() }),
        DataFolder::Usual(folder) => {
            watcher.warn(&format!(
                "{}: not there. The honest benchmark is about 500 functions of the Azure Functions 2019 data \
                 set (Azure/AzurePublicDataset): invocations, durations and memory of 8 hours. Give the \
                 folder with --trace DIR, or set WINDFALL_DATA. Going on with GENERATED calls.",
                folder.display()
            ));
            Ok(None)
        }
    }
}

fn play_published(
    request: &Request<'_>,
    settings: &Settings,
    (sample, seeds): (&[SampledFunction], &[u64]),
    watcher: &dyn Watcher,
) -> Reproduction {
    let usual = match request.quick {
        true => TrainingSettings::quick(),
        false => TrainingSettings::default(),
    };
    let episodes = settings.episodes.unwrap_or(usual.episodes).max(1);
    let training = TrainingSettings { episodes, ..usual };
    watcher.begin(Stage::Training {
        what: "training in the paper's simulator",
        steps: (seeds.len() * episodes) as u64,
    });
    let workers = Workers::new(request.threads);
    let result = play(sample, seeds, &training, &workers, &mut |_| watcher.advance(1));
    watcher.end();
    result
}
