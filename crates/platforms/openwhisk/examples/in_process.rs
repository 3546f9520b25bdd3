//! A server whose actions run inside it, for trying clients and for measuring the API alone:
//! `cargo run --profile quick -p windfall-openwhisk --example in_process -- 127.0.0.1:3233`.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example prints, and ends where it cannot go on"
)]

#[path = "../tests/api/in_process.rs"]
mod in_process;

use std::sync::Arc;

use windfall_openwhisk::{ApiSettings, ApiState, EntityName, Kind, Store, StoreSettings, router};

fn main() {
    let listen = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3233".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store.sqlite"), StoreSettings::default()).unwrap();
    let guest = store.identity(&EntityName::new("guest").unwrap()).unwrap();
    let kinds = ["nodejs:20", "python:3", "builtin"].map(Kind::default_of_family);
    let settings = ApiSettings { kinds: kinds.into(), ..ApiSettings::default() };
    println!("{{\"apihost\":\"http://{listen}\",\"auth\":\"{}\"}}", guest.key);
    let runner = Arc::new(in_process::InProcess::default());
    let state = ApiState::new(runner, store, vec![guest], settings).unwrap();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(&listen).await.unwrap();
        axum::serve(
            axum::serve::ListenerExt::tap_io(listener, |stream| {
                // Small answers go out at once.
                let _ = stream.set_nodelay(true);
            }),
            router(state),
        )
        .await
        .unwrap();
    });
}
