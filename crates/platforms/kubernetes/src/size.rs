//! Sizes of containers: from Kubernetes' quantities to an [`Allocation`] and back, without changing what the pod is.
//!
//! A function has one allocation, CPU that is guaranteed and memory that it may use. A container has up to four numbers.
//! Those that its user left out stay out, and those that were equal stay equal, so the QoS class cannot change:
//!
//! ```text
//!   user                                 asked 250m, 96 MiB
//!   cpu     requests 500m, limits 1      requests 250m, limits 500m     the ratio of 1:2 stays
//!   memory  requests 64Mi, limits 128Mi  requests 48Mi, limits 96Mi     memory is the limit, where there is one
//! ```

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WrittenQuantity;
use serde_json::{Value, json};
use windfall_autoscalers::Quantity;
use windfall_core::{Allocation, CpuCeiling, Mebibytes, MilliCpu};

use crate::resource_policy::{Amounts, Size};

const MIB: u64 = 1 << 20;

/// Requests and limits of one container: CPU in millicores, memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContainerSize {
    /// Requested CPU.
    pub cpu_request: Option<u32>,
    /// Most CPU.
    pub cpu_limit: Option<u32>,
    /// Requested memory.
    pub memory_request: Option<u64>,
    /// Most memory.
    pub memory_limit: Option<u64>,
}

impl ContainerSize {
    /// Reads requests and limits. A request that is left out equals the limit, as the API server fills it in.
    pub fn read(resources: Option<&ResourceRequirements>) -> Self {
        let Some(resources) = resources else { return Self::default() };
        let (requests, limits) = (resources.requests.as_ref(), resources.limits.as_ref());
        let cpu_limit = limits.and_then(cpu_of);
        let memory_limit = limits.and_then(memory_of);
        Self {
            cpu_request: requests.and_then(cpu_of).or(cpu_limit),
            cpu_limit,
            memory_request: requests.and_then(memory_of).or(memory_limit),
            memory_limit,
        }
    }

    /// What an instance of this size has; nothing if its user gave no CPU or no memory, because adding one would change
    /// the QoS class.
    pub fn allocation(&self) -> Option<Allocation> {
        let memory = self.memory_limit.or(self.memory_request)?;
        let mib = u32::try_from(memory.div_ceil(MIB)).unwrap_or(u32::MAX);
        Some(Allocation::new(self.cpu_request?, mib))
    }

    /// The most CPU that an instance of this size uses, cores.
    pub fn most_cores(&self) -> Option<f64> {
        self.cpu_limit.or(self.cpu_request).map(|millis| f64::from(millis) * 1e-3)
    }

    /// The size with which a container of this user's size holds `wanted`.
    #[must_use]
    pub fn resized(&self, wanted: Allocation, ceiling: Option<CpuCeiling>) -> Self {
        if self.allocation() == Some(wanted) && ceiling.is_none() {
            return *self;
        }
        let cpu = wanted.cpu.get().max(1);
        let memory = u64::from(wanted.memory.get().max(1)) * MIB;
        let memory_limit = self.memory_limit.map(|_| memory);
        Self {
            cpu_request: self.cpu_request.map(|_| cpu),
            cpu_limit: self.resized_cpu_limit(cpu, ceiling),
            memory_request: self.memory_request.map(|request| match self.memory_limit {
                Some(limit) if request < limit => {
                    scaled(memory, request, limit).min(memory - 1).max(1)
                }
                _ => memory,
            }),
            memory_limit,
        }
    }

    fn resized_cpu_limit(&self, cpu: u32, ceiling: Option<CpuCeiling>) -> Option<u32> {
        let (request, limit) = (self.cpu_request?, self.cpu_limit?);
        if request >= limit {
            return Some(cpu);
        }
        let in_proportion =
            scaled(u64::from(cpu), u64::from(limit), u64::from(request)).min(u64::from(u32::MAX));
        let chosen = match ceiling {
            None | Some(CpuCeiling::AtGrant) => in_proportion as u32,
            Some(CpuCeiling::At(most)) => most.get(),
            Some(CpuCeiling::Unlimited) => limit,
        };
        // A container that could burst still can, or it would become Guaranteed.
        Some(chosen.max(cpu.saturating_add(1)))
    }

    /// The `resources` of a patch that sets these numbers.
    pub fn to_json(self) -> Value {
        let amounts = |cpu: Option<u32>, memory: Option<u64>| {
            let mut amounts = serde_json::Map::new();
            if let Some(cpu) = cpu {
                amounts.insert("cpu".to_owned(), json!(cpu_text(cpu)));
            }
            if let Some(memory) = memory {
                amounts.insert("memory".to_owned(), json!(memory_text(memory)));
            }
            amounts
        };
        let mut resources = serde_json::Map::new();
        let requests = amounts(self.cpu_request, self.memory_request);
        let limits = amounts(self.cpu_limit, self.memory_limit);
        for (key, amounts) in [("requests", requests), ("limits", limits)] {
            if !amounts.is_empty() {
                resources.insert(key.to_owned(), Value::Object(amounts));
            }
        }
        Value::Object(resources)
    }
}

