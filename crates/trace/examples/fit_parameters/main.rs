//! Fits the parameters in `params/` to the public data sets and prints each next to the committed one:
//! `cargo run --release -p windfall-trace --example fit_parameters [--toml]`.
//!
//! The data is read from `WINDFALL_DATA`, by default `../shared/data` next to the repository; the reference page on
//! traces lists the sources. With `--toml` the output can be pasted into the parameter files.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "an example reads its data path and prints its results"
)]

mod fits;

use std::path::{Path, PathBuf};

fn data() -> PathBuf {
    std::env::var("WINDFALL_DATA").map_or_else(
        |_| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    )
}

fn main() {
    let as_toml = std::env::args().any(|argument| argument == "--toml");
    match fits::all(&data()) {
        Ok(fits) if as_toml => fits.iter().for_each(|fit| println!("{}", fit.toml())),
        Ok(fits) => fits.iter().for_each(|fit| println!("{}", fit.text())),
        Err(error) => {
            eprintln!(
                "error: {error}\nhint: set WINDFALL_DATA to the directory with the data sets"
            );
            std::process::exit(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_parameters_are_the_fitted_ones() {
        let data = data();
        if !data.exists() {
            return eprintln!("skipped: {} is not there; set WINDFALL_DATA", data.display());
        }
        let fits = fits::all(&data).expect("all sets are there if one is");
        let named = fits.iter().filter(|fit| !fit.key.is_empty()).count();
        assert!(named > 50, "only {named} numbers were fitted");
        let wrong: Vec<String> =
            fits.iter().filter(|fit| !fit.agrees()).map(fits::Fit::text).collect();
        assert!(wrong.is_empty(), "fit them again with --toml:\n{}", wrong.join("\n"));
    }
}
