//! All tests again in a virtual machine that has cgroup v2 only.

use std::path::Path;
use std::process::Command;

use libtest_mimic::Trial;

use crate::place::Outcome;

pub(crate) fn trials() -> Vec<Trial> {
    let name = "guest::everything_again_on_cgroup_v2_only (takes minutes, downloads a kernel)";
    vec![Trial::test(name, in_guest).with_ignored_flag(true)]
}

fn in_guest() -> Outcome {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guest.sh");
    // One at a time: an emulated processor is slow. As nobody they run outside.
    let run = Command::new(script)
        .arg(std::env::current_exe()?)
        .args(["--test-threads", "1", "--skip", "unprivileged"])
        .output()?;
    if run.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    let errors = String::from_utf8_lossy(&run.stderr).into_owned();
    Err(format!("in the guest:\n{text}\n{errors}").into())
}
