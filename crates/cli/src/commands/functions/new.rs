//! `windfall fn new`: a first function.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, ValueEnum};

use crate::output::{print, write_whole};

/// Arguments of `fn new`.
#[derive(Args)]
pub(super) struct Arguments {
    /// Name of the function and of its file
    name: String,
    /// Language
    #[arg(long, value_enum, default_value_t)]
    language: Language,
    /// Write over a file that is there
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum Language {
    /// NAME.py
    #[default]
    Python,
    /// NAME.js
    Node,
}

const PYTHON: &str = r#"def main(args):
    """Gets the parameters of a call and returns a dictionary."""
    name = args.get("name", "stranger")
    print(f"greeting {name}")
    return {"greeting": f"hello {name}"}
"#;

const NODE: &str = r#"/** Gets the parameters of a call and returns an object, or a promise of one. */
function main(args) {
  const name = args.name || 'stranger'
  console.log(`greeting ${name}`)
  return { greeting: `hello ${name}` }
}

exports.main = main
"#;

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { name, language, force } = arguments;
    if windfall_openwhisk::EntityName::new(name).is_err() || name.starts_with('.') {
        bail!(
            "`{name}` cannot be the name of a function; allowed are letters, digits, `_`, `-`, `.` and `@`"
        );
    }
    let (ending, text) = match language {
        Language::Python => ("py", PYTHON),
        Language::Node => ("js", NODE),
    };
    let path = PathBuf::from(format!("{name}.{ending}"));
    if path.exists() && !force {
        bail!("{} is there already; --force writes over it", path.display());
    }
    write_whole(&path, text)?;
    let path = path.display();
    print(&format!(
        "{path}\n  windfall fn deploy {path} --watch\n  windfall fn invoke {name} --param name=you\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}
