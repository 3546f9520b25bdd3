//! The sample of Azure Functions 2019 on which FaaSRM (later Freyr) was simulated: calls per minute, run
//! times and memory of 1,000 functions, and one invented column, `Ideal`.
//!
//! `Ideal` is one of the memory percentiles, drawn by the authors once per function. Their simulator treats it as
//! the size at which a call runs fastest, CPU included. It is not a measurement.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use windfall_core::Trigger;

use crate::azure_2019::read_invocations;
use crate::error::{TraceError, shortened};
use crate::table::Table;

/// One function of the sample, with the values of its tables.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledFunction {
    /// Its number in the tables.
    pub name: String,
    /// What triggers it.
    pub trigger: Trigger,
    /// Minutes with calls, counted from 0, and the number of calls.
    pub minutes: Vec<(u32, u32)>,
    /// Mean memory of its application, MB.
    pub allocated_mb: f64,
    /// Percentiles 1, 5, 25, 50, 75, 95, 99 and 100 of that memory, MB.
    pub memory_mb: [f64; 8],
    /// The percentile that the authors drew, MB.
    pub ideal_mb: f64,
    /// First percentile of its run time, ms.
    pub shortest_ms: f64,
    /// Longest run time, ms.
    pub longest_ms: f64,
    /// Shortest single run, ms; the authors use it as the cold start.
    pub minimum_ms: f64,
}

/// File names of the three tables: in this project's data, and as published.
const NAMES: [[&str; 3]; 2] = [
    ["invocation_1000fn.csv.gz", "duration_1000fn.csv.gz", "memory_1000fn.csv.gz"],
    [
        "exp_sim_invocation_traces_0.csv",
        "exp_sim_duration_traces_0.csv",
        "exp_sim_memory_traces_0.csv",
    ],
];

const MEMORY: [&str; 10] = [
    "AverageAllocatedMb",
    "AverageAllocatedMb_pct1",
    "AverageAllocatedMb_pct5",
    "AverageAllocatedMb_pct25",
    "AverageAllocatedMb_pct50",
    "AverageAllocatedMb_pct75",
    "AverageAllocatedMb_pct95",
    "AverageAllocatedMb_pct99",
    "AverageAllocatedMb_pct100",
    "Ideal",
];

const DURATION: [&str; 3] = ["percentile_Average_1", "percentile_Average_100", "Minimum"];

/// Reads the sample from the directory that holds its three tables.
pub fn open_sample(directory: &Path) -> Result<Vec<SampledFunction>, TraceError> {
    let names = NAMES.iter().find(|names| names.iter().all(|name| directory.join(name).is_file()));
    let names = names.ok_or_else(|| TraceError::Unknown {
        path: directory.display().to_string().into(),
        reason: format!("it contains neither {} nor {}", NAMES[0].join(", "), NAMES[1].join(", "))
            .into(),
    })?;
    let open = |name: &str| {
        let path = directory.join(name);
        let shown = path.display().to_string();
        let file = File::open(&path);
        let failed = |source| TraceError::Unreadable { file: shown.as_str().into(), source };
        file.map_err(failed).map(|file| (file, shown.clone()))
    };
    let (invocations, durations, memory) = (open(names[0])?, open(names[1])?, open(names[2])?);
    read_sample((invocations.0, &invocations.1), (durations.0, &durations.1), (memory.0, &memory.1))
}

