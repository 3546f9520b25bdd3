//! The client of the benchmark: closed loops over kept connections.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Measured, Part, Task};
use crate::http_client::{ClientError, Connection};

/// Function of the warm parts.
const FUNCTION: &str = "bench-hello";
/// The function of as many calls as possible: one instance takes all connections, as it does without the platform. With a
/// call per instance two cores have room for two calls of a core, and the rest of the connections would measure their queue.
const SHARED: &str = "bench-shared";
/// Calls of one side before the other has its turn.
const BLOCK: u32 = 100;
/// The longest answer.
const LONGEST: usize = 1 << 20;

/// Does the part that `description` names and returns what was measured, as JSON.
pub fn run(description: &str) -> Result<String, String> {
    let part: Part = serde_json::from_str(description).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let measured = runtime.block_on(carry_out(&part)).map_err(|error| error.to_string())?;
    serde_json::to_string(&measured).map_err(|error| error.to_string())
}

async fn carry_out(part: &Part) -> Result<Measured, ClientError> {
    match part.task {
        Task::WarmUp => warm_up(part).await,
        Task::Cold => cold(part).await,
        Task::Overhead => overhead(part).await,
        Task::Calls => Ok(flood(part, Side::Api).await),
        Task::DirectCalls => Ok(flood(part, Side::Direct).await),
    }
}

/// Where a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Api,
    Direct,
}

struct Caller {
    connection: Connection,
    headers: String,
    side: Side,
}

impl Caller {
    async fn open(part: &Part, side: Side) -> Result<Self, ClientError> {
        let address: SocketAddr = match side {
            Side::Api => part.api,
            Side::Direct => part.direct.unwrap_or(part.api),
        };
        let connection = Connection::open(address).await?;
        Ok(Self { connection, headers: format!("Authorization: {}\r\n", part.key), side })
    }

    /// Deploys a function whose instances take so many calls at the same time.
    async fn deploy(&mut self, name: &str, concurrency: u32) -> Result<bool, ClientError> {
        let action = json!({
            "exec": {"kind": "builtin:hello", "code": "hello"},
            "limits": {"memory": 64, "concurrency": concurrency},
            "annotations": [{"key": "cpu", "value": 1.0}],
        });
        let path = format!("/api/v1/namespaces/_/actions/{name}?overwrite=true");
        let head = ["PUT ", &path, &self.headers];
        let body = action.to_string();
        let answer = self.connection.request(head, &[body.as_bytes()], LONGEST).await?;
        Ok(answer.status == 200)
    }

    /// One call; whether it was answered as it should be, and how long it took.
    async fn call(&mut self, path: &str) -> Result<(bool, Duration), ClientError> {
        let begun = Instant::now();
        let answer = match self.side {
            Side::Api => {
                let head = ["POST ", path, self.headers.as_str()];
                self.connection.request(head, &[b"{\"name\":\"Ada\"}"], LONGEST).await?
            }
            Side::Direct => {
                let body: &[u8] = b"{\"value\":{\"name\":\"Ada\"}}";
                self.connection.request(["POST ", "/run", ""], &[body], LONGEST).await?
            }
        };
        let is_fine =
            answer.status == 200 && answer.body.as_ref() == b"{\"greeting\":\"Hello, Ada!\"}";
        Ok((is_fine, begun.elapsed()))
    }
}

fn path_of(name: &str) -> String {
    format!("/api/v1/namespaces/_/actions/{name}?blocking=true&result=true")
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}

async fn warm_up(part: &Part) -> Result<Measured, ClientError> {
    let mut caller = Caller::open(part, Side::Api).await?;
    let mut measured = Measured::default();
    for (name, concurrency) in [(FUNCTION, 1), (SHARED, part.connections)] {
        measured.errors += u64::from(!caller.deploy(name, concurrency).await?);
        for _ in 0..200 {
            let (is_fine, _) = caller.call(&path_of(name)).await?;
            measured.errors += u64::from(!is_fine);
        }
    }
    Ok(measured)
}

async fn cold(part: &Part) -> Result<Measured, ClientError> {
    let mut caller = Caller::open(part, Side::Api).await?;
    let mut measured = Measured::default();
    for number in 0..part.count {
        let name = format!("bench-cold-{number}");
        measured.errors += u64::from(!caller.deploy(&name, 1).await?);
        // Time for the platform to get ready for the next start, as between real ones.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let (is_fine, took) = caller.call(&path_of(&name)).await?;
        measured.errors += u64::from(!is_fine);
        measured.api_ms.push(millis(took));
    }
    Ok(measured)
}

async fn overhead(part: &Part) -> Result<Measured, ClientError> {
    let mut api = Caller::open(part, Side::Api).await?;
    let mut direct = Caller::open(part, Side::Direct).await?;
    let mut measured = Measured::default();
    let path = path_of(FUNCTION);
    for block in 0..(2 * part.count).div_ceil(BLOCK) {
        // A B B A: blocks 0 and 3 of every four are the platform's.
        let is_api = matches!(block % 4, 0 | 3);
        for _ in 0..BLOCK {
            let caller = if is_api { &mut api } else { &mut direct };
            let (is_fine, took) = caller.call(&path).await?;
            measured.errors += u64::from(!is_fine);
            let list = if is_api { &mut measured.api_ms } else { &mut measured.direct_ms };
            list.push(millis(took));
        }
    }
    Ok(measured)
}

/// As many calls as possible for a while, each connection one after another.
async fn flood(part: &Part, side: Side) -> Measured {
    let local = tokio::task::LocalSet::new();
    let begun = Instant::now();
    let until = begun + Duration::from_secs_f64(part.seconds);
    let tasks: Vec<_> = (0..part.connections)
        .map(|_| {
            let part = part.clone();
            local.spawn_local(async move { keep_calling(&part, side, until).await })
        })
        .collect();
    let mut all = Measured::default();
    local
        .run_until(async {
            for task in tasks {
                match task.await {
                    Ok(Ok(one)) => {
                        all.errors += one.errors;
                        all.api_ms.extend(one.api_ms);
                    }
                    Ok(Err(_)) | Err(_) => all.errors += 1,
                }
            }
        })
        .await;
    all.per_second = all.api_ms.len() as f64 / begun.elapsed().as_secs_f64();
    all
}

async fn keep_calling(part: &Part, side: Side, until: Instant) -> Result<Measured, ClientError> {
    let mut caller = Caller::open(part, side).await?;
    let mut measured = Measured::default();
    let path = path_of(SHARED);
    while Instant::now() < until {
        let (is_fine, took) = caller.call(&path).await?;
        measured.errors += u64::from(!is_fine);
        measured.api_ms.push(millis(took));
    }
    Ok(measured)
}
