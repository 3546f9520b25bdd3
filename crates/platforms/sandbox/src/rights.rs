//! What this process may do.

use rustix::thread::{CapabilitySet, capabilities};

/// Whether namespaces can be made and users changed without a user namespace.
pub(crate) fn is_privileged() -> bool {
    let needed = CapabilitySet::SYS_ADMIN
        | CapabilitySet::SETUID
        | CapabilitySet::SETGID
        | CapabilitySet::SETPCAP
        | CapabilitySet::NET_ADMIN;
    capabilities(None).is_ok_and(|own| own.effective.contains(needed))
}
