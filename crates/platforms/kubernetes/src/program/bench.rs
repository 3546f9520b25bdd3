//! `bench`: many objects on a given cluster.

use std::time::Duration;

use clap::{Args, ValueEnum};
use windfall_kubernetes::bench::{self, BenchReport};
use windfall_kubernetes::controller::{PassReport, Settings};
use windfall_kubernetes::service::{Options, Service};

use super::{Failure, print, with_client};

#[derive(Args)]
pub(super) struct BenchArguments {
    /// Policies, with a Deployment each.
    #[arg(long, default_value_t = 1000)]
    policies: usize,
    /// Pods, spread over the Deployments. They are never scheduled.
    #[arg(long, default_value_t = 10_000)]
    pods: usize,
    /// Passes that are measured.
    #[arg(long, default_value_t = 20)]
    passes: usize,
    /// The mode of the policies.
    #[arg(long, default_value = "Recommend")]
    mode: String,
    /// Leaves the objects for another run.
    #[arg(long)]
    keep: bool,
    /// How the result is printed.
    #[arg(long, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One line of JSON.
    Json,
}

pub(super) fn run(arguments: BenchArguments) -> Result<(), Failure> {
    if arguments.policies == 0 || arguments.passes == 0 {
        return Err(Failure::Argument("--policies and --passes are at least 1".to_owned()));
    }
    super::controller::log(true);
    with_client(async |client| {
        let BenchArguments { policies, pods, .. } = arguments;
        bench::create(&client, policies, pods, &arguments.mode, &|text| print::note(&text)).await?;
        let report = measure(client.clone(), &arguments).await;
        if !arguments.keep {
            bench::remove(&client).await?;
        }
        show(&report, arguments.format);
        Ok(())
    })
}

async fn measure(client: kube::Client, arguments: &BenchArguments) -> BenchReport {
    let options = Options {
        interval: Duration::from_secs(15),
        namespace: bench::NAMESPACE.to_owned(),
        identity: None,
        seizes: false,
        pages: None,
        webhook: None,
        prometheus: None,
        sources: Vec::new(),
        settings: Settings::default(),
    };
    let mut service = Service::start_with(client, options, vec![Box::new(bench::MadeUp)]).await;
    let mut passes: Vec<PassReport> = Vec::new();
    while passes.len() < arguments.passes {
        match service.pass().await {
            Some(report) => passes.push(report),
            None => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
    service.stop().await;
    let (resident_mb, peak_resident_mb) = bench::resident_mb();
    let mut seconds: Vec<f64> = passes.iter().map(|pass| pass.seconds).collect();
    seconds.sort_unstable_by(f64::total_cmp);
    let most = |of: fn(&PassReport) -> u64| passes.iter().map(of).max().unwrap_or(0);
    BenchReport {
        policies: arguments.policies,
        pods: arguments.pods,
        passes: passes.len(),
        longest_pass_seconds: seconds.last().copied().unwrap_or(0.0),
        median_pass_seconds: seconds[seconds.len() / 2],
        longest_deciding_seconds: passes.iter().map(|pass| pass.deciding).fold(0.0, f64::max),
        most_reads: most(|pass| pass.reads),
        most_writes: most(|pass| pass.writes),
        last_writes: passes.last().map_or(0, |pass| pass.writes),
        resident_mb,
        peak_resident_mb,
    }
}

fn show(report: &BenchReport, format: Format) {
    match format {
        Format::Json => {
            print::line(&serde_json::to_string(report).expect("a report is plain data"))
        }
        Format::Text => {
            print::line(&format!(
                "{} policies, {} pods, {} passes",
                report.policies, report.pods, report.passes
            ));
            print::line(&format!(
                "pass       median {:.3} s, longest {:.3} s, of it deciding {:.3} s",
                report.median_pass_seconds,
                report.longest_pass_seconds,
                report.longest_deciding_seconds
            ));
            print::line(&format!(
                "requests   at most {} reads and {} writes per pass, {} writes in the last",
                report.most_reads, report.most_writes, report.last_writes
            ));
            print::line(&format!(
                "memory     {:.0} MB resident, {:.0} MB at most",
                report.resident_mb, report.peak_resident_mb
            ));
        }
    }
}
