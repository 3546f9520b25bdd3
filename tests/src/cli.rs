//! The `windfall` command from outside: what it prints, writes and refuses.

mod bad_request;
mod bad_trace;
mod checkpoints;
mod comparison;
mod environments;
pub(crate) mod golden;
mod journals;
pub(crate) mod program;
mod real_data;
mod reproductions;
mod round_trip;
mod sizing_training;
mod streams;
mod training;
