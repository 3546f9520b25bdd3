//! Traces as columns: times and demands of calls in and out, without loss.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use windfall_core::{
    Arrival, CallDemand, Duration, FunctionId, FunctionProfile, Mebibytes, MilliCpu, Seed,
    Timestamp,
};
use windfall_scenario::Scenario;
use windfall_trace::native::Writer;

use crate::arrays::column;
use crate::faults::{guarded, refused};

/// All calls of a trace: profiles of the functions as JSON, the horizon in nanoseconds, and columns.
///
/// `text` is a scenario whose `[trace]` says where the calls come from.
#[pyfunction]
pub(crate) fn read_trace<'py>(
    py: Python<'py>,
    text: &str,
    seed: u64,
) -> PyResult<(String, u64, Bound<'py, PyDict>)> {
    let source = Scenario::parse(text, "trace").map_err(refused)?.trace;
    let (profiles, horizon, arrivals) = py.detach(|| {
        guarded("read_trace", || {
            let mut workload = source.open(Seed::new(seed)).map_err(refused)?;
            let arrivals: Vec<Arrival> = std::iter::from_fn(|| workload.next_arrival()).collect();
            let profiles = serde_json::to_string(workload.functions()).map_err(refused)?;
            PyResult::Ok((profiles, workload.horizon().as_nanos(), arrivals))
        })?
    })?;
    let columns = PyDict::new(py);
    macro_rules! put {
        ($name:literal, $value:expr) => {
            columns.set_item($name, PyArray1::from_iter(py, arrivals.iter().map($value)))?
        };
    }
    put!("at_ns", |it| it.at.as_nanos());
    put!("function", |it| it.function.0);
    put!("work", |it| it.demand.work);
    put!("fixed_ns", |it| it.demand.fixed.as_nanos());
    put!("parallelism_millicores", |it| it.demand.parallelism.get());
    put!("memory_base_mib", |it| it.demand.memory_base.get());
    put!("memory_peak_mib", |it| it.demand.memory_peak.get());
    put!("rise_ns", |it| it.demand.rise.as_nanos());
    put!("jumps", |it| it.demand.jumps);
    put!("cycles", |it| it.demand.cycles);
    put!("shape", |it| it.demand.shape);
    put!("input", |it| it.demand.input.unwrap_or(f32::NAN));
    Ok((profiles, horizon, columns))
}

/// Writes a trace in Windfall's own format; the columns are those of [`read_trace`].
#[pyfunction]
pub(crate) fn write_trace(
    path: PathBuf,
    functions: &str,
    horizon_ns: u64,
    columns: &Bound<'_, PyDict>,
) -> PyResult<u64> {
    let profiles: Vec<FunctionProfile> =
        serde_json::from_str(functions).map_err(|error| refused(format!("functions: {error}")))?;
    let given = |name: &str| {
        let column = columns.get_item(name)?;
        column.ok_or_else(|| refused(format!("the column `{name}` is missing")))
    };
    let count = given("at_ns")?.len()?;
    macro_rules! take {
        ($name:literal, $kind:ty) => {{
            let given = given($name)?;
            column::<$kind>(&given, $name, count)?.as_array().to_vec()
        }};
    }
    let (at, function) = (take!("at_ns", u64), take!("function", u32));
    let (work, fixed) = (take!("work", u64), take!("fixed_ns", u64));
    let parallelism = take!("parallelism_millicores", u32);
    let (base, peak) = (take!("memory_base_mib", u32), take!("memory_peak_mib", u32));
    let (rise, jumps) = (take!("rise_ns", u64), take!("jumps", bool));
    let (cycles, shape) = (take!("cycles", u8), take!("shape", u32));
    let input = take!("input", f32);
    let file = File::create(&path)
        .map_err(|error| refused(format!("{}: cannot be written: {error}", path.display())))?;
    let horizon = Timestamp::from_nanos(horizon_ns);
    let mut writer = Writer::new(BufWriter::new(file), &profiles, horizon).map_err(refused)?;
    for i in 0..count {
        let demand = CallDemand {
            work: work[i],
            fixed: Duration::from_nanos(fixed[i]),
            parallelism: MilliCpu::new(parallelism[i]),
            memory_base: Mebibytes::new(base[i]),
            memory_peak: Mebibytes::new(peak[i]),
            rise: Duration::from_nanos(rise[i]),
            jumps: jumps[i],
            cycles: cycles[i],
            shape: shape[i],
            input: Some(input[i]).filter(|input| !input.is_nan()),
        };
        let arrival =
            Arrival { at: Timestamp::from_nanos(at[i]), function: FunctionId(function[i]), demand };
        writer.push(&arrival).map_err(refused)?;
    }
    writer.finish().map_err(refused)?;
    Ok(count as u64)
}
