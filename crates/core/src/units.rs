//! Quantities that cross borders. Integers, so that ledgers balance exactly: a node's grants are added
//! and taken away millions of times and must come back to zero.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use serde::{Deserialize, Deserializer, Serialize};

/// Thousandths of a CPU core.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MilliCpu(u32);

/// Memory in MiB.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Mebibytes(u32);

/// A number of instances.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Instances(u32);

/// A number that is not a quantity: NaN, negative, or too large for the unit.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{value} is not an amount of {unit}; allowed is 0 to {max}")]
pub struct Nonsense {
    /// What was asked for.
    pub value: f64,
    /// The unit it was meant in.
    pub unit: &'static str,
    /// The largest amount that can be expressed.
    pub max: f64,
}

/// `value` as an integer amount, rounded up: a decision for 0.3 MiB must not become 0.
///
/// An amount that went through floating point comes back as itself: 1.001 cores times 1000 is a hair
/// more or less than 1001, and a hair is not a thousandth of a core.
#[inline]
fn whole(value: f64, unit: &'static str) -> Result<u32, Nonsense> {
    let max = f64::from(u32::MAX);
    // Written so that NaN fails the comparison.
    if value >= 0.0 && value <= max {
        // 1650m is 1.65 cores and must come back as 1650m, whatever the last bit of the product says.
        // By casts, since rounding is a call into the maths library and this is done for every call.
        let below = value as u32;
        let is_hair = value - f64::from(below) <= value * 1e-12;
        let above = below.saturating_add(1);
        Ok(if is_hair { below } else { above })
    } else {
        Err(Nonsense { value, unit, max })
    }
}

macro_rules! amount {
    ($name:ident, $suffix:literal) => {
        impl $name {
            /// None of it.
            pub const ZERO: Self = Self(0);
            /// The largest amount that can be expressed.
            pub const MAX: Self = Self(u32::MAX);

            /// The plain number, in the unit of the type.
            pub const fn get(self) -> u32 {
                self.0
            }

            /// The difference, or nothing if `other` is larger.
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl SubAssign for $name {
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", self.0, $suffix)
            }
        }
    };
}

amount!(MilliCpu, "m");
amount!(Mebibytes, " MiB");
amount!(Instances, "");

impl MilliCpu {
    /// `millis` thousandths of a core.
    pub const fn new(millis: u32) -> Self {
        Self(millis)
    }

    /// `cores` rounded up to the next thousandth, refused if NaN, negative or absurd.
    pub fn from_cores(cores: f64) -> Result<Self, Nonsense> {
        whole(cores * 1000.0, "millicores").map(Self)
    }

    /// In cores, for display and statistics.
    pub fn cores(self) -> f64 {
        f64::from(self.0) * 1e-3
    }
}

impl Mebibytes {
    /// `mib` MiB.
    pub const fn new(mib: u32) -> Self {
        Self(mib)
    }

    /// `mib` rounded up to the next whole MiB, refused if NaN, negative or absurd.
    pub fn from_mib(mib: f64) -> Result<Self, Nonsense> {
        whole(mib, "MiB").map(Self)
    }

    /// As a real number of MiB.
    pub fn mib(self) -> f64 {
        f64::from(self.0)
    }
}

impl Instances {
    /// `count` instances.
    pub const fn new(count: u32) -> Self {
        Self(count)
    }

    /// `count` rounded up, refused if NaN, negative or absurd.
    pub fn from_count(count: f64) -> Result<Self, Nonsense> {
        whole(count, "instances").map(Self)
    }
}

/// What an idle instance is worth per MiB: an order among functions, kept as whole trillionths so that
/// plans can be compared for equality.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Worth(u64);

impl Worth {
    /// `amount`, refused if NaN, negative or above a million.
    pub fn from_amount(amount: f64) -> Result<Self, Nonsense> {
        let max = 1e6;
        if amount >= 0.0 && amount <= max {
            Ok(Self((amount * 1e12) as u64))
        } else {
            Err(Nonsense { value: amount, unit: "worth", max })
        }
    }
}

