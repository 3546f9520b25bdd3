//! The folder of a training and what is kept in it.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use serde_json::Value;
use windfall_rl::AnySettings;
use windfall_rl::training::{CurvePoint, Training, read_curve};
use windfall_studies::training_page::page;
use windfall_telemetry::tensorboard::EventWriter;

use crate::output::{command_line, directory, write_whole};

/// The checkpoint to go on from.
pub(super) const LAST: &str = "last.safetensors";
/// The checkpoint with the best evaluation.
const BEST: &str = "best.safetensors";
/// The curve, one point a line.
const CURVE: &str = "curve.jsonl";
/// The page of curves.
const PAGE: &str = "curves.html";

/// How long a page may be older than the training, and how long what a crash loses at most.
const PAUSE: Duration = Duration::from_secs(5);

/// Keeps what a training produces.
pub(super) struct Studio {
    folder: PathBuf,
    title: String,
    settings: Value,
    curve: Vec<CurvePoint>,
    lines: BufWriter<File>,
    events: EventWriter<BufWriter<File>>,
    kept: Option<Instant>,
}

impl Studio {
    /// In an empty or new folder; what an earlier training left there is replaced.
    pub(super) fn begin(
        folder: &Path,
        title: String,
        settings: &AnySettings,
    ) -> anyhow::Result<Self> {
        directory(folder)?;
        Self::open(folder, title, settings, Vec::new())
    }

    /// After `iteration`, with the curve so far from the folder `beside`.
    pub(super) fn resume(
        folder: &Path,
        beside: &Path,
        title: String,
        settings: &AnySettings,
        iteration: u64,
    ) -> anyhow::Result<Self> {
        directory(folder)?;
        let mut curve = open_curve(&beside.join(CURVE))?;
        // What was done after the checkpoint will be done again.
        curve.retain(|point| point.report.iteration <= iteration);
        let best = beside.join(BEST);
        if folder != beside && best.exists() {
            std::fs::copy(&best, folder.join(BEST))
                .with_context(|| format!("{}: cannot be copied", best.display()))?;
        }
        Self::open(folder, title, settings, curve)
    }

    fn open(
        folder: &Path,
        title: String,
        settings: &AnySettings,
        curve: Vec<CurvePoint>,
    ) -> anyhow::Result<Self> {
        let path = folder.join(CURVE);
        let lines: Result<Vec<String>, _> = curve.iter().map(serde_json::to_string).collect();
        write_whole(&path, &lines?.iter().map(|line| format!("{line}\n")).collect::<String>())?;
        let lines = OpenOptions::new()
            .append(true)
            .open(&path)
            .with_context(|| format!("{}: cannot be written", path.display()))?;
        Ok(Self {
            folder: folder.to_owned(),
            title,
            settings: serde_json::to_value(settings)?,
            curve,
            lines: BufWriter::new(lines),
            events: open_events(folder)?,
            kept: None,
        })
    }

    /// Where everything is.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The curve so far.
    pub(super) fn curve(&self) -> &[CurvePoint] {
        &self.curve
    }

    /// Takes in an iteration.
    pub(super) fn keep(
        &mut self,
        training: &Training,
        point: CurvePoint,
        is_best: bool,
        steps_per_second: f64,
    ) -> anyhow::Result<()> {
        let cannot = || format!("{}: cannot be written", self.folder.display());
        writeln!(self.lines, "{}", serde_json::to_string(&point)?).with_context(cannot)?;
        let report = &point.report;
        let mut scalars = vec![("speed/steps_per_s", steps_per_second)];
        scalars.extend(report.mean_return.map(|reward| ("reward/training", reward)));
        scalars.extend(point.evaluation.map(|found| ("reward/evaluation", found.mean)));
        let named: Vec<(String, f64)> = report
            .metrics
            .iter()
            .map(|(name, value)| (format!("learner/{name}"), *value))
            .collect();
        scalars.extend(named.iter().map(|(name, value)| (name.as_str(), *value)));
        self.events.scalars(report.steps, unix_seconds(), scalars).with_context(cannot)?;
        self.curve.push(point);
        if is_best {
            training.checkpoint().save(&self.folder.join(BEST))?;
        }
        if self.kept.is_none_or(|kept| kept.elapsed() >= PAUSE) {
            self.save(training, Some(5))?;
            self.kept = Some(Instant::now());
        }
        Ok(())
    }

    /// Keeps the end.
    pub(super) fn finish(&mut self, training: &Training) -> anyhow::Result<()> {
        self.save(training, None)
    }

    fn save(&mut self, training: &Training, refresh_seconds: Option<u32>) -> anyhow::Result<()> {
        // The curve first: a checkpoint must not be ahead of it.
        self.lines
            .flush()
            .with_context(|| format!("{}: cannot be written", self.folder.display()))?;
        training.checkpoint().save(&self.folder.join(LAST))?;
        let page = page(&self.title, &command_line(), &self.settings, &self.curve, refresh_seconds);
        write_whole(&self.folder.join(PAGE), &page.html())
    }
}

/// A new event file; TensorBoard reads all files of a folder in the order of their names.
fn open_events(folder: &Path) -> anyhow::Result<EventWriter<BufWriter<File>>> {
    let seconds = unix_seconds();
    for number in 0.. {
        let path = folder.join(format!("events.out.tfevents.{seconds:010.0}.{number}.windfall"));
        match File::create_new(&path) {
            Ok(file) => return Ok(EventWriter::new(BufWriter::new(file), seconds)?),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("{}: cannot be written", path.display()));
            }
        }
    }
    unreachable!("some number is free")
}

fn unix_seconds() -> f64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

/// The curve that was kept.
fn open_curve(path: &Path) -> anyhow::Result<Vec<CurvePoint>> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| format!("{name}: cannot be read"))?;
    read_curve(&text).with_context(|| name)
}
