//! Kinds of actions: which runtime they name, and for built-in ones which function.

use thiserror::Error;

use crate::builtin::{Builtin, builtins};
use crate::runtime::Runtime;

/// A parsed kind, e.g. `python:3` or `builtin:merge-sort`.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The runtime that serves it.
    pub runtime: Runtime,
    /// The function that the kind itself names; `builtin` alone takes the name from the action's code.
    pub builtin: Option<&'static Builtin>,
}

/// Fatal: no runtime here serves this kind.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("kind `{kind}` is not served here, allowed is {allowed}")]
pub struct UnknownKind {
    /// The kind that was asked for.
    pub kind: String,
    /// The kinds there are.
    pub allowed: String,
}

impl Kind {
    /// Parses a kind. The version after the colon may be `default` or start with the major version: the interpreter
    /// is the one of this machine.
    pub fn parse(kind: &str) -> Result<Self, UnknownKind> {
        let (family, version) = kind.split_once(':').unwrap_or((kind, "default"));
        let has_version = |major: &str| {
            version == "default" || version == major || version.starts_with(&format!("{major}."))
        };
        let parsed = match family {
            "python" if has_version("3") => Some((Runtime::Python, None)),
            "nodejs" if is_node_version(version) => Some((Runtime::Node, None)),
            "builtin" if version == "default" => Some((Runtime::Builtin, None)),
            "builtin" => Builtin::named(version).map(|named| (Runtime::Builtin, Some(named))),
            _ => None,
        };
        parsed
            .map(|(runtime, builtin)| Self { runtime, builtin })
            .ok_or_else(|| UnknownKind { kind: kind.to_owned(), allowed: allowed() })
    }
}

fn is_node_version(version: &str) -> bool {
    version == "default" || version.parse::<u32>().is_ok_and(|major| (16..=99).contains(&major))
}

fn allowed() -> String {
    let names: Vec<&str> = builtins().iter().map(|builtin| builtin.name).collect();
    format!("python:3, nodejs:20, builtin or builtin:NAME with NAME one of {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_name_a_runtime() {
        let runtime = |kind| Kind::parse(kind).map(|kind| kind.runtime);
        assert_eq!(runtime("python:3"), Ok(Runtime::Python));
        assert_eq!(runtime("python:3.11"), Ok(Runtime::Python));
        assert_eq!(runtime("python:default"), Ok(Runtime::Python));
        assert_eq!(runtime("nodejs:20"), Ok(Runtime::Node));
        assert_eq!(runtime("builtin"), Ok(Runtime::Builtin));
        for unknown in
            ["python:2", "python:30", "nodejs:x", "php:8", "", "builtin:", "builtin:none"]
        {
            assert!(runtime(unknown).is_err(), "{unknown}");
        }
    }

    #[test]
    fn a_built_in_kind_names_its_function() {
        let kind = Kind::parse("builtin:hello").unwrap();
        assert_eq!(kind.builtin.unwrap().name, "hello");
        assert_eq!(kind.builtin.unwrap().kind(), "builtin:hello");
    }

    #[test]
    fn the_error_lists_what_there_is() {
        let message = Kind::parse("php:8").unwrap_err().to_string();
        assert!(message.starts_with("kind `php:8` is not served here, allowed is python:3"));
        assert!(message.contains("hello"));
    }
}