/// The most CPU that may be used, beside the amount that is guaranteed.
///
/// A kernel has two numbers for CPU. The **guarantee** is a weight: what is used at least while cores are short. It is
/// work-conserving, so idle cores may be used beyond it, and a group that wakes up has its share back within one
/// scheduling decision. The **ceiling** is a quota: what is never exceeded, even while cores are idle. A group of
/// 500m with a ceiling `At(2000m)` gets half a core on a full node and two cores on an idle one; with `AtGrant` it gets
/// half a core on both.
///
/// A policy proposes `CpuCeiling<f64>` in cores; a plan holds the typed amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuCeiling<T = MilliCpu> {
    /// As much as is guaranteed, no more.
    #[default]
    AtGrant,
    /// This much, or the guarantee where that is more.
    At(T),
    /// Whatever is idle.
    Unlimited,
}

impl<T> CpuCeiling<T> {
    /// Whether the ceiling equals the guarantee, which is the default and not written to journals.
    pub const fn is_at_grant(&self) -> bool {
        matches!(self, Self::AtGrant)
    }

    /// The same ceiling in other units, or the first error.
    pub fn try_map<U, E>(self, change: impl FnOnce(T) -> Result<U, E>) -> Result<CpuCeiling<U>, E> {
        Ok(match self {
            Self::AtGrant => CpuCeiling::AtGrant,
            Self::At(amount) => CpuCeiling::At(change(amount)?),
            Self::Unlimited => CpuCeiling::Unlimited,
        })
    }
}

impl CpuCeiling {
    /// The quota for a group that is guaranteed `grant`; none if it may use whatever is idle.
    pub fn limit(self, grant: MilliCpu) -> Option<MilliCpu> {
        match self {
            Self::AtGrant => Some(grant),
            Self::At(most) => Some(most.max(grant)),
            Self::Unlimited => None,
        }
    }
}

impl fmt::Display for CpuCeiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtGrant => write!(f, "at the guarantee"),
            Self::At(most) => write!(f, "{most}"),
            Self::Unlimited => write!(f, "unlimited"),
        }
    }
}

/// CPU and memory as a policy answered them: plain numbers that nobody has checked, NaN included.
///
/// Written as `{"cores":0.5,"mib":256.0}`. What is not finite is written as null and read back as NaN; the pair
/// `[0.5,256.0]` of older journals is read as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PlainSize {
    /// CPU, cores.
    pub cores: f64,
    /// Memory, MiB.
    pub mib: f64,
}

impl PlainSize {
    /// Whether both are numbers.
    pub fn is_finite(self) -> bool {
        self.cores.is_finite() && self.mib.is_finite()
    }
}

impl From<Allocation> for PlainSize {
    fn from(amount: Allocation) -> Self {
        Self { cores: amount.cpu.cores(), mib: amount.memory.mib() }
    }
}

impl<'de> Deserialize<'de> for PlainSize {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Named { cores: Option<f64>, mib: Option<f64> },
            Pair(Option<f64>, Option<f64>),
        }
        let (Written::Named { cores, mib } | Written::Pair(cores, mib)) =
            Written::deserialize(from)?;
        Ok(Self { cores: cores.unwrap_or(f64::NAN), mib: mib.unwrap_or(f64::NAN) })
    }
}

/// CPU and memory together: what a user reserves, what a call is granted, what a node has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Allocation {
    /// CPU in thousandths of a core.
    pub cpu: MilliCpu,
    /// Memory in MiB.
    pub memory: Mebibytes,
}

impl Allocation {
    /// Nothing of either.
    pub const ZERO: Self = Self { cpu: MilliCpu::ZERO, memory: Mebibytes::ZERO };

    /// `cpu` thousandths of a core and `memory` MiB.
    pub const fn new(cpu: u32, memory: u32) -> Self {
        Self { cpu: MilliCpu::new(cpu), memory: Mebibytes::new(memory) }
    }

    /// Whether both resources fit into `room`.
    pub fn fits(self, room: Self) -> bool {
        // Both at once: which of the two is short is anybody's guess, and a wrong guess costs more.
        (self.cpu <= room.cpu) & (self.memory <= room.memory)
    }

