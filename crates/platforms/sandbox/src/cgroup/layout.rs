//! Where the control groups of this machine are mounted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where the control groups of this machine are mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Controllers of cgroup v1 by name, each with its mount point. Some share one (`cpu,cpuacct`).
    pub(crate) v1: BTreeMap<String, PathBuf>,
    /// Mount point of the cgroup v2 tree.
    pub(crate) unified: Option<PathBuf>,
    /// Controllers of the cgroup v2 tree.
    pub(crate) unified_controllers: Vec<String>,
    /// The group of this process by controller, as a path below the mount point; the v2 tree has the empty name.
    own: BTreeMap<String, PathBuf>,
}

/// Which files the limits are written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// CPU and memory are controllers of cgroup v1; there may be a v2 tree beside them.
    V1,
    /// CPU and memory are controllers of the v2 tree.
    V2,
}

impl Layout {
    /// Of this machine, as this process sees it.
    pub(crate) fn of_this_machine() -> Self {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mut layout = Self::parse(&mounts);
        if let Some(unified) = &layout.unified {
            let controllers = std::fs::read_to_string(unified.join("cgroup.controllers"));
            layout.unified_controllers =
                controllers.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
        }
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        layout.own = parse_own(&own);
        layout
    }

    /// The group that this process was in, in the hierarchy mounted at `mount_point`.
    pub(crate) fn own_group(&self, mount_point: &Path) -> PathBuf {
        let name = if self.unified.as_deref() == Some(mount_point) {
            Some("")
        } else {
            let at_mount = |(_, place): &(&String, &PathBuf)| place.as_path() == mount_point;
            self.v1.iter().find(at_mount).map(|(name, _)| name.as_str())
        };
        let group = name.and_then(|name| self.own.get(name));
        // A group outside of what is mounted here (a container without a cgroup namespace) cannot be entered.
        group
            .map(|group| mount_point.join(group))
            .filter(|group| group.is_dir())
            .unwrap_or_else(|| mount_point.to_owned())
    }

    /// From the lines of `/proc/self/mountinfo`. The first mount of a controller counts.
    fn parse(mounts: &str) -> Self {
        let mut layout = Self::default();
        for line in mounts.lines() {
            let Some((place, kind)) = line.split_once(" - ") else { continue };
            let Some(mount_point) = place.split(' ').nth(4) else { continue };
            let mut kind = kind.split(' ');
            let (file_system, options) = (kind.next(), kind.nth(1).unwrap_or_default());
            match file_system {
                Some("cgroup2") if layout.unified.is_none() => {
                    layout.unified = Some(PathBuf::from(mount_point));
                }
                Some("cgroup") => {
                    for option in options.split(',').filter(|option| is_controller(option)) {
                        let mount_point = PathBuf::from(mount_point);
                        layout.v1.entry(option.to_owned()).or_insert(mount_point);
                    }
                }
                _ => {}
            }
        }
        layout
    }

    /// Which generation controls CPU and memory; nothing if neither does.
    pub(crate) fn generation(&self) -> Option<Generation> {
        let in_v2 = |name: &str| self.unified_controllers.iter().any(|other| other == name);
        if in_v2("cpu") && in_v2("memory") {
            Some(Generation::V2)
        } else if ["cpu", "memory"].iter().all(|name| self.v1.contains_key(*name)) {
            Some(Generation::V1)
        } else {
            None
        }
    }

    /// Mount point of a v1 controller.
    pub(crate) fn v1(&self, controller: &str) -> Option<&Path> {
        self.v1.get(controller).map(PathBuf::as_path)
    }
}

/// From lines such as `4:cpu,cpuacct:/group` and `0::/group`.
fn parse_own(lines: &str) -> BTreeMap<String, PathBuf> {
    let mut own = BTreeMap::new();
    for line in lines.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(names), Some(group)) = (fields.next(), fields.next()) else { continue };
        for name in names.split(',') {
            own.insert(name.to_owned(), PathBuf::from(group.trim_start_matches('/')));
        }
    }
    own
}

/// Options of a v1 mount that name a controller; the others are flags such as `rw` and `name=systemd`.
fn is_controller(option: &str) -> bool {
    matches!(option, "cpu" | "cpuacct" | "memory" | "pids" | "freezer")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
25 20 0:22 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct
26 20 0:23 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory
27 20 0:24 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
28 20 0:25 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
29 20 0:26 / /tmp rw - tmpfs tmpfs rw,size=1g
";

    #[test]
    fn controllers_that_share_a_mount_are_both_found() {
        let layout = Layout::parse(HYBRID);
        let cpu = Some(Path::new("/sys/fs/cgroup/cpu,cpuacct"));
        assert_eq!((layout.v1("cpu"), layout.v1("cpuacct")), (cpu, cpu));
        assert_eq!(layout.v1("pids"), None);
        assert_eq!(layout.unified.as_deref(), Some(Path::new("/sys/fs/cgroup/unified")));
        assert_eq!(layout.generation(), Some(Generation::V1));
    }

    #[test]
    fn the_own_group_is_found_by_controller() {
        let own = parse_own("4:cpu,cpuacct:/a/b\n1:name=systemd:/\n0::/user.slice/x:y\n");
        assert_eq!(own["cpuacct"], Path::new("a/b"));
        assert_eq!(own[""], Path::new("user.slice/x:y"));
    }

    #[test]
    fn a_v2_tree_counts_only_with_its_controllers() {
        let mut layout = Layout::parse("30 20 0:9 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        assert_eq!(layout.generation(), None);
        layout.unified_controllers = vec!["cpu".into(), "memory".into(), "pids".into()];
        assert_eq!(layout.generation(), Some(Generation::V2));
    }
}
