//! The root file system of a sandboxed instance: an empty one in memory, with read-only views of the machine's
//! programs and libraries.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive,
    mount_change, unmount,
};
use rustix::process::pivot_root;

use super::failure::{Failure, at};
use crate::launch::Bind;
use crate::syscalls::add_mount_attributes;

/// Where the new root is built; only this process sees the mount.
const BUILD: &str = "/tmp";
/// Where the machine's root is found until the instance's own files are bound.
const MACHINE: &str = "/.machine";

/// Folders of the machine that programs and libraries come from. Links stay links.
const PROGRAMS: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32"];
/// Files of the machine's configuration that libraries read and that hold no secret.
const CONFIGURATION: &[&str] = &[
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/alternatives",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/mime.types",
];
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom"];
/// Files of `/proc` about the machine that must not be read.
const HIDDEN: &[&str] = &[
    "kcore",
    "keys",
    "key-users",
    "latency_stats",
    "timer_list",
    "sched_debug",
    "kallsyms",
    "kmsg",
    "kpagecount",
    "kpageflags",
    "kpagecgroup",
    "sysrq-trigger",
    "vmallocinfo",
    "modules",
];
/// Folders of `/proc` about the machine that must not be written.
const FIXED: &[&str] = &["sys", "irq", "bus", "fs", "asound", "acpi", "scsi", "driver"];

const USERS: &str =
    "root:x:0:0::/:/usr/sbin/nologin\nnobody:x:65534:65534::/tmp:/usr/sbin/nologin\n";
const GROUPS: &str = "root:x:0:\nnogroup:x:65534:\n";
const HOSTS: &str = "127.0.0.1 localhost\n::1 localhost\n";

const NO_SURPRISE: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// Everything that does not depend on the program. The machine's root stays reachable below [`MACHINE`].
pub(super) fn build() -> Result<(), Failure> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(at("making mounts private"))?;
    mount("tmpfs", BUILD, "tmpfs", NO_SURPRISE, Some(c"size=4m,nr_inodes=1024,mode=755"))
        .map_err(at("mounting a root in memory"))?;
    for folder in ["dev", "etc", "etc/ssl", "proc", "tmp", "var"] {
        create_folders(&Path::new(BUILD).join(folder))?;
    }
    for path in PROGRAMS {
        view(Path::new(path))?;
    }
    for path in CONFIGURATION.iter().map(Path::new).filter(|path| path.exists()) {
        view(path)?;
    }
    let build = Path::new(BUILD);
    for (name, content) in [("etc/passwd", USERS), ("etc/group", GROUPS), ("etc/hosts", HOSTS)] {
        fs::write(build.join(name), content).map_err(at("writing files of /etc"))?;
    }
    symlink("/tmp", build.join("var/tmp")).map_err(at("linking /var/tmp"))?;
    devices(&build.join("dev"))?;
    enter()?;
    process_files()
}

/// A read-only view of a file or folder at the same path of the new root.
fn view(path: &Path) -> Result<(), Failure> {
    let Ok(kind) = fs::symlink_metadata(path) else { return Ok(()) };
    let target = below(BUILD, path);
    if kind.is_symlink() && PROGRAMS.iter().any(|program| Path::new(program) == path) {
        let to = fs::read_link(path).map_err(at("reading a link"))?;
        return symlink(to, target).map_err(at("linking a folder of programs"));
    }
    bind(path, &target)
}

/// Binds `source` to `target` read-only, creating `target`.
fn bind(source: &Path, target: &Path) -> Result<(), Failure> {
    let describe = |error: io::Error| Failure::new(format!("binding {}", source.display()), error);
    if source.is_dir() {
        create_folders(target)?;
        mount_bind_recursive(source, target).map_err(|error| describe(error.into()))?;
    } else {
        if let Some(folder) = target.parent() {
            create_folders(folder)?;
        }
        File::create(target).map_err(describe)?;
        mount_bind(source, target).map_err(|error| describe(error.into()))?;
    }
    let attributes = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
    add_mount_attributes(&text(target)?, attributes, true).map_err(describe)
}

fn devices(folder: &Path) -> Result<(), Failure> {
    for name in DEVICES {
        let target = folder.join(name);
        File::create(&target).map_err(at("creating a device"))?;
        mount_bind(Path::new("/dev").join(name), target).map_err(at("binding a device"))?;
    }
    let links = [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("shm", "/tmp"),
    ];
    for (name, to) in links {
        symlink(to, folder.join(name)).map_err(at("linking a device"))?;
    }
    Ok(())
}

/// Makes the new root the root.
fn enter() -> Result<(), Failure> {
    create_folders(&below(BUILD, Path::new(MACHINE)))?;
    std::env::set_current_dir(BUILD).map_err(at("entering the new root"))?;
    pivot_root(".", MACHINE.trim_start_matches('/')).map_err(at("changing the root"))?;
    std::env::set_current_dir("/").map_err(at("entering the new root"))
}

/// `/proc` of the new pid namespace, without the files that describe the machine.
fn process_files() -> Result<(), Failure> {
    let flags = NO_SURPRISE | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None::<&std::ffi::CStr>).map_err(at("mounting /proc"))?;
    let proc = Path::new("/proc");
    for file in HIDDEN.iter().map(|name| proc.join(name)).filter(|path| path.exists()) {
        mount_bind("/dev/null", file).map_err(at("hiding a file of /proc"))?;
    }
    for folder in FIXED.iter().map(|name| proc.join(name)).filter(|path| path.is_dir()) {
        mount_bind(&folder, &folder).map_err(at("fixing a folder of /proc"))?;
        add_mount_attributes(&text(&folder)?, libc::MOUNT_ATTR_RDONLY, false)
            .map_err(at("fixing a folder of /proc"))?;
    }
    Ok(())
}

/// Binds the instance's own files, gives it a `/tmp` and lets go of the machine's root.
pub(super) fn complete(files: &[Bind], scratch_mib: u32) -> Result<(), Failure> {
    for file in files {
        bind(&below(MACHINE, &file.source), &file.target)?;
    }
    unmount(MACHINE, UnmountFlags::DETACH).map_err(at("leaving the machine's root"))?;
    fs::remove_dir(MACHINE).map_err(at("leaving the machine's root"))?;
    // One inode per 4 KiB, so that empty files are bounded too.
    let options = format!("size={scratch_mib}m,nr_inodes={},mode=1777", scratch_mib.max(1) * 256);
    let options =
        CString::new(options).map_err(|error| at("mounting /tmp")(io::Error::from(error)))?;
    mount("tmpfs", "/tmp", "tmpfs", NO_SURPRISE, Some(options.as_c_str()))
        .map_err(at("mounting /tmp"))?;
    add_mount_attributes(c"/", libc::MOUNT_ATTR_RDONLY, false).map_err(at("fixing the root"))
}

fn below(root: &str, path: &Path) -> PathBuf {
    Path::new(root).join(path.strip_prefix("/").unwrap_or(path))
}

fn create_folders(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(at("creating a folder of the new root"))
}

fn text(path: &Path) -> Result<CString, Failure> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|error| at("naming a mount point")(io::Error::from(error)))
}
