//! How instances begin and end.

use std::fs;
use std::path::Path;

use libtest_mimic::Trial;
use windfall_sandbox::{Exit, Isolation, Launch, Program, SandboxError};

use crate::place::{Outcome, Place, expect, expect_equal, sandboxes, wait_for, wait_for_exit};

pub(crate) fn trials(place: &'static Place) -> Vec<Trial> {
    let mut levels = vec![Isolation::Process];
    levels.extend(sandboxes(place));
    let mut trials = vec![
        place.trial("ending::a_missing_program_is_an_error_of_launch", &[], missing_program),
        place.trial("ending::an_unusable_program_says_why", &[], unusable_program),
        place.trial("ending::programs_of_the_machine_run", &[], machine_programs),
    ];
    for level in levels {
        let name = format!("ending::{level}::exits_are_distinguished");
        trials.push(place.trial(&name, &[], move |place| exits(place, level)));
        let name = format!("ending::{level}::dropping_kills");
        trials.push(place.trial(&name, &[], move |place| dropping(place, level)));
    }
    trials
}

fn exits(place: &Place, level: Isolation) -> Outcome {
    expect_equal("code", place.run(&["exit", "3"], level)?.exit, Exit::Code(3))?;
    // The first process of a pid namespace does not receive the signals it sends itself, so `abort` goes on to an
    // instruction that faults.
    let crash = if level == Isolation::Process { libc::SIGABRT } else { libc::SIGSEGV };
    expect_equal("crash", place.run(&["abort"], level)?.exit, Exit::Signal(crash))?;
    let instance = place.start_probe(&["sleep"], level)?;
    expect_equal("kill", instance.kill(), Exit::Signal(9))
}

fn dropping(place: &Place, level: Isolation) -> Outcome {
    let mut instance = place.start_probe(&["serve"], level)?;
    let pid = instance.pid();
    expect_equal("running", instance.exited(), None)?;
    drop(instance);
    wait_for("the process to be gone", || {
        (!Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    })
}

fn missing_program(place: &Place) -> Outcome {
    let launch = Place::launch_of(&["sleep"], Isolation::Process);
    let launch = Launch { program: Program::new("/no/such/program"), ..launch };
    match place.host.launch(&launch).map(|instance| instance.pid()) {
        Err(SandboxError::File { path, .. }) => {
            expect_equal("path", path, "/no/such/program".into())
        }
        other => Err(format!("found {other:?}").into()),
    }
}

fn unusable_program(place: &Place) -> Outcome {
    let file = std::env::temp_dir().join(format!("windfall-text-{}", std::process::id()));
    fs::write(&file, "this is no program")?;
    let launch = Place::launch_of(&["sleep"], Isolation::Process);
    let mut instance = place.host.launch(&Launch { program: Program::new(&file), ..launch })?;
    let exit = wait_for_exit(&mut instance)?;
    fs::remove_file(&file)?;
    let says_why = matches!(&exit, Exit::NotStarted(reason) if reason.starts_with("executing"));
    expect("NotStarted with the step", says_why, exit)
}

fn machine_programs(place: &Place) -> Outcome {
    for level in sandboxes(place) {
        let program =
            Program::new("/bin/sh").argument("-c").argument("echo $GREETING from $$; exit 7");
        let launch = Launch { program, ..Place::launch_of(&["sleep"], level) };
        let finished = place.run_launch(&launch)?;
        expect_equal("output", finished.output.as_str(), "hello from 1\n")?;
        expect_equal("exit", finished.exit, Exit::Code(7))?;
    }
    Ok(())
}
