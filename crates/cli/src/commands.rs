//! One file per subcommand.

pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod capacity;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod conformance;
pub(crate) mod db;
pub(crate) mod doctor;
pub(crate) mod env;
pub(crate) mod evaluate;
pub(crate) mod explain;
pub(crate) mod frontier;
pub(crate) mod functions;
pub(crate) mod load;
pub(crate) mod policies;
pub(crate) mod policy;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod serve;
pub(crate) mod simulate;
pub(crate) mod top;
pub(crate) mod trace;
pub(crate) mod train;
pub(crate) mod up;
