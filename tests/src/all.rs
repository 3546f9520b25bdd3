//! All integration tests of the workspace form one binary: it links once, and a newcomer finds every
//! test that looks across crates in this list.

mod architecture;
mod cli;
