//! What settings may be. Wrong ones are refused by name and value before anything is allocated.

use serde_json::Value;

/// Why settings were refused. Fatal: training must not begin.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// No such setting.
    #[error("there is no setting `{key}`; there are {allowed}")]
    Unknown {
        /// What was given.
        key: String,
        /// What there is.
        allowed: String,
    },
    /// A number outside its range.
    #[error("setting `{key}` is {value}, allowed is {low} to {high}")]
    OutOfRange {
        /// The setting.
        key: String,
        /// Its value.
        value: f64,
        /// The smallest value.
        low: f64,
        /// The largest value.
        high: f64,
    },
    /// Not of the right kind.
    #[error("settings do not read: {reason}")]
    Unreadable {
        /// What is wrong.
        reason: String,
    },
    /// One number of levels per feature, and not more cells than can be counted.
    #[error(
        "setting `levels` has {found} numbers with {cells} cells; there are {features} features"
    )]
    Levels {
        /// Numbers given.
        found: usize,
        /// Their product.
        cells: f64,
        /// Numbers needed.
        features: usize,
    },
}

/// Every number of a setting lies between these two, inside lists and schedules too. Upper bounds keep a
/// slip of the finger from filling the memory.
const BOUNDS: &[(&str, f64, f64)] = &[
    ("iterations", 1.0, 1e9),
    ("steps", 1.0, 1e7),
    ("epochs", 1.0, 1e4),
    ("minibatch", 1.0, 1e6),
    ("batch", 1.0, 1e5),
    ("capacity", 1.0, 1e7),
    ("warm_up", 0.0, 1e12),
    ("train_every", 1.0, 1e9),
    ("target_every", 1.0, 1e9),
    ("baseline_steps", 0.0, 1e4),
    ("discount", 0.0, 1.0),
    ("lambda", 0.0, 1.0),
    ("clip", 0.0, 100.0),
    ("value_clip", 0.0, 1e6),
    ("value_weight", 0.0, 1e3),
    ("max_gradient_norm", 0.0, 1e6),
    ("target_kl", 0.0, 1e3),
    ("average", 0.0, 0.999_999),
    ("entropy", 0.0, 10.0),
    ("epsilon", 0.0, 1.0),
    ("learning_rate", 0.0, 10.0),
    ("baseline_rate", 0.0, 10.0),
    ("initial", -1e9, 1e9),
    ("levels", 1.0, 1e6),
    ("hidden", 1.0, 4096.0),
    ("beta1", 0.0, 0.9999),
    ("beta2", 0.0, 0.999_999),
    ("until", 1e-6, 1.0),
];

pub(super) fn check(all: &Value) -> Result<(), SettingsError> {
    all.as_object().into_iter().flatten().try_for_each(|(key, value)| check_one(key, value))
}

fn check_one(key: &str, value: &Value) -> Result<(), SettingsError> {
    let bounds = |key: &str| BOUNDS.iter().find(|(name, ..)| *name == key);
    match value {
        Value::Number(number) => {
            let value = number.as_f64().unwrap_or(f64::NAN);
            match bounds(key) {
                Some((_, low, high)) if !(*low..=*high).contains(&value) => {
                    let (low, high) = (*low, *high);
                    Err(SettingsError::OutOfRange { key: key.to_owned(), value, low, high })
                }
                _ => Ok(()),
            }
        }
        Value::Array(items) => items.iter().try_for_each(|item| check_one(key, item)),
        // Parts of a schedule are bounded by its own name, parts of others by theirs.
        Value::Object(parts) => parts.iter().try_for_each(|(part, value)| {
            check_one(if bounds(part).is_some() { part } else { key }, value)
        }),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

/// Cells are numbered by 64 bits.
pub(super) fn check_levels(levels: &[u32], features: usize) -> Result<(), SettingsError> {
    let cells: f64 = levels.iter().map(|levels| f64::from(*levels)).product();
    if levels.len() == features && cells < 1e18 {
        return Ok(());
    }
    Err(SettingsError::Levels { found: levels.len(), cells, features })
}
