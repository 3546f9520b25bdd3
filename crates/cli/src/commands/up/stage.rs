//! Where functions run: real ones in cgroups, real ones without, or the simulator, whichever is asked for or possible.

use std::net::SocketAddr;

use anyhow::{Context, anyhow, bail};
use windfall_core::{Platform, Seed};
use windfall_daemon::embedded::load::Called;
use windfall_daemon::embedded::samples::SAMPLES;
use windfall_daemon::embedded::{EmbeddedError, EmbeddedWorld, ManagedEmbedded};
use windfall_daemon::managed_platform::Invocation;
use windfall_daemon::simulated::{SimulatedPlatform, SimulatedWorld};
use windfall_daemon::supervisor::Prepared;
use windfall_daemon::{Clock, ManagedPlatform, SupervisorSettings, prepare};
use windfall_embedded::ServiceError;
use windfall_functions::Runtime;
use windfall_registry::assemble;
use windfall_sandbox::{
    CapabilityName, CapabilityState, Child, DriverChoice, Host, HostOptions, Isolation,
};
use windfall_scenario::Scenario;
use windfall_trace::{AzureLikeSettings, Source};

use super::preflight::{FunctionsApi, Preflight};
use super::{Arguments, Choice};
use crate::commands::functions::folder;
use crate::commands::serve::{machine_limit, sized_by};

/// Where `windfall fn` looks for a platform.
const USUAL_FUNCTIONS: ([u8; 4], u16) = ([127, 0, 0, 1], 3233);
/// Load of a platform whose functions are real: so much of the machine is reserved on average, which leaves room for bursts.
pub(super) const REAL_LOAD: f64 = 0.4;
/// Load of the simulated cluster.
const SIMULATED_LOAD: f64 = 0.7;

/// A platform with everything that depends on which one it is.
pub(super) struct Stage {
    pub(super) prepared: Prepared,
    pub(super) platform: Box<dyn ManagedPlatform>,
    pub(super) clock: Clock,
    /// OpenWhisk's API, where functions are real.
    pub(super) functions: Option<FunctionsApi>,
    /// What the load calls, where functions are real.
    pub(super) called: Vec<Called>,
}

/// A machine for real functions, and how strictly they are isolated there.
pub(super) struct RealHost {
    host: Host,
    isolation: Isolation,
}

/// Starts the spawner of the best driver that is asked for and works; nothing where functions are simulated.
///
/// Call it before any thread exists: the spawner is a fork of this process.
pub(super) fn host(choice: Choice, preflight: &mut Preflight) -> anyhow::Result<Option<RealHost>> {
    let drivers: &[DriverChoice] = match choice {
        Choice::Simulated => return Ok(None),
        Choice::Embedded => &[DriverChoice::Cgroup],
        Choice::Emulated => &[DriverChoice::Emulated],
        Choice::Auto => &[DriverChoice::Cgroup, DriverChoice::Emulated],
    };
    for driver in drivers {
        match isolated(*driver) {
            Ok(found) => {
                let name = found.host.capabilities().driver;
                match driver {
                    DriverChoice::Emulated => preflight.ok("limits", "imitated without cgroups"),
                    _ => preflight.ok("limits", &format!("cgroups, {name}")),
                }
                match found.isolation {
                    Isolation::Process => preflight.missing(
                        "isolation",
                        "run it as root or permit user namespaces",
                        "functions are plain processes of this user",
                    ),
                    level => preflight.ok("isolation", level.name()),
                }
                for run in found.host.leftovers() {
                    preflight.ok("leftovers", &format!("removed what a crashed run left: {run}"));
                }
                return Ok(Some(found));
            }
            Err(error) if choice != Choice::Auto => return Err(error),
            Err(error) => {
                let (what, fix, instead) = match driver {
                    DriverChoice::Cgroup => {
                        ("cgroups", "run it as root", "limits are imitated instead")
                    }
                    _ => ("processes", "see `windfall doctor`", "the simulator takes their place"),
                };
                preflight.missing(what, fix, &format!("{error:#}; {instead}"));
            }
        }
    }
    Ok(None)
}

/// The strictest isolation that works with `driver`.
fn isolated(driver: DriverChoice) -> anyhow::Result<RealHost> {
    let start =
        |isolation| Host::start(&HostOptions { driver, isolation, ..HostOptions::default() });
    let host = start(Isolation::Sandbox)?;
    let has = |host: &Host, name| host.capabilities().state(name) != CapabilityState::Absent;
    if has(&host, CapabilityName::IsolationSandbox) {
        return Ok(RealHost { host, isolation: Isolation::Sandbox });
    }
    let isolation = match has(&host, CapabilityName::IsolationUserns) {
        true => Isolation::SandboxUserns,
        false => Isolation::Process,
    };
    drop(host);
    Ok(RealHost { host: start(isolation)?, isolation })
}

/// Starts the platform. Where real functions do not run although a host is there, the simulator takes their place unless
/// they were asked for.
pub(super) fn stage(
    arguments: &Arguments,
    settings: &SupervisorSettings,
    host: Option<RealHost>,
    preflight: &mut Preflight,
) -> anyhow::Result<Stage> {
    if let Some(host) = host {
        match real(arguments, settings, host, preflight) {
            Ok(stage) => return Ok(stage),
            Err(error) if arguments.platform != Choice::Auto => return Err(error),
            Err(error) => {
                let problem = format!("{error:#}; the simulator takes their place");
                preflight.missing("functions", "see `windfall doctor`", &problem);
            }
        }
    }
    if arguments.functions.is_some() || arguments.bare {
        let option = if arguments.bare { "--bare" } else { "--functions" };
        bail!("{option} needs a platform that runs functions, and the simulator does not");
    }
    simulated(arguments, settings, preflight)
}

