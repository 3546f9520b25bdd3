//! Workloads for Windfall: readers of published traces, a generator fitted to them, and Windfall's own
//! trace format.
//!
//! Every source produces a [`Workload`](windfall_core::Workload): functions as their users configured them,
//! and a stream of arrivals with the demand of each call. Open one with [`Source::open`].
//!
//! There are two layers. **When** calls arrive, and how long they take, is read from a trace. **What** a call
//! needs beyond that (cores, waiting, memory over time, input, reservation) is in no public trace. It is drawn
//! from a model whose parameters are in `params/`, with their sources.

mod assemble;
pub mod azure_2019;
pub mod azure_2021;
mod azure_like;
mod bin_rates;
mod binned;
mod bucket_sort;
mod demand_model;
mod detect;
mod error;
pub mod freyr_sample;
mod gusts;
pub mod huawei;
mod invocation_list;
mod minute_counts;
pub mod native;
mod options;
pub mod parameters;
pub mod quantiles;
mod source;
mod summary;
mod table;
mod times_only;

pub use azure_like::{AzureLikeSettings, azure_like_minutes};
pub use binned::Placement;
pub use detect::{Detected, FileKind, TraceKind, detect, detect_table};
pub use error::TraceError;
pub use minute_counts::Caps;
pub use options::{Fold, FoldBy, Needs, ReadOptions};
pub use source::{Opened, Source};
pub use summary::{OfferedLoad, TraceSummary, offered_load, summarise};
