//! `windfall top`: a running manager in the terminal.

mod screen;

use std::io::{IsTerminal, Write, stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use crossterm::event::{Event, KeyCode, KeyModifiers, poll, read};
use crossterm::{cursor, execute, terminal};
use serde_json::{Value, json};
use windfall_daemon::client::get;

use crate::arguments::ObjectFormat;
use crate::output::print_json;
use screen::Screen;

/// Watch a running manager in the terminal.
///
/// Keys: / filters by name, s changes the order, q quits. With --format json, or where the
/// output is no terminal, the same data is printed once.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Address of the manager, as `windfall up` prints it
    #[arg(long, default_value = "http://127.0.0.1:7117")]
    url: String,
    /// Order of the functions
    #[arg(long, value_enum, default_value_t)]
    sort: Order,
    /// Only functions whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: ObjectFormat,
    /// Print it once and end
    #[arg(long)]
    once: bool,
}

/// Order of the functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// Most calls first
    #[default]
    Calls,
    /// By name
    Name,
    /// Violated objectives first
    Slo,
    /// Most saved first
    Saved,
    /// Slowest first
    P99,
    /// Most safeguard trips first
    Trips,
}

impl Order {
    const ALL: [Self; 6] =
        [Self::Calls, Self::Name, Self::Slo, Self::Saved, Self::P99, Self::Trips];

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Name => "name",
            Self::Slo => "slo",
            Self::Saved => "saved",
            Self::P99 => "p99",
            Self::Trips => "trips",
        }
    }

    fn next(self) -> Self {
        let place = Self::ALL.iter().position(|one| *one == self).unwrap_or(0);
        Self::ALL[(place + 1) % Self::ALL.len()]
    }
}

/// What is watched.
struct Watch {
    url: String,
    order: Order,
    filter: String,
    /// Whether keys go into the filter.
    is_typing: bool,
}

impl Watch {
    fn load(&self) -> anyhow::Result<Value> {
        let status = get(&self.url, "/api/v1/status")?;
        let search: String = self.filter.chars().map(escape).collect();
        let path =
            format!("/api/v1/functions?sort={}&search={search}&limit=500", self.order.word());
        let functions = get(&self.url, &path)?;
        Ok(json!({ "status": status, "functions": functions["functions"] }))
    }

    /// Handles a key; false when it is time to leave.
    fn press(&mut self, key: KeyCode) -> bool {
        match (self.is_typing, key) {
            (true, KeyCode::Enter) => self.is_typing = false,
            (true, KeyCode::Esc) => {
                self.is_typing = false;
                self.filter.clear();
            }
            (true, KeyCode::Backspace) => {
                self.filter.pop();
            }
            (true, KeyCode::Char(letter)) => self.filter.push(letter),
            (false, KeyCode::Char('/')) => self.is_typing = true,
            (false, KeyCode::Char('s')) => self.order = self.order.next(),
            (false, KeyCode::Char('q') | KeyCode::Esc) => return false,
            _ => {}
        }
        true
    }
}

/// Names have letters, digits and dashes; anything else is sent as a percent code.
fn escape(letter: char) -> String {
    if letter.is_ascii_alphanumeric() || "-_.".contains(letter) {
        return letter.to_string();
    }
    letter.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect()
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut watch = Watch {
        url: arguments.url.clone(),
        order: arguments.sort,
        filter: arguments.filter.clone(),
        is_typing: false,
    };
    let data = watch.load()?;
    if arguments.format == ObjectFormat::Json {
        print_json(&data)?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.once || !stdout().is_terminal() {
        let screen = Screen { width: 140, height: 1000, note: String::new() };
        crate::output::print(&screen.draw(&data, &watch.filter, watch.order))?;
        return Ok(ExitCode::SUCCESS);
    }
    terminal::enable_raw_mode()?;
    execute!(stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
    let watched = follow(&mut watch, data);
    execute!(stdout(), cursor::Show, terminal::LeaveAlternateScreen)?;
    terminal::disable_raw_mode()?;
    watched?;
    Ok(ExitCode::SUCCESS)
}

fn follow(watch: &mut Watch, mut data: Value) -> anyhow::Result<()> {
    let mut problem = String::new();
    loop {
        let (width, height) = terminal::size()?;
        let typing = if watch.is_typing { "▌" } else { "" };
        let note = format!("/{}{typing}   s order   q quit   {problem}", watch.filter);
        let screen = Screen { width: width as usize, height: height as usize, note };
        let text = screen.draw(&data, &watch.filter, watch.order).replace('\n', "\x1b[K\r\n");
        let mut out = stdout().lock();
        write!(out, "\x1b[H{text}\x1b[J")?;
        out.flush()?;
        drop(out);
        let until = Instant::now() + Duration::from_secs(1);
        while poll(until.saturating_duration_since(Instant::now()))? {
            if let Event::Key(key) = read()? {
                let is_break =
                    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
                if is_break || !watch.press(key.code) {
                    return Ok(());
                }
                break;
            }
        }
        match watch.load() {
            Ok(next) => {
                data = next;
                problem.clear();
            }
            Err(error) => problem = error.to_string(),
        }
    }
}
