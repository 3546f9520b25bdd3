//! A report like Vegeta's: the same lines, the same JSON keys, and two things more: how late the generator itself
//! was, and each target on its own.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use windfall_core::Duration;

use crate::measured::{CallResult, Measured, Sample};
use crate::statistics::Sorted;

/// A later start is counted as late.
const LATE: Duration = Duration::from_millis(1);
/// Different errors that are listed.
const MOST_ERRORS: usize = 20;

/// All numbers of a run. Times are in nanoseconds, as in Vegeta's JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Latency from the due time.
    pub latencies: Latencies,
    /// How late calls were sent.
    pub lateness: Latencies,
    /// Share of calls that were sent more than 1 ms late.
    pub late_share: f64,
    /// Bodies of answers.
    pub bytes_in: Bytes,
    /// Bodies of requests.
    pub bytes_out: Bytes,
    /// From the first call to the last one.
    pub duration: u64,
    /// From the last call to the last answer.
    pub wait: u64,
    /// Calls.
    pub requests: usize,
    /// Calls per second, as they were due.
    pub rate: f64,
    /// Successful calls per second, until the last answer.
    pub throughput: f64,
    /// Share of calls with a status of 200 to 399.
    pub success: f64,
    /// Calls by status; 0 stands for those without an answer.
    pub status_codes: BTreeMap<String, usize>,
    /// The first 20 different errors.
    pub errors: Vec<String>,
    /// Each target on its own.
    pub targets: Vec<TargetReport>,
    /// Upper bounds of latency with the number of calls up to them; bounds grow by a factor of 1.19.
    pub histogram: Vec<Bucket>,
}

/// Quantiles of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// Sum.
    pub total: u64,
    /// Mean.
    pub mean: u64,
    /// Median.
    #[serde(rename = "50th")]
    pub p50: u64,
    /// 90 % are not longer.
    #[serde(rename = "90th")]
    pub p90: u64,
    /// 95 % are not longer.
    #[serde(rename = "95th")]
    pub p95: u64,
    /// 99 % are not longer.
    #[serde(rename = "99th")]
    pub p99: u64,
    /// 99.9 % are not longer.
    #[serde(rename = "99.9th")]
    pub p999: u64,
    /// Longest.
    pub max: u64,
    /// Shortest.
    pub min: u64,
}

/// Sum and mean of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bytes {
    /// Sum.
    pub total: u64,
    /// Mean.
    pub mean: f64,
}

/// One bar of the histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// Upper bound, nanoseconds.
    pub upper: u64,
    /// Calls.
    pub count: usize,
}

/// One target of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetReport {
    /// Its name.
    pub name: String,
    /// Calls.
    pub requests: usize,
    /// Share of calls with a status of 200 to 399.
    pub success: f64,
    /// Latency from the due time.
    pub latencies: Latencies,
}

impl Report {
    /// Computes the report of a run.
    pub fn new(measured: &Measured) -> Self {
        let samples = &measured.samples;
        let count = samples.len();
        let first = samples.first().map_or(Duration::ZERO, |sample| sample.due).as_nanos();
        let last = samples.last().map_or(Duration::ZERO, |sample| sample.due).as_nanos();
        let successes = samples.iter().filter(|sample| sample.is_success()).count();
        let per_second = |calls: usize, nanos: u64| {
            if nanos == 0 { calls as f64 } else { calls as f64 * 1e9 / nanos as f64 }
        };
        let end = measured.total.as_nanos();
        let latencies = sorted(samples, Sample::latency);
        let lateness = sorted(samples, Sample::lateness);
        Self {
            latencies: Latencies::new(&latencies),
            late_share: share(lateness.above(LATE.as_nanos()), count),
            lateness: Latencies::new(&lateness),
            bytes_in: Bytes::new(samples, |sample| sample.bytes_in),
            bytes_out: Bytes::new(samples, |sample| sample.bytes_out),
            duration: last - first,
            wait: end.saturating_sub(last),
            requests: count,
            rate: per_second(count, last - first),
            throughput: per_second(successes, end.saturating_sub(first)),
            success: share(successes, count),
            status_codes: status_codes(samples),
            errors: errors(samples),
            targets: targets(measured),
            histogram: latencies
                .buckets()
                .into_iter()
                .map(|(upper, count)| Bucket { upper, count })
                .collect(),
        }
    }

