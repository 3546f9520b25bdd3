//! A child of the spawner on its way to become an instance.
//!
//! First half, while parked: groups, namespaces, root file system. Second half, on the manager's order: files,
//! descriptors, privileges, system call filter, `execve`. The order of the steps matters; each says why.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::net::RecvFlags;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, getegid, geteuid, getpid, getrlimit,
    set_child_subreaper, set_dumpable_behavior, set_parent_process_death_signal, setpgid,
    setrlimit, umask,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, Gid, Uid, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use super::failure::{Failure, at};
use super::root;
use super::seccomp::Filters;
use crate::launch::Isolation;
use crate::syscalls::{
    Executable, close_on_exec_from, duplicate_above, execute, exit_now, loopback_up, place,
    reset_signals, unshare_user,
};
use crate::wire::{Order, Status, is_readable_within, receive, send};

/// The user and group "nobody".
const NOBODY: u32 = 65_534;
/// Where the program finds its listener, as `sd_listen_fds(3)` describes.
const LISTENER: i32 = 3;
/// Above everything that is placed at a fixed number.
const SAFE_NUMBER: i32 = 16;

/// The usual soft limit of open descriptors.
const DESCRIPTORS: u64 = 1024;

/// What a child needs to know.
pub(super) struct Plan<'a> {
    pub(super) isolation: Isolation,
    /// Whether it was cloned into a user namespace, because the manager has no rights to give away.
    pub(super) is_in_userns: bool,
    /// Groups to join, as open `cgroup.procs`.
    pub(super) groups: &'a [File],
    pub(super) filters: &'a Filters,
    pub(super) control: &'a OwnedFd,
    /// The spawner's process.
    pub(super) spawner: &'a OwnedFd,
}

/// Becomes an instance, unless it was not `kept` apart from the spawner's descriptors. Returns only by ending the
/// process.
pub(super) fn run(plan: &Plan<'_>, kept: io::Result<()>) -> ! {
    let failure = match kept.map_err(at("closing descriptors")).and_then(|()| become_instance(plan))
    {
        Ok(()) => exit_now(0),
        Err(failure) => failure,
    };
    // If this cannot be sent, nobody waits for it any more.
    let _ = send(plan.control, &Status::Failed { reason: failure.to_string() }, &[]);
    exit_now(127)
}

fn become_instance(plan: &Plan<'_>) -> Result<(), Failure> {
    // A group of its own lets a signal reach all of its processes; not a session, since the scheduler may weigh
    // sessions against each other before it looks at nice values.
    setpgid(None, None).map_err(at("making a process group"))?;
    die_with_spawner(plan)?;
    prepare(plan)?;
    let Some((order, descriptors)) =
        receive::<Order>(plan.control, RecvFlags::empty()).map_err(at("receiving the order"))?
    else {
        return Ok(());
    };
    finish(plan, &order, descriptors)
}

/// The kernel kills this process when the spawner ends, but says nothing if it has ended already.
fn die_with_spawner(plan: &Plan<'_>) -> Result<(), Failure> {
    let step = "binding to the spawner";
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(at(step))?;
    // Changes nothing, but waits for the lock under which a process ends: behind it the spawner has either ended
    // altogether, or will find the signal.
    setpgid(None, None).map_err(at(step))?;
    if is_readable_within(plan.spawner, Duration::ZERO) {
        let error = io::Error::new(io::ErrorKind::BrokenPipe, "the spawner has ended");
        return Err(Failure::new(step, error));
    }
    Ok(())
}

fn prepare(plan: &Plan<'_>) -> Result<(), Failure> {
    if plan.is_in_userns {
        map_user(geteuid().as_raw(), getegid().as_raw())?;
    }
    for mut group in plan.groups {
        group.write_all(b"0").map_err(at("joining a group"))?;
    }
    if plan.isolation == Isolation::Process {
        return Ok(());
    }
    umask(rustix::fs::Mode::from_raw_mode(0o022));
    root::build()?;
    loopback_up().map_err(at("starting the loopback interface"))
}

/// Makes this user "nobody" of the user namespace it is in.
fn map_user(user: u32, group: u32) -> Result<(), Failure> {
    let lines = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{NOBODY} {user} 1")),
        ("gid_map", format!("{NOBODY} {group} 1")),
    ];
    lines.into_iter().try_for_each(|(file, line)| {
        fs::write(format!("/proc/self/{file}"), line).map_err(at("mapping the user"))
    })
}

