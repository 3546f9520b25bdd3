//! The groups of one run.
//!
//! ```text
//! <mount>/windfall-run-<pid namespace>-<pid>-<start time>     parent with high shares
//!     gateway/                                                 manager and spawner
//!     load/                                                    load generator
//!     functions/<slot>/                                        one per instance
//! ```
//!
//! The name of the parent says which process made it, so that a later run can tell leftovers from live runs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::layout::{Generation, Layout};
use crate::error::SandboxError;

/// Groups that stand beside the instances.
pub(crate) const SIDE_GROUPS: [&str; 2] = ["gateway", "load"];

/// Where the groups of runs are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At the top of each hierarchy: needs root.
    Top,
    /// In the group that this process is in: works where that was delegated to us.
    Own,
}

/// One mounted hierarchy with the parent group of this run in it.
#[derive(Clone, Debug)]
pub(crate) struct Hierarchy {
    mount: PathBuf,
    /// Folder under which the runs of this machine are created.
    pub(crate) place: PathBuf,
    /// The parent group of this run.
    pub(crate) run: PathBuf,
    /// The group that this process was in before.
    origin: PathBuf,
    /// Whether it is the cgroup v2 tree.
    pub(crate) is_unified: bool,
    /// Whether `gateway` and `load` exist here: where CPU is controlled or counted.
    has_sides: bool,
}

/// The groups of one run in all hierarchies.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) generation: Generation,
    pub(crate) hierarchies: Vec<Hierarchy>,
    layout: Layout,
}

impl Tree {
    /// The hierarchies that a run uses; creates nothing.
    pub(crate) fn plan(layout: Layout, place: Place, run: &str) -> Option<Self> {
        let generation = layout.generation()?;
        let mut hierarchies: Vec<Hierarchy> = Vec::new();
        let mut add = |mount: &Path, is_unified, has_sides| {
            if let Some(known) = hierarchies.iter_mut().find(|known| known.mount == mount) {
                known.has_sides |= has_sides;
                return;
            }
            let origin = layout.own_group(mount);
            let place = if place == Place::Top { mount.to_owned() } else { origin.clone() };
            let run = place.join(run);
            let mount = mount.to_owned();
            hierarchies.push(Hierarchy { mount, place, run, origin, is_unified, has_sides });
        };
        if generation == Generation::V1 {
            for controller in ["cpu", "cpuacct", "memory", "pids"] {
                if let Some(mount) = layout.v1(controller) {
                    add(mount, false, controller.starts_with("cpu"));
                }
            }
            // The v2 tree freezes as well, and what it froze can still be killed.
            if let (None, Some(mount)) = (&layout.unified, layout.v1("freezer")) {
                add(mount, false, false);
            }
        }
        if let Some(mount) = &layout.unified {
            add(mount, true, true);
        }
        Some(Self { generation, hierarchies, layout })
    }

    /// Creates the parent group and its children; on cgroup v2 passes the controllers down.
    pub(crate) fn create(&self, shares: u32) -> Result<(), SandboxError> {
        for hierarchy in &self.hierarchies {
            create_folder(&hierarchy.run)?;
            create_folder(&hierarchy.run.join("functions"))?;
            for side in SIDE_GROUPS.iter().filter(|_| hierarchy.has_sides) {
                create_folder(&hierarchy.run.join(side))?;
            }
            if hierarchy.is_unified && self.generation == Generation::V2 {
                self.pass_controllers_down(hierarchy)?;
            }
        }
        self.protect(shares)
    }

    /// On cgroup v2 a group controls its children only if it has no processes itself.
    fn pass_controllers_down(&self, hierarchy: &Hierarchy) -> Result<(), SandboxError> {
        if pass_down(&hierarchy.place).is_err() {
            // The place is the group that this process is in: move out of the way, into a leaf.
            self.join("gateway", 0)?;
            pass_down(&hierarchy.place)?;
        }
        pass_down(&hierarchy.run)?;
        pass_down(&hierarchy.run.join("functions"))
    }

    /// High shares for the parent; inside, the manager and the load generator come before the instances.
    fn protect(&self, shares: u32) -> Result<(), SandboxError> {
        // 1024 shares per core for all instances together, five times that for each of the other two: with 2 cores
        // and everything busy the instances still get 1 / 11 of the machine, and a gateway that needs 5 % of a core
        // gets it at once.
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u32;
        let (inner, outer) = (1024 * cores, 5 * 1024 * cores);
        let Some(cpu) = self.controller("cpu") else { return Ok(()) };
        let name = match self.generation {
            Generation::V1 => "cpu.shares",
            Generation::V2 => "cpu.weight",
        };
        let groups = [("", shares), ("functions", inner), ("gateway", outer), ("load", outer)];
        for (group, shares) in groups {
            let value = match self.generation {
                Generation::V1 => shares.clamp(2, 262_144),
                Generation::V2 => super::v2::weight_of_shares(shares),
            };
            let path = cpu.join(group).join(name);
            fs::write(&path, value.to_string()).map_err(SandboxError::file("write", path))?;
        }
        Ok(())
    }

