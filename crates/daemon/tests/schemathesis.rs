//! Schemathesis against the API: requests that it derives from the description, good and bad ones. No answer may be a server
//! error, and none may be one that the description does not have.
//!
//! It is installed from PyPI into an environment below the target directory. Where that is not possible the test says so
//! and passes, unless WINDFALL_SCHEMATHESIS=required.

#![expect(clippy::print_stderr, reason = "a test says what it installs, and why it tested nothing")]

#[expect(dead_code, reason = "the browser test uses the rest of it")]
#[path = "browser/site.rs"]
mod site;

use std::path::{Path, PathBuf};
use std::process::Command;

use site::{Site, TOKEN};

const VERSION: &str = "schemathesis==4.32.5";

/// The program, installed.
fn installed() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(VERSION);
    let program = folder.join("bin").join("st");
    if program.is_file() {
        return Ok(program);
    }
    eprintln!("installing {VERSION} from PyPI");
    let run = |command: &mut Command| match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(error.to_string()),
    };
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    let pip = folder.join("bin").join("pip");
    run(Command::new(pip).args(["install", "--quiet", "--disable-pip-version-check", VERSION]))?;
    Ok(program)
}

#[test]
#[ignore = "installs a program from PyPI and sends requests for two minutes"]
fn no_answer_is_a_server_error_or_undocumented() {
    let program = match installed() {
        Ok(program) => program,
        Err(why) => {
            let is_required =
                std::env::var("WINDFALL_SCHEMATHESIS").is_ok_and(|it| it == "required");
            assert!(!is_required, "no schemathesis: {why}");
            eprintln!("not tested: schemathesis cannot be installed: {why}");
            return;
        }
    };
    let site = Site::open();
    let url = site.origin();
    let checks = "not_a_server_error,status_code_conformance,content_type_conformance,\
                  response_headers_conformance,response_schema_conformance,negative_data_rejection,\
                  unsupported_method,allow_header_conformance,ignored_auth";
    let ended = Command::new(program)
        .arg("run")
        .arg(format!("{url}/api/v1/openapi.json"))
        .args(["--url", &url, "--header", &format!("Authorization: Bearer {TOKEN}")])
        // A stream of events has no end; it has a test of its own.
        .args(["--exclude-path", "/api/v1/events", "--checks", checks])
        // The API answers 200 a second; one of these may be several.
        .args(["--rate-limit", "150/s", "--seed", "1"])
        .args(["--max-time", "120", "--request-timeout", "30", "--generation-database", "none"])
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .output()
        .expect("it can be started");
    let report = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{report}{}", String::from_utf8_lossy(&ended.stderr));
    eprintln!("{report}");
}
