//! Why load cannot be generated.

use thiserror::Error;

/// All of these are fatal: no call is sent. A call that fails is not an error but part of the report.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A number out of its range.
    #[error("{name} is {value}, allowed is {allowed}")]
    OutOfRange {
        /// What it is called.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The range.
        allowed: &'static str,
    },
    /// More calls than this program keeps results of.
    #[error(
        "the schedule has more than {most} calls; lower the rate or the duration, or cut the trace"
    )]
    TooManyCalls {
        /// How many are allowed.
        most: usize,
    },
    /// Nothing to send.
    #[error(
        "the schedule is empty: no call falls into its duration; raise the rate or the duration"
    )]
    NoCalls,
    /// Nobody to send it to.
    #[error("there is no target")]
    NoTarget,
    /// Not an address that can be called.
    #[error("URL `{url}`: {why}")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong with it, and what is allowed.
        why: String,
    },
    /// A header that cannot be sent.
    #[error("header `{header}`: {why}")]
    Header {
        /// The header.
        header: String,
        /// What is wrong with it.
        why: String,
    },
    /// An action's name that cannot be part of a URL.
    #[error(
        "action `{0}`: allowed is NAME, PACKAGE/NAME or /NAMESPACE/NAME of letters, digits and _ @ . -"
    )]
    ActionName(String),
    /// No API host or key.
    #[error("no {what} of the platform: neither {flag}, nor {variable}, nor .wskprops has it")]
    Credentials {
        /// API host or key.
        what: &'static str,
        /// The flag for it.
        flag: &'static str,
        /// The environment variable for it.
        variable: &'static str,
    },
    /// The machine refuses threads or sockets.
    #[error("the generator cannot start: {0}")]
    Start(#[source] std::io::Error),
}

impl LoadError {
    /// What to do about it.
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::TooManyCalls { .. } => Some("lower the rate or the duration, or cut the trace"),
            Self::NoCalls => Some("raise the rate or the duration"),
            Self::Credentials { .. } => {
                Some("a platform prints its API host and key when it starts")
            }
            Self::Start(_) => Some("the limits on processes and open files are in `ulimit -a`"),
            Self::OutOfRange { .. }
            | Self::NoTarget
            | Self::Url { .. }
            | Self::Header { .. }
            | Self::ActionName(_) => None,
        }
    }
}