    /// The run's parent group in the hierarchy that has `controller`.
    pub(crate) fn controller(&self, controller: &str) -> Option<&Path> {
        let mount = match self.generation {
            Generation::V1 => self.layout.v1(controller),
            Generation::V2 => self.layout.unified.as_deref(),
        }?;
        let found = self.hierarchies.iter().find(|hierarchy| hierarchy.mount == mount)?;
        Some(&found.run)
    }

    /// The run's parent group in the v2 tree, whether or not it controls anything.
    pub(crate) fn unified(&self) -> Option<&Path> {
        let found = self.hierarchies.iter().find(|hierarchy| hierarchy.is_unified)?;
        Some(&found.run)
    }

    /// The group of an instance in the hierarchy that has `controller`.
    pub(crate) fn slot(&self, controller: &str, slot: u64) -> Option<PathBuf> {
        Some(slot_of(self.controller(controller)?, slot))
    }

    /// The group of an instance in the v2 tree.
    pub(crate) fn unified_slot(&self, slot: u64) -> Option<PathBuf> {
        Some(slot_of(self.unified()?, slot))
    }

    /// The groups of an instance in all hierarchies.
    pub(crate) fn slot_folders(&self, slot: u64) -> impl Iterator<Item = (PathBuf, bool)> {
        self.hierarchies
            .iter()
            .map(move |hierarchy| (slot_of(&hierarchy.run, slot), hierarchy.is_unified))
    }

    /// Creates the groups of an instance.
    pub(crate) fn create_slot(&self, slot: u64) -> Result<(), SandboxError> {
        self.slot_folders(slot).try_for_each(|(folder, _)| create_folder(&folder))
    }

    /// Removes the groups of an instance. Fails with `ResourceBusy` while one of its processes still exists.
    pub(crate) fn remove_slot(&self, slot: u64) -> io::Result<()> {
        self.slot_folders(slot).try_for_each(|(folder, _)| remove_folder(&folder))
    }

    /// Moves `process` (0 for the caller) into the side group `group`, with all of its threads.
    pub(crate) fn join(&self, group: &str, process: u32) -> Result<(), SandboxError> {
        for hierarchy in self.hierarchies.iter().filter(|hierarchy| hierarchy.has_sides) {
            let path = hierarchy.run.join(group).join("cgroup.procs");
            fs::write(&path, process.to_string()).map_err(SandboxError::file("write", path))?;
        }
        Ok(())
    }

    /// Moves the calling thread alone into the side group `group`; possible on cgroup v1.
    pub(crate) fn join_thread(&self, group: &str) -> Result<bool, SandboxError> {
        if self.generation == Generation::V2 {
            return Ok(false);
        }
        let has_threads = |hierarchy: &&Hierarchy| hierarchy.has_sides && !hierarchy.is_unified;
        for hierarchy in self.hierarchies.iter().filter(has_threads) {
            let path = hierarchy.run.join(group).join("tasks");
            fs::write(&path, "0").map_err(SandboxError::file("write", path))?;
        }
        Ok(true)
    }

    /// Moves the calling process out of the run's groups, so that they can be removed.
    pub(crate) fn leave(&self) {
        for hierarchy in self.hierarchies.iter().filter(|hierarchy| hierarchy.has_sides) {
            // A failure leaves an empty group behind, which the next run removes.
            let _ = fs::write(hierarchy.origin.join("cgroup.procs"), "0");
        }
    }

    /// Removes all groups of this run that are empty.
    pub(crate) fn remove(&self) {
        for hierarchy in &self.hierarchies {
            super::leftovers::remove_tree(&hierarchy.run);
        }
    }
}

fn slot_of(run: &Path, slot: u64) -> PathBuf {
    run.join("functions").join(slot.to_string())
}

fn create_folder(path: &Path) -> Result<(), SandboxError> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(SandboxError::file("create", path)(error))
        }
        _ => Ok(()),
    }
}

pub(super) fn remove_folder(path: &Path) -> io::Result<()> {
    match fs::remove_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Lets the children of a v2 group be controlled.
fn pass_down(group: &Path) -> Result<(), SandboxError> {
    let path = group.join("cgroup.subtree_control");
    let write = |value: &str| fs::write(&path, value);
    write("+cpu +memory +pids")
        .or_else(|_| write("+cpu +memory"))
        .map_err(SandboxError::file("write", &path))
}
