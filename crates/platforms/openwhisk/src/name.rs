//! Names of entities: `hello`, `package/hello`, `/namespace/package/hello`.
//!
//! OpenWhisk's rule for one part: 1 to 256 characters; letters, digits and `_` anywhere; `@`, `.`, `-` and blanks
//! after the first character; no blank at the end.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest part of a name, in characters.
pub const LONGEST_NAME: usize = 256;

/// The namespace that stands for the caller's own.
pub const OWN_NAMESPACE: &str = "_";

/// A text that names nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a name: allowed are 1 to 256 letters, digits, `_`, and after the first also `@`, `.`, `-` and \
     blanks, not at the end"
)]
pub struct BadName {
    /// What was given, cut to 64 characters.
    pub text: String,
}

/// One part of a name: a namespace, a package, an action, a trigger or a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityName(Box<str>);

impl EntityName {
    /// Checks `text` against the rule above.
    pub fn new(text: &str) -> Result<Self, BadName> {
        if is_name(text) {
            Ok(Self(text.into()))
        } else {
            Err(BadName { text: text.chars().take(64).collect() })
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_name(text: &str) -> bool {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut letters = text.chars();
    let Some(first) = letters.next() else { return false };
    is_word(first)
        && text.len() <= LONGEST_NAME
        && letters.all(|letter| is_word(letter) || matches!(letter, '@' | '.' | '-' | ' '))
        && !text.ends_with(' ')
}

impl fmt::Display for EntityName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for EntityName {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        Self::new(text)
    }
}

impl Serialize for EntityName {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for EntityName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::new(&text).map_err(serde::de::Error::custom)
    }
}

/// Where an entity is: namespace, package if it is in one, and its own name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FullName {
    namespace: EntityName,
    /// `name` or `package/name`: what stands behind `/actions/` in a URL, so that a lookup needs no copy.
    path: Box<str>,
}

impl FullName {
    /// An entity of a namespace, in a package or not.
    pub fn new(namespace: EntityName, package: Option<&EntityName>, name: &EntityName) -> Self {
        let path = match package {
            Some(package) => format!("{package}/{name}").into(),
            None => name.0.clone(),
        };
        Self { namespace, path }
    }

    /// `hello`, `package/hello`, `/namespace/hello` or `/namespace/package/hello`, as clients write names. A name
    /// without a namespace, and one in `_`, belongs to `own`.
    pub fn parse(text: &str, own: &EntityName) -> Result<Self, BadName> {
        let Some(absolute) = text.strip_prefix('/') else { return Self::in_namespace(own, text) };
        match absolute.split_once('/') {
            Some((OWN_NAMESPACE, path)) => Self::in_namespace(own, path),
            Some((namespace, path)) => Self::in_namespace(&EntityName::new(namespace)?, path),
            None => Err(BadName { text: text.chars().take(64).collect() }),
        }
    }

    /// `name` or `package/name` in a namespace.
    pub fn in_namespace(namespace: &EntityName, path: &str) -> Result<Self, BadName> {
        let (package, name) = match path.split_once('/') {
            Some((package, name)) => (Some(EntityName::new(package)?), name),
            None => (None, path),
        };
        Ok(Self::new(namespace.clone(), package.as_ref(), &EntityName::new(name)?))
    }

    /// The namespace.
    pub fn namespace(&self) -> &EntityName {
        &self.namespace
    }

    /// The package, if the entity is in one.
    pub fn package(&self) -> Option<&str> {
        self.path.split_once('/').map(|(package, _)| package)
    }

    /// The last part.
    pub fn name(&self) -> &str {
        self.path.split_once('/').map_or(&*self.path, |(_, name)| name)
    }

    /// `name` or `package/name`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// `namespace` or `namespace/package`: the place of the entity, as OpenWhisk writes it.
    pub fn place(&self) -> String {
        match self.package() {
            Some(package) => format!("{}/{package}", self.namespace),
            None => self.namespace.to_string(),
        }
    }

    /// `namespace/package/name`, as it stands in the annotation `path` of a record.
    pub fn joined(&self) -> String {
        format!("{}/{}", self.namespace, self.path)
    }
}

/// `/namespace/package/name`.
impl fmt::Display for FullName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/{}", self.namespace, self.path)
    }
}

impl Serialize for FullName {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FullName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let namespace = text.strip_prefix('/').and_then(|rest| rest.split('/').next());
        let own =
            EntityName::new(namespace.unwrap_or_default()).map_err(serde::de::Error::custom)?;
        Self::parse(&text, &own).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rule() {
        for good in ["a", "_", "hello world", "a@b.c-d", "9", &"x".repeat(256)] {
            assert!(EntityName::new(good).is_ok(), "{good}");
        }
        for bad in ["", " a", "a ", "-a", "a/b", "ä", "a\n", "a\0", &"x".repeat(257)] {
            assert!(EntityName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_four_forms_of_a_name_are_one() {
        let guest = EntityName::new("guest").unwrap();
        let parse = |text: &str| FullName::parse(text, &guest);
        assert_eq!(parse("hello").unwrap().to_string(), "/guest/hello");
        assert_eq!(parse("demo/hello").unwrap(), parse("/_/demo/hello").unwrap());
        let other = parse("/other/demo/hello").unwrap();
        assert_eq!((other.package(), other.name()), (Some("demo"), "hello"));
        assert_eq!(
            (other.place(), other.joined()),
            ("other/demo".into(), "other/demo/hello".into())
        );
        for bad in ["", "/", "/guest", "a/b/c", "/a/b/c/d", "/../x"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
