//! `windfall train windfall-sizing`: the parameters of the product's own sizing, set from scratch on the training
//! half, written as a checkpoint, and judged from the file on the test half.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;
use windfall_scenario::Scenario;
use windfall_scenario::sweep::Sweep;
use windfall_studies::windfall_training::{TrainedWindfall, Turn, WindfallTraining, test_world};
use windfall_telemetry::Comparison;

use crate::arguments::{Format, threads};
use crate::commands::reproduce::data_folder;
use crate::output::{directory, print, print_json, write_whole};
use crate::progress::{self, SweepBar};

/// The parameters as a file that can stand wherever a policy's name can.
const FILE: &str = "windfall.safetensors";
/// Every parameter that was tried, one a line.
const TURNS: &str = "turns.jsonl";
/// The world of the evaluation, for `compare --scenario`.
const TEST: &str = "test.toml";
/// The table of the evaluation.
const TABLE: &str = "evaluation.csv";
/// The training hours that every candidate is played on.
const TRAINING_MINUTES: u32 = 40;

/// Set the parameters of `windfall` from scratch, on functions and hours that no table is about
///
/// Each parameter in turn is tried a step up and a step down; what costs less on the training calls is kept.
/// Leaves in its folder: `windfall.safetensors`, to be used as `--policy FILE`, `turns.jsonl`, `test.toml`, the
/// world of the evaluation, and `evaluation.csv`, which this repeats in another process:
///
///   windfall compare --scenario DIR/test.toml --format csv
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Folder with the 500-function trace [default: azure2019-joint-500fn-8h below $WINDFALL_DATA, else
    /// generated calls]
    #[arg(long, value_name = "DIR", conflicts_with = "generated", help_heading = "Data")]
    trace: Option<PathBuf>,
    /// Generated calls, wherever the trace is
    #[arg(long, help_heading = "Data")]
    generated: bool,
    /// The first of the two seeds that candidates are played from
    #[arg(long, default_value_t = 101, help_heading = "Learning")]
    seed: u64,
    /// Minutes of the training hours that every candidate is played on
    #[arg(long, value_name = "MINUTES", default_value_t = TRAINING_MINUTES, value_parser = clap::value_parser!(u32).range(1..=240), help_heading = "Learning")]
    minutes: u32,
    /// One round of steps, one seed, one load: to see it work
    #[arg(long, help_heading = "Learning")]
    quick: bool,
    /// Minutes of the test hours that the result is judged on
    #[arg(long, value_name = "MINUTES", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=240), help_heading = "Evaluation")]
    test_minutes: u32,
    /// Threads; the result does not depend on it
    #[arg(long, default_value = "1", value_parser = threads, help_heading = "Run")]
    threads: usize,
    /// Folder for what is kept
    #[arg(
        long,
        value_name = "DIR",
        default_value = "runs/train-windfall-sizing",
        help_heading = "Output"
    )]
    out: PathBuf,
    /// How to print the outcome
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let trace = arguments.trace()?;
    let training = arguments.training(trace.clone());
    directory(&arguments.out)?;
    let trained = search(&training)?;
    let file = arguments.out.join(FILE);
    trained.checkpoint.save(&file)?;
    let turns: Vec<String> =
        trained.turns.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
    write_whole(&arguments.out.join(TURNS), &(turns.join("\n") + "\n"))?;
    let comparison = arguments.evaluate(trace, &file)?;
    write_whole(&arguments.out.join(TABLE), &comparison.to_csv())?;
    show(arguments, &trained, &comparison)?;
    Ok(ExitCode::SUCCESS)
}

fn search(training: &WindfallTraining) -> anyhow::Result<TrainedWindfall> {
    let bar = progress::iterations(training.most_turns());
    let trained = training.run(&mut |turn: &Turn| {
        bar.inc(1);
        bar.set_message(format!("{} {} -> {}", turn.parameter, turn.from, turn.to));
    })?;
    bar.finish_and_clear();
    Ok(trained)
}

impl Arguments {
    fn trace(&self) -> anyhow::Result<Option<PathBuf>> {
        if let Some(folder) = &self.trace {
            if !folder.exists() {
                bail!("{}: the trace is not there", folder.display());
            }
            return Ok(Some(folder.clone()));
        }
        let folder = data_folder("azure2019-joint-500fn-8h");
        let is_there = folder.is_dir() && !self.generated;
        if !is_there && !self.generated {
            eprintln!("{}: not there; training on GENERATED calls", folder.display());
        }
        Ok(is_there.then_some(folder))
    }

    fn training(&self, trace: Option<PathBuf>) -> WindfallTraining {
        let whole = WindfallTraining::on_training_half(trace, self.minutes, self.seed);
        let whole = WindfallTraining { threads: self.threads, ..whole };
        if self.quick { whole.quick() } else { whole }
    }

    /// Writes the world of the evaluation, reads it back, and plays it as `compare` will.
    fn evaluate(&self, trace: Option<PathBuf>, file: &Path) -> anyhow::Result<Comparison> {
        let path = self.out.join(TEST);
        let text = test_world(trace, self.test_minutes, self.quick, file);
        write_whole(&path, &text)?;
        let scenario = Scenario::parse(&text, &path.display().to_string())
            .with_context(|| format!("{}: is not what it should be", path.display()))?;
        let bar = SweepBar(progress::calls(0));
        let played = Sweep { scenario: &scenario, threads: self.threads }.play(&bar)?;
        bar.0.finish_and_clear();
        Ok(Comparison::new(played.rows, crate::commands::compare::BASELINE))
    }
}

fn show(
    arguments: &Arguments,
    trained: &TrainedWindfall,
    comparison: &Comparison,
) -> anyhow::Result<()> {
    let folder = arguments.out.display();
    let kept = trained.turns.iter().filter(|turn| turn.kept);
    match arguments.format {
        Format::Json => print_json(&json!({
            "settings": trained.settings,
            "turns": trained.turns,
            "evaluation": comparison.rows,
            "checkpoint": format!("{folder}/{FILE}"),
        })),
        Format::Csv => print(&comparison.to_csv()),
        Format::Markdown => print(&comparison.to_markdown()),
        Format::Text => {
            let turned = kept.map(|turn| {
                format!(
                    "  {:28} {} -> {}  cost {:.4} -> {:.4}\n",
                    turn.parameter, turn.from, turn.to, turn.cost_before, turn.cost_after
                )
            });
            print(&format!(
                "tried {} steps, kept\n{}\n{}\ncheckpoint  {folder}/{FILE}\n\
                 again       windfall compare --scenario {folder}/{TEST}",
                trained.turns.len(),
                turned.collect::<String>(),
                comparison.to_text(),
            ))
        }
    }
}
