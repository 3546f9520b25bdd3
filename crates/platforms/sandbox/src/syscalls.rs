//! The system calls that have no safe wrapper. All unsafe code of the crate is here.
//!
//! Each function checks the kernel's answer and hands out owned descriptors only. Those that are sound only in a
//! process with one thread say so; the spawner is such a process, and so is every child before `execve`.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::process::Pid;

/// What a call of `fork` or `clone3` is for its caller.
pub(crate) enum Fork<T> {
    /// The caller, with what it knows of the child.
    Parent(T),
    /// The new process.
    Child,
}

/// A child made by [`clone3`].
pub(crate) struct Cloned {
    pub(crate) pid: Pid,
    pub(crate) pidfd: OwnedFd,
}

/// As in the kernel's headers; the constant of the libc crate has a type that is too narrow for it.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

fn check(answer: i64) -> io::Result<i64> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// `fork`, with glibc's handlers. The child has only the calling thread; until `execve` or `_exit` it must not wait for
/// a lock that another thread of the parent may have held (glibc's allocator is safe).
pub(crate) fn fork() -> io::Result<Fork<Pid>> {
    // SAFETY: takes no pointers; what the child may do is stated above and kept by `spawner::run`.
    let answer = check(i64::from(unsafe { libc::fork() }))?;
    Ok(match Pid::from_raw(answer as i32) {
        Some(pid) => Fork::Parent(pid),
        None => Fork::Child,
    })
}

/// `clone3` with separate memory: a `fork` into new namespaces and, with `cgroup`, into a group of cgroup v2.
///
/// Only for processes with one thread, since glibc's fork handlers do not run.
pub(crate) fn clone3(namespaces: i32, cgroup: Option<BorrowedFd<'_>>) -> io::Result<Fork<Cloned>> {
    let mut pidfd: RawFd = -1;
    // SAFETY: `clone_args` consists of integers, for all of which zero means "not used".
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = namespaces as u64 | libc::CLONE_PIDFD as u64;
    args.pidfd = &raw mut pidfd as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    if let Some(cgroup) = cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = cgroup.as_raw_fd() as u64;
    }
    let size = std::mem::size_of::<libc::clone_args>();
    // SAFETY: `args` lives through the call and has the size that is passed; without CLONE_VM the child has a copy of
    // this memory and its own stack, as after a fork.
    let answer = check(unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size) })?;
    match Pid::from_raw(answer as i32) {
        // SAFETY: the kernel stored a new descriptor that nobody else owns.
        Some(pid) => {
            Ok(Fork::Parent(Cloned { pid, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } }))
        }
        None => Ok(Fork::Child),
    }
}

/// Ends this process without running destructors or exit handlers, which belong to the process it was forked from.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: ends the process; no memory is touched.
    unsafe { libc::_exit(code) }
}

/// Makes `from` the descriptor `number`, kept open by `execve`. What had that number is closed.
///
/// The caller must not own `number` through another value; in a child before `execve` nothing else is used any more.
pub(crate) fn place(from: OwnedFd, number: RawFd) -> io::Result<()> {
    if from.as_raw_fd() == number {
        // dup2 onto itself would keep the close-on-exec flag.
        // SAFETY: changes a flag of a descriptor that we own.
        check(i64::from(unsafe { libc::fcntl(number, libc::F_SETFD, 0) }))?;
        let _: RawFd = from.into_raw_fd();
        return Ok(());
    }
    // SAFETY: `from` is open; see above for `number`.
    check(i64::from(unsafe { libc::dup2(from.as_raw_fd(), number) }))?;
    Ok(())
}

/// A copy of `descriptor` with a number of at least `lowest`, closed by `execve`.
pub(crate) fn duplicate_above(descriptor: BorrowedFd<'_>, lowest: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: `descriptor` is open; the kernel returns a new one that nobody else owns.
    let copy = check(i64::from(unsafe {
        libc::fcntl(descriptor.as_raw_fd(), libc::F_DUPFD_CLOEXEC, lowest)
    }))?;
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(copy as RawFd) })
}

/// Marks every descriptor from `first` on so that `execve` closes it.
pub(crate) fn close_on_exec_from(first: RawFd) -> io::Result<()> {
    // SAFETY: takes no pointers.
    check(unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first as libc::c_uint,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    })?;
    Ok(())
}