/// `value` times `part` by `whole`, rounded down.
fn scaled(value: u64, part: u64, whole: u64) -> u64 {
    let product = u128::from(value) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

fn cpu_of(amounts: &BTreeMap<String, WrittenQuantity>) -> Option<u32> {
    amounts.get("cpu").and_then(|written| millicores(&written.0))
}

fn memory_of(amounts: &BTreeMap<String, WrittenQuantity>) -> Option<u64> {
    amounts.get("memory").and_then(|written| bytes(&written.0))
}

/// Millicores of a quantity, rounded up; nothing if it is no positive quantity.
pub fn millicores(text: &str) -> Option<u32> {
    let millis = text.parse::<Quantity>().ok()?.milli()?;
    u32::try_from(millis).ok().filter(|millis| *millis > 0)
}

/// Bytes of a quantity, rounded up; nothing if it is no positive quantity.
pub fn bytes(text: &str) -> Option<u64> {
    let bytes = text.parse::<Quantity>().ok()?.whole()?;
    u64::try_from(bytes).ok().filter(|bytes| *bytes > 0)
}

/// Cores as Kubernetes writes them.
pub fn cpu_text(millis: u32) -> String {
    if millis.is_multiple_of(1000) { (millis / 1000).to_string() } else { format!("{millis}m") }
}

/// Bytes as Kubernetes writes them.
pub fn memory_text(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        _ if bytes.is_multiple_of(MIB << 10) => format!("{}Gi", bytes / (MIB << 10)),
        _ if bytes.is_multiple_of(MIB) => format!("{}Mi", bytes / MIB),
        _ if bytes.is_multiple_of(1024) => format!("{}Ki", bytes / 1024),
        _ => bytes.to_string(),
    }
}

/// An allocation as the status shows it.
pub fn shown(allocation: Allocation) -> Size {
    Size {
        cpu: cpu_text(allocation.cpu.get()),
        memory: memory_text(u64::from(allocation.memory.get()) * MIB),
    }
}

/// Bounds as an allocation, with `missing` for what is not given. Quantities were checked by the API server.
pub fn bound(amounts: Option<&Amounts>, missing: Allocation) -> Allocation {
    let cpu = amounts.and_then(|amounts| millicores(amounts.cpu.as_deref()?));
    let memory = amounts.and_then(|amounts| bytes(amounts.memory.as_deref()?));
    let mib = memory.map(|bytes| u32::try_from(bytes.div_ceil(MIB)).unwrap_or(u32::MAX));
    Allocation {
        cpu: cpu.map_or(missing.cpu, MilliCpu::new),
        memory: mib.map_or(missing.memory, Mebibytes::new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn size(cpu: (u32, u32), memory: (u64, u64)) -> ContainerSize {
        let some = |value: u32| (value > 0).then_some(value);
        let some_bytes = |mib: u64| (mib > 0).then_some(mib * MIB);
        ContainerSize {
            cpu_request: some(cpu.0),
            cpu_limit: some(cpu.1),
            memory_request: some_bytes(memory.0),
            memory_limit: some_bytes(memory.1),
        }
    }

    #[test]
    fn the_worked_example_holds() {
        let user = size((500, 1000), (64, 128));
        assert_eq!(user.allocation(), Some(Allocation::new(500, 128)));
        let resized = user.resized(Allocation::new(250, 96), None);
        assert_eq!(resized, size((250, 500), (48, 96)));
        let patch = json!({"requests": {"cpu": "250m", "memory": "48Mi"}, "limits": {"cpu": "500m", "memory": "96Mi"}});
        assert_eq!(resized.to_json(), patch);
    }

    #[test]
    fn the_users_own_size_comes_back_to_the_byte() {
        let user = ContainerSize { memory_limit: Some(100_000_001), ..size((300, 0), (64, 0)) };
        let own = user.allocation().unwrap();
        assert_eq!(user.resized(own, None), user);
    }

    #[test]
    fn a_container_without_requests_has_no_allocation() {
        assert_eq!(size((0, 0), (64, 64)).allocation(), None);
        assert_eq!(size((100, 0), (0, 0)).allocation(), None);
    }

    #[test]
    fn quantities_are_read_and_written() {
        assert_eq!(
            (millicores("1.5"), millicores("250m"), millicores("x")),
            (Some(1500), Some(250), None)
        );
        assert_eq!(
            (bytes("1Gi"), bytes("128974848"), bytes("0")),
            (Some(1 << 30), Some(128_974_848), None)
        );
        assert_eq!(
            (cpu_text(2000), memory_text(3 << 20), memory_text(5)),
            ("2".into(), "3Mi".into(), "5".into())
        );
    }

    proptest! {
        #[test]
        fn resizing_never_changes_the_qos_class(
            cpu in (1_u32..4000, 0_u32..8000), memory in (1_u64..4096, 0_u64..8192),
            to in (1_u32..16_000, 1_u32..65_536), most in proptest::option::of(1_u32..16_000),
        ) {
            let user = size((cpu.0, if cpu.1 == 0 { 0 } else { cpu.1.max(cpu.0) }), (memory.0, if memory.1 == 0 { 0 } else { memory.1.max(memory.0) }));
            let ceiling = most.map(|most| CpuCeiling::At(MilliCpu::new(most)));
            let resized = user.resized(Allocation::new(to.0, to.1), ceiling);
            prop_assert_eq!(resized.cpu_limit.is_some(), user.cpu_limit.is_some());
            prop_assert_eq!(resized.memory_limit.is_some(), user.memory_limit.is_some());
            prop_assert_eq!(resized.cpu_limit == resized.cpu_request, user.cpu_limit == user.cpu_request);
            prop_assert_eq!(resized.memory_limit == resized.memory_request, user.memory_limit == user.memory_request);
            prop_assert!(resized.cpu_limit.is_none_or(|limit| Some(limit) >= resized.cpu_request));
            prop_assert!(resized.memory_limit.is_none_or(|limit| Some(limit) >= resized.memory_request));
        }
    }
}
