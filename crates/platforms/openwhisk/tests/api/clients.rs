//! Clients that others wrote, unmodified, from the npm registry. They are installed into the target folder once; where
//! there is no node, or no registry, the tests say so and pass.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::server::{Server, settings};

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// A folder with these packages in it.
fn installed(name: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("npm").join(name);
    let ready = folder.join("ready");
    if ready.exists() {
        return Ok(folder);
    }
    std::fs::create_dir_all(&folder).map_err(|why| why.to_string())?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
        .arg(&folder)
        .args(packages);
    let output = npm.output().map_err(|why| format!("`npm` cannot be started: {why}"))?;
    if !output.status.success() {
        return Err(format!("`npm install` failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    std::fs::write(ready, packages.join("\n")).map_err(|why| why.to_string())?;
    Ok(folder)
}

/// Runs a script of `tests/clients` against a server of our own.
async fn run(script: &str, packages: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    let (address, key) = (server.address.clone(), server.key.clone());
    let (name, packages) =
        (script.to_owned(), packages.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    let ran = tokio::task::spawn_blocking(move || {
        let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
        let folder = installed(&name, &packages)?;
        let output = Command::new("node")
            .arg(scripts().join(format!("{name}.js")))
            .env("NODE_PATH", folder.join("node_modules"))
            .env("WHISK_HOST", format!("http://{address}"))
            .env("WHISK_KEY", key)
            .output();
        output.map_err(|why| format!("`node` cannot be started: {why}"))
    });
    match ran.await.unwrap() {
        Err(why) => println!("skipped: the client {script} needs node, npm and a registry ({why})"),
        Ok(output) => passed(&output),
    }
}

#[track_caller]
fn passed(output: &Output) {
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{out}");
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.trim_end().ends_with("all steps passed"), "{out}\n{err}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_npm_client_openwhisk_does_everything() {
    run("openwhisk", &["openwhisk@3.21.9"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adobes_runtime_library_deploys_and_invokes() {
    run("adobe-aio-lib-runtime", &["@adobe/aio-lib-runtime@7.3.0"]).await;
}

/// The shell block of a page.
fn shell_block(page: &str) -> String {
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(page))
            .unwrap();
    let block = page.split_once("```sh\n").and_then(|(_, rest)| rest.split_once("```"));
    block.expect("the page has a block of shell lines").0.to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_curl_lines_of_the_guide_work_as_they_stand() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), settings()).await;
    // Each line has to succeed; answers end without a newline, so that one is added.
    let script = format!(
        "set -e\ncurl() {{ command curl --fail-with-body -sS \"$@\"; echo; }}\n{}",
        shell_block("docs/guide/functions.md")
    );
    let (host, key) = (format!("http://{}", server.address), server.key.clone());
    let ran = tokio::task::spawn_blocking(move || {
        Command::new("bash")
            .args(["-c", &script])
            .env("WINDFALL_APIHOST", host)
            .env("WINDFALL_AUTH", key)
            .output()
    });
    let output = ran.await.unwrap();
    let Some(output) = output.ok().filter(|output| output.status.code() != Some(127)) else {
        println!("skipped: the lines of the guide need bash and curl");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    assert_eq!(lines[1], "{\"name\": \"curl\"}");
    assert!(lines[2].starts_with("{\"activationId\""), "{text}");
}
