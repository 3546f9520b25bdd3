//! Processes that outlived the instance they belong to.
//!
//! An instance without a pid namespace adopts its own descendants, whatever sessions and process groups they make; when
//! it ends, the kernel hands them on to the spawner, which ends them.

use std::fs;
use std::io;

use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid,
};

/// Makes this process the next parent of whatever its descendants leave behind.
pub(super) fn adopt_all() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Kills and reaps the children of this process that are not `known`. Whether there were any: what they leave behind in
/// turn comes a little later.
pub(super) fn bury(known: impl Fn(Pid) -> bool) -> bool {
    let orphans: Vec<Pid> = children().into_iter().filter(|pid| !known(*pid)).collect();
    for orphan in &orphans {
        // Nobody else reaps it, so the number still means this process.
        let _ = kill_process(*orphan, Signal::KILL);
        let _ = waitpid(Some(*orphan), WaitOptions::NOHANG);
    }
    !orphans.is_empty()
}

/// Children of this process, which has one thread. Nothing where the kernel does not list them.
fn children() -> Vec<Pid> {
    let list = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    list.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}
