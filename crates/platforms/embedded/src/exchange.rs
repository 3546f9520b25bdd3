//! What is said to an instance: `/init` once, `/run` for every call.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;

use crate::function::FunctionSpec;
use crate::http_client::{ClientError, HttpAnswer};
use crate::link::Link;

/// The longest answer to `/init`.
const LONGEST_INIT: usize = 1 << 20;
/// How often the output of calls that share an instance is read: at 64 KiB in 5 ms a function prints 13 MB/s unhindered.
const GATHERED_EVERY: Duration = Duration::from_millis(5);

/// How an exchange ended without an answer that counts.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The connection broke, before or after anything was sent.
    Broken,
    /// It took longer than the function may.
    TimedOut,
    /// The answer is longer than allowed.
    TooLong { length: usize, allowed: usize },
    /// Not HTTP, or a refusal of `/init` with this body.
    Refused(Bytes),
}

impl From<ClientError> for Failed {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Broken(_) => Self::Broken,
            ClientError::TooLong { length, allowed } => Self::TooLong { length, allowed },
            ClientError::Malformed(problem) => Self::Refused(problem.into()),
        }
    }
}

/// Loads the function's code into an instance.
pub(crate) async fn initialise(link: &Link, spec: &FunctionSpec) -> Result<(), Failed> {
    let exchange = async {
        let mut connection = link.connection().await?;
        let answer = connection.post("/init", &[&spec.init], LONGEST_INIT).await?;
        Ok::<_, ClientError>((connection, answer))
    };
    let (connection, answer) = match tokio::time::timeout(spec.timeout, exchange).await {
        Ok(done) => done?,
        Err(_) => return Err(Failed::TimedOut),
    };
    if answer.keeps_alive {
        link.keep(connection);
    }
    if answer.status == 200 { Ok(()) } else { Err(Failed::Refused(answer.body)) }
}

/// Runs one call.
pub(crate) async fn run(
    link: &Link,
    spec: &FunctionSpec,
    body: &[&[u8]],
    longest: usize,
) -> Result<HttpAnswer, Failed> {
    let exchange = async {
        let mut connection = link.connection().await?;
        let answer = connection.post("/run", body, longest).await?;
        Ok::<_, ClientError>((connection, answer))
    };
    let _running = link.begin_call();
    let both = async {
        tokio::select! {
            biased;
            done = exchange => done,
            () = read_output(link, spec) => {
                Err(ClientError::Malformed("reading logs ended".to_owned()))
            }
        }
    };
    let (connection, answer) = match tokio::time::timeout(spec.timeout, both).await {
        Ok(done) => done?,
        Err(_) => return Err(Failed::TimedOut),
    };
    if answer.keeps_alive {
        link.keep(connection);
    }
    Ok(answer)
}

/// Reads what a call prints while it runs, so that it never blocks in a full pipe. Never returns.
async fn read_output(link: &Link, spec: &FunctionSpec) {
    loop {
        if link.is_shared.load(Ordering::Relaxed) {
            // What is printed until then fits into the pipe.
            tokio::time::sleep(GATHERED_EVERY).await;
        }
        // One of the calls that share an instance reads for all of them.
        if let Ok(mut output) = link.output.try_lock() {
            match output.as_mut() {
                Some(output) if link.is_shared.load(Ordering::Relaxed) => {
                    output.gather(spec.log_bytes);
                }
                Some(output) => output.drain(spec.log_bytes, &link.is_shared).await,
                None => return std::future::pending().await,
            }
        } else if !link.is_shared.load(Ordering::Relaxed) {
            // Another call has begun to share the instance this moment.
            tokio::time::sleep(GATHERED_EVERY).await;
        }
    }
}

/// What the call printed.
pub(crate) async fn logs(link: &Link, spec: &FunctionSpec) -> Vec<String> {
    let Ok(mut output) = link.output.try_lock() else { return Vec::new() };
    match output.as_mut() {
        Some(output) => {
            output.is_shared |= link.is_shared.load(Ordering::Relaxed);
            output.finish(spec.log_bytes).await
        }
        None => Vec::new(),
    }
}