    /// The lines that Vegeta prints, and ours.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, parts: &str, values: String| {
            let _ = writeln!(text, "{name:<14}{parts:<40}{values}");
        };
        let quantiles =
            |l: &Latencies| [l.min, l.mean, l.p50, l.p90, l.p95, l.p99, l.max].map(time).join(", ");
        let rates = format!("{}, {:.2}, {:.2}", self.requests, self.rate, self.throughput);
        line("Requests", "[total, rate, throughput]", rates);
        let spans = [self.duration + self.wait, self.duration, self.wait].map(time).join(", ");
        line("Duration", "[total, sending, wait]", spans);
        line("Latencies", "[min, mean, 50, 90, 95, 99, max]", quantiles(&self.latencies));
        line("Sent late", "[min, mean, 50, 90, 95, 99, max]", quantiles(&self.lateness));
        line("Sent late", "[share by more than 1 ms]", format!("{:.2}%", self.late_share * 100.0));
        for (name, bytes) in [("Bytes in", self.bytes_in), ("Bytes out", self.bytes_out)] {
            line(name, "[total, mean]", format!("{}, {:.2}", bytes.total, bytes.mean));
        }
        line("Success", "[ratio]", format!("{:.2}%", self.success * 100.0));
        let codes: Vec<String> =
            self.status_codes.iter().map(|(code, count)| format!("{code}:{count}")).collect();
        line("Status codes", "[code:count]", codes.join("  "));
        if self.targets.len() > 1 {
            text.push_str("Targets       [requests, success, 50, 95, 99, max]\n");
            for target in &self.targets {
                let l = &target.latencies;
                let times = [l.p50, l.p95, l.p99, l.max].map(time).join(", ");
                let success = target.success * 100.0;
                let _ = writeln!(
                    text,
                    "  {:<28} {}, {success:.2}%, {times}",
                    target.name, target.requests
                );
            }
        }
        if !self.errors.is_empty() {
            let _ = writeln!(text, "Errors:\n{}", self.errors.join("\n"));
        }
        text
    }
}

