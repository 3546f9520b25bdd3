//! `windfall up`: a platform, a load, the manager and its dashboard, in one command.

mod preflight;
mod stage;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, ValueEnum};
use windfall_core::Seed;
use windfall_daemon::database::{Records, Retention, file_in};
use windfall_daemon::embedded::load::{Amount, SampleLoad};
use windfall_daemon::summary::{Summary, report};
use windfall_daemon::supervisor::Named;
use windfall_daemon::{
    Mode, PlatformKind, Server, Service, Supervisor, SupervisorSettings, random_token,
};
use windfall_registry::{PolicySettings, assemble};

use crate::arguments::{ObjectFormat, load};
use crate::output::{command_line, directory, print, print_json, write_whole};
use preflight::{FunctionsApi, Preflight};
use stage::{REAL_LOAD, RealHost, Stage, is_free};

/// The policy of a first run.
const USUAL_POLICY: &str = "windfall";
/// Where the dashboard is expected.
const USUAL_ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 7117);

/// Start a platform with a load, manage it, and show it in a browser.
#[derive(Args)]
pub(crate) struct Arguments {
    /// End by itself after this time, e.g. 90s, 5m, 1h
    #[arg(long = "for", value_name = "TIME", value_parser = duration, help_heading = "Run")]
    length: Option<Duration>,
    /// Where functions run
    #[arg(long, value_enum, default_value_t, help_heading = "Run")]
    platform: Choice,
    /// The policy, or the file of a checkpoint; else what the last run here kept, at first `windfall`
    #[arg(long, help_heading = "Run")]
    policy: Option<String>,
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
    /// Run the functions of this folder (.py, .js) instead of the samples; NAME.json beside NAME.py has parameters
    #[arg(long, value_name = "DIR", help_heading = "Load")]
    functions: Option<PathBuf>,
    /// Deploy nothing and send no load: functions and calls come through OpenWhisk's API
    #[arg(long, help_heading = "Load", conflicts_with_all = ["functions", "calls_per_hour", "load"])]
    bare: bool,
    /// Calls per hour, 0 for none; else as many as --load says
    #[arg(long, value_name = "N", value_parser = calls_per_hour, help_heading = "Load")]
    calls_per_hour: Option<f64>,
    /// What calls reserve over what there is; else 0.4 embedded, 0.2 emulated, 0.7 simulated
    #[arg(long, value_parser = load, help_heading = "Load")]
    load: Option<f64>,
    /// Functions of the generated load, where the platform is simulated
    #[arg(
        long,
        value_name = "N",
        default_value_t = 40,
        help_heading = "Load",
        hide_short_help = true
    )]
    count: u32,
    /// Simulated seconds per second, where the platform is simulated
    #[arg(long, default_value_t = 1.0, value_parser = speed, help_heading = "Load", hide_short_help = true)]
    speed: f64,
    /// The seed of the load and of policies
    #[arg(long, default_value_t = 1, help_heading = "Load")]
    seed: u64,
    /// Where API and dashboard listen; else 127.0.0.1:7117, or a free port if that is taken
    #[arg(long, value_name = "ADDRESS", help_heading = "Service")]
    listen: Option<SocketAddr>,
    /// Where the functions' own API listens; else 127.0.0.1:3233, or a free port if that is taken
    #[arg(long, value_name = "ADDRESS", help_heading = "Service", hide_short_help = true)]
    functions_listen: Option<SocketAddr>,
    /// Folder for the databases
    #[arg(long, value_name = "DIR", default_value = "runs/up", help_heading = "Service")]
    state: PathBuf,
    /// Price of a core per hour, for the dashboard
    #[arg(
        long,
        value_name = "PRICE",
        default_value_t = 0.04,
        help_heading = "Service",
        hide_short_help = true
    )]
    price: f64,
    /// Token for changes instead of a random one, 16 or more hexadecimal digits; WINDFALL_TOKEN is read too
    #[arg(long, value_parser = token, help_heading = "Service")]
    token: Option<String>,
    /// What to log while it runs, one line per event on standard error: orders, refused requests, versions, health
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    log: LogFormat,
    /// Write a report as HTML when it ends
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    report: Option<PathBuf>,
    /// How to print the summary at the end
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: ObjectFormat,
}

/// How events are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// A line of text with its fields
    #[default]
    Text,
    /// A JSON object per line, for collectors of logs
    Json,
    /// Nothing
    Off,
}

impl LogFormat {
    /// Sends events to standard error. Rotation is left to whoever collects it: journald, or a container's runtime.
    fn begin(self) {
        let lines = tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false);
        match self {
            Self::Text => lines.with_ansi(false).compact().init(),
            Self::Json => lines.json().flatten_event(true).init(),
            Self::Off => {}
        }
    }
}

/// Where functions run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Choice {
    /// The best that this machine permits
    #[default]
    Auto,
    /// Real functions in cgroups on this machine
    Embedded,
    /// Real functions as plain processes, limits imitated without cgroups
    Emulated,
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

fn calls_per_hour(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|calls| (0.0..=3_600_000.0).contains(calls));
    number.ok_or_else(|| format!("`{text}` is not a rate, allowed is 0 to 3600000"))
}