/// Reads the sample from its tables: a reader for each, and its name for error messages.
pub fn read_sample(
    invocations: (impl Read, &str),
    durations: (impl Read, &str),
    memory: (impl Read, &str),
) -> Result<Vec<SampledFunction>, TraceError> {
    let called = read_invocations(invocations.0, invocations.1)?;
    let run_times = read_columns(durations.0, durations.1, DURATION)?;
    let sizes = read_columns(memory.0, memory.1, MEMORY)?;
    let missing = |file: &str, function: &str| TraceError::MissingFunction {
        file: file.into(),
        function: shortened(function),
        called_in: invocations.1.into(),
    };
    let sampled = called.functions.into_iter().map(|calls| {
        let name = calls.key.function;
        let [shortest_ms, longest_ms, minimum_ms] =
            *run_times.get(&name).ok_or_else(|| missing(durations.1, &name))?;
        let [allocated_mb, percentiles @ .., ideal_mb] =
            *sizes.get(&name).ok_or_else(|| missing(memory.1, &name))?;
        Ok(SampledFunction {
            name,
            trigger: calls.trigger,
            minutes: calls.minutes,
            allocated_mb,
            memory_mb: percentiles,
            ideal_mb,
            shortest_ms,
            longest_ms,
            minimum_ms,
        })
    });
    sampled.collect()
}

/// Reads the named columns of a table, by function.
fn read_columns<const N: usize>(
    reader: impl Read,
    file: &str,
    names: [&str; N],
) -> Result<BTreeMap<String, [f64; N]>, TraceError> {
    let mut table = Table::open(reader, file)?;
    let function = table.required("HashFunction")?;
    let mut columns = [0; N];
    for (column, name) in columns.iter_mut().zip(names) {
        *column = table.required(name)?;
    }
    let mut rows = BTreeMap::new();
    while let Some(row) = table.next_row()? {
        let mut numbers = [0.0; N];
        for (number, column) in numbers.iter_mut().zip(columns) {
            *number = row.number(column)?;
        }
        let name = row.text(function).to_owned();
        if rows.insert(name, numbers).is_some() {
            return Err(row.duplicate(row.text(function)));
        }
    }
    if rows.is_empty() {
        return Err(TraceError::Empty { file: file.into() });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLS: &str = "HashFunction,Trigger,1,2,3\n7,http,2,0,1\n";
    const RUNS: &str = "HashFunction,Average,Minimum,percentile_Average_1,percentile_Average_100\n\
                        7,900,23.0,400,4084\n";
    const SIZES: &str = "HashFunction,AverageAllocatedMb,AverageAllocatedMb_pct1,\
                         AverageAllocatedMb_pct5,AverageAllocatedMb_pct25,AverageAllocatedMb_pct50,\
                         AverageAllocatedMb_pct75,AverageAllocatedMb_pct95,AverageAllocatedMb_pct99,\
                         AverageAllocatedMb_pct100,Ideal\n7,189,179,183,186,189,192,196,205,246,192\n";

    fn read(calls: &str, runs: &str, sizes: &str) -> Result<Vec<SampledFunction>, TraceError> {
        let (calls, runs, sizes) = (calls.as_bytes(), runs.as_bytes(), sizes.as_bytes());
        read_sample((calls, "calls"), (runs, "runs"), (sizes, "sizes"))
    }

    #[test]
    fn a_row_of_each_table_is_one_function() {
        let functions = read(CALLS, RUNS, SIZES).unwrap();
        let function = &functions[0];
        assert_eq!(
            (function.trigger, &function.minutes[..]),
            (Trigger::Http, &[(0, 2), (2, 1)][..])
        );
        assert_eq!((function.allocated_mb, function.ideal_mb), (189.0, 192.0));
        assert_eq!((function.memory_mb[0], function.memory_mb[7]), (179.0, 246.0));
        assert_eq!(
            (function.shortest_ms, function.longest_ms, function.minimum_ms),
            (400.0, 4084.0, 23.0)
        );
    }

    #[test]
    fn errors_name_the_missing_part() {
        let error = read(CALLS, &RUNS.replace("\n7", "\n8"), SIZES).unwrap_err().to_string();
        assert_eq!(error, "runs: has no row for function `7`, which is called in calls");
        let error = read(CALLS, RUNS, &SIZES.replace("Ideal", "Best")).unwrap_err().to_string();
        assert!(error.starts_with("sizes: column `Ideal` is missing"), "{error}");
        let twice = format!("{RUNS}7,1,1,1,1\n");
        assert!(read(CALLS, &twice, SIZES).unwrap_err().to_string().contains("appears twice"));
    }
}
