//! `windfall frontier`: policies with one parameter swept, and how far one lies from the envelope of the others.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use indicatif::ProgressBar;
use windfall_registry::is_known;
use windfall_scenario::Scenario;
use windfall_studies::frontier::numbers::Numbers;
use windfall_studies::frontier::pages::document;
use windfall_studies::frontier::parameters::Family;
use windfall_studies::frontier::ratios::{Ratio, ratios};
use windfall_studies::frontier::tables::parameter;
use windfall_studies::frontier::texts::{to_csv, to_markdown, to_text};
use windfall_studies::frontier::worlds::World;
use windfall_studies::frontier::{
    Frontier, FrontierPoint, FrontierResult, FrontierWatcher, Question,
};
use windfall_telemetry::report::ReportContext;
use windfall_trace::Source;

use crate::arguments::{Format, WorldArguments, load, seeds, threads};
use crate::commands::compare::all_threads;
use crate::output::{command_line, directory, print, print_json, write_whole};
use crate::progress;

/// Sweep one parameter of each policy and draw what it costs to wait less.
///
/// Draws slow calls against memory and instances held, the lower envelope of the incumbents, and how far
/// windfall-scaling lies from it, seed by seed. Without arguments: held-out functions and hours of Azure's
/// 500-function trace below $WINDFALL_DATA, else generated ones.
#[derive(Args)]
pub(crate) struct Arguments {
    /// A world made for this question; --scenario and --trace take its place
    #[arg(long, value_parser = worlds(), help_heading = "World")]
    world: Option<World>,
    #[command(flatten)]
    given: WorldArguments,
    /// Calls that one instance serves at once
    #[arg(long, value_name = "N", help_heading = "World")]
    concurrency: Option<u32>,
    /// Memory of the cluster over what the arrivals oracle holds on average; no limit if left out
    #[arg(long, value_name = "FACTOR", help_heading = "World")]
    pool: Option<f64>,
    /// Ask for sizes instead: p99 slowdown against core-seconds, at this load
    #[arg(long, value_name = "LOAD", value_parser = load, help_heading = "World")]
    sizing: Option<f64>,
    /// Ask for both decision points: pairs of a sizing and a scaling policy at this load
    #[arg(long, value_name = "LOAD", value_parser = load, conflicts_with_all = ["sizing", "pool", "concurrency"], help_heading = "World")]
    together: Option<f64>,
    /// Only families whose names begin like one of these
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Runs")]
    policies: Vec<String>,
    /// Prices of windfall-scaling, e.g. 1e-5,1e-4
    #[arg(long, value_name = "PRICES", value_delimiter = ',', help_heading = "Runs")]
    prices: Vec<f64>,
    /// 5 for seeds 1 to 5, or a list 7,9 or a range 3-6
    #[arg(long, value_name = "SEEDS", value_parser = seeds, help_heading = "Runs")]
    seeds: Option<std::vec::Vec<u64>>,
    /// One seed, and every other setting of each parameter
    #[arg(long, help_heading = "Runs")]
    quick: bool,
    /// Threads; the results do not depend on it
    #[arg(long, value_name = "N", value_parser = threads, help_heading = "Runs")]
    threads: Option<usize>,
    /// How to print the results
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,
    /// Directory for report and results
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    out: Option<PathBuf>,
}

/// Worlds by their names.
fn worlds() -> impl TypedValueParser<Value = World> {
    let listed = World::ALL.map(|world| {
        let (name, summary) = world.name();
        PossibleValue::new(name).help(summary)
    });
    PossibleValuesParser::new(listed).map(|name| World::named(&name).unwrap_or(World::Sparse))
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let question = arguments.question();
    let families = arguments.families(question)?;
    let scenario = arguments.scenario(question, &families)?;
    let frontier = Frontier { question, scenario: &scenario, families, pool: arguments.pool };
    let bar = Bar(progress::runs(0));
    let threads = arguments.threads.unwrap_or_else(all_threads);
    let result = frontier.sweep_on(threads, &bar)?;
    bar.0.finish_and_clear();
    let ratios = ratios(question, &result.points);
    let folder = arguments
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from("runs").join(format!("frontier-{}", scenario.digest())));
    deliver(arguments.format, question, &scenario, (&result, &ratios), folder)?;
    Ok(ExitCode::SUCCESS)
}

