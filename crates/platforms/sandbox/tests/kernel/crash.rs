//! What is left when the manager, or the manager and the spawner, are killed.
#![allow(
    clippy::print_stdout,
    reason = "standard output is how the killed manager talks to the test"
)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use windfall_sandbox::{Host, HostOptions, Isolation};

use crate::place::{Outcome, Place, expect, expect_equal, sandboxes, wait_for};

/// Runs a manager to be killed, or one that cleans up; nothing if this process is a test.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    match std::env::args().nth(1)?.as_str() {
        "manager" => manager(),
        "launcher" => launcher(&std::env::args().nth(2)?),
        "cleaner" => cleaner(),
        _ => return None,
    }
    Some(ExitCode::SUCCESS)
}

/// Starts instances at all levels, prints its processes and waits to be killed.
fn manager() {
    let place = Place::start().expect("the host starts");
    let mut levels = vec![Isolation::Process];
    levels.extend(sandboxes(&place));
    let instances: Vec<_> = levels
        .iter()
        .map(|level| place.start_probe(&["spin", "1"], *level).expect("an instance starts"))
        .collect();
    println!("{}", place.host.spawner());
    println!("{}", instances.iter().map(|one| one.pid().to_string()).collect::<Vec<_>>().join(" "));
    println!("ready");
    sleep(Duration::from_secs(600));
}

/// Prints its spawner and starts instances as fast as it can, all of which have `mark` among their arguments.
fn launcher(mark: &str) {
    let place = Place::start().expect("the host starts");
    let mut levels = vec![Isolation::Process];
    levels.extend(sandboxes(&place));
    println!("{}", place.host.spawner());
    // The spawner is killed on the way.
    let launch = |level| place.start_probe(&["sleep", mark], level).ok();
    let instances: Vec<_> =
        levels.iter().cycle().take(24).map_while(|level| launch(*level)).collect();
    sleep(Duration::from_secs(600));
    drop(instances);
}

fn cleaner() {
    let host = Host::start(&HostOptions::default()).expect("the host starts");
    println!("{}", host.leftovers().join(" "));
}

struct Parent {
    process: Child,
    spawner: u32,
    instances: Vec<u32>,
}

impl Parent {
    fn start() -> Result<Self, Failed> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut process = command.arg("manager").stdout(Stdio::piped()).spawn()?;
        let output = process.stdout.take().ok_or("no output")?;
        let lines: Vec<String> =
            BufReader::new(output).lines().take(3).collect::<Result<_, _>>()?;
        let [spawner, instances, _] = lines.as_slice() else { return Err("no answer".into()) };
        let instances = instances.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self { spawner: spawner.parse()?, instances, process })
    }

    fn groups(&self) -> Vec<PathBuf> {
        let part = format!("-{}-", self.process.id());
        let tops = fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
        let folders = tops.map(|top| top.path()).chain(["/sys/fs/cgroup".into()]);
        folders
            .flat_map(|top| fs::read_dir(top).into_iter().flatten().flatten())
            .map(|entry| entry.path())
            .filter(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                name.starts_with("windfall-run-") && name.contains(&part)
            })
            .collect()
    }

    fn alive(&self) -> Vec<u32> {
        let runs = |pid: &u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
            !state.is_empty() && !state.starts_with(['Z', 'X'])
        };
        self.instances.iter().copied().chain([self.spawner]).filter(runs).collect()
    }
}

impl Drop for Parent {
    /// A story that failed must not leave instances behind that keep a core busy for ten minutes.
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn kill(pid: u32) -> Outcome {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid)?).ok_or("no process")?;
    Ok(rustix::process::kill_process(pid, rustix::process::Signal::KILL)?)
}

type Story = fn(&Place) -> Outcome;

