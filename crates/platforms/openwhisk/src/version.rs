//! Versions of entities: `0.0.1`, and one more with every update.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Three numbers; an update raises the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    major: u32,
    minor: u32,
    patch: u32,
}

/// A text that is no version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a version; allowed are three numbers such as 0.0.1")]
pub struct BadVersion(String);

impl Version {
    /// What a new entity has.
    pub const FIRST: Self = Self { major: 0, minor: 0, patch: 1 };

    /// The version after an update.
    #[must_use]
    pub fn next(self) -> Self {
        Self { patch: self.patch.saturating_add(1), ..self }
    }

    /// What an entity that is written has: the version that came along, else the one after `old`.
    pub(crate) fn of_written(written: Option<Self>, old: Option<Self>) -> Self {
        written.or_else(|| old.map(Self::next)).unwrap_or(Self::FIRST)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for Version {
    type Err = BadVersion;
    fn from_str(text: &str) -> Result<Self, BadVersion> {
        let bad = || BadVersion(text.chars().take(32).collect());
        let parts: Vec<u32> =
            text.split('.').map(str::parse).collect::<Result<_, _>>().map_err(|_| bad())?;
        let [major, minor, patch] = parts[..] else { return Err(bad()) };
        Ok(Self { major, minor, patch })
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_raises_the_last_number() {
        assert_eq!(Version::FIRST.next().to_string(), "0.0.2");
        assert_eq!("1.2.3".parse::<Version>().unwrap().next().to_string(), "1.2.4");
        assert!("1.2".parse::<Version>().is_err() && "1.2.x".parse::<Version>().is_err());
    }
}
