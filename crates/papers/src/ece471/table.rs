//! What the server shows for a number of containers and an arrival rate.
//!
//! ```text
//! m    = 1.5 min(1, 8/n)           service rate of a container; eight cores are shared once n > 8
//! util = min(1, L / (1.5 n))       not corrected for core sharing
//! L/n <  m:  latency = 1 / (m - L/n) seconds (M/M/1),  slo = min(1, 9 / latency)
//! L/n >= m:  unstable; latency 60,000, slo 0.0001
//! n = 0:     all zero
//! ```
//!
//! The unstable rows of the original are frozen noise around those values, except two that are exactly
//! saturated, (2, 3) and (4, 6): latency 8.1, slo 1.
//!
//! [`Mode::FixedQuirks`] counts cores by shares and has no such rows: with `s` shares per container and
//! `O` of others, `m = 1.5 min(1, 8 s / (n s + O))`, `util = min(1, L / (m n))`, and an unstable queue
//! shows the 60 seconds the original declares, hence an slo of 9 / 60.

use serde::{Deserialize, Serialize};

/// Requests per second one container with a core of its own serves.
pub const SERVICE_RATE: f64 = 1.5;

/// Cores of the server.
pub const CORES: f64 = 8.0;

/// Latency that must not be exceeded, in seconds.
pub const SLO_SECONDS: f64 = 9.0;

/// Latency of an unstable queue in the faithful mode; the unit is lost.
const UNSTABLE_LATENCY: f64 = 60_000.0;

/// SLO preservation of an unstable queue in the faithful mode.
const UNSTABLE_SLO: f64 = 1e-4;

/// Latency of an unstable queue without quirks.
const UNSTABLE_SECONDS: f64 = 60.0;

/// Whether to be as the original is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// With all its quirks.
    Faithful,
    /// As it was probably meant.
    FixedQuirks,
}

/// What the server shows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Mean CPU utilisation, 0 to 1.
    pub util: f64,
    /// SLO over latency, at most 1.
    pub slo: f64,
    /// Mean latency in seconds; in the faithful mode 60,000 if unstable.
    pub latency: f64,
}

const NOTHING: Row = Row { util: 0.0, slo: 0.0, latency: 0.0 };

/// A row of the original table.
pub fn faithful(containers: u32, rate: u32) -> Row {
    if containers == 0 {
        return NOTHING;
    }
    let (n, load) = (f64::from(containers), f64::from(rate));
    let util = (load / (SERVICE_RATE * n)).min(1.0);
    let service = SERVICE_RATE * (CORES / n).min(1.0);
    match (containers, rate) {
        (2, 3) | (4, 6) => Row { util: 1.0, slo: 1.0, latency: 8.1 },
        _ if load / n < service => queue(util, service, load / n),
        _ => Row { util, slo: UNSTABLE_SLO, latency: UNSTABLE_LATENCY },
    }
}

/// The same without quirks, for `shares` per container and the `others` on the server.
pub fn fixed(containers: u32, rate: u32, shares: u32, others: u32) -> Row {
    if containers == 0 {
        return NOTHING;
    }
    let (n, load, shares) = (f64::from(containers), f64::from(rate), f64::from(shares));
    let cores = CORES * shares / (n * shares + f64::from(others));
    let service = SERVICE_RATE * cores.min(1.0);
    let util = (load / (service * n)).min(1.0);
    if load / n < service {
        let row = queue(util, service, load / n);
        Row { latency: row.latency.min(UNSTABLE_SECONDS), slo: row.slo.max(unstable_slo()), ..row }
    } else {
        Row { util, slo: unstable_slo(), latency: UNSTABLE_SECONDS }
    }
}

fn unstable_slo() -> f64 {
    SLO_SECONDS / UNSTABLE_SECONDS
}

fn queue(util: f64, service: f64, load: f64) -> Row {
    let latency = 1.0 / (service - load);
    Row { util, slo: (SLO_SECONDS / latency).min(1.0), latency }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_row(row: Row, util: f64, latency: f64, slo: f64) {
        let close = |a: f64, b: f64| (a - b).abs() < 5e-5;
        assert!(
            close(row.util, util) && close(row.latency, latency) && close(row.slo, slo),
            "{row:?}"
        );
    }

    #[test]
    fn spot_checks_against_the_original() {
        assert_row(faithful(1, 1), 2.0 / 3.0, 2.0, 1.0);
        assert_row(faithful(5, 7), 0.9333, 10.0, 0.9);
        assert_row(faithful(9, 1), 0.0741, 0.8182, 1.0);
        assert_row(faithful(20, 8), 0.2667, 5.0, 1.0);
        assert_row(faithful(2, 3), 1.0, 8.1, 1.0);
        assert_row(faithful(4, 6), 1.0, 8.1, 1.0);
        assert_eq!(faithful(0, 5), NOTHING);
    }

    #[test]
    fn twenty_one_rows_are_not_stable_and_two_of_them_pretend_to_be() {
        let rows = (1..=20).flat_map(|n| (0..=8).map(move |rate| (n, rate)));
        let unstable: Vec<_> = rows
            .filter(|(n, rate)| {
                let service = SERVICE_RATE * (CORES / f64::from(*n)).min(1.0);
                f64::from(*rate) / f64::from(*n) >= service
            })
            .collect();
        assert_eq!(unstable.len(), 21);
        let perfect = unstable.iter().filter(|(n, rate)| faithful(*n, *rate).slo == 1.0);
        assert_eq!(perfect.collect::<Vec<_>>(), [&(2, 3), &(4, 6)]);
    }

    #[test]
    fn without_quirks_shares_and_neighbours_count_and_saturation_hurts() {
        assert_eq!(fixed(4, 6, 1024, 0).slo, 0.15);
        assert_eq!(fixed(5, 7, 1024, 0), faithful(5, 7));
        // Ten containers of 1024 beside 9 * 1024: 8 * 1024 / (19 * 1024) of a core each.
        let crowded = fixed(10, 4, 1024, 9 * 1024);
        assert!((crowded.util - 4.0 / (15.0 * 8.0 / 19.0)).abs() < 1e-12);
        assert!(fixed(10, 4, 2048, 9 * 1024).latency < crowded.latency);
    }
}
