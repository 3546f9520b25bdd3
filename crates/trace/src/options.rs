//! Options for reading a trace: window, selection of functions, placement, limits.

use std::path::Path;

use serde::{Deserialize, Serialize};
use windfall_core::Seed;
use windfall_core::statistics::Interval;

use windfall_core::seed::mix;

use crate::binned::Placement;
use crate::demand_model::FunctionFacts;
use crate::detect::TraceKind;
use crate::error::TraceError;
use crate::minute_counts::Caps;

/// One half of a trace's functions, so that a policy tuned on one half can be evaluated on unseen functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fold {
    /// For training and tuning.
    Train,
    /// For evaluation.
    Test,
}

/// What stays together when functions are split into halves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FoldBy {
    /// Nothing: each function is assigned by its index in the file.
    #[default]
    Function,
    /// Functions of one application, by its name: they are similar, so a split between them would leak training
    /// data into the test half.
    Application,
}

impl FoldBy {
    fn is_default(&self) -> bool {
        *self == Self::Function
    }
}

impl Fold {
    /// Whether the function at index `place` belongs to this half. Hashed, because files are often sorted.
    pub fn holds(self, place: usize) -> bool {
        self.holds_hash(mix(place as u64 + 1))
    }

    /// Whether the functions of `application` belong to this half.
    pub fn holds_application(self, application: &str) -> bool {
        self.holds_hash(Seed::new(0).stream(application).get())
    }

    fn holds_hash(self, hash: u64) -> bool {
        hash.is_multiple_of(2) == (self == Self::Train)
    }
}

/// Options for reading a trace. An option that does not apply to the kind of trace is rejected unless it has its default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReadOptions {
    /// Where inside a minute calls arrive; for traces with counts.
    pub placement: Placement,
    /// Limits on single functions; for traces with counts.
    pub caps: Option<Caps>,
    /// Share of a Huawei table's requests that is kept.
    pub huawei_scale: f64,
    /// Range of average concurrent calls per function of a Huawei table: drawn log-uniformly for every seed, instead of
    /// keeping a share of the requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_at_once: Option<Interval>,
    /// First minute and the one after the last, counted from the beginning of the trace.
    pub window_minutes: Option<(u32, u32)>,
    /// Lays stretches of this many minutes over each other: all calls of the window arrive in its first stretch. Four
    /// hours over each other are one hour with four times the calls of the same functions. For Azure's tables of 2019.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlay_minutes: Option<u32>,
    /// Keep only this many functions, from the start of the file.
    pub max_functions: Option<usize>,
    /// Leave out the function with the most calls.
    pub without_busiest: bool,
    /// Without functions whose calls are taken to sleep: all of them take the same long time. For traces
    /// with run times.
    #[serde(skip_serializing_if = "is_false")]
    pub without_sleepers: bool,
    /// Only this half of the functions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fold: Option<Fold>,
    /// What stays together when functions are split into halves.
    #[serde(skip_serializing_if = "FoldBy::is_default")]
    pub fold_by: FoldBy,
    /// Leave out functions that are missing from a table of Azure 2019, instead of rejecting the trace.
    pub skip_incomplete: bool,
    /// What calls need besides time.
    #[serde(skip_serializing_if = "Needs::is_default")]
    pub needs: Needs,
}

/// What calls need besides time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// Cores and memory from the demand model: calls compete for shared resources.
    #[default]
    Modelled,
    /// Nothing: the run time of a call does not depend on its grant, and an instance holds its function's median
    /// memory, at least 32 and at most 2048 MiB. For studies of scaling only.
    TimesOnly,
}

impl Needs {
    fn is_default(&self) -> bool {
        *self == Self::Modelled
    }
}

pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            placement: Placement::default(),
            caps: None,
            huawei_scale: 1e-3,
            calls_at_once: None,
            window_minutes: None,
            overlay_minutes: None,
            max_functions: None,
            without_busiest: false,
            without_sleepers: false,
            fold: None,
            fold_by: FoldBy::default(),
            skip_incomplete: false,
            needs: Needs::default(),
        }
    }
}

impl ReadOptions {
    /// Rejects values outside their allowed ranges.
    pub(crate) fn check(&self) -> Result<(), TraceError> {
        let scale = self.huawei_scale;
        if !(scale > 0.0 && scale <= 1000.0) {
            let value = scale.to_string().into();
            let allowed = "more than 0, at most 1000";
            return Err(TraceError::BadSetting { setting: "huawei_scale", value, allowed });
        }
        self.check_calls_at_once()?;
        if let Some((from, to)) = self.window_minutes.filter(|(from, to)| from >= to) {
            let value = format!("{from} to {to}").into();
            let allowed = "a first minute below the second number";
            return Err(TraceError::BadSetting { setting: "window_minutes", value, allowed });
        }
        if self.overlay_minutes == Some(0) {
            let allowed = "at least one minute";
            return Err(TraceError::BadSetting {
                setting: "overlay_minutes",
                value: "0".into(),
                allowed,
            });
        }
        if let Some(caps) = self.caps {
            for (setting, value) in [
                ("caps.busy", caps.busy),
                ("caps.busy_in_a_minute", caps.busy_in_a_minute),
                ("caps.calls_per_second", caps.calls_per_second.unwrap_or(1.0)),
            ] {
                if !(value > 0.0 && value.is_finite()) {
                    let value = value.to_string().into();
                    return Err(TraceError::BadSetting { setting, value, allowed: "more than 0" });
                }
            }
        }
        Ok(())
    }

