//! The server of built-in functions and nothing else: what `windfall` becomes when it re-executes itself.

use std::process::ExitCode;

fn main() -> ExitCode {
    windfall_functions::serve_if_function();
    // Only reached without the argument: nothing to do, and standard output belongs to functions.
    ExitCode::from(2)
}
