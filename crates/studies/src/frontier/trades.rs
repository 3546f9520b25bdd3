//! What each question shows: columns of its two tables, and its charts.

use super::ratios::Ratio;
use super::tables::Setting;
use super::{FrontierPoint, FrontierResult, Question};

/// One column of the table of settings: its head, its value, and how many decimals are printed.
pub(super) struct SettingColumn {
    pub(super) head: &'static str,
    pub(super) of: fn(&Setting<'_>, &FrontierResult) -> f64,
    pub(super) decimals: usize,
}

/// One column of the table of ratios.
pub(super) struct RatioColumn {
    pub(super) head: &'static str,
    pub(super) of: fn(&Ratio) -> Option<f64>,
    /// Up to which value it is no loss.
    pub(super) fair: f64,
}

const SLOW: SettingColumn = SettingColumn {
    head: "slow %",
    of: |setting, _| 100.0 * setting.mean(|point| point.slow_share),
    decimals: 3,
};
const SLOW_PER_FUNCTION: SettingColumn = SettingColumn {
    head: "slow % per function",
    of: |setting, _| 100.0 * setting.mean(|point| point.slow_share_per_function),
    decimals: 2,
};
const BOUNDED_P99: SettingColumn = SettingColumn {
    head: "bounded p99",
    of: |setting, _| setting.geometric_mean(|point| point.bounded_slowdown_p99),
    decimals: 2,
};
const MIB_S_PER_CALL: SettingColumn = SettingColumn {
    head: "MiB-s per call",
    of: |setting, _| setting.mean(|point| point.mib_seconds / point.calls.max(1) as f64),
    decimals: 0,
};
const MIB_S_OVER_ORACLE: SettingColumn = SettingColumn {
    head: "MiB-s over oracle",
    of: |setting, result| {
        let held = result.mean_of_oracle(|cost| cost.mib_seconds);
        setting.mean(|point| point.mib_seconds) / held
    },
    decimals: 2,
};
const INSTANCE_S_OVER_ORACLE: SettingColumn = SettingColumn {
    head: "instance-s over oracle",
    of: |setting, result| {
        let held = result.mean_of_oracle(|cost| cost.instance_seconds);
        setting.mean(|point| point.instance_seconds) / held
    },
    decimals: 2,
};
const CHANGES_PER_HOUR: SettingColumn = SettingColumn {
    head: "changes/h",
    of: |setting, _| setting.mean(|point| point.changes_per_hour),
    decimals: 0,
};
const P99: SettingColumn = SettingColumn {
    head: "p99",
    of: |setting, _| setting.geometric_mean(|point| point.slowdown_p99),
    decimals: 2,
};
const CORE_S: SettingColumn = SettingColumn {
    head: "core-s",
    of: |setting, _| setting.mean(|point| point.core_seconds),
    decimals: 0,
};
const MIB_S_AT_EQUAL_SLOW_SHARE: RatioColumn = RatioColumn {
    head: "MiB-s at equal slow share",
    of: |ratio| ratio.mib_seconds_at_equal_slow_share,
    fair: 1.0,
};
const THE_SAME_ON_THE_FIRST_GRID: RatioColumn = RatioColumn {
    head: "the same, first grid",
    of: |ratio| ratio.mib_seconds_at_equal_slow_share_on_first_grid,
    fair: 1.0,
};
const SLOW_SHARE_AT_EQUAL_MIB_S: RatioColumn = RatioColumn {
    head: "slow share at equal MiB-s",
    of: |ratio| ratio.slow_share_at_equal_mib_seconds,
    fair: 1.0,
};
const INSTANCE_S_AT_EQUAL_SLOW_SHARE: RatioColumn = RatioColumn {
    head: "instance-s at equal slow share",
    of: |ratio| ratio.instance_seconds_at_equal_slow_share,
    fair: 1.0,
};
const SLOW_SHARE_PER_FUNCTION_AT_EQUAL_MIB_S: RatioColumn = RatioColumn {
    head: "slow share per function at equal MiB-s",
    of: |ratio| ratio.slow_share_per_function_at_equal_mib_seconds,
    fair: 1.0,
};
const THE_SAME_OVER_HYBRID_HISTOGRAM_ALONE: RatioColumn = RatioColumn {
    head: "the same over hybrid-histogram alone",
    of: |ratio| ratio.slow_share_per_function_over_hybrid_histogram,
    fair: 1.0,
};
const CHANGES_OVER_HYBRID_HISTOGRAM: RatioColumn = RatioColumn {
    head: "changes over hybrid-histogram's",
    of: |ratio| ratio.changes_over_hybrid_histogram,
    fair: 3.0,
};
const CORE_S_AT_EQUAL_P99: RatioColumn = RatioColumn {
    head: "core-s at equal p99",
    of: |ratio| ratio.core_seconds_at_equal_p99,
    fair: 1.0,
};
const P99_AT_EQUAL_CORE_S: RatioColumn = RatioColumn {
    head: "p99 at equal core-s",
    of: |ratio| ratio.p99_at_equal_core_seconds,
    fair: 1.0,
};

const SCALING_COLUMNS: [SettingColumn; 7] = [
    SLOW,
    SLOW_PER_FUNCTION,
    BOUNDED_P99,
    MIB_S_PER_CALL,
    MIB_S_OVER_ORACLE,
    INSTANCE_S_OVER_ORACLE,
    CHANGES_PER_HOUR,
];

/// On a cluster of some load both resources count.
const LOADED_COLUMNS: [SettingColumn; 7] =
    [P99, BOUNDED_P99, SLOW, SLOW_PER_FUNCTION, CORE_S, MIB_S_PER_CALL, CHANGES_PER_HOUR];

const SCALING_RATIOS: [RatioColumn; 7] = [
    MIB_S_AT_EQUAL_SLOW_SHARE,
    THE_SAME_ON_THE_FIRST_GRID,
    SLOW_SHARE_AT_EQUAL_MIB_S,
    INSTANCE_S_AT_EQUAL_SLOW_SHARE,
    SLOW_SHARE_PER_FUNCTION_AT_EQUAL_MIB_S,
    THE_SAME_OVER_HYBRID_HISTOGRAM_ALONE,
    CHANGES_OVER_HYBRID_HISTOGRAM,
];

const SIZING_RATIOS: [RatioColumn; 2] = [CORE_S_AT_EQUAL_P99, P99_AT_EQUAL_CORE_S];

const PAIR_RATIOS: [RatioColumn; 4] = [
    MIB_S_AT_EQUAL_SLOW_SHARE,
    SLOW_SHARE_AT_EQUAL_MIB_S,
    CORE_S_AT_EQUAL_P99,
    P99_AT_EQUAL_CORE_S,
];

/// A chart of one trade.
pub(super) struct TradeChart {
    pub(super) title: &'static str,
    pub(super) x: &'static str,
    pub(super) y: &'static str,
    pub(super) paid: fn(&FrontierPoint) -> f64,
    pub(super) bad: fn(&FrontierPoint) -> f64,
}

const MEMORY: TradeChart = TradeChart {
    title: "Slow calls against memory",
    x: "MiB-seconds held",
    y: "slow calls, %",
    paid: |point| point.mib_seconds,
    bad: |point| 100.0 * point.slow_share,
};
const INSTANCES: TradeChart = TradeChart {
    title: "Slow calls against instances",
    x: "instance-seconds",
    y: "slow calls, %",
    paid: |point| point.instance_seconds,
    bad: |point| 100.0 * point.slow_share,
};
const FUNCTIONS: TradeChart = TradeChart {
    title: "Slow calls of the mean function against memory",
    x: "MiB-seconds held",
    y: "slow calls per function, %",
    paid: |point| point.mib_seconds,
    bad: |point| 100.0 * point.slow_share_per_function,
};
const CHURN: TradeChart = TradeChart {
    title: "Churn against memory",
    x: "MiB-seconds held",
    y: "instance changes per hour",
    paid: |point| point.mib_seconds,
    bad: |point| point.changes_per_hour,
};
const CPU: TradeChart = TradeChart {
    title: "p99 slowdown against CPU",
    x: "core-seconds granted",
    y: "p99 slowdown",
    paid: |point| point.core_seconds,
    bad: |point| point.slowdown_p99,
};

impl Question {
    pub(super) fn setting_columns(self) -> &'static [SettingColumn] {
        match self {
            Self::Scaling => &SCALING_COLUMNS,
            Self::Sizing { .. } | Self::Together { .. } => &LOADED_COLUMNS,
        }
    }

    /// The first one is what a seed is won by.
    pub(super) fn ratio_columns(self) -> &'static [RatioColumn] {
        match self {
            Self::Scaling => &SCALING_RATIOS,
            Self::Sizing { .. } => &SIZING_RATIOS,
            Self::Together { .. } => &PAIR_RATIOS,
        }
    }

    /// How the table of settings is read.
    pub(super) fn reading(self) -> &'static str {
        match self {
            Self::Scaling => {
                "The oracle knows all arrivals and nobody waits; a policy that lets calls queue can hold less."
            }
            Self::Sizing { .. } | Self::Together { .. } => {
                "Means over the seeds, geometric ones of p99, whose seeds lie orders of magnitude apart."
            }
        }
    }

    pub(super) fn charts(self) -> &'static [TradeChart] {
        match self {
            Self::Scaling => &[MEMORY, INSTANCES, FUNCTIONS, CHURN],
            Self::Sizing { .. } => &[CPU],
            Self::Together { .. } => &[MEMORY, CPU],
        }
    }
}
