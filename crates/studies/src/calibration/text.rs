//! A calibration for people and for files.

use std::fmt::Write as _;

use super::{Calibration, FunctionModel};

/// The table for a terminal.
pub fn table(calibration: &Calibration) -> String {
    let mut text = format!(
        "{:20} {:>6} {:>10} {:>9} {:>7} {:>9} {:>7} {:>9} {:>9} {:>9}",
        "function",
        "calls",
        "input",
        "work ms",
        "grows",
        "parallel",
        "waits",
        "memory",
        "error",
        "p95"
    );
    for model in &calibration.functions {
        let work = model.work(model.median_input);
        let growth = match model.work_steps.is_empty() {
            true => format!("{:.2}", model.work_exponent),
            false => "steps".to_owned(),
        };
        let _ = write!(
            text,
            "\n{:20} {:>6} {:>10.0} {:>9.1} {:>7} {:>9.2} {:>5.0}ms {:>6.0}MiB {:>7.1} % {:>7.1} %",
            short(model),
            model.calls,
            model.median_input,
            work * 1e3,
            growth,
            model.parallelism,
            model.fixed(work) * 1e3,
            model.memory(model.median_input),
            model.error.median * 100.0,
            model.error.p95 * 100.0,
        );
    }
    let _ = write!(
        text,
        "\n\n{} of {} calls used. Run times of calls that were not used for the fit: {:.1} % off in the median, \
         {:.1} % at the 95th percentile.",
        calibration.used,
        calibration.read,
        calibration.error.median * 100.0,
        calibration.error.p95 * 100.0
    );
    for (name, calls) in &calibration.left_out {
        let _ = write!(text, "\n{name} was left out: {calls} usable calls, at least 4 are needed");
    }
    text
}

/// Values separated by commas, one function per line.
pub fn csv(calibration: &Calibration) -> String {
    let mut text = String::from(
        "function,calls,median_input,work_scale,work_exponent,parallelism,fixed_seconds,fixed_per_work,\
         memory_base_mib,memory_per_input_mib,median_error,p95_error\n",
    );
    for model in &calibration.functions {
        let _ = writeln!(
            text,
            "{},{},{},{:e},{:.4},{:.2},{:.6},{:.4},{:.2},{:e},{:.4},{:.4}",
            short(model),
            model.calls,
            model.median_input,
            model.work_scale,
            model.work_exponent,
            model.parallelism,
            model.fixed_seconds,
            model.fixed_per_work,
            model.memory_base,
            model.memory_per_input,
            model.error.median,
            model.error.p95
        );
    }
    text
}

/// The name without its namespace.
fn short(model: &FunctionModel) -> &str {
    model.name.rsplit('/').next().unwrap_or(&model.name)
}
