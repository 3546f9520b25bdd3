//! On which cores instances may run.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::error::{ExperimentError, system};

/// Keeps every thread of all instances, and the threads that those will start, on the first `cores` cores that this
/// process may use. Instances that are started later go where they like.
pub(crate) fn keep_instances_on(spawner: u32, cores: usize) -> Result<(), ExperimentError> {
    let own = sched_getaffinity(None).map_err(io("reading on which cores to run"))?;
    let mut first = CpuSet::new();
    let allowed = (0..CpuSet::MAX_CPU).filter(|core| own.is_set(*core));
    allowed.take(cores.max(1)).for_each(|core| first.set(core));
    for process in descendants(spawner) {
        for thread in threads(process) {
            match sched_setaffinity(Some(thread), &first) {
                // It has ended.
                Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => return Err(io("choosing the cores of an instance")(error)),
            }
        }
    }
    Ok(())
}

fn io(doing: &'static str) -> impl FnOnce(rustix::io::Errno) -> ExperimentError {
    move |error| system(doing)(error.into())
}

/// The processes below `root`, without itself.
fn descendants(root: u32) -> BTreeSet<u32> {
    let parents: Vec<(u32, u32)> = numbers("/proc")
        .into_iter()
        .filter_map(|pid| Some((pid, parent_of(&fs::read_to_string(stat(pid)).ok()?)?)))
        .collect();
    let mut below = BTreeSet::new();
    loop {
        let known = below.len();
        let children = parents.iter().filter(|(_, up)| *up == root || below.contains(up));
        let children: Vec<u32> = children.map(|(pid, _)| *pid).collect();
        below.extend(children);
        if below.len() == known {
            return below;
        }
    }
}

fn stat(pid: u32) -> String {
    format!("/proc/{pid}/stat")
}

/// The parent in a line of `/proc/<pid>/stat`; the name before it may hold anything.
fn parent_of(stat: &str) -> Option<u32> {
    stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}

fn threads(process: u32) -> impl Iterator<Item = Pid> {
    let threads = numbers(&format!("/proc/{process}/task"));
    threads.into_iter().filter_map(|thread| Pid::from_raw(i32::try_from(thread).ok()?))
}

/// The entries of a folder that are numbers.
fn numbers(folder: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_and_its_threads_are_kept_on_one_core() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("a process");
        keep_instances_on(std::process::id(), 1).expect("own children may be moved");
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("small")).expect("a process");
        let cores = sched_getaffinity(Some(pid)).expect("it still runs");
        assert_eq!(cores.count(), 1);
        let own = sched_getaffinity(None).expect("this process runs");
        assert_eq!(own.count() as usize, std::thread::available_parallelism().expect("some").get());
        child.kill().expect("it still runs");
        child.wait().expect("it was a child");
    }

    #[test]
    fn the_parent_is_read_behind_any_name() {
        assert_eq!(parent_of("12 (a) b) S 7 12 12 0"), Some(7));
    }
}
