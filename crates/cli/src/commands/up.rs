//! `windfall up`: a platform, a load, the manager and its dashboard, in one command.

mod preflight;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, ValueEnum};
use windfall_daemon::database::{Records, Retention, file_in};
use windfall_daemon::simulated::{SimulatedPlatform, SimulatedWorld};
use windfall_daemon::summary::{Summary, report};
use windfall_daemon::supervisor::PlatformParts;
use windfall_daemon::{
    Clock, ManagedPlatform, Mode, Server, Service, Supervisor, SupervisorSettings, prepare,
    random_token,
};
use windfall_scenario::Scenario;
use windfall_trace::{AzureLikeSettings, Source};

use crate::arguments::{ObjectFormat, load};
use crate::output::{command_line, directory, print, print_json, write_whole};
use preflight::Preflight;

/// Start a platform with a load, manage it, and show it in a browser.
#[derive(Args)]
pub(crate) struct Arguments {
    /// End by itself after this time, e.g. 90s, 5m, 1h
    #[arg(long = "for", value_name = "TIME", value_parser = duration, help_heading = "Run")]
    length: Option<Duration>,
    /// Where functions run
    #[arg(long, value_enum, default_value_t, help_heading = "Run")]
    platform: Choice,
    /// The policy, or the file of a checkpoint; `windfall policies` lists them
    #[arg(long, default_value = "windfall", help_heading = "Run")]
    policy: String,
    /// A policy to ask beside it and show as a ghost line, never obeyed
    #[arg(long, value_name = "POLICY", help_heading = "Run")]
    shadow: Option<String>,
    /// How much the manager may do: observe, recommend, canary, canary:SHARE, auto
    #[arg(long, value_parser = mode, help_heading = "Run")]
    mode: Option<Mode>,
    /// Let a learner offer better settings of the policy while it runs
    #[arg(long, help_heading = "Run")]
    learn: bool,
    /// Time between two ticks
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration, help_heading = "Run")]
    tick: Duration,
    /// Functions of the generated load
    #[arg(long, value_name = "N", default_value_t = 40, help_heading = "Load")]
    count: u32,
    /// Calls per hour of the generated load
    #[arg(long, value_name = "N", default_value_t = 36_000.0, help_heading = "Load")]
    calls_per_hour: f64,
    /// What users reserve over what there is, where the platform is simulated
    #[arg(long, default_value = "0.7", value_parser = load, help_heading = "Load")]
    load: f64,
    /// Simulated seconds per second, where the platform is simulated
    #[arg(long, default_value_t = 1.0, value_parser = speed, help_heading = "Load")]
    speed: f64,
    /// The seed of the load and of policies
    #[arg(long, default_value_t = 1, help_heading = "Load")]
    seed: u64,
    /// Where the API and the dashboard listen; port 0 takes a free one
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:7117",
        help_heading = "Service"
    )]
    listen: SocketAddr,
    /// Folder for the database
    #[arg(long, value_name = "DIR", default_value = "runs/up", help_heading = "Service")]
    state: PathBuf,
    /// Price of a core per hour, for the dashboard
    #[arg(long, value_name = "PRICE", default_value_t = 0.04, help_heading = "Service")]
    price: f64,
    /// Token for changes instead of a random one, 16 or more hexadecimal digits; WINDFALL_TOKEN is read too
    #[arg(long, value_parser = token, help_heading = "Service")]
    token: Option<String>,
    /// Write a report as HTML when it ends
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    report: Option<PathBuf>,
    /// How to print the summary at the end
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: ObjectFormat,
}

/// Where functions run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Choice {
    /// The best that this machine permits
    #[default]
    Auto,
    /// Real functions in cgroups on this machine
    Embedded,
    /// The simulator in real time; no function runs
    Simulated,
}

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a time, allowed is e.g. 500ms, 90s, 5m, 1h");
    let split = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (amount, unit) = text.split_at(split);
    let amount: f64 = amount.trim().parse().map_err(|_| wrong())?;
    let factor = match unit {
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let seconds = amount * factor;
    if (0.01..=31_536_000.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(wrong())
    }
}

fn mode(text: &str) -> Result<Mode, String> {
    text.parse()
}

fn speed(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|speed| (0.1..=1000.0).contains(speed))
        .ok_or_else(|| format!("`{text}` is not a speed, allowed is 0.1 to 1000"))
}

