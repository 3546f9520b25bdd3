//! Fitted values from the data sets, next to the committed ones.

mod arrivals;
mod profiles;
mod settings;
mod statistics;
mod tables;

use std::path::Path;

/// One number, or list of numbers, computed from the data.
pub(crate) struct Fit {
    /// Path of the committed value: `file.table.key`, members of lists by their name. Empty if the value is not
    /// committed and only informs a chosen one.
    pub(crate) key: String,
    /// Value computed from the data.
    pub(crate) fitted: Vec<f64>,
    /// How it was computed.
    pub(crate) note: String,
}

impl Fit {
    fn new(key: impl Into<String>, fitted: Vec<f64>, note: impl Into<String>) -> Self {
        Self { key: key.into(), fitted, note: note.into() }
    }

    fn informing(fitted: Vec<f64>, note: impl Into<String>) -> Self {
        Self::new("", fitted, note)
    }

    /// The committed value.
    pub(crate) fn committed(&self) -> Option<Vec<f64>> {
        let (file, path) = self.key.split_once('.')?;
        let text = match file {
            "azure_like" => include_str!("../../params/azure_like.toml"),
            _ => include_str!("../../params/demand.toml"),
        };
        let mut value = toml::Value::Table(text.parse().ok()?);
        for part in path.split('.') {
            value = match &value {
                toml::Value::Array(members) => members
                    .iter()
                    .find(|member| {
                        let name = member.get("kind").or_else(|| member.get("name"));
                        name.and_then(toml::Value::as_str) == Some(part)
                    })?
                    .clone(),
                table => table.get(part)?.clone(),
            };
        }
        let number = |value: &toml::Value| {
            value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
        };
        match &value {
            toml::Value::Array(values) => values.iter().map(number).collect(),
            single => Some(vec![number(single)?]),
        }
    }

    /// Whether the committed value equals the fitted one to three decimals.
    pub(crate) fn agrees(&self) -> bool {
        const TOLERANCE: f64 = 0.000_51;
        let Some(committed) = self.committed() else { return self.key.is_empty() };
        committed.len() == self.fitted.len()
            && self.fitted.iter().zip(committed).all(|(a, b)| (a - b).abs() <= TOLERANCE)
    }

    /// Formats the fit for the terminal.
    pub(crate) fn text(&self) -> String {
        let fitted = numbers(&self.fitted);
        match self.committed() {
            None if self.key.is_empty() => format!("informs    {fitted}\n    {}", self.note),
            None => format!("{}\n    fitted     {fitted}\n    committed  nothing", self.key),
            Some(committed) => format!(
                "{}{}  ({})\n    fitted     {fitted}\n    committed  {}",
                if self.agrees() { "" } else { "DIFFERS  " },
                self.key,
                self.note,
                numbers(&committed)
            ),
        }
    }

    /// Formats the fit for the parameter file.
    pub(crate) fn toml(&self) -> String {
        let name = self.key.rsplit('.').next().unwrap_or_default();
        match self.fitted.as_slice() {
            _ if self.key.is_empty() => format!("# {} {}", self.note, numbers(&self.fitted)),
            [single] => format!("# {}\n{name} = {}", self.key, number(*single)),
            several => format!("# {}\n{name} = [{}]", self.key, numbers(several)),
        }
    }
}

fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0');
    if text.ends_with('.') { format!("{text}0") } else { text.to_owned() }
}

fn numbers(values: &[f64]) -> String {
    values.iter().map(|&value| number(value)).collect::<Vec<_>>().join(", ")
}

/// Computes all fits.
pub(crate) fn all(data: &Path) -> Result<Vec<Fit>, String> {
    let mut fits = arrivals::fit(data)?;
    fits.extend(arrivals::fit_hours(data)?);
    fits.extend(profiles::fit_cpu_law(data)?);
    fits.extend(profiles::fit_parallel_share(data)?);
    fits.extend(profiles::fit_inputs(data)?);
    fits.extend(settings::fit_cold_starts(data)?);
    fits.extend(settings::fit_sizes(data)?);
    Ok(fits)
}
