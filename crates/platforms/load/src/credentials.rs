//! API host and key of an OpenWhisk-compatible platform, found where `wsk` finds them.

use std::path::PathBuf;
use std::{env, fs};

use crate::error::LoadError;

/// Where a platform is, and who calls it.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    api_host: String,
    key: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, text: &mut std::fmt::Formatter) -> std::fmt::Result {
        // The key is a secret and stays out of logs.
        text.debug_struct("Credentials").field("api_host", &self.api_host).finish_non_exhaustive()
    }
}

impl Credentials {
    /// An API host with or without scheme, and a key `uuid:secret`.
    pub fn new(api_host: &str, key: &str) -> Result<Self, LoadError> {
        let host = api_host.trim().trim_end_matches('/');
        let api_host =
            if host.contains("://") { host.to_owned() } else { format!("http://{host}") };
        Ok(Self { api_host, key: key.trim().to_owned() })
    }

    /// What is given, else the environment (`__OW_API_HOST`, `__OW_API_KEY`), else the file that `wsk` keeps
    /// (`WSK_CONFIG_FILE`, else `.wskprops` in the home folder).
    pub fn find(api_host: Option<&str>, key: Option<&str>) -> Result<Self, LoadError> {
        let properties = properties_file().and_then(|path| fs::read_to_string(path).ok());
        let from_file = |name| properties.as_deref().and_then(|text| property(text, name));
        let find = |given: Option<&str>, variable: &'static str, name| {
            given.map(str::to_owned).or_else(|| env::var(variable).ok()).or_else(|| from_file(name))
        };
        let host = find(api_host, "__OW_API_HOST", "APIHOST").ok_or(LoadError::Credentials {
            what: "API host",
            flag: "--apihost HOST:PORT",
            variable: "__OW_API_HOST",
        })?;
        let key = find(key, "__OW_API_KEY", "AUTH").ok_or(LoadError::Credentials {
            what: "key",
            flag: "--auth UUID:KEY",
            variable: "__OW_API_KEY",
        })?;
        Self::new(&host, &key)
    }

    /// The API host with its scheme.
    pub fn api_host(&self) -> &str {
        &self.api_host
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }
}

fn properties_file() -> Option<PathBuf> {
    env::var_os("WSK_CONFIG_FILE")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".wskprops")))
}

/// The value of `NAME=value` in a properties file.
fn property(text: &str, name: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim().to_owned())
        .filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_scheme_is_http() {
        assert_eq!(
            Credentials::new("localhost:3233/", "a:b").unwrap().api_host(),
            "http://localhost:3233"
        );
        assert_eq!(Credentials::new("http://h", "a:b").unwrap().api_host(), "http://h");
    }

    #[test]
    fn properties_are_read_as_wsk_writes_them() {
        let text = "APIHOST=http://localhost:3233\nAUTH = uuid:key=\nNAMESPACE=\n";
        assert_eq!(property(text, "APIHOST").as_deref(), Some("http://localhost:3233"));
        assert_eq!(property(text, "AUTH").as_deref(), Some("uuid:key="));
        assert_eq!(property(text, "NAMESPACE"), None);
        assert_eq!(property(text, "OTHER"), None);
    }

    #[test]
    fn the_key_is_not_printed() {
        let text = format!("{:?}", Credentials::new("h", "uuid:secret").unwrap());
        assert!(!text.contains("secret"), "{text}");
    }
}
