//! Isolation, tried from inside.

use std::fs;
use std::net::TcpListener;

use libtest_mimic::Trial;
use windfall_core::Mebibytes;
use windfall_sandbox::{CapabilityName, Exit, Isolation, Launch};

use crate::place::{Outcome, Place, expect, expect_equal, sandboxes, wait_for_exit};

type Test = fn(&Place, Isolation) -> Outcome;

const TESTS: &[(&str, Test)] = &[
    ("the_program_is_nobody_with_four_descriptors", identity),
    ("no_other_process_is_visible", no_other_process),
    ("there_is_no_network", no_network),
    ("only_the_scratch_folder_is_writable", read_only_root),
    ("dangerous_system_calls_are_refused", refused_calls),
    ("files_outside_are_unreachable", files_outside),
    ("bound_files_can_be_read_and_not_written", bound_files),
    ("instances_do_not_share_scratch", own_scratch),
    ("filling_the_disk_is_bounded", disk_fill),
    ("a_fork_bomb_is_stopped", fork_bomb),
];

pub(crate) fn trials(place: &'static Place) -> Vec<Trial> {
    let mut trials = Vec::new();
    for isolation in sandboxes(place) {
        for (name, test) in TESTS {
            let needs: &[CapabilityName] = match *name {
                "a_fork_bomb_is_stopped" => &[CapabilityName::PidsLimit],
                _ => &[],
            };
            let name = format!("{isolation}::{name}");
            trials.push(place.trial(&name, needs, move |place| test(place, isolation)));
        }
    }
    trials
}

fn identity(place: &Place, isolation: Isolation) -> Outcome {
    let found = place.run(&["identity"], isolation)?;
    let nothing = "0000000000000000";
    let expected = [
        ("Uid", "65534"),
        ("Gid", "65534"),
        ("CapEff", nothing),
        ("CapPrm", nothing),
        ("CapBnd", nothing),
        ("CapAmb", nothing),
        ("NoNewPrivs", "1"),
        ("Seccomp", "2"),
        ("pid", "1"),
        ("variables", "GREETING,LISTEN_FDS,LISTEN_PID"),
        // 4 is the folder that the probe reads.
        ("descriptors", "0,1,2,3,4"),
        ("host", "test/identity"),
    ];
    for (key, value) in expected {
        expect_equal(key, found.value(key), value)?;
    }
    expect_equal("exit", found.exit, Exit::Code(0))
}

fn no_other_process(place: &Place, isolation: Isolation) -> Outcome {
    let other = place.start_probe(&["sleep"], isolation)?;
    let found = place.run(&["processes"], isolation)?;
    expect_equal("processes", found.value("processes"), "1")?;
    drop(other);
    Ok(())
}

fn no_network(place: &Place, isolation: Isolation) -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    let found = place.run(&["network", &address], isolation)?;
    expect_equal("interfaces", found.value("interfaces"), "lo")?;
    expect_equal("the machine's loopback", found.value("machine"), "ConnectionRefused")?;
    expect_equal("the outside", found.value("outside"), "NetworkUnreachable")
}

fn read_only_root(place: &Place, isolation: Isolation) -> Outcome {
    let found = place.run(&["root"], isolation)?;
    for folder in ["/", "/usr", "/usr/bin", "/etc", "/dev", "/proc/sys"] {
        let answer = found.value(folder);
        let is_refused = ["ReadOnlyFilesystem", "PermissionDenied"].contains(&answer);
        expect(&format!("{folder} to be read-only"), is_refused, answer)?;
    }
    expect_equal("/tmp", found.value("/tmp"), "written")?;
    expect_equal("/proc/kcore", found.value("kcore"), "0")?;
    let folders = found.value("folders");
    for secret in ["root", "home", "sys", "run", "boot", ".machine"] {
        let is_there = folders.split(',').any(|folder| folder == secret);
        expect(&format!("no folder {secret}"), !is_there, folders)?;
    }
    Ok(())
}

fn refused_calls(place: &Place, isolation: Isolation) -> Outcome {
    let found = place.run(&["calls"], isolation)?;
    expect_equal("exit", &found.exit, &Exit::Code(0))?;
    expect_equal("clone3", found.value("clone3"), "ENOSYS")?;
    let others = found.output.lines().filter(|line| !line.starts_with("clone3="));
    let allowed: Vec<&str> = others.clone().filter(|line| !line.ends_with("=EPERM")).collect();
    expect("every other call to return EPERM", allowed.is_empty(), allowed)?;
    expect_equal("calls tried", others.count(), 16)
}

fn files_outside(place: &Place, isolation: Isolation) -> Outcome {
    let folder = std::env::temp_dir().join(format!("windfall-secret-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let database = folder.join(format!("{isolation}.sqlite"));
    fs::write(&database, "secret")?;
    let path = database.display().to_string();
    let below_old_root = format!("/.machine{path}");
    let paths = ["read", &path, &below_old_root, "/etc/shadow", "/proc/1/root/etc/shadow"];
    let found = place.run(&paths, isolation)?;
    for path in &paths[1..] {
        let is_refused = ["NotFound", "PermissionDenied"].contains(&found.value(path));
        expect(&format!("{path} to be unreachable"), is_refused, &found.output)?;
    }
    Ok(fs::remove_file(&database)?)
}

fn bound_files(place: &Place, isolation: Isolation) -> Outcome {
    let file = std::env::temp_dir().join(format!("windfall-bound-{}", std::process::id()));
    fs::write(&file, "content")?;
    let launch = |probe: &[&str]| {
        let launch = Place::launch_of(probe, isolation);
        let program = launch.program.file(&file, "/function/code.txt");
        Launch { program, ..launch }
    };
    let found = place.run_launch(&launch(&["read", "/function/code.txt"]))?;
    expect_equal("content", found.value("/function/code.txt"), "content")?;
    let found = place.run_launch(&launch(&["write", "/function/code.txt", "changed"]))?;
    expect_equal("written", found.value("written"), "false")?;
    expect_equal("content outside", fs::read_to_string(&file)?, "content".to_owned())
}

fn own_scratch(place: &Place, isolation: Isolation) -> Outcome {
    let found = place.run(&["write", "/tmp/mine", "first"], isolation)?;
    expect_equal("read back", found.value("read"), "first")?;
    let found = place.run(&["read", "/tmp/mine"], isolation)?;
    expect_equal("the other's file", found.value("/tmp/mine"), "NotFound")
}

fn disk_fill(place: &Place, isolation: Isolation) -> Outcome {
    let launch = Launch { scratch: Mebibytes::new(8), ..Place::launch_of(&["fill"], isolation) };
    let found = place.run_launch(&launch)?;
    expect_equal("answer", found.value("answer"), "StorageFull")?;
    let written: u64 = found.value("written").parse()?;
    expect("between 7 and 8 MiB", (7 << 20..=8 << 20).contains(&written), written)
}

fn fork_bomb(place: &Place, isolation: Isolation) -> Outcome {
    let mut launch = Place::launch_of(&["bomb"], isolation);
    launch.limits.pids = 16;
    let mut witness = place.start_probe(&["sleep"], isolation)?;
    let found = place.run_launch(&launch)?;
    let started: u32 = found.value("started").parse()?;
    expect("10 to 16 processes", (10..=16).contains(&started), &found.output)?;
    expect_equal("the other instance", witness.exited(), None)?;
    expect_equal("killed", witness.kill(), Exit::Signal(9))?;
    // A process without a limit of its own may start as many as it likes.
    let mut free = place.start_probe(&["exit", "0"], isolation)?;
    expect_equal("exit", wait_for_exit(&mut free)?, Exit::Code(0))
}
