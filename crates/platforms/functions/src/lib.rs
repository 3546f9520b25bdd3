//! Functions to manage: built-in Rust applications, Python and Node runtimes, and the `/init` and `/run` protocol.
//!
//! ```text
//!  kind of an action            runtime              program of an instance
//!  builtin:merge-sort   ──►  Runtime::Builtin  ──►  this program again, argument `__function`
//!  python:3             ──►  Runtime::Python   ──►  python3 -I -S -c <runtime.py>
//!  nodejs:20            ──►  Runtime::Node     ──►  node -e <runtime.js>
//! ```
//!
//! Every program accepts HTTP/1.1 connections on the listener it inherits as descriptor 3 and answers `POST /init`
//! once and `POST /run` for every call, as OpenWhisk's runtimes do. A program that re-executes itself for built-in
//! functions calls [`serve_if_function`] before anything else.

mod applications;
mod builtin;
mod end_of_activation;
mod experiment;
mod failure;
mod input;
mod interpreters;
mod kind;
mod program;
mod python_samples;
mod runtime;
mod server;

pub use builtin::{Builtin, Invocation, builtins};
pub use end_of_activation::END_OF_ACTIVATION;
pub use experiment::{ExperimentCall, ExperimentInputs, experiment_calls};
pub use failure::Failure;
pub use input::{Input, input_size};
pub use kind::{Kind, UnknownKind};
pub use program::{FUNCTION_ARGUMENT, INHERITED_LISTENER, Program};
pub use python_samples::{PythonSample, python_samples};
pub use runtime::{Runtime, RuntimeError};
pub use server::{Answer, FunctionServer, request, serve_if_function};