/// Closes every descriptor from 3 on but `keep`.
///
/// Only after a fork, where the values that own these descriptors are never dropped.
pub(crate) fn close_all_but(keep: &[RawFd]) -> io::Result<()> {
    let mut keep: Vec<RawFd> = keep.iter().copied().filter(|fd| *fd >= 3).collect();
    keep.sort_unstable();
    let mut first = 3;
    for last in keep.into_iter().map(Some).chain([None]) {
        let end = last.map_or(libc::c_uint::MAX, |fd| (fd as libc::c_uint).saturating_sub(1));
        if first <= end {
            // SAFETY: takes no pointers; see above for the descriptors.
            check(unsafe { libc::syscall(libc::SYS_close_range, first, end, 0) })?;
        }
        first = last.map_or(first, |fd| fd as libc::c_uint + 1);
    }
    Ok(())
}

/// Default action for every signal, none blocked: what a program expects at its start.
pub(crate) fn reset_signals() {
    for signal in 1..=64 {
        // SAFETY: installs no handler. Signals that cannot be changed return an error, which is fine.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: the set lives through both calls.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Ignores `signal` from now on.
pub(crate) fn ignore_signal(signal: i32) {
    // SAFETY: installs no handler.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Adds mount attributes (`MOUNT_ATTR_*`) to the mount at `path`, with `recursive` to all below it.
pub(crate) fn add_mount_attributes(
    path: &CStr,
    attributes: u64,
    recursive: bool,
) -> io::Result<()> {
    let attr = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let flags = if recursive { libc::AT_RECURSIVE } else { 0 };
    let size = std::mem::size_of::<libc::mount_attr>();
    // SAFETY: `path` ends with a zero byte and `attr` has the size that is passed; both live through the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const attr,
            size,
        )
    })?;
    Ok(())
}

/// Moves this process into a new user namespace. Only for processes with one thread.
pub(crate) fn unshare_user() -> io::Result<()> {
    // SAFETY: takes no pointers.
    check(i64::from(unsafe { libc::unshare(libc::CLONE_NEWUSER) }))?;
    Ok(())
}

/// Brings the loopback interface of this network namespace up.
pub(crate) fn loopback_up() -> io::Result<()> {
    // SAFETY: takes no pointers.
    let socket = check(i64::from(unsafe {
        libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0)
    }))?;
    // SAFETY: the kernel returned a new descriptor that nobody else owns.
    let socket = unsafe { OwnedFd::from_raw_fd(socket as RawFd) };
    // SAFETY: `ifreq` consists of integers and a union of integers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request lives through the call and is of the type that SIOCSIFFLAGS reads.
    check(i64::from(unsafe {
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)
    }))?;
    Ok(())
}

/// What to execute.
pub(crate) enum Executable<'a> {
    /// The file behind a descriptor.
    Descriptor(BorrowedFd<'a>),
    /// A path of the current root.
    Path(&'a CStr),
}

/// Replaces this process by a program. Returns only on failure.
pub(crate) fn execute(
    program: &Executable<'_>,
    arguments: &[CString],
    environment: &[CString],
) -> io::Error {
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    let (folder, path, flags) = match program {
        Executable::Descriptor(file) => (file.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH),
        Executable::Path(path) => (libc::AT_FDCWD, path.as_ptr(), 0),
    };
    // SAFETY: both arrays end with a null pointer and every string with a zero byte; all live through the call.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            folder,
            path,
            arguments.as_ptr(),
            environment.as_ptr(),
            flags,
        )
    };
    io::Error::last_os_error()
}

/// CPU time of all threads of another process, those that ended included.
pub(crate) fn process_cpu_time(pid: Pid) -> io::Result<Duration> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the clock id lives through the call.
    let error = unsafe { libc::clock_getcpuclockid(pid.as_raw_nonzero().get(), &raw mut clock) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time lives through the call.
    check(i64::from(unsafe { libc::clock_gettime(clock, &raw mut time) }))?;
    Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// Sets the nice value of all threads of a process group. Raising it is always allowed, lowering it needs a right.
pub(crate) fn set_group_nice(group: Pid, nice: i32) -> io::Result<()> {
    // SAFETY: takes no pointers.
    check(i64::from(unsafe {
        libc::setpriority(libc::PRIO_PGRP, group.as_raw_nonzero().get() as libc::id_t, nice)
    }))?;
    Ok(())
}
