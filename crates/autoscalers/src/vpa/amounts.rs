//! CPU in millicores and memory in bytes, as integers, converted from floats as upstream.
//!
//! ```text
//!  float ─► above 1e14: 1e14 ─► below 0: 0 ─► else truncated
//! ```
//!
//! 0.1103 cores are 110.3 millicores and become 110; a margin of 15 % on them is 16.5 and becomes 16.

/// Largest amount, `MaxResourceAmount` upstream.
const MAX_AMOUNT: f64 = 1e14;

/// A resource of containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// `cpu`.
    Cpu,
    /// `memory`.
    Memory,
}

impl Resource {
    /// Both, in order.
    pub const ALL: [Self; 2] = [Self::Cpu, Self::Memory];
}

/// An amount of each resource, or `None` if it is not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// CPU in millicores.
    pub cpu_millicores: Option<i64>,
    /// Memory in bytes.
    pub memory_bytes: Option<i64>,
}

impl Resources {
    /// Both resources.
    pub fn both(cpu_millicores: i64, memory_bytes: i64) -> Self {
        Self { cpu_millicores: Some(cpu_millicores), memory_bytes: Some(memory_bytes) }
    }

    /// Amount of one resource.
    pub fn of(self, resource: Resource) -> Option<i64> {
        match resource {
            Resource::Cpu => self.cpu_millicores,
            Resource::Memory => self.memory_bytes,
        }
    }

    /// Applies `change` to each amount.
    pub fn map(self, mut change: impl FnMut(Resource, i64) -> i64) -> Self {
        Self {
            cpu_millicores: self.cpu_millicores.map(|amount| change(Resource::Cpu, amount)),
            memory_bytes: self.memory_bytes.map(|amount| change(Resource::Memory, amount)),
        }
    }

    /// Raises to `min`, then lowers to `max`; an amount of 0 in either means no bound.
    pub fn fitted(self, min: Self, max: Self) -> Self {
        self.map(|resource, amount| {
            let least = min.of(resource).filter(|bound| *bound != 0).unwrap_or(amount);
            let most = max.of(resource).filter(|bound| *bound != 0).unwrap_or(i64::MAX);
            amount.max(least).min(most)
        })
    }

    /// Amounts of `self`, or of `other` if not set.
    pub fn or(self, other: Self) -> Self {
        Self {
            cpu_millicores: self.cpu_millicores.or(other.cpu_millicores),
            memory_bytes: self.memory_bytes.or(other.memory_bytes),
        }
    }
}

/// Converts a float to an amount. NaN becomes 0.
pub(super) fn amount(value: f64) -> i64 {
    value.clamp(0.0, MAX_AMOUNT) as i64
}

/// `amount` times `factor`, as an amount.
pub(super) fn scale(amount_: i64, factor: f64) -> i64 {
    amount(amount_ as f64 * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_truncated_and_bounded() {
        assert_eq!(amount(110.3), 110);
        assert_eq!(scale(110, 0.15), 16);
        assert_eq!((amount(-3.0), amount(1e20), amount(f64::NAN)), (0, 100_000_000_000_000, 0));
    }

    #[test]
    fn the_upper_bound_wins_and_zero_means_no_bound() {
        let fitted = |min, max| {
            Resources::both(100, 100).fitted(Resources::both(min, 0), Resources::both(max, 0))
        };
        assert_eq!(fitted(300, 200), Resources::both(200, 100));
        assert_eq!(fitted(300, 0), Resources::both(300, 100));
        assert_eq!(fitted(0, 50), Resources::both(50, 100));
    }
}
