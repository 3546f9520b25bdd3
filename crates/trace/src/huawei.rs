//! Huawei's 5-minute tables: requests of the busiest functions, with their users' reservations.
//!
//! A column is named `<function>---<user>---<pool>-<CPU millicores>-<memory MB>`. Some columns of the published
//! tables appear twice with the same values; the second one is dropped, with a notice.

use std::io::Read;

use windfall_core::{Allocation, Duration};

use crate::error::{TraceError, shortened};
use crate::table::{Row, Table};

/// Maximum number of cells: 1 GB in memory.
const MAX_CELLS: usize = 1 << 28;

/// One function's requests.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name of the column.
    pub name: String,
    /// The user that it belongs to.
    pub user: String,
    /// The user's reservation.
    pub reservation: Allocation,
    /// Requests per bin.
    pub requests: Vec<f32>,
}

/// A table of requests.
#[derive(Clone, Debug)]
pub struct Requests {
    /// Length of a bin.
    pub bin: Duration,
    /// Functions in file order, without second copies.
    pub series: Vec<Series>,
    /// Notices about irregularities and how they were handled.
    pub notices: Vec<String>,
}

/// Reads a table of requests.
pub fn read_requests(reader: impl Read, file: &str) -> Result<Requests, TraceError> {
    let mut table = Table::open(reader, file)?;
    if table.header()[0] != "date" {
        return Err(table.missing("date"));
    }
    let mut series = Vec::new();
    for name in &table.header()[1..] {
        series.push(read_name(name, file)?);
    }
    let mut clock = Clock { last: None, step: None };
    let mut bins = 0usize;
    while let Some(row) = table.next_row()? {
        clock.tick(&row, file)?;
        bins += 1;
        if bins * series.len() > MAX_CELLS {
            let (file, limit) = (file.into(), MAX_CELLS as u64);
            return Err(TraceError::TooLarge { file, limit, what: "cells" });
        }
        for (place, one) in series.iter_mut().enumerate() {
            one.requests.push(row.number(place + 1)? as f32);
        }
    }
    if series.is_empty() || bins == 0 {
        return Err(TraceError::Empty { file: file.into() });
    }
    let (series, notices) = without_copies(series, file)?;
    // The bin length of a table with one row is unknown.
    let bin = Duration::from_secs(clock.step.unwrap_or(300));
    Ok(Requests { bin, series, notices })
}

/// Drops series that appear a second time with the same values.
fn without_copies(
    series: Vec<Series>,
    file: &str,
) -> Result<(Vec<Series>, Vec<String>), TraceError> {
    let mut kept: Vec<Series> = Vec::new();
    let mut notices = Vec::new();
    for one in series {
        match kept.iter().find(|other| other.name == one.name) {
            None => kept.push(one),
            Some(other) if other.requests == one.requests => {
                notices.push(format!("{file}: second copy of column {} dropped", one.name));
            }
            Some(_) => {
                let function = shortened(&one.name);
                return Err(TraceError::DuplicateFunction { file: file.into(), line: 1, function });
            }
        }
    }
    Ok((kept, notices))
}

fn read_name(name: &str, file: &str) -> Result<Series, TraceError> {
    let parse = || {
        let mut parts = name.split("---");
        let (_, user, pool) = (parts.next()?, parts.next()?, parts.next()?);
        let mut sizes = pool.rsplitn(3, '-');
        let memory: u32 = sizes.next()?.parse().ok()?;
        let cpu: u32 = sizes.next()?.parse().ok()?;
        let sensible = (1..=1_000_000).contains(&cpu) && (1..=16_000_000).contains(&memory);
        (sensible && parts.next().is_none()).then(|| Series {
            name: name.to_owned(),
            user: user.to_owned(),
            reservation: Allocation::new(cpu, memory),
            requests: Vec::new(),
        })
    };
    parse().ok_or_else(|| TraceError::BadValue {
        file: file.into(),
        line: 1,
        column: shortened(name),
        value: shortened(name),
        allowed: "<function>---<user>---<pool>-<CPU millicores>-<memory MB>",
    })
}

/// Checks that rows are in order and evenly spaced.
struct Clock {
    last: Option<(u64, Box<str>)>,
    step: Option<u64>,
}

impl Clock {
    fn tick(&mut self, row: &Row<'_>, file: &str) -> Result<(), TraceError> {
        let text = row.text(0);
        let now =
            seconds_of(text).ok_or_else(|| row.refused(0, "a date like 2016-07-01 00:05:00"))?;
        let wrong = |previous: &str, rule| TraceError::OutOfOrder {
            file: file.into(),
            line: row.line,
            value: shortened(text),
            previous: previous.into(),
            rule,
        };
        if let Some((before, previous)) = &self.last {
            let step = now.checked_sub(*before).filter(|&step| step > 0);
            let step = step.ok_or_else(|| wrong(previous, "rows must be in order of time"))?;
            let fits = step % 60 == 0 && step <= 86_400;
            if !fits || self.step.is_some_and(|expected| expected != step) {
                return Err(wrong(previous, "rows must be evenly spaced by whole minutes"));
            }
            self.step = Some(step);
        }
        self.last = Some((now, text.into()));
        Ok(())
    }
}

/// Seconds since the year 0 of `2016-07-01 00:05:00`; only differences matter.
fn seconds_of(text: &str) -> Option<u64> {
    let (date, time) = text.split_once([' ', 'T'])?;
    let numbers = |text: &str, separator: char| -> Option<[u64; 3]> {
        let mut parts = text.split(separator).map(|part| part.parse::<u64>().ok());
        let numbers = [parts.next()??, parts.next()??, parts.next()??];
        parts.next().is_none().then_some(numbers)
    };
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let sensible = (1..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !sensible {
        return None;
    }
    // Days before the month, with the year beginning in March so that the leap day comes last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_right_across_months_and_leap_years() {
        let seconds = |text| seconds_of(text).unwrap();
        assert_eq!(seconds("2016-03-01 00:00:00") - seconds("2016-02-28 00:00:00"), 2 * 86_400);
        assert_eq!(seconds("2017-01-01 00:00:00") - seconds("2016-12-31 23:55:00"), 300);
        assert_eq!(seconds_of("2016-13-01 00:00:00"), None);
        assert_eq!(seconds_of("yesterday"), None);
    }
}