fn token(text: &str) -> Result<String, String> {
    let is_token = text.len() >= 16 && text.chars().all(|digit| digit.is_ascii_hexdigit());
    is_token
        .then(|| text.to_lowercase())
        .ok_or_else(|| "allowed is 16 or more hexadecimal digits".to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
        .context("cannot listen for Ctrl-C")?;
    let began = Instant::now();
    let mut preflight = Preflight;
    let (mut service, database) = start(arguments, &mut preflight)?;
    let token = token_for_changes(arguments)?;
    let server = Server::start(arguments.listen, &service, token.clone(), Some(database))?;
    preflight.ok("dashboard", &format!("listens on {}", server.address()));
    preflight.invite(server.address(), &token, began.elapsed());

    wait(arguments, &service, &interrupted);
    let mut summary = Summary::of(&service);
    let written = arguments.report.as_deref().map(|file| {
        let page = report(&service, &summary, command_line());
        write_whole(file, &page).map(|()| file.display().to_string())
    });
    summary.report = written.transpose()?;
    summary.restored = Some(service.stop());
    drop(server);
    show(arguments, &summary)?;
    Ok(ExitCode::SUCCESS)
}

/// The token of the command line, of the environment (so that no process list shows it), or a random one.
fn token_for_changes(arguments: &Arguments) -> anyhow::Result<String> {
    if let Some(token) = &arguments.token {
        return Ok(token.clone());
    }
    if let Ok(given) = std::env::var("WINDFALL_TOKEN") {
        return token(&given).map_err(|error| anyhow::anyhow!("WINDFALL_TOKEN: {error}"));
    }
    random_token().context("no random token: /dev/urandom cannot be read")
}

/// Everything up to the running manager.
fn start(arguments: &Arguments, preflight: &mut Preflight) -> anyhow::Result<(Service, PathBuf)> {
    let settings = SupervisorSettings {
        policy: arguments.policy.clone(),
        shadow: arguments.shadow.clone(),
        // This platform is started from here, so it may be managed; others begin with `recommend`.
        mode: arguments.mode.unwrap_or(Mode::Auto),
        tick: windfall_core::Duration::from_secs_f64(arguments.tick.as_secs_f64()),
        seed: arguments.seed,
        learns: arguments.learn,
        price_per_core_hour: arguments.price,
        ..SupervisorSettings::default()
    };
    let (prepared, parts) = prepare(settings)?;
    preflight.ok("policy", &arguments.policy);
    let platform = platform(arguments, parts, preflight)?;
    let records = records(&arguments.state, preflight)?;
    let database = file_in(&arguments.state);
    let manager = Supervisor::new(prepared, platform, records);
    if let Some(mode) = arguments.mode {
        manager.governance().set_mode(mode);
    }
    preflight.ok("mode", &manager.governance().mode().to_string());
    Ok((Service::start(manager, Clock::begin())?, database))
}

/// The platform that was asked for, or the best there is.
fn platform(
    arguments: &Arguments,
    parts: PlatformParts,
    preflight: &mut Preflight,
) -> anyhow::Result<Box<dyn ManagedPlatform>> {
    match arguments.platform {
        Choice::Embedded => anyhow::bail!(
            "the embedded platform is not part of this build; use --platform simulated"
        ),
        Choice::Auto => preflight.missing(
            "embedded platform",
            "not part of this build: the simulator in real time takes its place, no function runs",
        ),
        Choice::Simulated => {}
    }
    let generator = AzureLikeSettings {
        functions: arguments.count,
        calls_per_hour: arguments.calls_per_hour,
        ..AzureLikeSettings::default()
    };
    let scenario = Scenario {
        trace: Source::AzureLike(generator),
        loads: vec![arguments.load],
        ..Scenario::default()
    };
    let described = scenario.trace.describe();
    let world = SimulatedWorld { scenario, seed: arguments.seed, speed: arguments.speed };
    let platform = SimulatedPlatform::start(&world, parts.calls, parts.needs)?;
    preflight.ok("platform", &format!("simulated, {}", platform.kind().explained()));
    preflight.ok("load", &described);
    Ok(Box::new(platform))
}

/// The database, checked; one that is damaged is set aside and named.
fn records(folder: &Path, preflight: &mut Preflight) -> anyhow::Result<Records> {
    directory(folder)?;
    let file = file_in(folder);
    let is_damaged = match windfall_daemon::database::check(&file) {
        Ok(problems) => !problems.is_empty(),
        Err(windfall_daemon::database::DatabaseError::TooNew { .. }) => false,
        Err(_) => true,
    };
    if is_damaged {
        let aside = file.with_extension("damaged");
        std::fs::rename(&file, &aside)
            .with_context(|| format!("{} is damaged and cannot be set aside", file.display()))?;
        preflight.missing("database", &format!("was damaged; set aside as {}", aside.display()));
    }
    let records = Records::open(&file, Retention::default())?;
    preflight.ok("database", &file.display().to_string());
    Ok(records)
}

/// Until the time is over, Ctrl-C, or the control thread has ended.
fn wait(arguments: &Arguments, service: &Service, interrupted: &AtomicBool) {
    let until = arguments.length.map(|length| Instant::now() + length);
    while until.is_none_or(|until| Instant::now() < until)
        && !interrupted.load(Ordering::Relaxed)
        && !service.has_ended()
    {
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn show(arguments: &Arguments, summary: &Summary) -> anyhow::Result<()> {
    if arguments.format == ObjectFormat::Json {
        return print_json(summary);
    }
    let report = summary.report.as_deref().unwrap_or("none; --report FILE writes one");
    print(&format!(
        "platform    {}, policy {}, mode {}, {:.0} s\n\
         served      {} calls, {} failed\n\
         latency     p50 {:.0} ms, p99 {:.0} ms; {:.2} % of {} judged calls met their objective\n\
         core-s      {:.1} reserved, {:.1} held ({:.0} % saved), {:.1} used\n\
         safeguards  {} decisions changed\n\
         restored    {}\n\
         report      {report}",
        summary.platform,
        summary.policy,
        summary.mode,
        summary.seconds,
        summary.calls,
        summary.failed,
        summary.p50_ms,
        summary.p99_ms,
        summary.objective_met_share * 100.0,
        summary.judged,
        summary.core_seconds_reserved,
        summary.core_seconds_held,
        summary.saved_share() * 100.0,
        summary.core_seconds_used,
        summary.safeguard_trips,
        match summary.restored {
            Some(true) => "every function has its own allocation",
            _ => "not confirmed for every function; the next start takes it up",
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_bounds() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert!(duration("0").is_err() && duration("5x").is_err() && duration("").is_err());
    }

    #[test]
    fn a_token_is_long_and_hexadecimal() {
        assert!(token("0123456789ABCDEF").is_ok());
        assert!(token("0123").is_err() && token("0123456789abcdeg").is_err());
    }
}