fn deliver(
    format: Format,
    question: Question,
    scenario: &Scenario,
    (result, ratios): (&FrontierResult, &[Ratio]),
    folder: PathBuf,
) -> anyhow::Result<()> {
    let context = ReportContext {
        title: format!("Frontier: {}", scenario.name),
        command: command_line(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        settings: serde_json::to_value(scenario)?,
    };
    directory(&folder)?;
    let report = folder.join("report.html");
    write_whole(&report, &document(context, question, result, ratios).html())?;
    let results = Numbers::new(&scenario.name, result, ratios, &report);
    write_whole(&folder.join("results.json"), &serde_json::to_string_pretty(&results)?)?;
    match format {
        Format::Json => print_json(&results),
        Format::Csv => print(&to_csv(&result.points)),
        Format::Markdown => print(&to_markdown(question, result, ratios)),
        Format::Text => {
            let text = to_text(question, result, ratios);
            print(&format!("{text}\nreport: {}", report.display()))
        }
    }
}

impl Arguments {
    fn question(&self) -> Question {
        match (self.sizing, self.together) {
            (Some(load), _) => Question::Sizing { load },
            (None, Some(load)) => Question::Together { load },
            (None, None) => Question::Scaling,
        }
    }

    fn scenario(&self, question: Question, families: &[Family]) -> anyhow::Result<Scenario> {
        let is_given = self.given.scenario.is_some() || self.given.trace.is_some();
        let mut scenario = match self.world {
            Some(_) if is_given => bail!("--world is a world of its own; leave out the others"),
            _ if is_given => self.given.scenario()?,
            Some(world) => self.in_world(world, question)?,
            None => self.in_world(World::usual(&data(), question.needs()), question)?,
        };
        if let Some(concurrency) = self.concurrency {
            if !(1..=1000).contains(&concurrency) {
                bail!("--concurrency is {concurrency}, allowed is 1 to 1000");
            }
            scenario.platform.concurrency = concurrency;
        }
        if let Some(factor) = self.pool.filter(|factor| !(0.1..=1e6).contains(factor)) {
            bail!("--pool is {factor}, allowed is 0.1 to 1000000");
        }
        if self.quick {
            scenario.seeds.truncate(1);
        }
        if let Some(seeds) = &self.seeds {
            scenario.seeds.clone_from(seeds);
        }
        // Who takes part is said by the families, not by the world.
        let mut policies: Vec<String> = families
            .iter()
            .map(|family| family.policy.clone())
            .filter(|name| is_known(name))
            .collect();
        policies.dedup();
        scenario.policies = policies;
        scenario.check()?;
        Ok(scenario)
    }

    /// A world with the flags on top.
    fn in_world(&self, world: World, question: Question) -> anyhow::Result<Scenario> {
        let mut scenario = self.given.on_top_of(world.scenario(&data(), question.needs()))?;
        if let (true, Source::File { options, .. }) = (self.given.bursty, &mut scenario.trace) {
            options.placement = world.bursts();
        }
        scenario.platform.placement = question.placement();
        Ok(scenario)
    }

    fn families(&self, question: Question) -> anyhow::Result<Vec<Family>> {
        let mut families = question.families();
        if !self.policies.is_empty() {
            let labels: Vec<String> = families.iter().map(|family| family.label.clone()).collect();
            let is_asked = |name: &String| labels.iter().any(|label| label.starts_with(name));
            if let Some(name) = self.policies.iter().find(|name| !is_asked(name)) {
                bail!(
                    "--policies: no family begins with `{name}`; there are {}",
                    labels.join("; ")
                );
            }
            families
                .retain(|family| self.policies.iter().any(|name| family.label.starts_with(name)));
        }
        for family in &mut families {
            if family.policy.ends_with("windfall-scaling") && !self.prices.is_empty() {
                if let Some(price) = self.prices.iter().find(|price| !(0.0..=1e3).contains(*price))
                {
                    bail!("--prices holds {price}, allowed is 0 to 1000");
                }
                family.values.clone_from(&self.prices);
            } else if self.quick {
                family.thin_out();
            }
        }
        Ok(families)
    }
}

/// Where the traces lie.
fn data() -> PathBuf {
    std::env::var_os("WINDFALL_DATA").map_or_else(|| "../shared/data".into(), PathBuf::from)
}

/// Shows how far a sweep has come.
struct Bar(ProgressBar);

impl FrontierWatcher for Bar {
    fn begins(&self, runs: usize) {
        self.0.inc_length(runs as u64);
    }

    fn run_ends(&self, point: &FrontierPoint) {
        self.0.set_message(format!("{} {}", point.policy, parameter(point.parameter)));
        self.0.inc(1);
    }
}
