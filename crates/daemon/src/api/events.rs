//! Live views: one event a second with the state, and the entries of the tape that are new.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::Stream;
use futures_util::stream::unfold;
use serde_json::json;

use super::ApiState;
use super::reads::status_of;

/// Entries of the tape in one event at most; who wants all of them asks for them.
const MOST: usize = 50;

pub(super) async fn events(
    State(state): State<Arc<ApiState>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let last = state.live().tape.last();
    let beat = tokio::time::interval(Duration::from_secs(1));
    let stream = unfold((state, beat, last), |(state, mut beat, last)| async move {
        beat.tick().await;
        let (event, last) = event_of(&state, last);
        Some((Ok(event), (state, beat, last)))
    });
    Sse::new(stream).keep_alive(KeepAlive::default())
}

fn event_of(state: &ApiState, last: u64) -> (Event, u64) {
    let status = status_of(state);
    let live = state.live();
    let name = |id: u32| live.functions.get(id as usize).map(|one| one.profile.name.clone());
    let new = live.tape.entries().rev().take_while(|entry| entry.id > last).take(MOST);
    let new: Vec<_> = new
        .map(|entry| {
            let mut value = serde_json::to_value(entry).unwrap_or_default();
            value["name"] = entry.function.and_then(name).into();
            value
        })
        .collect();
    let data = json!({ "status": status, "tape": new });
    (Event::default().event("state").data(data.to_string()), live.tape.last())
}
