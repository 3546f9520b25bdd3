//! Cold starts by runtime, and the sizes that users set.

use std::collections::BTreeMap;
use std::path::Path;

use super::Fit;
use super::tables::{Table, value};

/// Init of hello-world on Lambda: 512 MB, x86, zip.
pub(crate) fn fit_cold_starts(data: &Path) -> Result<Vec<Fit>, String> {
    let table = Table::read(data, "coldstart-lambda-runtimes", "summary_all_days.csv.gz")?;
    let column = |name| table.column(name);
    let (runtime, package, arch) = (column("runtime")?, column("package")?, column("arch")?);
    let memory = column("memory_mb")?;
    let (low, middle, high) = (column("p25_ms")?, column("p50_ms")?, column("p75_ms")?);
    let mut fits = Vec::new();
    for (name, version) in [
        ("python", "python3.12"),
        ("nodejs", "nodejs20.x"),
        ("dotnet", "dotnet8"),
        ("java", "java17"),
    ] {
        let row = table.rows.iter().find(|row| {
            row[runtime] == version
                && row[package] == "zip"
                && row[arch] == "x86_64"
                && row[memory] == "512"
        });
        let row = row.ok_or_else(|| format!("no cold starts of {version}"))?;
        let sigma = (value(&row[high]) / value(&row[low])).ln() / 1.349;
        let key = |field: &str| format!("demand.runtime.{name}.{field}");
        fits.push(Fit::new(
            key("init_ms"),
            vec![value(&row[middle])],
            format!("median of {version}"),
        ));
        fits.push(Fit::new(key("init_sigma"), vec![sigma], "ln(p75/p25)/1.349"));
    }
    Ok(fits)
}

/// Sizes set by at least two IBM applications on the last day, and by Huawei's pools.
pub(crate) fn fit_sizes(data: &Path) -> Result<Vec<Fit>, String> {
    let table = Table::read(data, "ibm-code-engine-app-configs", "app_configs_daily.csv.gz")?;
    let column = |name| table.column(name);
    let (day, cpu, memory) =
        (column("Day")?, column("RequestCpu_vCPU")?, column("RequestMemory_GB")?);
    let last = table.rows.iter().map(|row| value(&row[day])).fold(0.0, f64::max);
    let (mut cpus, mut memories) = (BTreeMap::new(), BTreeMap::new());
    for row in table.rows.iter().filter(|row| value(&row[day]) == last && !row[cpu].is_empty()) {
        *cpus.entry((value(&row[cpu]) * 1000.0).round() as u32).or_insert(0) += 1;
        *memories.entry((value(&row[memory]) * 1024.0).round() as u32).or_insert(0) += 1;
    }
    for sizes in [&mut cpus, &mut memories] {
        sizes.retain(|_, applications| *applications >= 2);
    }
    // Up to 8 cores, the maximum reservation of the model; pools with graphics cards are left out.
    for file in ["datacentre_1.csv.gz", "datacentre_2.csv.gz"] {
        let table = Table::read(data, "huawei2025-requests-5min", file)?;
        for name in table.header.iter().skip(1) {
            let mut sizes = name.rsplit('-').map(|size| size.parse::<u32>().ok());
            if let (Some(Some(memory)), Some(Some(cpu @ ..=8000))) = (sizes.next(), sizes.next()) {
                cpus.entry(cpu).or_insert(2);
                memories.entry(memory).or_insert(2);
            }
        }
    }
    let values = |sizes: BTreeMap<u32, i32>| sizes.into_keys().map(f64::from).collect::<Vec<_>>();
    Ok(vec![
        Fit::new("demand.reservation.cpu_millicores", values(cpus), "IBM and Huawei"),
        Fit::new("demand.reservation.memory_mib", values(memories), "IBM and Huawei"),
    ])
}
