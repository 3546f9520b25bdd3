//! All integration tests of the workspace form one binary: it links once, and a newcomer finds every
//! test that looks across crates in this list.
#![allow(clippy::unwrap_used, reason = "all of this crate is tests")]

mod architecture;
mod cli;
mod docs_tables;
