//! Policies that guarantee CPU by weight and differ in how far nodes are filled.
//!
//! | name                 | a node takes a call while this fits its cores times the over-commit |
//! | -------------------- | ------------------------------------------------------------------- |
//! | `weights`            | the reservations                                                    |
//! | `weights-histogram`  | 1.05 x p99 of each function's peaks                                 |
//! | `rc-like`            | p95 of each function's use in windows of 100 ms                     |
//! | `n-sigma`            | mean + 5 standard deviations of the node's own use                  |
//! | `max-predictor`      | the larger of the last two                                          |
//! | `windfall-admission` | expected use + z standard deviations, per call                      |
//! | `peak-oracle`        | what the calls will really use, at the highest moment               |

use windfall_control::call_safeguards::{SlackWeights, SlackWeightsSettings};
use windfall_control::{AdmissionSettings, CautionSettings, Predictor};
use windfall_core::{CallPolicy, Duration};
use windfall_policy::{
    PeakClaims, PeakClaimsSettings, Weights, WindfallAdmission, WindfallAdmissionSettings,
};

use super::{Admission, Assembled, PolicyEntry, sizes_calls};

/// Deployed at Google with five: Bashir et al., EuroSys 2021.
const SIGMAS: f64 = 5.0;

/// A policy that guarantees CPU by weight.
fn by_weight(call: impl CallPolicy + 'static, admission: Option<Admission>) -> Assembled {
    Assembled { by_weight: true, admission, ..sizes_calls(call) }
}

/// Nodes filled by a published predictor, with nothing of ours around it.
fn as_published(predictor: Predictor) -> Option<Admission> {
    let usual = AdmissionSettings::default();
    Some(Admission::ExpectedUse(AdmissionSettings { predictor, z: 0.0, harm_share: 1.0, ..usual }))
}

/// Slack above which a call holds the lower weight before its node is short: the first look after that comes within
/// 5 ms.
const AHEAD_SECONDS: f64 = 0.008;

const USUAL: PolicyEntry = PolicyEntry {
    name: "weights",
    summary: "requests without limits: the reservation as a weight, no ceiling",
    foresight: false,
    by_default: false,
    sizes_calls: true,
    build: |parts| parts.no_settings().map(|()| by_weight(Weights, None)),
};

pub(super) const WEIGHTS: PolicyEntry = USUAL;

pub(super) const WEIGHTS_HISTOGRAM: PolicyEntry = PolicyEntry {
    name: "weights-histogram",
    summary: "weights; nodes filled by the p99 of each function's peaks",
    build: |parts| {
        let settings = parts.settings::<PeakClaimsSettings>()?;
        let policy = PeakClaims::new("weights-histogram", settings);
        Ok(by_weight(policy, as_published(Predictor::Calls)))
    },
    ..USUAL
};

pub(super) const RC_LIKE: PolicyEntry = PolicyEntry {
    name: "rc-like",
    summary: "weights; nodes filled by the p95 of each function's use (Resource Central)",
    build: |parts| {
        parts.no_settings()?;
        let policy = PeakClaims::new("rc-like", PeakClaimsSettings::rc_like());
        Ok(by_weight(policy, as_published(Predictor::Calls)))
    },
    ..USUAL
};

pub(super) const N_SIGMA: PolicyEntry = PolicyEntry {
    name: "n-sigma",
    summary: "weights; nodes filled by mean + 5 standard deviations of their own use",
    build: |parts| {
        parts.no_settings()?;
        let policy = PeakClaims::new("n-sigma", PeakClaimsSettings::reservation());
        Ok(by_weight(policy, as_published(Predictor::Machine { sigmas: SIGMAS })))
    },
    ..USUAL
};

pub(super) const MAX_PREDICTOR: PolicyEntry = PolicyEntry {
    name: "max-predictor",
    summary: "weights; nodes filled by the larger of rc-like and n-sigma",
    build: |parts| {
        parts.no_settings()?;
        let policy = PeakClaims::new("max-predictor", PeakClaimsSettings::rc_like());
        Ok(by_weight(policy, as_published(Predictor::Larger { sigmas: SIGMAS })))
    },
    ..USUAL
};

pub(super) const PEAK_ORACLE: PolicyEntry = PolicyEntry {
    name: "peak-oracle",
    summary: "weights; knows what calls will use and fills nodes to the peak; for reports only",
    foresight: true,
    build: |parts| {
        // Calls give way as ours do, so that what it holds is a bound for ours.
        parts.no_settings()?;
        let policy = WindfallAdmission::named("peak-oracle", WindfallAdmissionSettings::default());
        Ok(giving_way(policy, Admission::FuturePeak))
    },
    ..USUAL
};

/// Ours around some way to fill nodes.
fn giving_way(policy: WindfallAdmission, admission: Admission) -> Assembled {
    let settings = policy.settings();
    let WindfallAdmissionSettings { beta, credits, ahead, .. } = settings;
    let ahead_seconds = ahead.then_some(AHEAD_SECONDS);
    let usual = SlackWeightsSettings::default();
    let slack = SlackWeightsSettings { beta, credits, ahead_seconds, ..usual };
    let every = Duration::from_secs_f64(settings.short_look_millis.max(1.0) * 1e-3);
    Assembled {
        call_safeguards: vec![Box::new(SlackWeights::new(slack))],
        looks_while_short: settings.gives_way.then_some(every),
        ..by_weight(policy, Some(admission))
    }
}

fn caution(settings: &WindfallAdmissionSettings) -> Option<CautionSettings> {
    let WindfallAdmissionSettings { harm_allowed, harm_step, harm_least, harm_most, .. } =
        *settings;
    let (allowed, step, least, most) = (harm_allowed, harm_step, harm_least, harm_most);
    (allowed > 0.0).then_some(CautionSettings { allowed, step, least, most })
}

pub(super) const WINDFALL_ADMISSION: PolicyEntry = PolicyEntry {
    name: "windfall-admission",
    summary: "weights; nodes filled by each call's expected use and its variance",
    build: |parts| {
        let settings = parts.settings::<WindfallAdmissionSettings>()?;
        let WindfallAdmissionSettings { z, harm_above, harm_share, .. } = settings;
        let admission = AdmissionSettings {
            z,
            harm_above,
            harm_share,
            caution: caution(&settings),
            ..AdmissionSettings::default()
        };
        Ok(giving_way(WindfallAdmission::new(settings), Admission::ExpectedUse(admission)))
    },
    ..USUAL
};
