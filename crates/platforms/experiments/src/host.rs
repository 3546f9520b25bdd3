//! The machine as a place for an experiment.

use std::sync::Arc;

use windfall_sandbox::{CapabilityName, CapabilityState, Child, Host, HostOptions};

use crate::error::ExperimentError;

/// A host for an experiment, and this process in its protected group.
pub(crate) fn host(what: &'static str) -> Result<Arc<Host>, ExperimentError> {
    let host = Host::start(&HostOptions::default())?;
    let needs = [
        (CapabilityName::CpuQuota, "exact CPU quotas"),
        (CapabilityName::MemoryLimit, "exact memory limits"),
    ];
    for (name, needs) in needs {
        if host.capabilities().state(name) != CapabilityState::Exact {
            let driver = host.capabilities().driver.to_owned();
            return Err(ExperimentError::NotPermitted { what, needs, driver });
        }
    }
    host.join(Child::Gateway)?;
    Ok(Arc::new(host))
}
