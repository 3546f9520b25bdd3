//! Tests that look across crates form one binary: it links once, and a newcomer finds every one of them in this list.
//! Tests of the program are in `crates/cli/tests`, where cargo builds it for them.
#![allow(clippy::unwrap_used, reason = "all of this crate is tests")]

mod architecture;
mod docs_tables;

/// The top of the repository.
fn root() -> &'static std::path::Path {
    std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
