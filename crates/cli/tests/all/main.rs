//! The `windfall` command from outside: what it prints, writes and refuses.
#![allow(clippy::unwrap_used, reason = "all of this crate is tests")]

mod bad_request;
mod bad_trace;
mod checkpoints;
mod comparison;
mod environments;
mod functions;
mod golden;
mod journals;
mod load;
mod machine;
mod program;
mod real_data;
mod reproductions;
mod round_trip;
mod service;
mod sizing_training;
mod streams;
mod training;
mod up;
mod up_disk;
