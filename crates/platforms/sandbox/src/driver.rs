//! Picks what limits and sensors come from: cgroups where they can be written, else signals and `/proc`.

use std::os::fd::AsFd;
use std::sync::OnceLock;

use crate::cgroup::layout::{Generation, Layout};
use crate::cgroup::leftovers::{Maker, clean};
use crate::cgroup::tree::{Place, Tree};
use crate::cgroup::v1::V1;
use crate::cgroup::v2::V2;
use crate::connection::Claimed;
use crate::control::Control;
use crate::emulated::{Emulated, Watcher};
use crate::error::SandboxError;
use crate::host::DriverChoice;

/// Where limits and sensors of this run come from.
pub(crate) enum Driver {
    /// Groups of the kernel.
    Cgroup(Tree),
    /// Signals and `/proc`, and why not groups.
    Emulated {
        /// Started with the first instance: no thread may exist before the spawner.
        watcher: OnceLock<Watcher>,
        reason: String,
    },
}

/// A driver, and the leftovers that were removed on the way.
pub(crate) struct Picked {
    pub(crate) driver: Driver,
    pub(crate) leftovers: Vec<String>,
}

/// What to do where cgroups cannot be used.
pub(crate) const CGROUP_FIX: &str = "run as root, or inside a group of your own: \
     `systemd-run --user --scope -p Delegate=yes windfall ...`";

impl Driver {
    /// Creates the groups of this run, as far as they are wanted and possible, and removes leftovers of crashed runs.
    pub(crate) fn pick(choice: DriverChoice, shares: u32) -> Result<Picked, SandboxError> {
        if choice == DriverChoice::Emulated {
            let driver = Self::emulated("the emulated driver was asked for".to_owned());
            return Ok(Picked { driver, leftovers: Vec::new() });
        }
        let layout = Layout::of_this_machine();
        let mut reason = "no cgroup hierarchy with CPU and memory is mounted".to_owned();
        for place in [Place::Top, Place::Own] {
            let run = Maker::this().run_name();
            let Some(tree) = Tree::plan(layout.clone(), place, &run) else { continue };
            match tree.create(shares) {
                Ok(()) => {
                    let leftovers = clean(&tree.hierarchies);
                    return Ok(Picked { driver: Self::Cgroup(tree), leftovers });
                }
                Err(error) => {
                    tree.leave();
                    tree.remove();
                    reason = error.to_string();
                }
            }
        }
        match choice {
            DriverChoice::Cgroup => {
                Err(SandboxError::Driver { driver: "cgroup", reason, fix: CGROUP_FIX.to_owned() })
            }
            DriverChoice::Best | DriverChoice::Emulated => {
                Ok(Picked { driver: Self::emulated(reason), leftovers: Vec::new() })
            }
        }
    }

    fn emulated(reason: String) -> Self {
        Self::Emulated { watcher: OnceLock::new(), reason }
    }

    /// The groups of this run.
    pub(crate) fn tree(&self) -> Option<&Tree> {
        match self {
            Self::Cgroup(tree) => Some(tree),
            Self::Emulated { .. } => None,
        }
    }

    /// Name in reports.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Emulated { .. } => "emulated",
            Self::Cgroup(tree) => match (tree.generation, tree.unified()) {
                (Generation::V2, _) => "v2",
                (Generation::V1, Some(_)) => "hybrid",
                (Generation::V1, None) => "v1",
            },
        }
    }

    /// Limits and sensors of a child.
    pub(crate) fn control(&self, child: &Claimed) -> Result<Box<dyn Control>, SandboxError> {
        match self {
            Self::Cgroup(tree) if tree.generation == Generation::V1 => {
                Ok(Box::new(V1::open(tree, child.slot)?))
            }
            Self::Cgroup(tree) => Ok(Box::new(V2::open(tree, child.slot)?)),
            Self::Emulated { watcher, .. } => {
                let pidfd = child.pidfd.as_fd().try_clone_to_owned();
                let pidfd = pidfd.map_err(SandboxError::system("dup", "watching an instance"))?;
                let watcher = watcher.get_or_init(Watcher::start);
                Ok(Box::new(Emulated::new(watcher, child.pid, pidfd)))
            }
        }
    }
}
