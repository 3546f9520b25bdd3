//! All tests again as the user "nobody", where nothing is left but signals, resource limits and `/proc`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use libtest_mimic::Trial;

use crate::place::Outcome;

const NOBODY: u32 = 65_534;

pub(crate) fn trials() -> Vec<Trial> {
    if rustix::process::geteuid().is_root() {
        vec![Trial::test("unprivileged::everything_again_as_nobody", as_nobody)]
    } else {
        Vec::new()
    }
}

fn as_nobody() -> Outcome {
    // Somewhere that nobody can reach.
    let copy = std::env::temp_dir().join(format!("windfall-nobody-{}", std::process::id()));
    fs::copy("/proc/self/exe", &copy)?;
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755))?;
    let run = Command::new(&copy)
        .args(["--test-threads", "2"])
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output();
    fs::remove_file(&copy)?;
    let run = run?;
    if run.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    let errors = String::from_utf8_lossy(&run.stderr).into_owned();
    Err(format!("as nobody:\n{text}\n{errors}").into())
}
