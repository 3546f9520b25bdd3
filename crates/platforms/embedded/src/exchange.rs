//! What is said to an instance: `/init` once, `/run` for every call.

use bytes::Bytes;

use crate::function::FunctionSpec;
use crate::http_client::{ClientError, HttpAnswer};
use crate::link::Link;

/// The longest answer to `/init`.
const LONGEST_INIT: usize = 1 << 20;

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
    // A call that prints much is read while it runs; one that shares its instance leaves that to the others.
    let reading = async {
        match link.output.try_lock() {
            Ok(mut output) => match output.as_mut() {
                Some(output) => output.drain(spec.log_bytes).await,
                None => std::future::pending().await,
            },
            Err(_) => std::future::pending().await,
        }
    };
    let both = async {
        tokio::select! {
            biased;
            done = exchange => done,
            () = reading => Err(ClientError::Malformed("reading logs ended".to_owned())),
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

/// What the call printed.
pub(crate) async fn logs(link: &Link, spec: &FunctionSpec) -> Vec<String> {
    let Ok(mut output) = link.output.try_lock() else { return Vec::new() };
    match output.as_mut() {
        Some(output) => output.finish(spec.log_bytes).await,
        None => Vec::new(),
    }
}
