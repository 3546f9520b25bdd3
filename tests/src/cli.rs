//! The `windfall` command from outside: what it prints, writes and refuses.

mod bad_request;
mod bad_trace;
mod checkpoints;
mod comparison;
mod environments;
mod functions;
pub(crate) mod golden;
mod journals;
mod load;
mod machine;
mod manager;
pub(crate) mod program;
mod real_data;
mod reproductions;
mod round_trip;
mod service;
mod sizing_training;
mod streams;
mod training;
