//! Groups of runs that crashed: found by their name, and removed only if their maker is dead.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::tree::{Hierarchy, remove_folder};

const PREFIX: &str = "windfall-run-";
/// Killed processes leave their group within milliseconds; after this time they hang in the kernel.
const PATIENCE: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(2);

/// The process that made a run. Its start time tells it from a later process with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Maker {
    pid_namespace: u64,
    pid: u32,
    start_time: u64,
}

impl Maker {
    /// This process.
    pub(crate) fn this() -> Self {
        let pid = std::process::id();
        Self { pid_namespace: pid_namespace(), pid, start_time: start_time(pid).unwrap_or(0) }
    }

    /// Name of the run's parent group.
    pub(crate) fn run_name(self) -> String {
        format!("{PREFIX}{}-{}-{}", self.pid_namespace, self.pid, self.start_time)
    }

    /// From a name of a group; nothing if it is not one of ours.
    fn of_run(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix(PREFIX)?.split('-').map(str::parse::<u64>);
        let mut part = || parts.next()?.ok();
        let maker =
            Self { pid_namespace: part()?, pid: u32::try_from(part()?).ok()?, start_time: part()? };
        parts.next().is_none().then_some(maker)
    }

    /// Whether this process is known to be gone. A process of another pid namespace cannot be seen from here, so it
    /// counts as alive.
    fn is_dead(self) -> bool {
        self.pid_namespace == pid_namespace() && start_time(self.pid) != Some(self.start_time)
    }
}

fn pid_namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

/// When a process started, in clock ticks since the machine did.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything, so count from its end: the state is field 3, this is field 22.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Kills and removes what crashed runs left in these hierarchies; returns the names of their parent groups.
pub(crate) fn clean(hierarchies: &[Hierarchy]) -> Vec<String> {
    let mut found: Vec<String> = hierarchies
        .iter()
        .flat_map(|hierarchy| folders(&hierarchy.place))
        .filter_map(|folder| Some(folder.file_name()?.to_str()?.to_owned()))
        .filter(|name| Maker::of_run(name).is_some_and(Maker::is_dead))
        .collect();
    found.sort();
    found.dedup();
    let trees = || {
        let run = |name| hierarchies.iter().map(move |hierarchy| hierarchy.place.join(name));
        found.iter().flat_map(run).filter(|tree| tree.is_dir())
    };
    let mut waited = Duration::ZERO;
    loop {
        trees().for_each(|tree| kill_tree(&tree));
        trees().for_each(|tree| remove_tree(&tree));
        if trees().next().is_none() || waited > PATIENCE {
            return found;
        }
        sleep(STEP);
        waited += STEP;
    }
}

/// Kills every process in a group and in the groups below it.
pub(crate) fn kill_tree(group: &Path) {
    // Frozen processes of cgroup v1 do not die before they are thawed.
    let _ = fs::write(group.join("freezer.state"), "THAWED");
    if fs::write(group.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    for pid in processes(group) {
        let _ = kill_process(pid, Signal::KILL);
    }
    folders(group).for_each(|folder| kill_tree(&folder));
}

/// Removes a group and the groups below it, as far as they are empty.
pub(crate) fn remove_tree(group: &Path) {
    folders(group).for_each(|folder| remove_tree(&folder));
    let _: io::Result<()> = remove_folder(group);
}

fn processes(group: &Path) -> Vec<Pid> {
    let content = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    content.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect()
}

fn folders(group: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_named_after_its_maker() {
        let maker = Maker::this();
        assert_eq!(Maker::of_run(&maker.run_name()), Some(maker));
        assert!(!maker.is_dead());
    }

    #[test]
    fn groups_of_others_are_not_ours() {
        for name in
            ["windfall-measure", "windfall-run-1-2", "windfall-run-1-2-3-4", "windfall-run-1-x-3"]
        {
            assert_eq!(Maker::of_run(name), None, "{name}");
        }
    }

    #[test]
    fn a_later_process_with_the_same_number_is_not_the_maker() {
        let maker = Maker::this();
        assert!(Maker { start_time: maker.start_time + 1, ..maker }.is_dead());
        let foreign = Maker { pid_namespace: 1, start_time: 0, ..maker };
        assert!(!foreign.is_dead(), "a process of another namespace may be alive");
    }
}
