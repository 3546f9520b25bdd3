//! The kernel's control groups: where they are mounted, the groups of one run, their files.

pub(crate) mod files;
pub(crate) mod layout;
pub(crate) mod leftovers;
pub(crate) mod tree;
pub(crate) mod v1;
pub(crate) mod v2;
