//! The paper's workloads, as far as it describes them: their numbers and kinds are its own, the knobs are chosen so that the
//! kinds behave as it reports.
//!
//! | # | paper | here: bloat, prime, sleep |
//! |---|---|---|
//! | 2, 9, 16, 17 | memory only; fewer is better; 16 fails from 170 on, 17 from 90 on | 10, 15, 25, 50 MiB |
//! | 3, 10 | memory with a small prime; 10 is best at 10 | 10 and 20 MiB, up to 1 000 000 |
//! | 7, 8, 14 | with sleep; high limits win; 7 is best at 70 | 8 MiB, 1 000 000, 3 s; 100 000, 2 s; 1 000 000, 3 s |

use serde::Serialize;

use super::knative::RequestShape;

/// One workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Workload {
    /// Its number in the paper, as a name.
    pub name: &'static str,
    /// What kind it is.
    pub kind: &'static str,
    /// Its knobs.
    pub shape: RequestShape,
}

const fn workload(
    name: &'static str,
    kind: &'static str,
    (bloat_mib, prime, sleep_ms): (u32, u32, u32),
) -> Workload {
    Workload { name, kind, shape: RequestShape { bloat_mib, prime, sleep_ms } }
}

/// All of them, in the paper's order.
pub const WORKLOADS: [Workload; 9] = [
    workload("#2", "memory", (10, 0, 0)),
    workload("#3", "memory and a small prime", (10, 1_000_000, 0)),
    workload("#7", "sleep, memory, prime", (8, 1_000_000, 3000)),
    workload("#8", "sleep and a small prime", (0, 100_000, 2000)),
    workload("#9", "memory", (15, 0, 0)),
    workload("#10", "memory and a small prime", (20, 1_000_000, 0)),
    workload("#14", "sleep and prime", (0, 1_000_000, 3000)),
    workload("#16", "much memory", (25, 0, 0)),
    workload("#17", "most memory", (50, 0, 0)),
];

/// The two that the paper's learner was tried on, and the one where a wrong limit does most harm: what a quick
/// look is content with.
pub const MOST_TELLING: [&str; 3] = ["#7", "#10", "#17"];
