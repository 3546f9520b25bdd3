//! Bars with rate and remaining time, on standard error and only where a person watches.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use windfall_scenario::run::Run;
use windfall_scenario::sweep::Watcher;
use windfall_studies::reproduce;

/// A bar over a known number of calls.
pub(crate) fn calls(total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total);
    let style = "{msg:24!} {bar:24} {percent:>3} %  {human_pos} calls  {per_sec:>14}  {eta} left";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| usual()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A bar over a known number of equal steps.
pub(crate) fn steps(message: &'static str, total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total);
    let style = "{msg}  {bar:24} {pos}/{len}  {per_sec:>10}  {eta} left";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| usual()));
    bar.set_message(message);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A bar over the iterations of a training; its message shows everything else.
pub(crate) fn iterations(total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total);
    let style = "{bar:16} {pos}/{len}  {msg}  {eta} left";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| usual()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A bar over a known number of rounds.
pub(crate) fn rounds(total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total);
    let style = "{bar:24} {percent:>3} %  {pos} of {len} rounds  {per_sec}  {eta} left";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| usual()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A bar over a number of runs that may grow.
pub(crate) fn runs(total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total);
    let style = "{msg:32!} {bar:24} {percent:>3} %  {pos} of {len} runs  {per_sec}  {eta} left";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| usual()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A bar over a known number of load tests.
pub(crate) fn load_tests(total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total);
    let style = "{bar:24} {percent:>3} %  {human_pos} load tests  {per_sec:>14}  {eta} left";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| usual()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A bar over a known number of episodes, counted once per agent.
fn agent_episodes(total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total);
    let style = "{bar:32} {percent:>3} %  {human_pos} agent episodes  {per_sec:>14}  {eta} left";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| usual()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A counter of calls where the total is not known.
pub(crate) fn counter(message: &'static str) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    let style = "{spinner} {msg}  {human_pos} calls  {per_sec}  {elapsed}";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| usual()));
    bar.set_message(message);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Shows how far a sweep has come.
pub(crate) struct SweepBar(pub(crate) ProgressBar);

impl Watcher for SweepBar {
    fn begins(&self, calls: u64, runs: u64) {
        self.0.inc_length(calls * runs);
    }

    fn calls(&self, more: u64) {
        self.0.inc(more);
    }

    fn run_ends(&self, run: &Run<'_>) {
        self.0.set_message(format!("{} at {}", run.label().policy, run.load));
    }
}

/// Shows the stages of a reproduction, one bar after the other.
#[derive(Default)]
pub(crate) struct StageBar(Mutex<Option<ProgressBar>>);

impl StageBar {
    fn with(&self, show: impl FnOnce(&ProgressBar)) {
        if let Some(bar) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            show(bar);
        }
    }
}

impl reproduce::Watcher for StageBar {
    fn begin(&self, stage: reproduce::Stage) {
        let bar = match stage {
            reproduce::Stage::Iterations(total) => iterations(total),
            reproduce::Stage::Training { what, steps: total } => steps(what, total),
            reproduce::Stage::LoadTests(total) => load_tests(total),
            reproduce::Stage::Runs(total) => runs(total),
            reproduce::Stage::AgentEpisodes(total) => agent_episodes(total),
            reproduce::Stage::Calls => calls(0),
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar);
    }

    fn extend(&self, steps: u64) {
        self.with(|bar| bar.inc_length(steps));
    }

    fn advance(&self, steps: u64) {
        self.with(|bar| bar.inc(steps));
    }

    fn describe(&self, what: &str) {
        self.with(|bar| bar.set_message(what.to_owned()));
    }

    fn end(&self) {
        self.with(ProgressBar::finish_and_clear);
    }

    fn warn(&self, notice: &str) {
        eprintln!("{notice}");
    }
}

fn usual() -> ProgressStyle {
    ProgressStyle::default_bar()
}
