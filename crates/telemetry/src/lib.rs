//! What happened, kept and shown.
//!
//! ```text
//!  run ─► TelemetrySink ─┬─► RunMetrics ─► RunSummary ─► Comparison ─► text, Markdown, CSV, JSON
//!                        │        └─────► RunDetail ──────────┴──────► HTML report
//!                        └─► JournalWriter ─► file ─► JournalReader, JournalFollower ─► explain
//! ```
//!
//! Nothing here reads a clock or opens a file: journals and reports go through `Read` and `Write` that
//! the caller hands in, and the same run gives the same bytes.

pub mod comparison;
pub mod document;
pub mod explain;
pub mod function_bootstrap;
pub mod journal;
pub mod metric_names;
pub mod metric_table;
pub mod metrics;
pub mod quantiles;
pub mod report;
#[cfg(test)]
mod sample;
pub mod statistics;
pub mod summary;
pub mod tensorboard;

pub use comparison::{Aggregate, Comparison};
pub use document::Document;
pub use function_bootstrap::{CostPair, FunctionCosts, FunctionRatio};
pub use journal::{
    JournalError, JournalFollower, JournalKinds, JournalReader, JournalWriter, RunManifest,
};
pub use metric_table::{Direction, METRICS, Metric};
pub use metrics::{RunDetail, RunMetrics};
pub use quantiles::LogHistogram;
pub use statistics::{Estimate, Paired};
pub use summary::{RunLabel, RunSummary};
