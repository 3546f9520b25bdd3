//! Which platform is meant: a flag, else the environment, else `.wskprops`, else this machine.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;

use super::client::FnError;

/// What `windfall serve` listens on.
const USUAL_HOST: &str = "http://127.0.0.1:3233";

/// The platform to talk to.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConnectionArguments {
    /// Address of the platform [env: WINDFALL_APIHOST, or APIHOST in ~/.wskprops; else 127.0.0.1:3233]
    #[arg(long, value_name = "HOST", help_heading = "Platform")]
    apihost: Option<String>,
    /// Key, uuid:secret [env: WINDFALL_AUTH, or AUTH in ~/.wskprops]
    #[arg(long, value_name = "KEY", help_heading = "Platform")]
    auth: Option<String>,
}

/// Address and key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Connection {
    /// `http://host:port`, without a slash at the end.
    pub(super) host: String,
    pub(super) key: String,
}

impl ConnectionArguments {
    pub(super) fn resolve(&self) -> Result<Connection, FnError> {
        let file = properties_file().and_then(|path| std::fs::read_to_string(path).ok());
        let file = properties(&file.unwrap_or_default());
        let variable = |name: &str| std::env::var(name).ok();
        self.with(variable, &file)
    }

    fn with(
        &self,
        variable: impl Fn(&str) -> Option<String>,
        file: &BTreeMap<String, String>,
    ) -> Result<Connection, FnError> {
        let first = |flag: &Option<String>, names: [&str; 2], key: &str| {
            let from_environment = || names.iter().find_map(|name| variable(name));
            flag.clone().or_else(from_environment).or_else(|| file.get(key).cloned())
        };
        let host = first(&self.apihost, ["WINDFALL_APIHOST", "__OW_API_HOST"], "APIHOST");
        let key = first(&self.auth, ["WINDFALL_AUTH", "__OW_API_KEY"], "AUTH");
        let host = host.unwrap_or_else(|| USUAL_HOST.to_owned());
        let host = if host.contains("://") { host } else { format!("http://{host}") };
        if !host.starts_with("http://") {
            return Err(FnError::Scheme(host));
        }
        let host = host.trim_end_matches('/').trim_end_matches("/api/v1").to_owned();
        Ok(Connection { host, key: key.ok_or(FnError::NoKey)? })
    }
}

/// Where `wsk` keeps its settings.
fn properties_file() -> Option<PathBuf> {
    let named = std::env::var_os("WSK_CONFIG_FILE").map(PathBuf::from);
    named.or_else(|| Some(std::env::home_dir()?.join(".wskprops")))
}

/// Lines of the form `KEY=value`.
fn properties(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(
        flag: Option<&str>,
        environment: Option<&str>,
        file: &str,
    ) -> Result<Connection, FnError> {
        let arguments = ConnectionArguments { apihost: flag.map(str::to_owned), auth: None };
        let variable = |name: &str| match name {
            "WINDFALL_APIHOST" => environment.map(str::to_owned),
            _ => None,
        };
        arguments.with(variable, &properties(file))
    }

    #[test]
    fn a_flag_wins_over_the_environment_and_that_over_the_file() {
        let file = "# mine\nAPIHOST=http://file:1\nAUTH = a:b\nNAMESPACE=_\n";
        let host = |flag, environment| resolve(flag, environment, file).unwrap().host;
        assert_eq!(host(Some("flag:1"), Some("env:1")), "http://flag:1");
        assert_eq!(host(None, Some("env:1/")), "http://env:1");
        assert_eq!(host(None, None), "http://file:1");
        assert_eq!(resolve(None, None, "AUTH=a:b").unwrap().host, USUAL_HOST);
    }

    #[test]
    fn a_missing_key_and_a_scheme_we_do_not_speak_are_refused() {
        assert!(matches!(resolve(None, None, ""), Err(FnError::NoKey)));
        assert!(matches!(resolve(Some("https://x"), None, "AUTH=a:b"), Err(FnError::Scheme(_))));
    }
}