fn real(
    arguments: &Arguments,
    settings: &SupervisorSettings,
    RealHost { host, isolation }: RealHost,
    preflight: &mut Preflight,
) -> anyhow::Result<Stage> {
    // What a user wants to run is read first: a mistake in it should not start anything.
    let own = arguments.functions.as_deref().map(folder::read).transpose()?;
    host.join(Child::Gateway)?;
    let assembled =
        assemble(&settings.policy, &settings.policy_settings, Seed::new(settings.seed))?;
    let sized_by = sized_by(&settings.policy, &assembled)?;
    let (prepared, parts) = prepare(settings.clone())?;
    let mut world = EmbeddedWorld {
        listen: arguments.functions_listen.unwrap_or_else(|| USUAL_FUNCTIONS.into()),
        database: arguments.state.join("platform.db"),
        limit: machine_limit()?,
        isolation,
        sized_by,
    };
    if arguments.functions_listen.is_none() && !is_free(world.listen) {
        world.listen.set_port(0);
    }
    let mut platform = ManagedEmbedded::start(&world, host, parts.calls).map_err(named)?;
    preflight
        .ok("platform", &format!("{}, {}", platform.kind().word(), platform.kind().explained()));
    let called = match own {
        Some(own) => deploy_own(&platform, own, preflight)?,
        None if arguments.bare => Vec::new(),
        None => deploy_samples(&platform)?,
    };
    platform.learn_functions()?;
    if arguments.functions.is_none() && !arguments.bare {
        probe(&platform)?;
    }
    let count = platform.functions().len();
    preflight.ok("functions", &format!("{count} on http://{}", platform.address()));
    let example = called.iter().find(|one| one.name == "greet").or_else(|| called.first());
    let functions = FunctionsApi {
        address: platform.address(),
        key: platform.key().to_owned(),
        example: example.map_or_else(|| "NAME".to_owned(), |one| one.name.clone()),
    };
    let clock = platform.clock();
    Ok(Stage { prepared, platform: Box::new(platform), clock, functions: Some(functions), called })
}

/// The option of `up` instead of that of `serve`.
fn named(error: EmbeddedError) -> anyhow::Error {
    match error {
        EmbeddedError::Service(ServiceError::Listen { address, source }) => {
            anyhow!("cannot listen on {address}: {source}; choose another with --functions-listen")
        }
        other => other.into(),
    }
}

/// Whether nobody listens there now.
pub(super) fn is_free(address: SocketAddr) -> bool {
    std::net::TcpListener::bind(address).is_ok()
}

fn deploy_samples(platform: &ManagedEmbedded) -> anyhow::Result<Vec<Called>> {
    let actions = SAMPLES.iter().map(|sample| (sample.name, sample.action()));
    folder::deploy(platform.address(), platform.key(), actions)?;
    Ok(SAMPLES.iter().map(Called::sample).collect())
}

fn deploy_own(
    platform: &ManagedEmbedded,
    own: Vec<folder::FolderFunction>,
    preflight: &mut Preflight,
) -> anyhow::Result<Vec<Called>> {
    for runtime in Runtime::ALL {
        match runtime.program() {
            Ok(_) => preflight.ok("runtime", runtime.kind()),
            Err(error) => {
                let fix = format!("install {}", runtime.kind());
                preflight.missing("runtime", &fix, &error.to_string());
            }
        }
    }
    let actions = own.iter().map(|one| (one.name.as_str(), one.action.clone()));
    folder::deploy(platform.address(), platform.key(), actions)?;
    let called = own.into_iter().map(|one| Called {
        name: one.name,
        parameters: one.parameters.to_string(),
        sample: None,
    });
    Ok(called.collect())
}

/// Runs one call, so that a machine on which instances cannot run is found out before anything is promised.
fn probe(platform: &ManagedEmbedded) -> anyhow::Result<()> {
    let invoker = platform.invoker().context("the platform runs no calls on request")?;
    let invocation = Invocation { function: "greet".to_owned(), ..Invocation::default() };
    let ran = invoker.invoke(&invocation).context("a first call did not run")?;
    if ran.end != "completed" {
        bail!("a first call ended as {}: {}", ran.end, ran.answer.unwrap_or_default());
    }
    Ok(())
}

fn simulated(
    arguments: &Arguments,
    settings: &SupervisorSettings,
    preflight: &mut Preflight,
) -> anyhow::Result<Stage> {
    let generator = AzureLikeSettings {
        functions: arguments.count,
        calls_per_hour: arguments.calls_per_hour.unwrap_or(36_000.0),
        ..AzureLikeSettings::default()
    };
    let scenario = Scenario {
        trace: Source::AzureLike(generator),
        loads: vec![arguments.load.unwrap_or(SIMULATED_LOAD)],
        ..Scenario::default()
    };
    let described = scenario.trace.describe();
    let world = SimulatedWorld { scenario, seed: arguments.seed, speed: arguments.speed };
    let (prepared, parts) = prepare(settings.clone())?;
    let platform = SimulatedPlatform::start(&world, parts)?;
    preflight.ok("platform", &format!("simulated, {}", platform.kind().explained()));
    preflight.ok("load", &described);
    Ok(Stage {
        prepared,
        platform: Box::new(platform),
        clock: Clock::begin(),
        functions: None,
        called: Vec::new(),
    })
}
