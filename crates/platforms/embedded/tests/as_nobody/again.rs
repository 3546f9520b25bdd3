//! All stories of a test program again as the user "nobody", where nothing is left but signals, resource limits and
//! `/proc`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use libtest_mimic::{Failed, Trial};

const NOBODY: u32 = 65_534;

/// The trial; none if this process is not root.
pub(crate) fn trial() -> Option<Trial> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let user = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().nth(1));
    (user == Some("0")).then(|| Trial::test("everything_again_as_nobody", as_nobody))
}

fn as_nobody() -> Result<(), Failed> {
    // Somewhere that nobody can reach.
    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    let program = folder.path().join("program");
    fs::copy("/proc/self/exe", &program)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    let run = Command::new(&program).current_dir("/").uid(NOBODY).gid(NOBODY).output()?;
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    if run.status.success() && text.contains("test result: ok") {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&run.stderr).into_owned();
    Err(format!("as nobody:\n{text}\n{errors}").into())
}
