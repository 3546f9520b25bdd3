//! Fits the CPU law of run time and the effect of the input to measured benchmarks.

use std::collections::BTreeMap;
use std::path::Path;

use super::Fit;
use super::statistics::{Line, line, mean, median, quantile, quantiles};
use super::tables::{Table, value};

/// The best `fixed + work / min(cpu, parallelism)` through measured times.
struct Law {
    fixed: f64,
    parallelism: f64,
    /// Share of the fixed part in the best time.
    share: f64,
    /// Mean relative error.
    error: f64,
}

/// Parallelism over a grid, the other two by least squares of the relative error.
fn fit_law(points: &[(f64, f64)], highest: f64) -> Law {
    let mut best = Law { fixed: 0.0, parallelism: 0.0, share: 0.0, error: f64::INFINITY };
    let mut step = 0;
    while 0.25 + 0.05 * f64::from(step) <= highest + 1e-9 {
        let law = law_at(points, 0.25 + 0.05 * f64::from(step));
        // Among equally good laws, the one with less parallelism.
        if law.error < best.error - 1e-9 {
            best = law;
        }
        step += 1;
    }
    best
}

fn law_at(points: &[(f64, f64)], parallelism: f64) -> Law {
    // Minimises the sum of ((f + w u - t) / t)^2 with u = 1 / min(c, p).
    let (mut ff, mut fw, mut ww, mut f1, mut w1) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for &(cpu, time) in points {
        let (f, w) = (1.0 / time, 1.0 / (cpu.min(parallelism) * time));
        ff += f * f;
        fw += f * w;
        ww += w * w;
        f1 += f;
        w1 += w;
    }
    let determinant = ff * ww - fw * fw;
    let (mut fixed, mut work) = (0.0, w1 / ww);
    if determinant > 1e-12 * ff * ww {
        fixed = (f1 * ww - w1 * fw) / determinant;
        work = (w1 * ff - f1 * fw) / determinant;
    }
    if fixed < 0.0 {
        (fixed, work) = (0.0, w1 / ww);
    } else if work < 0.0 {
        (fixed, work) = (f1 / ff, 0.0);
    }
    let law = |cpu: f64| fixed + work / cpu.min(parallelism);
    let errors: Vec<f64> = points.iter().map(|&(c, t)| (law(c) / t - 1.0).abs()).collect();
    let share = fixed / (fixed + work / parallelism);
    Law { fixed, parallelism, share, error: mean(&errors) }
}

/// CPU in cores and time in seconds, by benchmark, input and instance family.
type Groups = BTreeMap<[String; 3], Vec<(f64, f64)>>;

/// Times by CPU of each benchmark, input and instance family; memory above where calls fail.
fn decoupled(data: &Path) -> Result<Groups, String> {
    let table = Table::read(data, "profiles-decoupled-cpu-memory", "configs.csv.gz")?;
    let column = |name| table.column(name);
    let (benchmark, input, instance) =
        (column("benchmark")?, column("input")?, column("instance_type")?);
    let (cpu, failed, time) = (column("cpu_millicores")?, column("n_fail")?, column("p50_s")?);
    let mut groups: BTreeMap<[String; 3], BTreeMap<u32, Vec<f64>>> = BTreeMap::new();
    for row in table.rows.iter().filter(|row| value(&row[failed]) == 0.0) {
        let family = row[instance].split('.').next().unwrap_or_default().to_owned();
        let group = groups.entry([row[benchmark].clone(), row[input].clone(), family]).or_default();
        group.entry(value(&row[cpu]) as u32).or_default().push(value(&row[time]));
    }
    let points = |times: BTreeMap<u32, Vec<f64>>| -> Vec<(f64, f64)> {
        times.into_iter().map(|(cpu, times)| (f64::from(cpu) / 1000.0, median(&times))).collect()
    };
    let groups = groups.into_iter().map(|(group, times)| (group, points(times)));
    Ok(groups.filter(|(_, points)| points.len() >= 5).collect())
}

