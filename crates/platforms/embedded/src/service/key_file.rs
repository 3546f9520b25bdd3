//! The key of the one caller, in a file beside the database that only its owner can read.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use windfall_openwhisk::{EntityName, Identity, Store};

use super::ServiceError;

/// The caller who owns `namespace`. The file counts if it is there, so that a key can be brought along; otherwise it
/// is written.
pub(super) fn identity(
    store: &Store,
    database: &Path,
    namespace: &EntityName,
) -> Result<Identity, ServiceError> {
    let path = path_beside(database);
    let failed = |problem: String| ServiceError::KeyFile { path: path.clone(), problem };
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            let key = text.trim().parse().map_err(|bad: windfall_openwhisk::BadKey| {
                failed(format!("{bad}; correct it, or remove it to have a new key written"))
            })?;
            let identity = Identity { namespace: namespace.clone(), key };
            if store.identity(namespace)? != identity {
                store.set_key(namespace, &identity.key)?;
            }
            Ok(identity)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let identity = store.identity(namespace)?;
            write(&path, &identity).map_err(|error| failed(error.to_string()))?;
            Ok(identity)
        }
        Err(error) => Err(failed(error.to_string())),
    }
}

/// `windfall.db` has its key in `windfall.db.key`.
fn path_beside(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".key");
    name.into()
}

fn write(path: &Path, identity: &Identity) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{}", identity.key)
}