pub(crate) fn trials(place: &'static Place) -> Vec<Trial> {
    let stories: [(&str, Story); 5] = [
        ("a_killed_manager_leaves_nothing", killed_manager),
        ("a_killed_spawner_takes_its_instances_along", killed_spawner),
        ("a_spawner_killed_amid_starts_leaves_no_process", killed_amid_starts),
        ("what_an_instance_detaches_ends_with_it", detached),
        ("the_next_run_removes_only_what_is_dead", next_run),
    ];
    // One at a time: each host that starts removes what another story has just left behind to look at it.
    static ALONE: Mutex<()> = Mutex::new(());
    let trial = |(name, story): (&str, Story)| {
        place.trial(&format!("crash::{name}"), &[], move |place| {
            let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
            story(place)
        })
    };
    stories.map(trial).into()
}

fn killed_manager(_place: &Place) -> Outcome {
    let mut manager = Parent::start()?;
    expect_equal("processes", manager.alive().len(), manager.instances.len() + 1)?;
    manager.process.kill()?;
    manager.process.wait()?;
    wait_for("the end of all processes", || manager.alive().is_empty().then_some(()))?;
    wait_for("the end of all groups", || manager.groups().is_empty().then_some(()))
}

fn killed_spawner(_place: &Place) -> Outcome {
    let mut manager = Parent::start()?;
    kill(manager.spawner)?;
    wait_for("the end of all processes", || manager.alive().is_empty().then_some(()))?;
    manager.process.kill()?;
    manager.process.wait()?;
    run_cleaner()?;
    expect("no groups", manager.groups().is_empty(), manager.groups())
}

/// A child that was cloned and did not come to run before the spawner was killed must notice.
fn killed_amid_starts(_place: &Place) -> Outcome {
    for round in 0..24 {
        let mark = format!("windfall-mark-{}-{round}", std::process::id());
        let mut command = Command::new(std::env::current_exe()?);
        let mut process = command.args(["launcher", &mark]).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        sleep(Duration::from_micros(round * 250));
        kill(line.trim().parse()?)?;
        // Orders that were sent are carried out by children that live on.
        sleep(Duration::from_millis(20));
        process.kill()?;
        process.wait()?;
        wait_for("the end of all processes", || processes_with(&mark).is_empty().then_some(()))?;
    }
    run_cleaner().map(drop)
}

/// A grandchild in a session of its own, whose parent has ended.
fn detached(place: &Place) -> Outcome {
    let mut levels = vec![Isolation::Process];
    levels.extend(sandboxes(place));
    for level in levels {
        let mark = format!("windfall-detached-{}-{level}", std::process::id());
        let mut instance = place.start_probe(&["detach", &mark], level)?;
        let output = fs::File::from(instance.take_output().ok_or("no output")?.stdout);
        let line = BufReader::new(output).lines().next().ok_or("no answer")??;
        expect_equal("answer", line.as_str(), "left=true")?;
        wait_for("the grandchild", || (processes_with(&mark).len() > 1).then_some(()))?;
        drop(instance);
        wait_for("the end of all processes", || processes_with(&mark).is_empty().then_some(()))?;
    }
    Ok(())
}

/// Processes that have `mark` among their arguments.
fn processes_with(mark: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| *pid != std::process::id())
        .filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|argument| argument == mark.as_bytes())
        })
        .collect()
}

fn next_run(place: &Place) -> Outcome {
    let mut living = Parent::start()?;
    let mut dying = Parent::start()?;
    kill(dying.spawner)?;
    dying.process.kill()?;
    dying.process.wait()?;
    let left = dying.groups();
    let removed = run_cleaner()?;
    if !left.is_empty() {
        let name = format!("-{}-", dying.process.id());
        expect("the dead run among the leftovers", removed.contains(&name), &removed)?;
    }
    expect("no groups", dying.groups().is_empty(), dying.groups())?;
    expect_equal("processes of the living run", living.alive().len(), living.instances.len() + 1)?;
    let mut own = place.start_probe(&["exit", "0"], Isolation::Process)?;
    crate::place::wait_for_exit(&mut own)?;
    living.process.kill()?;
    living.process.wait()?;
    wait_for("the end of all groups", || living.groups().is_empty().then_some(()))
}

/// Starts a host that cleans up; returns what it removed.
fn run_cleaner() -> Result<String, Failed> {
    let output = Command::new(std::env::current_exe()?).arg("cleaner").output()?;
    if !output.status.success() {
        return Err(format!("the cleaner failed: {output:?}").into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
