//! The host under test, and the usual way to run something in it.

use std::fs::File;
use std::io::Read;
use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use windfall_core::{Mebibytes, MilliCpu};
use windfall_sandbox::{
    CapabilityName, CapabilityState, Exit, Host, HostOptions, Instance, Isolation, Launch, Limits,
    Program, SandboxError,
};

/// No step of a test takes this long, even on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) type Outcome = Result<(), Failed>;

/// The host under test.
pub(crate) struct Place {
    pub(crate) host: Host,
}

/// What a finished instance left.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) output: String,
    pub(crate) exit: Exit,
}

impl Finished {
    /// The value that the instance printed as `key=value`.
    pub(crate) fn value(&self, key: &str) -> &str {
        let find = |line: &'_ str| line.strip_prefix(key).is_some_and(|rest| rest.starts_with('='));
        let line = self.output.lines().find(|line| find(line));
        line.map_or("", |line| &line[key.len() + 1..])
    }
}

impl Place {
    pub(crate) fn start() -> Result<Self, SandboxError> {
        Ok(Self { host: Host::start(&HostOptions::default())? })
    }

    pub(crate) fn has(&self, name: CapabilityName) -> bool {
        self.host.capabilities().state(name) != CapabilityState::Absent
    }

    /// A test that needs capabilities; where the machine lacks one it does nothing, and its name says why.
    pub(crate) fn trial(
        &'static self,
        name: &str,
        needs: &[CapabilityName],
        test: impl FnOnce(&Self) -> Outcome + Send + 'static,
    ) -> Trial {
        match needs.iter().find(|name| !self.has(**name)) {
            Some(lacking) => {
                let name = format!("{name} (skipped: this machine has no {lacking})");
                Trial::test(name, || Ok(()))
            }
            None => Trial::test(name, move || test(self)),
        }
    }

    /// This program, doing what `probe` says.
    pub(crate) fn launch_of(probe: &[&str], isolation: Isolation) -> Launch {
        let program = Program::this().argument("inside");
        let program = probe.iter().fold(program, |program, word| program.argument(*word));
        Launch {
            name: format!("test/{}", probe[0]),
            program,
            environment: vec![("GREETING".to_owned(), "hello".to_owned())],
            isolation,
            limits: Limits::new(MilliCpu::new(1000), Mebibytes::new(256)),
            scratch: Mebibytes::new(8),
        }
    }

    pub(crate) fn start_probe(
        &self,
        probe: &[&str],
        isolation: Isolation,
    ) -> Result<Instance, SandboxError> {
        self.host.launch(&Self::launch_of(probe, isolation))
    }

    /// Runs a probe to its end.
    pub(crate) fn run(&self, probe: &[&str], isolation: Isolation) -> Result<Finished, Failed> {
        self.run_launch(&Self::launch_of(probe, isolation))
    }

    pub(crate) fn run_launch(&self, launch: &Launch) -> Result<Finished, Failed> {
        let mut instance = self.host.launch(launch)?;
        let output = instance.take_output().ok_or("no output")?;
        let mut text = String::new();
        File::from(output.stdout).read_to_string(&mut text)?;
        let mut errors = String::new();
        File::from(output.stderr).read_to_string(&mut errors)?;
        let exit = wait_for_exit(&mut instance)?;
        Ok(Finished { output: text + &errors, exit })
    }
}

/// The levels that this machine permits besides `process`.
pub(crate) fn sandboxes(place: &Place) -> Vec<Isolation> {
    let levels = [
        (Isolation::Sandbox, CapabilityName::IsolationSandbox),
        (Isolation::SandboxUserns, CapabilityName::IsolationUserns),
    ];
    levels.into_iter().filter(|(_, name)| place.has(*name)).map(|(level, _)| level).collect()
}

pub(crate) fn wait_for_exit(instance: &mut Instance) -> Result<Exit, Failed> {
    wait_for("the end of an instance", || instance.exited())
}

/// Asks again and again until there is an answer.
pub(crate) fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> Result<T, Failed> {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return Ok(answer);
        }
        if start.elapsed() > PATIENCE {
            return Err(format!("waited {} s for {what}", PATIENCE.as_secs()).into());
        }
        sleep(Duration::from_millis(2));
    }
}

/// Fails with both values.
pub(crate) fn expect_equal<T: PartialEq + std::fmt::Debug>(
    what: &str,
    found: T,
    expected: T,
) -> Outcome {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what}: found {found:?}, expected {expected:?}").into())
    }
}

pub(crate) fn expect(what: &str, holds: bool, found: impl std::fmt::Debug) -> Outcome {
    if holds { Ok(()) } else { Err(format!("expected {what}; found {found:?}").into()) }
}