/// The law of the benchmarks whose CPU and memory were set apart.
pub(crate) fn fit_cpu_law(data: &Path) -> Result<Vec<Fit>, String> {
    let mut by_benchmark: BTreeMap<String, Vec<Law>> = BTreeMap::new();
    let mut errors = Vec::new();
    for ([benchmark, _, _], points) in decoupled(data)? {
        let law = fit_law(&points, 3.0);
        errors.push(law.error);
        by_benchmark.entry(benchmark).or_default().push(law);
    }
    let note = format!("median and p90 error of the CPU law over {} groups", errors.len());
    let mut fits = vec![Fit::informing(quantiles(&errors, &[0.5, 0.9]), note)];
    let (mut shares, mut cores) = (Vec::new(), Vec::new());
    for (benchmark, laws) in &by_benchmark {
        let of = |value: fn(&Law) -> f64| median(&laws.iter().map(value).collect::<Vec<_>>());
        let (share, parallelism) = (of(|law| law.share), of(|law| law.parallelism));
        let note = format!("{benchmark}: parallelism, fixed share, fixed seconds (medians)");
        fits.push(Fit::informing(vec![parallelism, share, of(|law| law.fixed)], note));
        if parallelism <= 1.1 {
            shares.push(share);
            cores.push(parallelism);
        } else {
            let note = format!("{benchmark}: parallel; demand.idle.parallel_share lies around");
            fits.push(Fit::informing(vec![share], note));
        }
    }
    shares.sort_unstable_by(f64::total_cmp);
    fits.push(Fit::new("demand.idle.serial_shares", shares, "fixed shares of serial benchmarks"));
    let range = vec![quantile(&cores, 0.0), quantile(&cores, 1.0)];
    fits.push(Fit::new("demand.parallelism.serial_cores", range, "their parallelism"));
    Ok(fits)
}

/// Rows of chunkfunc that succeeded: function, CPU, memory, input, time.
struct Chunk {
    function: String,
    cores: f64,
    memory: f64,
    input: f64,
    time: f64,
}

fn chunks(data: &Path, set: &str) -> Result<Vec<Chunk>, String> {
    let table = Table::read(data, "profiles-chunkfunc-memory-input", "samples.csv.gz")?;
    let column = |name| table.column(name);
    let (sets, function, cpu) =
        (column("platform_profile_set")?, column("function")?, column("cpu_millicores")?);
    let (memory, input) = (column("memory_mib")?, column("input_bytes")?);
    let (time, status) = (column("exec_time_ms")?, column("status")?);
    let good = table.rows.iter().filter(|row| row[sets] == set && row[status] == "200");
    let chunks = good.map(|row| Chunk {
        function: row[function].clone(),
        cores: value(&row[cpu]) / 1000.0,
        memory: value(&row[memory]),
        input: value(&row[input]),
        time: value(&row[time]).max(1.0),
    });
    Ok(chunks.collect())
}

/// How many of chunkfunc's functions can use more than one core, and how many cores those use.
pub(crate) fn fit_parallel_share(data: &Path) -> Result<Vec<Fit>, String> {
    type ByInput = BTreeMap<u64, BTreeMap<u32, Vec<f64>>>;
    let mut times: BTreeMap<String, ByInput> = BTreeMap::new();
    for chunk in chunks(data, "aws")? {
        let inputs = times.entry(chunk.function).or_default();
        let cpus = inputs.entry(chunk.input as u64).or_default();
        cpus.entry((chunk.cores * 1000.0) as u32).or_default().push(chunk.time);
    }
    let mut limits = Vec::new();
    for inputs in times.values() {
        let laws: Vec<f64> = inputs
            .values()
            .filter(|cpus| cpus.len() >= 3)
            .map(|cpus| {
                let points: Vec<(f64, f64)> =
                    cpus.iter().map(|(&cpu, t)| (f64::from(cpu) / 1000.0, median(t))).collect();
                // Without a gain of a tenth there is no limit to find.
                let gain = points[0].1 / points[points.len() - 1].1;
                if gain < 1.1 { 1.0 } else { fit_law(&points, 6.0).parallelism }
            })
            .collect();
        limits.push(median(&laws));
    }
    limits.sort_unstable_by(f64::total_cmp);
    let parallel = limits.iter().filter(|&&limit| limit > 1.1).count();
    let share = parallel as f64 / limits.len() as f64;
    Ok(vec![
        Fit::new(
            "demand.parallelism.parallel_share",
            vec![share],
            "chunkfunc functions above one core",
        ),
        Fit::informing(limits, "their parallelism; parallel_cores are chosen from it"),
    ])
}

