//! The simulator against closed forms, hand-worked timelines and invariants. One binary.

mod call_protocol;
mod closed_forms;
mod faults;
mod invariants;
mod kernel_replay;
mod kernel_timelines;
mod platform;
mod queue_order;
mod shared_instances;
mod stage;
mod timelines;
mod warm_first;