    fn check_calls_at_once(&self) -> Result<(), TraceError> {
        let Some(Interval { low, high }) = self.calls_at_once else { return Ok(()) };
        let setting = "calls_at_once";
        let value = format!("{low} to {high}").into();
        if !(low > 0.0 && low <= high && high <= 1e6) {
            let allowed =
                "two numbers above 0, the first no larger than the second, at most 1000000";
            return Err(TraceError::BadSetting { setting, value, allowed });
        }
        if self.caps.is_some() || self.huawei_scale != Self::default().huawei_scale {
            let allowed =
                "without caps and huawei_scale, because it sets the number of calls itself";
            return Err(TraceError::BadSetting { setting, value, allowed });
        }
        Ok(())
    }

    /// Rejects options that have no effect on this kind of trace: silently ignoring them would be misleading.
    pub(crate) fn check_for(&self, kind: &TraceKind, file: &Path) -> Result<(), TraceError> {
        let Self { placement, caps, huawei_scale, skip_incomplete, fold_by, needs, .. } = self;
        let calls_at_once = self.calls_at_once.is_some();
        let has_run_times =
            matches!(kind, TraceKind::Azure2019 { .. } | TraceKind::Azure2021 { .. });
        let without_sleepers = self.without_sleepers && !has_run_times;
        // The window and the choice of functions work on every kind.
        let (counts, huawei, tables) = match kind {
            TraceKind::Azure2019 { .. } => (true, false, true),
            TraceKind::Huawei { .. } => (true, true, false),
            TraceKind::Azure2021 { .. } | TraceKind::Native { .. } => (false, false, false),
        };
        let default = Self::default();
        let idle = [
            ("placement", *placement != default.placement && !counts, "counts per minute or bin"),
            ("caps", caps.is_some() && !counts, "counts per minute or bin"),
            ("huawei_scale", *huawei_scale != default.huawei_scale && !huawei, "Huawei's tables"),
            ("calls_at_once", calls_at_once && !huawei, "Huawei's tables"),
            ("fold_by", *fold_by != default.fold_by && !counts, "counts per minute or bin"),
            ("needs", *needs != default.needs && !counts, "counts per minute or bin"),
            ("without_sleepers", without_sleepers, "traces with run times"),
            ("skip_incomplete", *skip_incomplete && !tables, "Azure's three tables of 2019"),
            (
                "overlay_minutes",
                self.overlay_minutes.is_some() && !tables,
                "Azure's three tables of 2019",
            ),
        ];
        match idle.into_iter().find(|(_, refused, _)| *refused) {
            None => Ok(()),
            Some((option, _, works_on)) => Err(TraceError::IdleOption {
                file: file.display().to_string().into(),
                option,
                works_on,
            }),
        }
    }

    /// First minute and length of the window within a trace of `minutes` minutes.
    pub(crate) fn window(&self, minutes: u32) -> Result<(u32, u32), TraceError> {
        let (from, to) = self.window_minutes.unwrap_or((0, minutes));
        if from >= minutes && self.window_minutes.is_some() {
            let value = format!("{from} to {to} of {minutes} minutes").into();
            let allowed = "a window that begins inside the trace";
            return Err(TraceError::BadSetting { setting: "window_minutes", value, allowed });
        }
        Ok((from, to.min(minutes).saturating_sub(from)))
    }

    /// Whether a function of which `facts` are known is read.
    pub(crate) fn takes(&self, facts: &FunctionFacts) -> bool {
        self.holds(&facts.application) && !(self.without_sleepers && facts.sleeps())
    }

    /// Whether the functions of `application` belong to the half that is read.
    pub(crate) fn holds(&self, application: &str) -> bool {
        let fold = self.fold.filter(|_| self.fold_by == FoldBy::Application);
        fold.is_none_or(|fold| fold.holds_application(application))
    }

    /// Which functions are kept; `calls` are the calls of each.
    pub(crate) fn keep(&self, calls: &[f64]) -> Vec<bool> {
        let first = self.max_functions.unwrap_or(usize::MAX);
        let mut keep: Vec<bool> = (0..calls.len()).map(|place| place < first).collect();
        if let Some(fold) = self.fold.filter(|_| self.fold_by == FoldBy::Function) {
            keep.iter_mut().enumerate().for_each(|(place, keep)| *keep &= fold.holds(place));
        }
        // The first one if there are several.
        let busiest = (0..calls.len()).rev().max_by(|&a, &b| calls[a].total_cmp(&calls[b]));
        if let Some(busiest) = busiest.filter(|_| self.without_busiest) {
            keep[busiest] = false;
        }
        keep
    }
}