/// Three or four digits and a unit: 950ns, 12.3us, 4.56ms, 1.234s.
fn time(nanos: u64) -> String {
    let nanos = nanos as f64;
    match nanos {
        ..1e3 => format!("{nanos}ns"),
        1e3..1e6 => format!("{:.1}us", nanos / 1e3),
        1e6..1e9 => format!("{:.2}ms", nanos / 1e6),
        _ => format!("{:.3}s", nanos / 1e9),
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn sorted<'a>(
    samples: impl IntoIterator<Item = &'a Sample>,
    time: fn(&Sample) -> Duration,
) -> Sorted {
    Sorted::new(samples.into_iter().map(|sample| time(sample).as_nanos()).collect())
}

fn status_codes(samples: &[Sample]) -> BTreeMap<String, usize> {
    let mut codes = BTreeMap::new();
    for sample in samples {
        let code = match &sample.result {
            CallResult::Status(code) => code.to_string(),
            CallResult::Failed(_) => "0".to_owned(),
        };
        *codes.entry(code).or_default() += 1;
    }
    codes
}

fn errors(samples: &[Sample]) -> Vec<String> {
    let mut errors = Vec::new();
    for sample in samples.iter().filter(|sample| !sample.is_success()) {
        let error = match &sample.result {
            CallResult::Status(code) => format!("status {code}"),
            CallResult::Failed(why) => why.clone(),
        };
        if !errors.contains(&error) {
            errors.push(error);
        }
        if errors.len() == MOST_ERRORS {
            break;
        }
    }
    errors
}

fn targets(measured: &Measured) -> Vec<TargetReport> {
    let names = measured.targets.iter().enumerate();
    names
        .map(|(place, name)| {
            let own: Vec<&Sample> =
                measured.samples.iter().filter(|sample| sample.target as usize == place).collect();
            let successes = own.iter().filter(|sample| sample.is_success()).count();
            TargetReport {
                name: name.clone(),
                requests: own.len(),
                success: share(successes, own.len()),
                latencies: Latencies::new(&sorted(own, Sample::latency)),
            }
        })
        .collect()
}

impl Latencies {
    fn new(times: &Sorted) -> Self {
        Self {
            total: times.total() as u64,
            mean: times.mean() as u64,
            p50: times.quantile(0.5),
            p90: times.quantile(0.9),
            p95: times.quantile(0.95),
            p99: times.quantile(0.99),
            p999: times.quantile(0.999),
            max: times.quantile(1.0),
            min: times.quantile(0.0),
        }
    }
}

impl Bytes {
    fn new(samples: &[Sample], bytes: fn(&Sample) -> u64) -> Self {
        let total: u64 = samples.iter().map(bytes).sum();
        Self {
            total,
            mean: if samples.is_empty() { 0.0 } else { total as f64 / samples.len() as f64 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(due_ms: u64, late_us: u64, latency_ms: u64, result: CallResult) -> Sample {
        let due = Duration::from_millis(due_ms);
        Sample {
            target: (due_ms / 100 % 2) as u32,
            due,
            sent: due + Duration::from_nanos(late_us * 1000),
            ended: due + Duration::from_millis(latency_ms),
            bytes_in: 10,
            bytes_out: 4,
            result,
        }
    }

    fn measured() -> Measured {
        let samples = vec![
            sample(0, 10, 5, CallResult::Status(200)),
            sample(100, 20, 7, CallResult::Status(200)),
            sample(200, 2000, 9, CallResult::Status(502)),
            sample(300, 30, 11, CallResult::Failed("no answer within 1 s".to_owned())),
        ];
        let targets = vec!["a".to_owned(), "b".to_owned()];
        Measured { targets, samples, total: Duration::from_millis(311) }
    }

    #[test]
    fn numbers_are_those_of_the_samples() {
        let report = Report::new(&measured());
        assert_eq!((report.requests, report.success, report.late_share), (4, 0.5, 0.25));
        assert_eq!((report.latencies.p50, report.latencies.max), (7_000_000, 11_000_000));
        assert_eq!((report.latencies.mean, report.latencies.min), (8_000_000, 5_000_000));
        assert_eq!((report.duration, report.wait), (300_000_000, 11_000_000));
        assert_eq!(report.lateness.max, 2_000_000);
        let codes: Vec<(&str, usize)> =
            report.status_codes.iter().map(|(code, count)| (code.as_str(), *count)).collect();
        assert_eq!(codes, [("0", 1), ("200", 2), ("502", 1)]);
        assert_eq!(report.errors, ["status 502", "no answer within 1 s"]);
        assert_eq!(report.targets[1].requests, 2);
        assert_eq!(report.histogram.iter().map(|bucket| bucket.count).sum::<usize>(), 4);
    }

    #[test]
    fn text_has_the_lines_of_vegeta() {
        let text = Report::new(&measured()).to_text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "Requests      [total, rate, throughput]               4, 13.33, 6.43"
        );
        assert_eq!(
            lines[1],
            "Duration      [total, sending, wait]                  311.00ms, 300.00ms, 11.00ms"
        );
        assert!(lines[2].ends_with("5.00ms, 8.00ms, 7.00ms, 11.00ms, 11.00ms, 11.00ms, 11.00ms"));
        assert!(
            text.contains(
                "Status codes  [code:count]                            0:1  200:2  502:1"
            )
        );
        assert!(text.ends_with("Errors:\nstatus 502\nno answer within 1 s\n"), "{text}");
    }

    #[test]
    fn json_has_the_keys_of_vegeta() {
        let json = serde_json::to_value(Report::new(&measured())).unwrap();
        assert_eq!(json["latencies"]["99th"], 11_000_000);
        assert_eq!(json["bytes_in"]["total"], 40);
        assert_eq!(json["status_codes"]["200"], 2);
        let again: Report = serde_json::from_value(json).unwrap();
        assert_eq!(again, Report::new(&measured()));
    }

    #[test]
    fn nothing_measured_is_reported_without_nonsense() {
        let report = Report::new(&Measured::default());
        assert_eq!((report.requests, report.success), (0, 0.0));
        assert!(!report.to_text().contains("NaN"));
    }
}
