//! A folder of functions, and functions deployed to a platform that this process has started.

use std::net::SocketAddr;
use std::path::Path;

use hyper::Method;
use serde_json::{Value, json};

use super::client::{Client, FnError, encoded};
use super::connection::Connection;
use super::deploy::{Source, kind_of};

/// A function of a folder.
#[derive(Debug, PartialEq)]
pub(crate) struct FolderFunction {
    /// Its name: that of the file.
    pub(crate) name: String,
    /// What deploys it.
    pub(crate) action: Value,
    /// What it is called with: the object in the file beside it that ends in `.json`, else an empty one.
    pub(crate) parameters: Value,
}

/// Every source file (.py, .js) of `folder`, by name.
pub(crate) fn read(folder: &Path) -> Result<Vec<FolderFunction>, FnError> {
    let shown = folder.display();
    let problem = |why: std::io::Error| FnError::Source(format!("{shown}: {why}"));
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(problem)? {
        let path = entry.map_err(problem)?.path();
        let ending = path.extension().map(|ending| ending.to_string_lossy().into_owned());
        if path.is_file() && ending.as_deref().is_some_and(|ending| kind_of(ending).is_some()) {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(FnError::Source(format!(
            "{shown} has no source file; allowed are .py and .js"
        )));
    }
    paths.iter().map(|path| function(path)).collect()
}

fn function(path: &Path) -> Result<FolderFunction, FnError> {
    let source = Source::of_file(path, None, None)?;
    let action = json!({ "exec": { "kind": source.kind, "code": source.read()? } });
    let beside = path.with_extension("json");
    let parameters = match std::fs::read_to_string(&beside) {
        Ok(text) => serde_json::from_str(&text).ok().filter(Value::is_object).ok_or_else(|| {
            FnError::Source(format!("{}: allowed is one JSON object", beside.display()))
        })?,
        Err(_) => json!({}),
    };
    Ok(FolderFunction { name: source.name, action, parameters })
}

/// Deploys functions, given by name and action, on the platform at `address`.
pub(crate) fn deploy<'a>(
    address: SocketAddr,
    key: &str,
    functions: impl IntoIterator<Item = (&'a str, Value)>,
) -> anyhow::Result<()> {
    let connection = Connection { host: format!("http://{address}"), key: key.to_owned() };
    let client = Client::new(connection)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        for (name, action) in functions {
            let path = format!("/actions/{}?overwrite=true", encoded(name));
            client.ask(Method::PUT, &path, Some(&action), &format!("function {name}")).await?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_read_by_name_with_parameters_beside_the_source() {
        let folder = std::env::temp_dir().join(format!("windfall-folder-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text);
        write("b.py", "def main(args): return {}").expect("a file");
        write("a.js", "function main() { return {} }").expect("a file");
        write("b.json", r#"{"name": "you"}"#).expect("a file");
        write("notes.txt", "not a function").expect("a file");
        let found = read(&folder).expect("two functions");
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(found[1].parameters, json!({"name": "you"}));
        assert_eq!(found[1].action["exec"]["kind"], "python:default");
        write("b.json", "[1]").expect("a file");
        assert!(read(&folder).is_err_and(|error| error.to_string().contains("one JSON object")));
        std::fs::remove_dir_all(&folder).expect("it is ours");
        assert!(read(&folder).is_err());
    }
}