fn finish(plan: &Plan<'_>, order: &Order, descriptors: Vec<OwnedFd>) -> Result<(), Failure> {
    if plan.isolation != Isolation::Process {
        root::complete(&order.files, order.scratch_mib)?;
        let name: String = order.name.chars().take(63).collect();
        rustix::system::sethostname(name.as_bytes()).map_err(at("setting the host name"))?;
    }
    let executable = arrange_descriptors(descriptors)?;
    limit_resources(order)?;
    if plan.isolation != Isolation::Process {
        drop_privileges(plan)?;
    }
    // A change of user clears it.
    die_with_spawner(plan)?;
    if plan.isolation == Isolation::Process {
        // As the first process of a pid namespace does: its descendants stay below it.
        set_child_subreaper(Some(getpid())).map_err(at("adopting orphans"))?;
    }
    set_no_new_privs(true).map_err(at("giving up new privileges"))?;
    if plan.isolation != Isolation::Process {
        plan.filters.apply().map_err(at("filtering system calls"))?;
    }
    if order.is_trial {
        return Ok(());
    }
    reset_signals();
    let path = order.path.as_deref().map(c_string).transpose()?;
    let program =
        path.as_deref().map_or(Executable::Descriptor(executable.as_fd()), Executable::Path);
    let (arguments, environment) = (arguments(order)?, environment(order)?);
    let error = execute(&program, &arguments, &environment);
    Err(Failure::new(format!("executing {}", order.arguments.join(" ")), error))
}

/// Standard streams at 0 to 2, the listener at 3; everything else is closed by `execve`. Returns the executable.
fn arrange_descriptors(descriptors: Vec<OwnedFd>) -> Result<OwnedFd, Failure> {
    let failed = at("arranging descriptors");
    let above = |fd: &OwnedFd| duplicate_above(fd.as_fd(), SAFE_NUMBER).map_err(&failed);
    let [executable, listener, output, errors] = descriptors.as_slice() else {
        let reason = "the order must come with executable, listener and two pipes";
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, reason)));
    };
    let silence = File::open("/dev/null").map_err(&failed)?;
    // First out of the way of the fixed numbers, then to their places.
    let executable = above(executable)?;
    let sources = [above(&silence.into())?, above(output)?, above(errors)?, above(listener)?];
    for (source, number) in sources.into_iter().zip([0, 1, 2, LISTENER]) {
        place(source, number).map_err(&failed)?;
    }
    close_on_exec_from(LISTENER + 1).map_err(&failed)?;
    // The originals have numbers that are placed anew by now, so closing them would close the wrong ones.
    std::mem::forget(descriptors);
    Ok(executable)
}

fn limit_resources(order: &Order) -> Result<(), Failure> {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, none).map_err(at("forbidding core dumps"))?;
    // The manager's own limit is high; some programs walk through all descriptors that they may have.
    let hard = getrlimit(Resource::Nofile).maximum;
    let usual = Rlimit {
        current: Some(hard.map_or(DESCRIPTORS, |hard| hard.min(DESCRIPTORS))),
        maximum: hard,
    };
    setrlimit(Resource::Nofile, usual).map_err(at("limiting descriptors"))?;
    if let Some(most) = order.most_processes.map(u64::from) {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(Resource::Nproc, limit).map_err(at("limiting processes"))?;
    }
    Ok(())
}

fn drop_privileges(plan: &Plan<'_>) -> Result<(), Failure> {
    if !plan.is_in_userns {
        let failed = at("becoming nobody");
        let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        set_thread_groups(&[]).map_err(&failed)?;
        set_thread_res_gid(group, group, group).map_err(&failed)?;
        // The bounding set can be changed only while CAP_SETPCAP is there, which a change of user takes away.
        drop_bounding_set()?;
        set_thread_res_uid(user, user, user).map_err(&failed)?;
        if plan.isolation == Isolation::SandboxUserns {
            enter_userns()?;
        }
    }
    drop_bounding_set()?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).map_err(at("dropping capabilities"))
}

/// A user namespace entered last owns none of the other namespaces: the right to change them stays outside.
fn enter_userns() -> Result<(), Failure> {
    unshare_user().map_err(at("making a user namespace"))?;
    // A change of user made /proc/self unwritable for its own process.
    set_dumpable_behavior(DumpableBehavior::Dumpable).map_err(at("mapping the user"))?;
    map_user(NOBODY, NOBODY)
}

/// No program can gain a capability that is not in this set. Without the right to change it there is none to lose.
fn drop_bounding_set() -> Result<(), Failure> {
    for capability in CapabilitySet::all().iter() {
        match remove_capability_from_bounding_set(capability) {
            Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::PERM) => {}
            Err(error) => return Err(at("dropping the bounding set")(error)),
        }
    }
    Ok(())
}

fn arguments(order: &Order) -> Result<Vec<CString>, Failure> {
    order.arguments.iter().map(|argument| c_string(argument)).collect()
}

fn environment(order: &Order) -> Result<Vec<CString>, Failure> {
    let listen = [("LISTEN_FDS".to_owned(), "1".to_owned()), ("LISTEN_PID".to_owned(), own_pid())];
    let all = order.environment.iter().chain(&listen);
    all.map(|(name, value)| c_string(&format!("{name}={value}"))).collect()
}

/// As the program will see it: 1 in a pid namespace.
fn own_pid() -> String {
    getpid().as_raw_nonzero().to_string()
}

fn c_string(text: &str) -> Result<CString, Failure> {
    CString::new(text).map_err(|error| at("passing arguments")(io::Error::from(error)))
}

/// Opens the file through which a process joins a group.
pub(super) fn open_group(path: &std::path::Path) -> io::Result<File> {
    File::options().write(true).open(path.join("cgroup.procs"))
}
