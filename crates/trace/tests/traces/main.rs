//! Integration tests: valid input, rejected input, reproducibility, and similarity to real traces.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

mod generated;
mod native_format;
mod reading;
mod refusing;

use std::fs;
use std::path::{Path, PathBuf};

use windfall_core::{Arrival, Trigger, Workload};
use windfall_trace::{ReadOptions, Source};

#[expect(clippy::disallowed_methods, reason = "the location of the data sets can be overridden")]
fn data(set: &str) -> Option<PathBuf> {
    let root = std::env::var("WINDFALL_DATA").map_or_else(
        |_| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let path = root.join(set);
    if !path.exists() {
        #[expect(clippy::print_stderr, reason = "a skipped test says so")]
        {
            eprintln!("skipped: {} is not there; set WINDFALL_DATA", path.display());
        }
        return None;
    }
    Some(path)
}

fn file(path: PathBuf, options: ReadOptions) -> Source {
    Source::File { path, options }
}

fn all(workload: &mut dyn Workload) -> Vec<Arrival> {
    std::iter::from_fn(|| workload.next_arrival()).collect()
}

fn functions_of(workload: &dyn Workload, trigger: Trigger) -> usize {
    workload.functions().iter().filter(|f| f.trigger == trigger).count()
}

const INVOCATIONS: &str = "HashOwner,HashApp,HashFunction,Trigger,1,2,3\n\
    o,a,f,http,2,0,40\no,a,g,timer,1,1,1\no,b,h,queue,0,900,0\n";
const DURATIONS: &str = "HashOwner,HashApp,HashFunction,percentile_Average_0,percentile_Average_1,\
    percentile_Average_25,percentile_Average_50,percentile_Average_75,percentile_Average_99,\
    percentile_Average_100\n\
    o,a,f,1,2,10,20,40,100,2000\no,a,g,1,2,10,20,40,100,200\no,b,h,1,2,10,20,40,9000,90000\n";
const MEMORY: &str = "HashOwner,HashApp,AverageAllocatedMb_pct1,AverageAllocatedMb_pct5,\
    AverageAllocatedMb_pct25,AverageAllocatedMb_pct50,AverageAllocatedMb_pct75,\
    AverageAllocatedMb_pct95,AverageAllocatedMb_pct99,AverageAllocatedMb_pct100\n\
    o,a,90,91,95,100,105,110,120,150\no,b,90,91,95,100,105,110,120,150\n";

fn small_trace() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let put = |name: &str, text| fs::write(directory.path().join(name), text).unwrap();
    put("invocations_per_function_md.anon.d01.csv", INVOCATIONS);
    put("function_durations_percentiles.anon.d01.csv", DURATIONS);
    put("app_memory_percentiles.anon.d01.csv", MEMORY);
    directory
}