fn token(text: &str) -> Result<String, String> {
    let is_token = text.len() >= 16 && text.chars().all(|digit| digit.is_ascii_hexdigit());
    is_token
        .then(|| text.to_lowercase())
        .ok_or_else(|| "allowed is 16 or more hexadecimal digits".to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    // A name that does not exist is refused before anything is started.
    for policy in [&arguments.policy, &arguments.shadow].into_iter().flatten() {
        assemble(policy, &PolicySettings::new(), Seed::new(arguments.seed))?;
    }
    arguments.log.begin();
    let mut preflight = Preflight;
    // First of all: the spawner is a fork of this process, which must not have threads yet.
    let host = stage::host(arguments.platform, &mut preflight)?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
        .context("cannot listen for Ctrl-C")?;
    let Started { mut service, database, functions, mut load } =
        start(arguments, host, &mut preflight)?;
    let token = token_for_changes(arguments)?;
    let server = Server::start(address(arguments), &service, token.clone(), Some(database))?;
    preflight.ok("dashboard", &format!("listens on {}", server.address()));
    preflight.invite(server.address(), &token, functions.as_ref(), began.elapsed());

    wait(arguments, &service, &interrupted);
    let sent = load.as_mut().map(SampleLoad::stop);
    // The last calls are taken in with the next step.
    std::thread::sleep(Duration::from_millis(200));
    let mut summary = Summary { load: sent, ..Summary::of(&service) };
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

/// The address that was asked for; else the usual one, or a free port of it.
fn address(arguments: &Arguments) -> SocketAddr {
    let mut usual = SocketAddr::from(USUAL_ADDRESS);
    if arguments.listen.is_none() && !is_free(usual) {
        usual.set_port(0);
    }
    arguments.listen.unwrap_or(usual)
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

/// The running manager with what belongs to it.
struct Started {
    service: Service,
    database: PathBuf,
    functions: Option<FunctionsApi>,
    load: Option<SampleLoad>,
}

/// Everything up to the running manager and the load.
fn start(
    arguments: &Arguments,
    host: Option<RealHost>,
    preflight: &mut Preflight,
) -> anyhow::Result<Started> {
    directory(&arguments.state)?;
    let records = records(&arguments.state, preflight)?;
    let Named { policy, settings: policy_settings } = policy(arguments, &records, preflight);
    let settings = SupervisorSettings {
        policy,
        policy_settings,
        shadow: arguments.shadow.clone(),
        // This platform is started from here, so it may be managed; others begin with `recommend`.
        mode: arguments.mode.unwrap_or(Mode::Auto),
        tick: windfall_core::Duration::from_secs_f64(arguments.tick.as_secs_f64()),
        seed: arguments.seed,
        learns: arguments.learn,
        price_per_core_hour: arguments.price,
        ..SupervisorSettings::default()
    };
    let Stage { prepared, platform, clock, functions, called } =
        stage::stage(arguments, &settings, host, preflight)?;
    preflight.ok("policy", &settings.policy);
    let manager = Supervisor::new(prepared, platform, records);
    if let Some(mode) = arguments.mode {
        manager.governance().set_mode(mode);
    }
    preflight.ok("mode", &manager.governance().mode().to_string());
    let service = Service::start(manager, clock)?;
    let amount = match arguments.calls_per_hour {
        Some(calls) if calls <= 0.0 => None,
        Some(calls) => Some(Amount::PerHour(calls)),
        None => {
            let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
            // Imitated limits are coarse, and nothing protects the run from other programs.
            let usual =
                if service.kind == PlatformKind::Emulated { REAL_LOAD / 2.0 } else { REAL_LOAD };
            Some(Amount::Reserving(arguments.load.unwrap_or(usual) * cores))
        }
    };
    let load = match (&functions, amount) {
        (Some(api), Some(amount)) if !called.is_empty() => {
            let load = SampleLoad::start(api.address, &api.key, called, amount, arguments.seed)?;
            let rate = load.per_second();
            preflight.ok("load", &format!("a generated hour, {rate:.1} calls a second over HTTP"));
            Some(load)
        }
        _ => None,
    };
    Ok(Started { service, database: file_in(&arguments.state), functions, load })
}

/// The policy that is asked for, else the version that the last run kept, else our own.
fn policy(arguments: &Arguments, records: &Records, preflight: &mut Preflight) -> Named {
    let named = |policy: &str| Named { policy: policy.to_owned(), ..Named::default() };
    if let Some(policy) = &arguments.policy {
        return named(policy);
    }
    let Some(kept) = records.version_kept() else { return named(USUAL_POLICY) };
    match assemble(&kept.policy, &kept.settings, Seed::new(arguments.seed)) {
        Ok(_) => kept,
        Err(error) => {
            let detail = format!("the version that the last run kept cannot be built: {error}");
            let fix = format!("name one with --policy; {USUAL_POLICY} takes its place");
            preflight.missing("policy", &fix, &detail);
            named(USUAL_POLICY)
        }
    }
}

/// The database, checked; one that is damaged is set aside and named. One that cannot be written is used as soon as it
/// can be.
fn records(folder: &Path, preflight: &mut Preflight) -> anyhow::Result<Records> {
    let file = file_in(folder);
    let is_damaged = match windfall_daemon::database::check(&file) {
        Ok(problems) => !problems.is_empty(),
        Err(error) => error.is_damage(),
    };
    if is_damaged {
        let aside = file.with_extension("damaged");
        std::fs::rename(&file, &aside)
            .with_context(|| format!("{} is damaged and cannot be set aside", file.display()))?;
        let detail = format!("it was damaged; set aside as {}", aside.display());
        preflight.missing("database", "nothing to do, a new one is begun", &detail);
    }
    let records = Records::open(&file, Retention::default())?;
    let name = file.display();
    match records.problem() {
        None => preflight.ok("database", &name.to_string()),
        Some(problem) => {
            let detail = format!("{problem}; nothing is recorded, and no size is set by ticks");
            preflight.missing("database", &format!("make {name} writable"), &detail);
        }
    }
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
         served      {} calls, {} failed{}\n\
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
        summary.load.map_or_else(String::new, |load| {
            format!("; the load sent {}, {} without success", load.sent, load.failed)
        }),
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
