//! The Python package: its wheel, a virtual environment to install it in, and its tests.
//!
//! ```text
//!   target/python/wheels   the wheel, built by maturin
//!   target/python/short    the short tests: Gymnasium, PettingZoo, pandas, polars, Arrow, types, ONNX, the notebook
//!   target/python/long     all tests: trainings with PyTorch, stable-baselines3 and Ray as well
//! ```
//!
//! The environments stay between runs, so that only the first one downloads. They are made anew if the interpreter
//! or a list of packages changes.
//!
//! The short tests use what `cargo test` has compiled: the profile `dev`, from which `test` inherits everything. (With
//! the profile `test` itself, maturin's `cargo rustc` would build a program of tests.) The long ones train and measure
//! what users get: `pip install .` builds with `release` too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step::{Outcome, run, succeeds};

/// What the short tests need beside the wheel's own dependencies.
const SHORT: &[&str] = &[
    "maturin==1.14.1",
    "pytest>=8",
    "gymnasium>=1.2",
    "pettingzoo>=1.25",
    "pandas",
    "polars",
    "pyarrow",
    "mypy",
    "onnx",
    "onnxruntime",
    "matplotlib",
    "nbclient",
    "nbformat",
    "ipykernel",
];

/// What the long ones need as well. PyPI's PyTorch for Linux brings its CUDA libraries, about 5 GB on disk.
const LONG: &[&str] = &["stable-baselines3>=2.5", "ray[rllib]>=2.40", "scipy"];

/// The oldest Python that the wheel is for.
const OLDEST: (u32, u32) = (3, 10);

/// Makes the environment for the tests, if there is a Python to make it with.
pub(crate) fn prepare(long: bool) -> Result<Option<PathBuf>, String> {
    interpreter().map(|python| environment(&target().join("python"), &python, long)).transpose()
}

/// Builds the wheel and runs the tests in an environment of their own.
pub(crate) fn run_tests(long: bool) -> Result<Outcome, String> {
    let Some(venv) = prepare(long)? else {
        return Ok(Outcome::Skipped(
            "no Python from 3.10 on here (python3, or what WINDFALL_PYTHON names); the package `windfall` was not \
             built and not tested"
                .to_owned(),
        ));
    };
    let wheel = build_wheel(&target().join("python"), &venv, long)?;
    let program = build_program(long)?;
    let mut install = Command::new(tool(&venv, "pip"));
    install.args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--force-reinstall",
    ]);
    run(install.arg(&wheel))?;
    let mut tests = Command::new(tool(&venv, "python"));
    tests.args(["-m", "pytest", "--quiet", "--durations=5", "-p", "no:cacheprovider"]);
    if long {
        tests.arg("--long");
    }
    run(tests.env("WINDFALL_BIN", program))?;
    Ok(Outcome::Passed)
}

/// Where cargo puts what it makes, made absolute for programs that run elsewhere.
fn target() -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    std::path::absolute(&named).unwrap_or(named)
}

/// A Python that is new enough.
fn interpreter() -> Option<PathBuf> {
    let named = std::env::var_os("WINDFALL_PYTHON").map(PathBuf::from);
    let candidates = named.map_or_else(|| vec!["python3".into(), "python".into()], |one| vec![one]);
    let (major, minor) = OLDEST;
    let check =
        format!("import sys, venv, ensurepip; assert sys.version_info >= ({major}, {minor})");
    candidates.into_iter().find(|python| succeeds(Command::new(python).args(["-c", &check])))
}

/// A virtual environment with everything but the wheel.
fn environment(folder: &Path, python: &Path, long: bool) -> Result<PathBuf, String> {
    let venv = folder.join(if long { "long" } else { "short" });
    let mut packages: Vec<&str> = SHORT.to_vec();
    if long {
        packages.extend(LONG);
    }
    let wanted = format!("{}\n{}\n", version(python), packages.join("\n"));
    let stamp = venv.join("windfall-packages.txt");
    if fs::read_to_string(&stamp).is_ok_and(|present| present == wanted) {
        return Ok(venv);
    }
    fs::create_dir_all(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    run(Command::new(python).args(["-m", "venv", "--clear"]).arg(&venv))?;
    let mut install = Command::new(tool(&venv, "pip"));
    run(install.args(["install", "--quiet", "--disable-pip-version-check"]).args(&packages))?;
    fs::write(&stamp, wanted).map_err(|why| format!("{}: {why}", stamp.display()))?;
    Ok(venv)
}

fn version(python: &Path) -> String {
    let said = Command::new(python).arg("--version").output();
    said.map_or_else(|_| String::new(), |it| String::from_utf8_lossy(&it.stdout).trim().to_owned())
}

/// The newest wheel, built by maturin as `pip install .` would, the short tests' one with another profile.
fn build_wheel(folder: &Path, venv: &Path, long: bool) -> Result<PathBuf, String> {
    let wheels = folder.join("wheels");
    // Old wheels would be mistaken for the new one.
    let _ = fs::remove_dir_all(&wheels);
    let mut build = Command::new(tool(venv, "maturin"));
    build.args(["build", "--quiet", "--profile", profile(long), "--interpreter"]);
    build.arg(tool(venv, "python")).arg("--out").arg(&wheels);
    run(&mut build)?;
    let found = fs::read_dir(&wheels).map_err(|why| format!("{}: {why}", wheels.display()))?;
    let mut found = found.flatten().map(|entry| entry.path());
    found
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or_else(|| format!("maturin left no wheel in {}", wheels.display()))
}

/// The program `windfall`, which the tests compare the package with.
fn build_program(long: bool) -> Result<PathBuf, String> {
    let mut build = Command::new("cargo");
    build.args(["build", "--quiet", "--profile", profile(long), "--bin", "windfall"]);
    if !long {
        // What is selected decides the features of dependencies, and a test among it adds those for tests. With fewer of
        // them than `cargo test --workspace` has, `core` and so every crate would be compiled again.
        build.args(["--workspace", "--all-features", "--test", "api"]);
    }
    run(&mut build)?;
    let name = if cfg!(windows) { "windfall.exe" } else { "windfall" };
    Ok(target().join(if long { "release" } else { "debug" }).join(name))
}

fn profile(long: bool) -> &'static str {
    if long { "release" } else { "dev" }
}

fn tool(venv: &Path, name: &str) -> PathBuf {
    if cfg!(windows) {
        venv.join("Scripts").join(format!("{name}.exe"))
    } else {
        venv.join("bin").join(name)
    }
}
