//! A process with its descendants, through `/proc`.

use std::fs;
use std::time::Duration;

use rustix::process::Pid;

use crate::syscalls::process_cpu_time;

/// `/proc` counts CPU time of ended children in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

/// CPU time of the live processes of a tree, and of the children that its first process has waited for.
pub(super) fn cpu_time(tree: &[Pid]) -> Duration {
    let live: Duration = tree.iter().filter_map(|pid| process_cpu_time(*pid).ok()).sum();
    live + tree.first().map_or(Duration::ZERO, |pid| time_of_ended_children(*pid))
}

fn time_of_ended_children(pid: Pid) -> Duration {
    // Fields 16 and 17, counted behind the name in parentheses: cutime and cstime.
    let Some(stat) = stat_behind_name(pid) else { return Duration::ZERO };
    let ticks: u32 = stat
        .split_whitespace()
        .skip(13)
        .take(2)
        .filter_map(|field| field.parse::<u32>().ok())
        .sum();
    TICK * ticks
}

/// Whether a process is stopped.
pub(super) fn is_stopped(pid: Pid) -> bool {
    stat_behind_name(pid).is_none_or(|stat| stat.trim_start().starts_with('T'))
}

fn stat_behind_name(pid: Pid) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    Some(stat.rsplit_once(')')?.1.to_owned())
}

/// Resident memory of a tree, bytes. Pages that processes share count for each of them.
pub(super) fn resident(tree: &[Pid]) -> u64 {
    let page = rustix::param::page_size() as u64;
    let pages = |pid: &Pid| -> Option<u64> {
        let statm = fs::read_to_string(format!("/proc/{}/statm", pid.as_raw_nonzero())).ok()?;
        statm.split(' ').nth(1)?.parse().ok()
    };
    tree.iter().filter_map(pages).sum::<u64>() * page
}

/// A process and its descendants, itself first.
pub(super) fn tree(root: Pid) -> Vec<Pid> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        found.extend(children(pid));
        next += 1;
    }
    found
}

fn children(pid: Pid) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).into_iter().flatten();
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
                .collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_cpu_and_memory() {
        let this = tree(rustix::process::getpid());
        assert_eq!(this[0], rustix::process::getpid());
        assert!(resident(&this) > 1 << 20);
        let before = cpu_time(&this);
        assert!(before > Duration::ZERO);
        assert!(cpu_time(&this) >= before);
        assert!(!is_stopped(this[0]));
    }
}