    /// The smaller of the two, resource by resource.
    pub fn min(self, other: Self) -> Self {
        Self { cpu: self.cpu.min(other.cpu), memory: self.memory.min(other.memory) }
    }

    /// The larger of the two, resource by resource.
    pub fn max(self, other: Self) -> Self {
        Self { cpu: self.cpu.max(other.cpu), memory: self.memory.max(other.memory) }
    }

    /// Its CPU alone, and its memory alone.
    pub fn apart(self) -> (Self, Self) {
        (Self { memory: Mebibytes::ZERO, ..self }, Self { cpu: MilliCpu::ZERO, ..self })
    }

    /// What is left after taking `other` away, nothing where `other` is larger.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(other.cpu),
            memory: self.memory.saturating_sub(other.memory),
        }
    }
}

impl Add for Allocation {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { cpu: self.cpu + other.cpu, memory: self.memory + other.memory }
    }
}

impl AddAssign for Allocation {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Allocation {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self { cpu: self.cpu - other.cpu, memory: self.memory - other.memory }
    }
}

impl SubAssign for Allocation {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl fmt::Display for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} / {}", self.cpu, self.memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_rounded_up_to_whole_units() {
        assert_eq!(MilliCpu::from_cores(0.2501), Ok(MilliCpu::new(251)));
        assert_eq!(Mebibytes::from_mib(0.3), Ok(Mebibytes::new(1)));
    }

    #[test]
    fn an_amount_survives_the_way_through_floating_point() {
        for millis in (0..100_000).chain([u32::MAX - 1]) {
            let cpu = MilliCpu::new(millis);
            assert_eq!(MilliCpu::from_cores(cpu.cores()), Ok(cpu));
        }
    }

    #[test]
    fn nonsense_is_refused_and_named() {
        for value in [f64::NAN, -0.1, f64::INFINITY, 1e12] {
            assert!(MilliCpu::from_cores(value).is_err(), "{value}");
        }
        let message = Mebibytes::from_mib(-3.0).unwrap_err().to_string();
        assert_eq!(message, "-3 is not an amount of MiB; allowed is 0 to 4294967295");
    }

    #[test]
    fn worth_keeps_the_order_of_small_numbers() {
        let worth = |amount| Worth::from_amount(amount).unwrap();
        assert!(worth(1e-6) < worth(1.1e-6) && worth(0.0) == Worth::default());
        assert!(Worth::from_amount(f64::NAN).is_err() && Worth::from_amount(-1.0).is_err());
    }

    #[test]
    fn a_ceiling_is_never_below_the_guarantee() {
        let grant = MilliCpu::new(500);
        assert_eq!(CpuCeiling::AtGrant.limit(grant), Some(grant));
        assert_eq!(CpuCeiling::At(MilliCpu::new(100)).limit(grant), Some(grant));
        assert_eq!(CpuCeiling::At(MilliCpu::new(900)).limit(grant), Some(MilliCpu::new(900)));
        assert_eq!(CpuCeiling::Unlimited.limit(grant), None);
        let proposed = CpuCeiling::At(f64::NAN);
        assert!(proposed.try_map(MilliCpu::from_cores).is_err());
    }

    #[test]
    fn a_plain_size_survives_json_and_reads_the_pair_of_old() {
        let read = |text: &str| serde_json::from_str::<PlainSize>(text).unwrap();
        let size = PlainSize { cores: 0.5, mib: 256.0 };
        let text = serde_json::to_string(&size).unwrap();
        assert_eq!(text, r#"{"cores":0.5,"mib":256.0}"#);
        assert_eq!((read(&text), read("[0.5,256.0]")), (size, size));
        let odd = read(&serde_json::to_string(&PlainSize { cores: f64::NAN, mib: 1.0 }).unwrap());
        assert!(odd.cores.is_nan() && odd.mib == 1.0 && !odd.is_finite());
    }

    #[test]
    fn an_allocation_fits_only_if_both_resources_do() {
        let room = Allocation::new(1000, 512);
        assert!(Allocation::new(1000, 512).fits(room));
        assert!(!Allocation::new(1001, 1).fits(room));
        assert!(!Allocation::new(1, 513).fits(room));
    }
}