/// How run time grows with the input: exponents, what the input explains, what is left.
pub(crate) fn fit_inputs(data: &Path) -> Result<Vec<Fit>, String> {
    let mut lines: Vec<(String, Line)> = chunk_lines(data)?;
    lines.extend(faasrail_lines(data)?);
    let of = |value: fn(&Line) -> f64| lines.iter().map(|(_, l)| value(l)).collect::<Vec<f64>>();
    let slopes = of(|line| line.slope);
    let mut fits: Vec<Fit> = lines
        .iter()
        .map(|(name, line)| {
            let note = format!("{name}: exponent, explained share, residual spread");
            Fit::informing(vec![line.slope, line.explained, line.residual], note)
        })
        .collect();
    fits.push(Fit::new(
        "demand.input.duration_exponent",
        quantiles(&slopes, &[0.25, 0.75]),
        format!("quartiles over {} benchmarks", slopes.len()),
    ));
    fits.push(Fit::informing(
        quantiles(&of(|line| line.explained), &[0.0, 0.25, 0.5]),
        "explained share: lowest, lower quartile, median; demand.input.explained is chosen lower",
    ));
    fits.push(Fit::informing(vec![median(&of(|line| line.residual))], "median residual spread"));
    Ok(fits)
}

/// Times over inputs at one size, the largest at which all inputs succeed.
fn chunk_lines(data: &Path) -> Result<Vec<(String, Line)>, String> {
    let mut by_size: BTreeMap<(String, u32), Vec<(f64, f64)>> = BTreeMap::new();
    for chunk in chunks(data, "aws")? {
        let size = by_size.entry((chunk.function, chunk.memory as u32)).or_default();
        size.push((chunk.input.ln(), chunk.time.ln()));
    }
    let mut largest: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for ((function, _), points) in by_size {
        let best = largest.entry(function).or_default();
        if points.len() >= best.len() {
            *best = points;
        }
    }
    let lines =
        largest.into_iter().filter(|(_, points)| points.len() >= 3).map(|(name, points)| {
            let (x, y): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
            (name, line(&x, &y))
        });
    Ok(lines.collect())
}

/// Mean times over input sizes, from 10 ms on: shorter ones are rounded.
fn faasrail_lines(data: &Path) -> Result<Vec<(String, Line)>, String> {
    let table = Table::read(data, "profiles-faasrail-workloads", "workloads.csv.gz")?;
    let column = |name| table.column(name);
    let (bench, time, input) = (column("bench")?, column("mean_ms")?, column("input")?);
    let mut points: BTreeMap<String, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for row in table.rows.iter().filter(|row| value(&row[time]) >= 10.0) {
        if let Some(size) = input_size(&row[bench], &row[input]) {
            let (x, y) = points.entry(row[bench].clone()).or_default();
            x.push(size.ln());
            y.push(value(&row[time]).ln());
        }
    }
    let enough = points.into_iter().filter(|(_, (x, _))| x.len() >= 5);
    Ok(enough.map(|(name, (x, y))| (name, line(&x, &y))).collect())
}

/// The amount of data that an input names: bytes, cells or kilobytes, whatever the benchmark counts.
fn input_size(bench: &str, input: &str) -> Option<f64> {
    let input: serde_json::Value = serde_json::from_str(input).ok()?;
    let number = |key: &str| input.get(key)?.as_f64();
    // The last run of digits in a name such as img016k.jpeg or big_buck_bunny_240p_1mb.mp4.
    let named = |key: &str, before: &str| {
        let name = input.get(key)?.as_str()?.strip_suffix(before)?;
        let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
        name[digits..].parse::<f64>().ok()
    };
    match bench {
        "pyaes" => Some(number("message_length")? * number("num_iterations")?),
        "chameleon" => Some(number("ncol")? * number("nrow")?),
        "matmul_fb" => Some(number("M")? * number("N")?),
        "image_rotate" => named("img_name", "k.jpeg"),
        "json_serdes" => named("file_name", ".json"),
        "video_processing" => named("vid_name", "mb.mp4"),
        _ => None,
    }
}
